"""Text generation: one request from admission to its answer."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

import structlog
from google.protobuf.message import Message

from umg_grpc.access.limits import RequestLimits
from umg_grpc.errors import UmgError
from umg_grpc.inprocess import Context
from umg_grpc.service.call import Call, current
from umg_grpc.service.channels import Channels
from umg_grpc.service.unserved import not_served
from umg_grpc.service.validation import check
from umg_grpc.upstream.text import TextCall, TextUpstream
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import FORMATS
from umg_grpc.wire.format import BIG_BYTES
from umg_grpc.wire.headers import source_headers

logger = structlog.get_logger()

# Nothing was generated: another channel may be asked without making anything twice.
SAFE_TO_MOVE_ON = frozenset(
    {pb.ERROR_REASON_UPSTREAM_UNREACHABLE, pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, pb.ERROR_REASON_UNAVAILABLE}
)


class GenerationServicer(rpc.GenerationServiceServicer):
    """`umg.v1.GenerationService`."""

    def __init__(self, channels: Channels, limits: RequestLimits, body_limit: int) -> None:
        self._channels = channels
        self._limits = limits
        self._body_limit = body_limit  # of a source document, in bytes: the same that the HTTP face has

    async def Generate(self, request: pb.GenerateRequest, context: Context) -> pb.GenerateResponse:
        """The answer of the first channel that can give one."""
        call = current()
        request = await self._admit(call, request, request)
        failure: UmgError | None = None
        for upstream, model in self._upstreams(call, request.model):
            prepared = await _prepared(call, request, upstream, model, stream=False)
            try:
                response = await prepared.generate(_seconds_left(context))
            except UmgError as error:
                if error.reason not in SAFE_TO_MOVE_ON:
                    raise
                failure = _moving_on(call, error)
                continue
            _complete(response, request.model)
            call.usage = response.usage if response.HasField("usage") else None
            return response
        raise failure or _no_channel(request.model)

    async def StreamGenerate(
        self, request: pb.StreamGenerateRequest, context: Context
    ) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """Moves on to the next channel only while nothing was sent: half an answer cannot be taken back."""
        call = current()
        canonical = await self._admit(call, request, request.request)
        failure: UmgError | None = None
        for upstream, model in self._upstreams(call, canonical.model):
            prepared, sent = await _prepared(call, canonical, upstream, model, stream=True), False
            try:
                async with aclosing(prepared.stream(_seconds_left(context))) as messages:
                    async for message in messages:
                        for event in message.events:
                            _note(call, event, canonical.model)
                        sent = True
                        yield message
            except UmgError as error:
                if sent or error.reason not in SAFE_TO_MOVE_ON:
                    raise
                failure = _moving_on(call, error)
                continue
            return
        raise failure or _no_channel(canonical.model)

    async def CountTokens(self, request: pb.CountTokensRequest, context: Context) -> pb.CountTokensResponse:
        raise not_served("token counting")

    async def GetResponse(self, request: pb.GetResponseRequest, context: Context) -> pb.GetResponseResponse:
        raise not_served("stored responses")

    async def DeleteResponse(self, request: pb.DeleteResponseRequest, context: Context) -> pb.DeleteResponseResponse:
        raise not_served("stored responses")

    async def CancelResponse(self, request: pb.CancelResponseRequest, context: Context) -> pb.CancelResponseResponse:
        raise not_served("stored responses")

    async def ListInputItems(self, request: pb.ListInputItemsRequest, context: Context) -> pb.ListInputItemsResponse:
        raise not_served("stored responses")

    async def _admit(self, call: Call, message: Message, request: pb.GenerateRequest) -> pb.GenerateRequest:
        """The request to serve: what an untrusted source document says, else what the caller filled in. Raises UmgError
        for what breaks a rule of the schema (in `message`, which holds the request), and when the key may not have it
        now.

        What a codec decoded is not held against the rules again: its own are as strict (a test holds every codec to
        that), and a look at each part of a long conversation takes longer than all else here.
        """
        if not request.HasField("source"):
            check(message)
        elif not call.trusted:
            request = await self._decoded(request.source)
        if not (
            request.messages
            or request.instructions
            or request.previous_response_id
            or request.conversation_id
            or request.HasField("prompt_template")
        ):
            text = "messages must not be empty; send at least one"
            raise UmgError(pb.ERROR_REASON_MISSING_FIELD, text, field="messages")
        self._channels.router.model(request.model)  # one that does not exist is 404 for every key
        call.caller.check_model(request.model)
        await self._limits.admit(call.caller)
        return request

    async def _decoded(self, source: pb.SourceDocument) -> pb.GenerateRequest:
        """What the document says, in the words of its own format's errors."""
        if len(source.body) > self._body_limit:
            message = f"source.body is larger than {self._body_limit} bytes, the most that this gateway takes"
            raise UmgError(pb.ERROR_REASON_BODY_TOO_LARGE, message, limit_bytes=str(self._body_limit))
        text_format = FORMATS.get(source.format)
        if text_format is None:
            message = f"source.format: {source.format[:64]!r} is no text format; use one of {', '.join(FORMATS)}"
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="source.format")
        headers = source_headers(text_format.source_headers, source.headers)
        if len(source.body) < BIG_BYTES:
            return text_format.decode_request(source.body, headers).canonical
        return (await asyncio.to_thread(text_format.decode_request, source.body, headers)).canonical

    def _upstreams(self, call: Call, model: str) -> Iterator[tuple[TextUpstream, str]]:
        """Each channel of the model in order, with the id that its provider knows the model by."""
        router, upstreams = self._channels.router, self._channels.upstreams  # which a reload may replace meanwhile
        for target in router.channels(model):
            call.model, call.channel = model, target.channel.name
            yield upstreams[target.channel.name], target.model


