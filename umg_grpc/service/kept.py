"""Whether a call may have an answer that was given before, and what becomes of it then."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

from umg_grpc.routing import PublicModel
from umg_grpc.service.cache_key import key_of
from umg_grpc.service.call import Call
from umg_grpc.service.metrics import Metrics
from umg_grpc.service.response_cache import MAX_BYTES, Lead, ResponseCache
from umg_grpc.v1 import pb
from umg_grpc.wire.format import BIG_BYTES
from umg_grpc.wire.headers import CACHE, cache_seconds

Request = TypeVar("Request", pb.GenerateRequest, pb.EmbedRequest, pb.RerankRequest)
Response = TypeVar("Response", pb.GenerateResponse, pb.EmbedResponse, pb.RerankResponse)

HIT, MISS, BYPASS = "hit", "miss", "bypass"
"""What `x-umg-cache` says of an answer: given before, made for this call and kept, made and not to be kept."""


class Kept:
    """Answers that are given again, where the operator or the caller asks for it."""

    def __init__(self, cache: ResponseCache, metrics: Metrics) -> None:
        self._cache = cache
        self._metrics = metrics

    async def place(self, call: Call, model: PublicModel, operation: str, request: Request) -> "Place | None":
        """Where the answer to the request is kept; None where none is wanted, or may be. Raises UmgError(INVALID_FIELD)
        for a header that says neither.
        """
        asked = cache_seconds(call.metadata.get(CACHE))
        seconds = model.cache if asked is None else asked
        if not seconds:
            return None
        owner = call.caller.key_id
        if (len(request.source.body) or request.ByteSize()) < BIG_BYTES:
            key = key_of(owner, operation, request)
        else:
            key = await asyncio.to_thread(key_of, owner, operation, request)
        if key is not None:
            return Place(self._cache, self._metrics, call, model.id, key, seconds)
        call.headers[CACHE] = BYPASS
        self._metrics.looked_up(BYPASS)
        return None


@dataclass(frozen=True)
class Place:
    """Where one answer is kept."""

    cache: ResponseCache
    metrics: Metrics
    call: Call
    model: str
    key: str
    seconds: float

    async def whole(self, make: Callable[[], Awaitable[Response]], kind: type[Response]) -> Response:
        """The kept answer, or the one that `make` makes. Raises what that raises."""
        left = self.call.seconds_left()
        answer, hit = await self.cache.get_or_make(
            self.key, self.seconds, make, kind, keep=lambda: self.is_exact, seconds=left
        )
        self._tell(hit=hit)
        return answer

    async def streamed(self) -> "pb.StreamGenerateResponse | Recording":
        """The kept answer, all of it in one message; else what records the one that is made, to be closed."""
        left = self.call.seconds_left()
        found = await self.cache.get_or_lead(self.key, self.seconds, pb.StreamGenerateResponse, seconds=left)
        hit = isinstance(found, pb.StreamGenerateResponse)
        self._tell(hit=hit)
        return found if isinstance(found, pb.StreamGenerateResponse) else Recording(self, found)

    @property
    def is_exact(self) -> bool:
        """Whether the provider was told all of the request: another call may find one that can be."""
        return "x-umg-dropped" not in self.call.headers

    def _tell(self, *, hit: bool) -> None:
        call = self.call
        call.headers[CACHE] = HIT if hit else MISS
        self.metrics.looked_up(HIT if hit else MISS)
        if hit:
            call.model, call.is_kept = self.model, True
            if call.caller.show_route:
                call.headers["x-umg-route"] = "channel=; attempts=0; reason=kept answer"


class Recording:
    """Keeps a stream that is made, in the `with` in which it is: as its caller got it, in one message."""

    def __init__(self, place: Place, lead: Lead[pb.StreamGenerateResponse]) -> None:
        self._place = place
        self._lead = lead
        self._whole: pb.StreamGenerateResponse | None = pb.StreamGenerateResponse()
        self._frames: list[bytes] = []
        self._size = 0

    def __enter__(self) -> Self:
        self._lead.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lead.__exit__(kind, error, traceback)

    def feed(self, message: pb.StreamGenerateResponse) -> None:
        """The next message."""
        if self._whole is None:
            return
        self._size += message.ByteSize()
        if self._size > MAX_BYTES:
            self._whole = None  # too large to be kept
            self._frames.clear()
            return
        self._whole.events.extend(message.events)
        self._frames.append(message.source_frames)

    async def close(self) -> None:
        """Its end was seen."""
        if self._whole is not None and self._place.is_exact:
            self._whole.source_frames = b"".join(self._frames)
            await self._lead.keep(self._whole)
