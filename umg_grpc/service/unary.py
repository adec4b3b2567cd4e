"""One request, one answer (embedding, reranking): from a caller's message to the answer of the first channel that can
give one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from umg_grpc.access.limits import RequestLimits
from umg_grpc.errors import UmgError
from umg_grpc.inprocess import Context
from umg_grpc.routing import VERBS, Operation, PublicModel, Target, model_not_found
from umg_grpc.service.call import Call, current
from umg_grpc.service.channels import Channels
from umg_grpc.service.choice import (
    Choice,
    is_safe_to_move_on,
    moving_on,
    nearest_first,
    no_channel,
    seconds_left,
    under_public_name,
)
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
    ) -> None:
        """`body_limit`: of a source document, in bytes: the same that the HTTP face has. `formats`: by face.
        `upstreams`: by channel, as they are now.
        """
        self._channels = channels
        self._limits = limits
        self._body_limit = body_limit
        self._operation = operation
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
        call.caller.check_model(model.id)
        self._channels.router.check(model.id, self._operation)
        await self._limits.admit(call.caller)
        return Served(call, request, model)

    async def answer(
        self,
        served: Served[Request],
        context: Context,
        adapt: Callable[[Target], Awaitable[Request]] | None = None,
    ) -> Response:
        """The answer of the first channel that can give one. `adapt`: the request as a target takes it, where that is
        not the same for all.
        """
        call, request, model = served
        face = self._formats.get(request.source.format)
        targets = self._channels.router.channels(model.id, self._operation)
        attempts: Attempts[Request, Response] = Attempts(
            served,
            nearest_first(targets, face.protocol if face else ""),
            face.wire_path if face else None,
            self._upstreams(self._channels),
            adapt,
        )
        failure: UmgError | None = None
        while (attempt := await attempts.next()) is not None:
            try:
                return await attempt.call.send(seconds_left(context))
            except UmgError as error:
                told = under_public_name(error, attempt.target, request.model)
                if not is_safe_to_move_on(error):
                    raise told from None
                failure = moving_on(call, told)
        raise failure or no_channel(request.model)

    async def _decoded(self, given: Request) -> Request:
        def decode(codec: UnaryFormat[Request, Response], body: bytes, headers: Mapping[str, str]) -> Request:
            request = codec.decode_request(body, headers)
            if codec.name_model is not None:
                codec.name_model(request, given.model)
            return request

        none = f"no format to {VERBS[self._operation]} in"
        return await read_source(given.source, self._formats, decode, none=none, limit=self._body_limit)


class Attempts(Choice[Attempt[Response]], Generic[Request, Response]):
    """Hands out the channels of one request."""

    def __init__(
        self,
        served: Served[Request],
        targets: list[Target],
        wire_path: Callable[[str], str] | None,
        upstreams: Mapping[str, UnaryUpstream[Request, Response]],
        adapt: Callable[[Target], Awaitable[Request]] | None,
    ) -> None:
        super().__init__(served.call, served.model.id, targets, wire_path)
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
