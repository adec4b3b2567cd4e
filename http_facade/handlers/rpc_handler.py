"""Handler of RPCs over HTTP: the methods of one gRPC service, called by the Connect protocol or by gRPC-Web."""

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import grpc
from aiohttp import hdrs, web
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from multidict import CIMultiDict

from http_facade.body_decompression import DECOMPRESSION_WINDOWS
from http_facade.connect import connect_protocol, grpc_web
from http_facade.connect.rpc_message_envelopes import (
    ENVELOPE_HEAD,
    IDENTITY_ENCODING,
    EnvelopedProtocol,
    Pairs,
    envelope,
    opened_message,
)
from http_facade.connect.rpc_status import status_of
from http_facade.exchange.event_stream_response import EventStream
from http_facade.exchange.grpc_service_calls import MIN_TIMEOUT_SECONDS, attach, expect_early_metadata, opened
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.request_bodies import BodyReader, essence_of
from http_facade.exchange.server_settings import Settings
from http_facade.handlers.grpc_methods_by_name import RpcMethod, methods_of
from http_facade.handlers.rpc_metadata import AdministrativeMetadata, CallMetadata
from http_facade.routes import Route
from umg_grpc.base.errors import UmgError
from umg_grpc.operations import ADMINISTRATIVE_SERVICES
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import echo

STREAM_TYPES: dict[str, EnvelopedProtocol] = {**connect_protocol.CONNECT_STREAMS, **grpc_web.GRPC_WEB_TYPES}
WEB_TYPES: dict[str, EnvelopedProtocol] = {**grpc_web.GRPC_WEB_TYPES}
OK_STATUS = Status()


class Frames:
    """Encoder of the envelope with an error by which `EventStream` ends a stream of messages at a shutdown."""

    reservation = None  # it keeps nothing of the response, see `EncodedResponse`

    def __init__(self, protocol: EnvelopedProtocol) -> None:
        self._protocol = protocol

    def cut(self, error: UmgError) -> bytes:
        """Return the envelope that ends the stream with the error."""
        return self._protocol.end(status_of(error), ())


