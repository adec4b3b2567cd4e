"""One request, one answer (embedding, reranking): from a caller's message to the answer of the first channel that can
give one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from umg_grpc.access.limits import RequestLimits
from umg_grpc.routing import VERBS, Operation, PublicModel, Target, Wish, model_not_found
from umg_grpc.service.call import Call, current
from umg_grpc.service.channels import Channels
from umg_grpc.service.course import Course, Try
from umg_grpc.service.hedging import first_to_answer
from umg_grpc.service.kept import Kept
from umg_grpc.service.resilience import Resilience
from umg_grpc.service.sources import read_source
from umg_grpc.service.validation import check
from umg_grpc.upstream.unary import UnaryCall, UnaryUpstream
from umg_grpc.v1 import pb
from umg_grpc.wire.unary import UnaryFormat

Request = TypeVar("Request", pb.EmbedRequest, pb.RerankRequest)
Response = TypeVar("Response", pb.EmbedResponse, pb.RerankResponse)


class Served(NamedTuple, Generic[Request]):
    """A request that may be served."""

    call: Call
    request: Request
    model: PublicModel


class Attempt(NamedTuple, Generic[Response]):
    """A channel to try."""

    target: Target
    call: UnaryCall[Response]


class Unary(Generic[Request, Response]):
    """Serves one operation."""

    def __init__(
        self,
        channels: Channels,
        limits: RequestLimits,
        body_limit: int,
        operation: Operation,
        formats: Mapping[str, UnaryFormat[Request, Response]],
        upstreams: Callable[[Channels], Mapping[str, UnaryUpstream[Request, Response]]],
        shared: Resilience,
        kept: Kept,
    ) -> None:
        """`body_limit`: of a source document, in bytes: the same that the HTTP face has. `formats`: by face.
        `upstreams`: by channel, as they are now.
        """
        self._channels = channels
        self._limits = limits
        self._body_limit = body_limit
        self._operation = operation
        self._shared = shared
        self._kept = kept
        self._formats: Mapping[str, UnaryFormat[Request, Response]] = formats
        self._upstreams: Callable[[Channels], Mapping[str, UnaryUpstream[Request, Response]]] = upstreams

    async def admit(self, message: Request) -> Served[Request]:
        """The request to serve: what an untrusted source document says, else what the caller filled in. Raises UmgError
        for what breaks a rule of the schema, and when the key may not have it now. What a codec decoded is not held
        against the rules again: its own are as strict (a test holds every codec to that).
        """
        call, request = current(), message
        if not request.HasField("source"):
            check(request)
        elif not call.trusted:
            request = await self._decoded(request)
        resolved = self._channels.router.resolve(request.model)
        if resolved.suffix is not None:  # which says how a text model thinks
            raise model_not_found(request.model)
        model = resolved.model
        call.caller.check_model(model.id, resolved.alias)
        self._channels.router.check(model.id, self._operation, call.caller.channels)
        await self._limits.admit(call.caller)
        call.model = model.id  # also of one that comes to no channel
        return Served(call, request, model)

    async def answer(
        self,
        served: Served[Request],
        kind: type[Response],
        adapt: Callable[[Target], Awaitable[Request]] | None = None,
    ) -> Response:
        """The answer that was kept, else that of the first channel that can give one. `adapt`: the request as a target
        takes it, where that is not the same for all.
        """
        call, request, model = served
        place = await self._kept.place(call, model, VERBS[self._operation], request)
        if place is None:
            return await self._made(served, adapt)
        return await place.whole(lambda: self._made(served, adapt), kind)

    async def _made(self, served: Served[Request], adapt: Callable[[Target], Awaitable[Request]] | None) -> Response:
        """The answer of the first channel that can give one."""
        call, request, model = served
        face = self._formats.get(request.source.format)
        wish = Wish(
            protocol=face.protocol if face else "",
            pins=call.caller.channels,
            well=self._shared.is_well,
        )
        attempts: Attempts[Request, Response] = Attempts(
            served,
            self._channels.router.channels(model.id, self._operation, wish),
            face.wire_path if face else None,
            self._shared,
            self._upstreams(self._channels),
            adapt,
        )
        async for attempt in attempts:
            with attempts.trying(attempt) as tried:
                return await self._answered(served, attempts, tried)
        raise AssertionError  # attempts end by a failure

    async def _answered(
        self, served: Served[Request], attempts: "Attempts[Request, Response]", tried: Try[Attempt[Response]]
    ) -> Response:
        """What the attempt answers, or, where it is slow to, another."""
        call, hedge = served.call, served.model.hedge
        if hedge is None or not attempts.has_others:
            return await tried.attempt.call.send(call.seconds_left())
        return await first_to_answer(attempts, tried, hedge, lambda attempt: attempt.call.send(call.seconds_left()))

    async def _decoded(self, given: Request) -> Request:
        def decode(codec: UnaryFormat[Request, Response], body: bytes, headers: Mapping[str, str]) -> Request:
            request = codec.decode_request(body, headers)
            if codec.name_model is not None:
                codec.name_model(request, given.model)
            return request

        none = f"no format to {VERBS[self._operation]} in"
        return await read_source(given.source, self._formats, decode, none=none, limit=self._body_limit)


class Attempts(Course[Attempt[Response]], Generic[Request, Response]):
    """Hands out the channels of one request."""

    def __init__(
        self,
        served: Served[Request],
        targets: list[Target],
        wire_path: Callable[[str], str] | None,
        shared: Resilience,
        upstreams: Mapping[str, UnaryUpstream[Request, Response]],
        adapt: Callable[[Target], Awaitable[Request]] | None,
    ) -> None:
        super().__init__(served.call, served.model.id, targets, wire_path, shared, served.request.model)
        self._request: Request = served.request
        self._upstreams: Mapping[str, UnaryUpstream[Request, Response]] = upstreams
        self._adapt: Callable[[Target], Awaitable[Request]] | None = adapt

    async def _attempt(self, target: Target) -> Attempt[Response]:
        upstream = self._upstreams[target.channel.name]
        request = self._request if self._adapt is None else await self._adapt(target)
        if (len(request.source.body) or request.ByteSize()) < upstream.slow_bytes:
            prepared = upstream.prepare(request, target.model)
        else:
            prepared = await asyncio.to_thread(upstream.prepare, request, target.model)
        self._tell(prepared.report)
        return Attempt(target, prepared)
