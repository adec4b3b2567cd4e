"""Use of the response cache by a call: whether the call may use it, and the response that it returns or stores."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from google.protobuf.message import Message

from umg_grpc.operations import UNARY_BY_REQUEST
from umg_grpc.operations.canonical_message_unions import CanonicalRequest
from umg_grpc.routing import PublicModel, Router
from umg_grpc.service.caching.response_cache import MAX_BYTES, CacheFill, ResponseCache
from umg_grpc.service.caching.response_cache_key import key_of
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.service_metrics import Metrics
from umg_grpc.v1 import pb
from umg_grpc.wire.core.gateway_headers import CACHE_HEADER, ROUTE_HEADER, cache_seconds
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.text_format_interface import BIG_BYTES

Request = TypeVar("Request", bound=CanonicalRequest)
Response = TypeVar("Response", bound=Message)

CACHE_HIT, CACHE_MISS, CACHE_BYPASS = "hit", "miss", "bypass"
"""Values of the header `x-umg-cache`: the response came from the cache, was made and cached, or cannot be cached."""


@dataclass(frozen=True)
class CacheLookup:
    """Entrance to the response cache for the calls of a process, with the metrics that count hits and misses."""

    cache: ResponseCache
    metrics: Metrics
    channels: Channels

    async def entry(
        self, call: Call, model: PublicModel, request: Request, notes: RequestNotes, *, guards: str = ""
    ) -> "CacheEntry | None":
        """Return the cache entry for the response to a request, which may be empty. None if neither the operator nor
        the caller turned caching on for the call. `guards`: digest of the guards of the call, whose decisions a cached
        response contains; "" without any. Raise UmgError(INVALID_FIELD) for a malformed header `x-umg-cache`.
        """
        requested = cache_seconds(call.arrival.metadata.get(CACHE_HEADER))
        seconds = model.cache if requested is None else requested
        if not seconds:
            return None
        owner, operation, router = call.caller.key_id, call.arrival.method, self.channels.router
        ways = [*_targets_of(router, model.id), *([guards] if guards else ())]
        row = UNARY_BY_REQUEST.get(type(request))
        has_files = isinstance(request, pb.GenerateImageRequest) or (row is not None and bool(row.file_field))
        if not has_files and (len(request.source.body) or request.ByteSize()) < BIG_BYTES:
            key = key_of(owner, operation, ways, request, notes)
        else:
            key = await asyncio.to_thread(key_of, owner, operation, ways, request, notes)
        return CacheEntry(self, call, model.id, router, key, seconds)


def _targets_of(router: Router, model: str) -> list[str]:
    targets = {(target.channel.name, target.channel.base_url, target.model) for target in router.targets(model)}
    return [model, *chain.from_iterable(sorted(targets))]


@dataclass(frozen=True)
class CacheEntry:
    """Place in the response cache for the response of one call. It may be empty."""

    lookup: CacheLookup
    call: Call
    model: str
    router: Router  # the router from which the key was computed
    key: str | None  # None for a response that must not be cached
    seconds: float  # maximum age of a cached response, and its lifetime

    async def whole(self, make: Callable[[], Awaitable[Response]], kind: type[Response]) -> Response:
        """Return the cached response. If there is none, return and cache that of `make`, or raise its errors."""
        if self.key is None:
            response, outcome = await make(), CACHE_BYPASS
        else:
            left = self.call.seconds_left()
            response, hit = await self.lookup.cache.get_or_make(
                self.key, self.seconds, make, kind, keep=lambda: self.is_exact, seconds=left
            )
            outcome = CACHE_HIT if hit else CACHE_MISS
        self.report(outcome)
        return response

    async def streamed(
        self, make: Callable[[], AsyncGenerator[pb.StreamGenerateResponse, None]]
    ) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """Yield the cached stream as one message. If there is none, call `make`, cache the stream that it returns, and
        yield the messages of this stream as they come.
        """
        found = None
        if self.key is not None:
            found = await self.lookup.cache.get_or_fill(
                self.key, self.seconds, pb.StreamGenerateResponse, seconds=self.call.seconds_left()
            )
        if isinstance(found, pb.StreamGenerateResponse):
            self.report(CACHE_HIT)
            yield found
            return
        async with aclosing(Recording(self, found).record(make())) as messages:
            async for message in messages:
                yield message

    @property
    def is_exact(self) -> bool:
        """Whether the response answers exactly the request of the key, and may be cached. The provider must have got
        all fields (another call's channel may support more); since the call began, no config was reloaded and no guard
        failed.
        """
        guards = self.call.facts.guards
        is_checked = guards is None or not guards.has_failed
        return is_checked and self.call.changes is None and self.lookup.channels.router is self.router

    def report(self, outcome: str) -> None:
        """Count the outcome of a call with a response, and set its header `x-umg-cache`; not for calls with errors."""
        call = self.call
        call.headers[CACHE_HEADER] = outcome
        self.lookup.metrics.count_cache_lookup(outcome)
        if outcome == CACHE_HIT:
            call.facts.model, call.facts.is_cached = self.model, True
            if call.caller.show_route:
                route = f"channel=; attempts={call.facts.attempts}; reason=cached response"
                call.headers[ROUTE_HEADER] = f"{call.facts.fallback_route}{route}"


class Recording:
    """Recorder of a stream: passes its messages on to the caller, and caches the complete stream as one message."""

    def __init__(self, entry: CacheEntry, lead: CacheFill[pb.StreamGenerateResponse] | None) -> None:
        """Create the recorder of a call's stream. `lead`: context in which this call makes the response for which
        others wait; None for a stream that must not be cached.
        """
        self._entry = entry
        self._lead = lead
        self._message = None if lead is None else pb.StreamGenerateResponse()
        self._frames: list[bytes] = []
        self._size = 0
        self._reported = False

    async def record(
        self, messages: AsyncGenerator[pb.StreamGenerateResponse, None]
    ) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """Yield the messages of a stream as they come. At its end, cache them, if the stream is complete."""
        async with aclosing(messages):
            with self._lead or nullcontext():
                async for message in messages:
                    self._add(message)
                    yield message
                self._keep()

    def _add(self, message: pb.StreamGenerateResponse) -> None:
        if not self._reported:  # headers can be set only before the first message
            self._reported = True
            self._entry.report(CACHE_BYPASS if self._lead is None else CACHE_MISS)
            if not self._entry.is_exact:
                self._give_up()
        if self._message is None:
            return
        self._size += message.ByteSize()
        if self._size > MAX_BYTES:
            self._give_up()  # the stream is too large to be cached
            return
        self._message.events.extend(message.events)
        self._frames.append(message.source_frames)

    def _keep(self) -> None:
        if self._lead is not None and self._message is not None and self._entry.is_exact:
            self._message.source_frames = b"".join(self._frames)
            self._lead.keep(self._message)

    def _give_up(self) -> None:
        self._message = None
        self._frames.clear()
        if self._lead is not None:
            self._lead.give_up()