class ConnectHandler:
    """Handler of one gRPC service's route, for the Connect protocol and gRPC-Web. The path names the method
    (`/umg.v1.ModelService/ListModels`), the content type the protocol and the encoding.
    """

    def __init__(
        self, route: Route, channel: grpc.aio.Channel, settings: Settings, metadata: CallMetadata | None = None
    ) -> None:
        """Create a handler for the route's service. `metadata`: converts headers to and from a call's metadata."""
        self._service = route.path.split("/")[1]
        self._needs_key = route.needs_key
        self._bodies = BodyReader(route.format, (), channel, settings)
        self._settings = settings
        is_administrative = self._service.removeprefix("umg.v1.") in ADMINISTRATIVE_SERVICES
        self._metadata = metadata or (AdministrativeMetadata() if is_administrative else CallMetadata())
        self._methods = methods_of(self._service, channel)

    async def respond(self, exchange: HttpExchange) -> web.StreamResponse:
        """Call the method in the path. Return its response, or stream its responses."""
        name = exchange.parameters["rpc"]
        if (method := self._methods.get(name)) is None:
            message = f"{self._service} has no such method; it has {', '.join(self._methods)}"
            raise UmgError(pb.ERROR_REASON_PATH_NOT_FOUND, message, path=exchange.request.path)
        kind = essence_of(exchange.request.headers.get(hdrs.CONTENT_TYPE, ""))
        enveloped = STREAM_TYPES if method.is_stream else WEB_TYPES
        if (protocol := enveloped.get(kind)) is not None:
            return await self._stream(exchange, method, protocol, kind)
        kind, accepted = kind or connect_protocol.JSON_TYPE, (*connect_protocol.UNARY_TYPES, *WEB_TYPES)
        if method.is_stream or kind not in connect_protocol.UNARY_TYPES:
            return _unsupported_type(kind, STREAM_TYPES if method.is_stream else accepted)
        try:
            return await self._unary(exchange, method, kind)
        except ConnectionError:  # of the client; that of a provider is an RPC error
            raise
        except Exception as failure:
            return self._unary_failed(exchange, failure)

    async def _unary(self, exchange: HttpExchange, method: RpcMethod, kind: str) -> web.Response:
        """Call a method by the unary form of the Connect protocol, whose bodies are bare messages."""
        sent = exchange.request.headers
        encoding = sent.get(hdrs.CONTENT_ENCODING, IDENTITY_ENCODING).strip().lower()
        if encoding not in {"", IDENTITY_ENCODING, *DECOMPRESSION_WINDOWS}:
            message = f"send the body uncompressed or with content-encoding: gzip or deflate, not {echo(encoding)}"
            raise UmgError(pb.ERROR_REASON_NOT_IMPLEMENTED, message)
        body = await self._bodies.receive(exchange, connect_protocol.UNARY_TYPES, needs_key=self._needs_key)
        in_json = kind == connect_protocol.JSON_TYPE
        connect_protocol.check_version(sent)
        timeout = _timeout(exchange, connect_protocol.TIMEOUT_HEADER, connect_protocol.timeout_seconds)
        call = self._call(exchange, method, await method.parse(body, in_json=in_json), timeout)
        response = await call
        headers = self._metadata.headers(await call.initial_metadata())
        trailers = self._metadata.trailers(await call.trailing_metadata())
        encoded = await method.encode(response, in_json=in_json)
        return web.Response(headers=_with_trailers(headers, trailers, kind), body=encoded)

    def _unary_failed(self, exchange: HttpExchange, failure: Exception) -> web.Response:
        failed = self._metadata.failed(failure, exchange)
        headers = _with_trailers(failed.headers, failed.trailers, connect_protocol.JSON_TYPE)
        body = connect_protocol.encode_status(failed.status)
        response = web.Response(status=failed.http_status, headers=headers, body=body)
        if exchange.is_body_unread:
            response.force_close()
        return response

    async def _stream(
        self, exchange: HttpExchange, method: RpcMethod, protocol: EnvelopedProtocol, kind: str
    ) -> web.StreamResponse:
        events = EventStream(exchange, Frames(protocol), kind, b"", self._settings)
        async with events:
            headers: Pairs = ()
            try:
                trailers = await self._send(exchange, method, protocol, events)
                end = protocol.end(OK_STATUS, trailers)
            except ConnectionError:  # of the client; that of a provider is an RPC error
                raise
            except Exception as failure:
                headers, end = self._end_failed(exchange, protocol, failure)
            if not exchange.is_begun:
                await events.begin(CIMultiDict(headers))
            await events.write(end)
        return events.response

    async def _send(
        self, exchange: HttpExchange, method: RpcMethod, protocol: EnvelopedProtocol, events: EventStream
    ) -> Pairs:
        """Call the method with the message in the body, and send each response in an envelope of `events`."""
        sent = exchange.request.headers
        if isinstance(protocol, connect_protocol.ConnectStream):
            connect_protocol.check_version(sent)
        body = await self._bodies.receive(
            exchange, STREAM_TYPES, needs_key=self._needs_key, envelope_bytes=ENVELOPE_HEAD.size
        )
        encoding = sent.get(protocol.encoding_header, IDENTITY_ENCODING)
        message = await opened_message(body, encoding, protocol.encoding_header, self._settings.body_limit_bytes)
        request = await method.parse(message, in_json=protocol.in_json)
        timeout = _timeout(exchange, protocol.timeout_header, protocol.timeout_seconds)
        call = self._call(exchange, method, request, timeout)
        async with _responses(method, call) as responses:
            if method.is_stream:
                convert = self._metadata.headers
                await expect_early_metadata(call, lambda initial: events.begin_now(CIMultiDict(convert(initial))))
            async for response in responses:
                if not exchange.is_begun:
                    await self._begin(events, call)
                await events.write_large(envelope(await method.encode(response, in_json=protocol.in_json)))
            if not exchange.is_begun:
                await self._begin(events, call)
            return self._metadata.trailers(await call.trailing_metadata())

    async def _begin(self, events: EventStream, call: grpc.aio.Call) -> None:
        await events.begin(CIMultiDict(self._metadata.headers(await call.initial_metadata())))

    def _call(self, exchange: HttpExchange, method: RpcMethod, request: Message, timeout: float | None) -> Any:  # noqa: ANN401  as `RpcMethod.call`
        pairs = self._metadata.request(exchange, needs_key=self._needs_key)
        return attach(method.call, None, exchange.known_key)(request, metadata=pairs, timeout=timeout)

    def _end_failed(
        self, exchange: HttpExchange, protocol: EnvelopedProtocol, failure: Exception
    ) -> tuple[Pairs, bytes]:
        """Return the response headers and the last envelope of a call that failed with the exception `failure`. As a
        separate function, it leaves no variable of the caller with the exception, which would stay in memory.
        """
        failed = self._metadata.failed(failure, exchange)
        return failed.headers, protocol.end(failed.status, failed.trailers)


def _unsupported_type(kind: str, accepted: Iterable[str]) -> web.Response:
    message = f"send the body with content-type: {' or '.join(accepted)}, not {echo(kind)}"
    return web.Response(status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE, text=message)


def _timeout(exchange: HttpExchange, header: str, parse: Callable[[str], float]) -> float | None:
    if (given := exchange.request.headers.get(header)) is None:
        return None
    return max(MIN_TIMEOUT_SECONDS, parse(given) - (time.monotonic() - exchange.began_at))


def _with_trailers(headers: Pairs, trailers: Pairs, kind: str) -> CIMultiDict[str]:
    prefixed = ((connect_protocol.TRAILER_PREFIX + name, value) for name, value in trailers)
    return CIMultiDict([(hdrs.CONTENT_TYPE, kind), *headers, *prefixed])


@asynccontextmanager
async def _responses(method: RpcMethod, call: Any) -> AsyncIterator[AsyncIterator[Message | bytes]]:  # noqa: ANN401  as `RpcMethod.call`
    if method.is_stream:
        async with opened(call):
            yield call
    else:
        yield _single(call)


async def _single(call: Any) -> AsyncIterator[Message | bytes]:  # noqa: ANN401  as `RpcMethod.call`
    yield await call