async def _prepared(
    call: Call, request: pb.GenerateRequest, upstream: TextUpstream, model: str, *, stream: bool
) -> TextCall:
    """The request as it goes to the channel; what that cannot say is told to the caller. Raises
    UmgError(UNTRANSLATABLE) where that has to be refused.
    """
    if (len(request.source.body) or request.ByteSize()) < BIG_BYTES:
        prepared = upstream.prepare(request, model, stream=stream)
    else:
        prepared = await asyncio.to_thread(upstream.prepare, request, model, stream=stream)
    report = prepared.report
    if call.strict:
        report.refuse()
    if dropped := report.header():
        call.headers["x-umg-dropped"] = dropped
    else:
        call.headers.pop("x-umg-dropped", None)
    return prepared


def _moving_on(call: Call, error: UmgError) -> UmgError:
    """The error, which the log has for each channel that was tried in vain."""
    logger.warning(
        "channel failed",
        request_id=call.request_id,
        channel=call.channel,
        outcome=error.name,
        cause=error.cause or None,
    )
    return error


def _complete(head: pb.GenerateResponse | pb.GenerationStarted, model: str) -> None:
    """Fills in what the provider left out and every format needs, under the id that the caller knows the model by."""
    head.model = model
    head.response_id = head.response_id or f"gen-{secrets.token_hex(16)}"
    if not head.HasField("create_time"):
        head.create_time.FromSeconds(int(time.time()))


def _note(call: Call, event: pb.GenerateEvent, model: str) -> None:
    """What the service itself needs of a stream."""
    if event.HasField("usage"):
        call.usage = event.usage
    elif event.HasField("started"):
        _complete(event.started, model)


def _seconds_left(context: Context) -> float:
    """Until the caller's deadline; infinite without one (a socket's context says None then, whatever its stubs say)."""
    left: object = context.time_remaining()
    return left if isinstance(left, float) else float("inf")


def _no_channel(model: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, f"no channel of the model {model} can serve now; try again")
