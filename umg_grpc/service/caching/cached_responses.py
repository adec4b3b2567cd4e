"""Whether a call may have an answer that was given before, and what becomes of it then."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import chain
from types import TracebackType
from typing import Self, TypeVar

from umg_grpc.routing import PublicModel, Router
from umg_grpc.service.cache_key import key_of
from umg_grpc.service.call import Call
from umg_grpc.service.channels import Channels
from umg_grpc.service.metrics import Metrics
from umg_grpc.service.response_cache import MAX_BYTES, Lead, ResponseCache
from umg_grpc.v1 import pb
from umg_grpc.wire.format import BIG_BYTES
from umg_grpc.wire.headers import CACHE, cache_seconds

Request = TypeVar("Request", pb.GenerateRequest, pb.EmbedRequest, pb.RerankRequest)
Response = TypeVar("Response", pb.GenerateResponse, pb.EmbedResponse, pb.RerankResponse)

HIT, MISS, BYPASS = "hit", "miss", "bypass"
"""What `x-umg-cache` says of an answer: given before, made for this call and kept, made and not to be kept."""


@dataclass(frozen=True)
class Kept:
    """Answers that are given again, where the operator or the caller asks for it."""

    cache: ResponseCache
    metrics: Metrics
    channels: Channels

    async def place(self, call: Call, model: PublicModel, operation: str, request: Request) -> "Place | None":
        """Where the answer to the request is kept, or is not; None where nobody asks for it. Raises
        UmgError(INVALID_FIELD) for a header that says neither.
        """
        asked = cache_seconds(call.metadata.get(CACHE))
        seconds = model.cache if asked is None else asked
        if not seconds:
            return None
        owner, router = call.caller.key_id, self.channels.router
        ways = _ways(router, model.id)
        if (len(request.source.body) or request.ByteSize()) < BIG_BYTES:
            key = key_of(owner, operation, ways, request)
        else:
            key = await asyncio.to_thread(key_of, owner, operation, ways, request)
        return Place(self, call, model.id, router, key, seconds)


def _ways(router: Router, model: str) -> list[str]:
    """What a public id leads to: all that answers may come from."""
    targets = {(target.channel.name, target.channel.base_url, target.model) for target in router.targets(model)}
    return [model, *chain.from_iterable(sorted(targets))]


@dataclass(frozen=True)
class Place:
    """Where one answer is kept."""

    kept: Kept
    call: Call
    model: str
    router: Router  # which said where the model leads
    key: str | None  # None for an answer that is not to be kept
    seconds: float

    async def whole(self, make: Callable[[], Awaitable[Response]], kind: type[Response]) -> Response:
        """The kept answer, or the one that `make` makes. Raises what that raises."""
        if self.key is None:
            answer, outcome = await make(), BYPASS
        else:
            left = self.call.seconds_left()
            answer, hit = await self.kept.cache.get_or_make(
                self.key, self.seconds, make, kind, keep=lambda: self.is_exact, seconds=left
            )
            outcome = HIT if hit else MISS
        self.tell(outcome)
        return answer

    async def streamed(self) -> "pb.StreamGenerateResponse | Recording":
        """The kept answer, all of it in one message; else what records the one that is made, to be closed."""
        if self.key is None:
            return Recording(self, None)
        left = self.call.seconds_left()
        found = await self.kept.cache.get_or_lead(self.key, self.seconds, pb.StreamGenerateResponse, seconds=left)
        if isinstance(found, Lead):
            return Recording(self, found)
        self.tell(HIT)
        return found

    @property
    def is_exact(self) -> bool:
        """Whether the answer is what the key says: the provider was told all of the request (another call may find one
        that can be), and the model leads where it did.
        """
        return "x-umg-dropped" not in self.call.headers and self.kept.channels.router is self.router

    def tell(self, outcome: str) -> None:
        """Says it to the caller: only when there is an answer, for a failure is none of the three."""
        call = self.call
        call.headers[CACHE] = outcome
        self.kept.metrics.looked_up(outcome)
        if outcome == HIT:
            call.model, call.is_kept = self.model, True
            if call.caller.show_route:
                call.headers["x-umg-route"] = "channel=; attempts=0; reason=kept answer"


class Recording:
    """Keeps a stream that is made, in the `with` in which it is: as its caller got it, in one message."""

    def __init__(self, place: Place, lead: Lead[pb.StreamGenerateResponse] | None) -> None:
        """Without a lead the stream is not kept."""
        self._place = place
        self._lead = lead
        self._whole = None if lead is None else pb.StreamGenerateResponse()
        self._frames: list[bytes] = []
        self._size = 0
        self._told = False

    def __enter__(self) -> Self:
        if self._lead is not None:
            self._lead.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._lead is not None:
            self._lead.__exit__(kind, error, traceback)

    def feed(self, message: pb.StreamGenerateResponse) -> None:
        """The next message."""
        if not self._told:  # with the first, after which nothing more can be
            self._told = True
            self._place.tell(BYPASS if self._lead is None else MISS)
            if not self._place.is_exact:
                self._give_up()
        if self._whole is None:
            return
        self._size += message.ByteSize()
        if self._size > MAX_BYTES:
            self._give_up()  # it is too large
            return
        self._whole.events.extend(message.events)
        self._frames.append(message.source_frames)

    def close(self) -> None:
        """Its end was seen."""
        if self._lead is not None and self._whole is not None and self._place.is_exact:
            self._whole.source_frames = b"".join(self._frames)
            self._lead.keep(self._whole)

    def _give_up(self) -> None:
        """It will not be kept."""
        self._whole = None
        self._frames.clear()
        if self._lead is not None:
            self._lead.give_up()
