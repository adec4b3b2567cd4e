"""Handler of the methods of one service by the Connect protocol."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc
from aiohttp import hdrs, web
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from http_facade import connect_protocol as protocol
from http_facade.errors import explain
from http_facade.event_stream import EventStream
from http_facade.exchange import Exchange
from http_facade.grpc_calls import attach, keyless_metadata, metadata, opened, response_headers
from http_facade.large_work import run_large
from http_facade.request_bodies import BodyReader, check_content_type, essence_of
from http_facade.routes import Route
from http_facade.settings import Settings
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.request_bodies import decode_body

MAX_ERROR_CHARACTERS = 300


@dataclass(frozen=True)
class Method:
    """Method of the service. Its callable returns a message from a service in this process, and the bytes of a message
    over a socket.
    """

    request: type[Message]
    response: type[Message]
    is_stream: bool
    call: Any  # generic in its messages, which are not typed here

    async def parse(self, body: bytes, *, in_json: bool) -> Message:
        """Return the request in a body. Raise UmgError(MALFORMED_BODY)."""
        if in_json:
            return await run_large(lambda: decode_body(lambda text, _: self._from_json(text), body, {}), len(body))
        return await run_large(lambda: self._from_bytes(body), len(body))

    def _from_bytes(self, body: bytes) -> Message:
        try:
            return self.request.FromString(body)
        except DecodeError:
            message = f"the body is not a {self.request.DESCRIPTOR.full_name} in protobuf"
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, message)

    def _from_json(self, body: bytes) -> Message:
        try:
            return json_format.Parse(body, self.request())
        except json_format.ParseError as error:
            why = str(error)[:MAX_ERROR_CHARACTERS]
        name = self.request.DESCRIPTOR.full_name
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the body is not the JSON of a {name}: {why}")

    async def encode(self, answer: Message | bytes, *, in_json: bool) -> bytes:
        """Return the bytes of an answer."""
        if isinstance(answer, bytes):
            if not in_json:
                return answer
            answer = self.response.FromString(answer)
        encode: Callable[[Message], bytes] = _to_json if in_json else _to_bytes
        return await run_large(lambda: encode(answer), answer.ByteSize())


class Frames:
    """Frames that end a stream which a shutdown cuts off."""

    def cut(self, error: UmgError) -> bytes:
        """Return the end of the stream with the error."""
        return protocol.end_of_stream(error)

    def release(self) -> None:
        """Do nothing: no part of the answer is kept."""


class ConnectHandler:
    """Handler of one route: a service, whose method is in the path."""

    def __init__(self, route: Route, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._service = route.path.split("/")[1]
        self._needs_key = route.needs_key
        self._bodies = BodyReader(route.format, (), channel, settings)
        self._settings = settings
        methods = Default().FindServiceByName(self._service).methods
        self._methods = {method.name: _method(method, channel) for method in methods}

    async def answer(self, exchange: Exchange) -> web.StreamResponse:
        """Return the answer of the method, or stream its answers."""
        name = exchange.parameters["rpc"]
        if (method := self._methods.get(name)) is None:
            message = f"{self._service} has no such method; it has {', '.join(self._methods)}"
            raise UmgError(pb.ERROR_REASON_PATH_NOT_FOUND, message, path=exchange.request.path)
        if method.is_stream:
            return await self._stream(exchange, method)
        body = await self._bodies.receive(exchange, protocol.UNARY_TYPES, needs_key=self._needs_key)
        kind = _content_type(exchange, protocol.JSON)
        in_json = kind == protocol.JSON
        call = self._call(exchange, method, await method.parse(body, in_json=in_json))
        answer = await call
        headers = {hdrs.CONTENT_TYPE: kind, **response_headers(await call.initial_metadata())}
        return web.Response(headers=headers, body=await method.encode(answer, in_json=in_json))

    async def _stream(self, exchange: Exchange, method: Method) -> web.StreamResponse:
        """Stream the answers. A failure is in the last envelope, as the protocol has it, also one before the first."""
        kind = _content_type(exchange, "")
        check_content_type(kind or "none", protocol.STREAM_TYPES)
        events = EventStream(exchange, Frames(), kind, b"", self._settings)
        async with events:
            headers = dict[str, str]()
            try:
                await self._send(exchange, method, events, in_json=kind == protocol.STREAM_JSON)
                end = protocol.end_of_stream()
            except ConnectionError:  # of the client; that of a provider is an RPC error
                raise
            except Exception as failure:
                if isinstance(failure, grpc.aio.AioRpcError):
                    headers = response_headers(failure.trailing_metadata())
                end = _end_failed(exchange, failure)
            if not events.response.prepared:
                await events.begin(headers)
            await events.write(end)
        return events.response

    async def _send(self, exchange: Exchange, method: Method, events: EventStream, *, in_json: bool) -> None:
        """Call the method and send its messages."""
        body = await self._bodies.receive(exchange, protocol.STREAM_TYPES, needs_key=self._needs_key)
        request = await method.parse(protocol.opened_envelope(body), in_json=in_json)
        call = self._call(exchange, method, request)
        async with opened(call):
            async for answer in call:
                if not events.response.prepared:
                    await events.begin(response_headers(await call.initial_metadata()))
                await events.write_large(protocol.envelope(await method.encode(answer, in_json=in_json)))
            if not events.response.prepared:
                await events.begin(response_headers(await call.initial_metadata()))

    def _call(self, exchange: Exchange, method: Method, request: Message) -> Any:  # noqa: ANN401  as `Method.call`
        """Begin a call of the method. Raise UmgError for a header with an invalid value."""
        headers = exchange.request.headers
        protocol.check_headers(headers)
        timeout = protocol.timeout_seconds(headers, time.monotonic() - exchange.began_at)
        make = metadata if self._needs_key else keyless_metadata
        pairs = make(exchange, protocol.CONNECT)
        return attach(method.call, None, exchange.known_key)(request, metadata=pairs, timeout=timeout)


def _method(method: MethodDescriptor, channel: grpc.aio.Channel) -> Method:
    if method.containing_service is None:
        raise ValueError(f"{method.full_name} belongs to no service")
    make = channel.unary_stream if method.server_streaming else channel.unary_unary
    path = f"/{method.containing_service.full_name}/{method.name}"
    request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    return Method(request, response, method.server_streaming, make(path, _to_bytes))


def _content_type(exchange: Exchange, default: str) -> str:
    return essence_of(exchange.request.headers.get(hdrs.CONTENT_TYPE, default))


def _end_failed(exchange: Exchange, failure: Exception) -> bytes:
    """Return the end of a failed stream. A function of its own, so that no variable keeps the error."""
    error = explain(failure, exchange, protocol.CONNECT)
    exchange.failure = error.name
    return protocol.end_of_stream(error)


def _to_json(message: Message) -> bytes:
    return json_format.MessageToJson(message, indent=None, ensure_ascii=False).encode()


def _to_bytes(message: Message) -> bytes:
    return message.SerializeToString()
