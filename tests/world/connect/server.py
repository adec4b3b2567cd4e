"""Server under test of the Connect conformance suite: the suite's service behind our handler of methods."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Never, TypeAlias

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status

from http_facade.app import Runner, make_app
from http_facade.connect.connect_protocol import code_status
from http_facade.connect.rpc_message_envelopes import Pairs
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.readiness_response import Readiness
from http_facade.exchange.server_settings import Settings
from http_facade.handlers.route_handlers import Handler
from http_facade.handlers.rpc_handler import STREAM_TYPES, ConnectHandler
from http_facade.handlers.rpc_metadata import CallMetadata, FailedCall, RpcMetadata
from http_facade.routes import Route, Shape
from umg_grpc.base.grpc_status import DETAILS_KEY
from umg_grpc.base.inprocess_channel import InProcessChannel, InProcessContext, InProcessServer

SERVICE = "connectrpc.conformance.v1.ConformanceService"
ROUTE = Route("POST", f"/{SERVICE}/{{rpc}}", Shape.CALL_METHOD, "connect", needs_key=False, is_signed=True)
CODES = {code.value[0]: code for code in grpc.StatusCode}

Proto: TypeAlias = Any  # message of the suite's schema, whose code is made at test time


class AllMetadata(CallMetadata):
    """Metadata of which all passes, in both directions, as the suite has it."""

    def request(self, exchange: HttpExchange, *, needs_key: bool) -> list[tuple[str, str]]:
        return list(exchange.request.headers.items())

    def headers(self, initial: RpcMetadata) -> Pairs:
        return tuple((name, value) for name, value in initial or () if isinstance(value, str))

    def trailers(self, trailing: RpcMetadata) -> Pairs:
        return self.headers(trailing)

    def failed(self, failure: Exception, exchange: HttpExchange) -> FailedCall:
        if isinstance(failure, grpc.aio.AioRpcError):
            for name, value in failure.trailing_metadata() or ():
                if name == DETAILS_KEY and isinstance(value, bytes):
                    headers, trailers = failure.initial_metadata(), failure.trailing_metadata()
                    status = Status.FromString(value)
                    return FailedCall(status, code_status(status), self.headers(headers), self.trailers(trailers))
        failed = super().failed(failure, exchange)
        failed.status.ClearField("details")  # those of the gateway; the suite compares their number
        return failed


class Conformance:
    """Service of the suite, which answers as each request defines."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema

    def methods(self) -> dict[str, "grpc.RpcMethodHandler[Any, Any]"]:
        """Return the methods that are served; `Unimplemented` is not, as the suite has it."""
        unary: Callable[..., grpc.RpcMethodHandler[Any, Any]] = grpc.unary_unary_rpc_method_handler
        stream: Callable[..., grpc.RpcMethodHandler[Any, Any]] = grpc.unary_stream_rpc_method_handler
        return {"Unary": unary(self.unary), "ServerStream": stream(self.server_stream)}

    async def unary(self, request: Proto, context: InProcessContext) -> Message:
        """Answer with the data, or fail with the error, of the request."""
        definition, info = request.response_definition, self._info(request, context)
        await context.send_initial_metadata(_pairs(definition.response_headers))
        context.set_trailing_metadata(_pairs(definition.response_trailers))
        await _delay(definition, context)
        if definition.HasField("error"):
            await _fail(definition.error, context, info)
        payload = self._schema.ConformancePayload(data=definition.response_data, request_info=info)
        answer: Message = self._schema.UnaryResponse(payload=payload)
        return answer

    async def server_stream(self, request: Proto, context: InProcessContext) -> AsyncIterator[Message]:
        """Send the data of the request, then fail with its error if it has one."""
        definition, info = request.response_definition, self._info(request, context)
        await context.send_initial_metadata(_pairs(definition.response_headers))
        context.set_trailing_metadata(_pairs(definition.response_trailers))
        first = info
        for data in definition.response_data:
            await _delay(definition, context)
            payload = self._schema.ConformancePayload(data=data, request_info=first)
            yield self._schema.ServerStreamResponse(payload=payload)
            first = None
        if definition.HasField("error"):
            await _fail(definition.error, context, first)

    def _info(self, request: Message, context: InProcessContext) -> Proto:
        received = defaultdict[str, list[str]](list)
        for name, value in context.pairs:
            received[name.lower()].append(str(value))
        info = self._schema.ConformancePayload.RequestInfo(
            request_headers=[self._schema.Header(name=name, value=values) for name, values in received.items()]
        )
        info.requests.add().Pack(request)
        for protocol in STREAM_TYPES.values():
            if given := received.get(protocol.timeout_header):  # the time left would depend on the machine's load
                info.timeout_ms = round(protocol.timeout_seconds(given[0]) * 1000)
        return info


async def _delay(definition: Proto, context: InProcessContext) -> None:
    seconds = definition.response_delay_ms / 1000
    remaining = context.time_remaining()
    await asyncio.sleep(min(seconds, remaining))
    if remaining < seconds:
        await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the deadline was exceeded")


async def _fail(error: Proto, context: InProcessContext, info: Message | None) -> Never:
    status = Status(code=error.code, message=error.message, details=error.details)
    if info is not None:
        detail = AnyMessage()
        detail.Pack(info)
        status.details.append(detail)
    details = (DETAILS_KEY, status.SerializeToString())
    await context.abort(CODES[error.code], error.message, trailing_metadata=(*context.trailing, details))


def _pairs(headers: Iterable[Proto]) -> list[tuple[str, str | bytes]]:
    return [(header.name, value) for header in headers for value in header.value]


def make_handler(route: Route, channel: grpc.aio.Channel, settings: Settings) -> Handler:
    """Return the product's handler of methods, with all metadata."""
    return ConnectHandler(route, channel, settings, AllMetadata()).respond


@asynccontextmanager
async def serving(schema: Any, limit_bytes: int) -> AsyncIterator[int]:
    """Serve the suite's service, with messages up to a limit, and yield the port."""
    server = InProcessServer()
    server.add_registered_method_handlers(SERVICE, Conformance(schema).methods())
    settings = Settings(
        ready=Readiness, metrics=lambda: (b"", "text/plain"), body_limit_bytes=limit_bytes, drain_seconds=1
    )
    runner = Runner(make_app(InProcessChannel(server), settings, [ROUTE], make_handler))
    await runner.setup()
    try:
        yield await runner.listen("127.0.0.1", 0)
    finally:
        await runner.cleanup()
