"""Handlers of HTTP operations: decode the body into a `umg.v1` request, call the gRPC service, encode its response.

Handlers of text generation, token counts, health checks and metrics are here; those of other operations are in modules
of their own. No handler depends on one format: the route names it.
"""

import hmac
import inspect
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import TypeAlias

import grpc
from aiohttp import hdrs, web
from google.protobuf.timestamp_pb2 import Timestamp

from http_facade.console.console_handlers import ConsoleHandlers
from http_facade.exchange.direct_json_response import WholeResponse
from http_facade.exchange.event_stream_response import EventStream
from http_facade.exchange.grpc_service_calls import call_unary, check_model, open_stream, response_headers
from http_facade.exchange.handler_failures import explain
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.readiness_response import readiness_response
from http_facade.exchange.request_bodies import JSON_TYPE, BodyReader
from http_facade.exchange.server_settings import Settings
from http_facade.exchange.text_stream_encoding import EncodedStream
from http_facade.handlers.admin_handlers import AdminHandlers
from http_facade.handlers.admin_rpc_table import ADMIN_METHODS
from http_facade.handlers.image_handler import GenerateImage
from http_facade.handlers.model_handlers import ModelHandlers
from http_facade.handlers.result_file_handlers import FileHandlers
from http_facade.handlers.rpc_handler import ConnectHandler
from http_facade.handlers.sign_on_handlers import SignOnHandlers
from http_facade.handlers.stored_response_handlers import StoredResponseHandlers
from http_facade.handlers.unary_handler import UnaryHandler
from http_facade.handlers.video_handlers import VideoHandlers
from http_facade.handlers.web_page_handlers import PageHandlers
from http_facade.routes import Route, Shape
from umg_grpc.base.errors import UmgError
from umg_grpc.operations.wire_formats_by_name import unary_operation
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import TEXT_FACES
from umg_grpc.wire.core.stream_memory_limits import FREE_BYTES
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.text_format_interface import TextFace

Handler: TypeAlias = Callable[[HttpExchange], Awaitable[web.StreamResponse | WholeResponse]]
MakeHandler: TypeAlias = Callable[[Route, grpc.aio.Channel, Settings], Handler]


def handler(route: Route, channel: grpc.aio.Channel, settings: Settings) -> Handler:  # noqa: PLR0912  one case a shape
    """Return the handler of a route, selected by the route's kind of operation."""
    if route.shape in ADMIN_METHODS:
        return AdminHandlers(route.format, channel, settings).handler(route.shape)
    match route.shape:
        case Shape.GENERATE:
            return Generate(route, channel, settings).respond
        case Shape.COMPACT:
            return CompactConversation(route, channel, settings).respond
        case Shape.COUNT_TOKENS:
            return CountTokens(route, channel, settings).respond
        case Shape.UNARY:
            return UnaryHandler(route, unary_operation(route.format), channel, settings).respond
        case Shape.GENERATE_IMAGE:
            return GenerateImage(route, channel, settings).respond
        case Shape.GET_RESPONSE | Shape.DELETE_RESPONSE | Shape.CANCEL_RESPONSE | Shape.LIST_INPUT_ITEMS:
            return StoredResponseHandlers(route.format, channel).handler(route.shape)
        case Shape.LIST_MODELS | Shape.GET_MODEL:
            return ModelHandlers(route.format, channel, settings).handler(route.shape)
        case (
            Shape.CREATE_VIDEO
            | Shape.GET_VIDEO
            | Shape.LIST_VIDEOS
            | Shape.DELETE_VIDEO
            | Shape.REMIX_VIDEO
            | Shape.GET_VIDEO_CONTENT
            | Shape.RECEIVE_VIDEO_CALLBACK
        ):
            return VideoHandlers(route, channel, settings).handler(route.shape)
        case Shape.GET_FILE:
            return FileHandlers(route.format, channel).get
        case Shape.CALL_METHOD:
            return ConnectHandler(route, channel, settings).respond
        case Shape.GET_VERSION:
            return partial(api_version, TEXT_FACES[route.format].api_version)
        case Shape.ALIVE:
            return alive
        case Shape.READY:
            return partial(readiness, settings)
        case Shape.METRICS:
            return MetricsPage(settings).respond
        case Shape.HOME | Shape.PLAYGROUND | Shape.DOCS | Shape.ASSET | Shape.OPENAPI:
            return PageHandlers(pages=settings.pages).handler(route.shape)
        case Shape.SIGN_IN_PAGE | Shape.SIGN_IN | Shape.SIGN_IN_CALLBACK | Shape.SIGN_OUT | Shape.GET_SESSION:
            return SignOnHandlers(route.format, settings).handler(route.shape)
        case Shape.CONSOLE_PAGE | Shape.CONSOLE_FORM:
            return ConsoleHandlers(channel, settings).handler(route.shape)
        case unhandled:  # those of `ADMIN_METHODS` are above; a test calls every route
            raise KeyError(unhandled)


class Generate:
    """Handler of text generation in one wire format: one JSON response, or a stream if body or path selects it."""

    def __init__(self, route: Route, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face = route.format
        self._codec = TEXT_FACES[route.format]
        self._path_streams = route.stream
        self._stub = rpc.GenerationServiceStub(channel)
        self._models = rpc.ModelServiceStub(channel)
        self._bodies = BodyReader(route.format, self._codec.source_headers, channel, settings)
        self._settings = settings

    async def respond(self, exchange: HttpExchange) -> web.StreamResponse | WholeResponse:
        """Return the response as one body of the format, or stream it as events of the format."""
        canonical, stream, notes = await self._bodies.read(
            exchange, self._codec.decode_request, accepted=self._codec.media_types
        )
        if self._codec.encode_empty is not None and not canonical.messages:
            return await self._respond_empty(exchange, canonical, self._codec.encode_empty)
        codec = self._codec if self._codec.timed is None else self._codec.timed(exchange.elapsed_nanoseconds)
        if stream if self._path_streams is None else self._path_streams:
            request = pb.StreamGenerateRequest(request=canonical)
            del canonical  # a stream may last for hours, and keeps one copy
            return await self._stream(exchange, codec, request, notes)
        response, headers = await call_unary(self._stub.Generate, canonical, exchange, self._face, notes)
        return WholeResponse(headers, codec.encode_response(response, canonical))

    async def _respond_empty(
        self, exchange: HttpExchange, canonical: pb.GenerateRequest, encode: Callable[[pb.GenerateRequest, str], bytes]
    ) -> web.Response:
        await check_model(self._models, canonical.model, exchange, self._face)
        now = Timestamp()
        now.GetCurrentTime()
        return web.Response(headers={hdrs.CONTENT_TYPE: JSON_TYPE}, body=encode(canonical, now.ToJsonString()))

    async def _stream(
        self, exchange: HttpExchange, codec: TextFace, request: pb.StreamGenerateRequest, notes: RequestNotes
    ) -> web.StreamResponse:
        """Stream the response to the request, encoded by `codec`. The response begins with the first message
        of the service, so that an earlier failure is returned as a JSON error with its own HTTP status.
        """
        canonical = request.request
        encoder, content_type, pass_frames = codec.stream_encoder(canonical), codec.stream_type, codec.pass_frames
        if codec.array_encoder is not None and exchange.request.query.get("alt") != "sse":
            encoder, content_type, pass_frames = codec.array_encoder(canonical), JSON_TYPE, None
        messages, call = open_stream(self._stub.StreamGenerate, request, exchange, self._face, notes)
        encoded = EncodedStream(encoder, self._settings.budget)
        events = EventStream(exchange, encoded, content_type, codec.heartbeat, self._settings)
        call.on_early_metadata = events.begin_early
        call.relay = None if pass_frames is None else partial(events.is_relayed, partial(pass_frames, encoder))
        async with aclosing(messages), events:
            try:
                async for message in messages:
                    frames = encoder.feed(message)
                    if encoder.retained_bytes > FREE_BYTES:
                        encoded.reserve()
                    if exchange.is_begun:
                        await events.write(frames)
                    else:
                        await events.begin(response_headers(call.initial), frames)
                    del message, frames  # until the next ones, which may take hours
                if not exchange.is_begun:
                    raise UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "the provider's stream ended before it began")
                await encoded.close(events.write_large)
            except Exception as failure:
                if not exchange.is_begun:
                    raise
                await events.write_large(await self._end_failed(exchange, encoded, failure))
        return events.response

    async def _end_failed(self, exchange: HttpExchange, encoded: EncodedStream, failure: Exception) -> bytes:
        """Return the events that end a stream with an error. In `_stream`, a variable with the exception would form a
        cycle with its traceback, which would keep all bytes of the stream in memory; so this is a separate function.
        """
        error = explain(failure, exchange, self._face)
        exchange.failure = error.name
        return await encoded.error(error)


class CompactConversation:
    """Handler that compacts a conversation in one format, by a call for that alone."""

    def __init__(self, route: Route, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face = route.format
        self._codec = TEXT_FACES[route.format]
        self._stub = rpc.GenerationServiceStub(channel)
        self._bodies = BodyReader(route.format, self._codec.source_headers, channel, settings)

    async def respond(self, exchange: HttpExchange) -> WholeResponse:
        """Return the compacted conversation."""
        decode = self._codec.decode_compaction
        if decode is None:
            raise ValueError(f"{self._face} has no call that compacts a conversation")
        canonical, notes = await self._bodies.read(exchange, decode)
        response, headers = await call_unary(self._stub.Generate, canonical, exchange, self._face, notes)
        return WholeResponse(headers, self._codec.encode_response(response, canonical))


class CountTokens:
    """Handler that counts the input tokens of a prompt in one format."""

    def __init__(self, route: Route, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face = route.format
        self._codec = TEXT_FACES[route.format]
        self._stub = rpc.GenerationServiceStub(channel)
        self._bodies = BodyReader(route.format, self._codec.source_headers, channel, settings)

    async def respond(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return the number of input tokens of the prompt in the body."""
        count, encode = self._codec.decode_count, self._codec.encode_count
        if count is None or encode is None:
            raise ValueError(f"{self._face} has no call that counts tokens")
        canonical, notes = await self._bodies.read(exchange, count)
        count_request = pb.CountTokensRequest(request=canonical)
        counted, _ = await call_unary(self._stub.CountTokens, count_request, exchange, self._face, notes)
        original = counted.original_input_tokens if counted.HasField("original_input_tokens") else None
        return web.Response(headers={hdrs.CONTENT_TYPE: JSON_TYPE}, body=encode(counted.input_tokens, original))


async def alive(_: HttpExchange) -> web.StreamResponse:
    """Return 200, the response of the liveness check."""
    return web.json_response({"status": "alive"})


async def api_version(version: str, _: HttpExchange) -> web.StreamResponse:
    """Return the version of a format's API as JSON, which clients read before their calls."""
    return web.json_response({"version": version})


async def readiness(settings: Settings, _: HttpExchange) -> web.StreamResponse:
    """Return 200, or 503 with the reasons while the gateway serves no calls, as at its start or while it drains."""
    ready = settings.ready()
    if inspect.isawaitable(ready):
        ready = await ready
    return readiness_response(ready)


class MetricsPage:
    """Handler of the Prometheus metrics."""

    def __init__(self, settings: Settings) -> None:
        self._metrics = settings.metrics
        self._key = settings.metrics_key.encode() if settings.metrics_key is not None else None

    async def respond(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return the metrics. Raises UmgError if a metrics key is configured and the request lacks it."""
        self._check_key(exchange.request.headers.get(hdrs.AUTHORIZATION))
        body, content_type = self._metrics()
        return web.Response(headers={hdrs.CONTENT_TYPE: content_type}, body=body)

    def _check_key(self, authorization: str | None) -> None:
        if self._key is None:
            return
        if authorization is None:
            message = "send the key of the metrics (`metrics.key` of the config) as `Authorization: Bearer KEY`"
            raise UmgError(pb.ERROR_REASON_MISSING_KEY, message)
        scheme, _, key = authorization.partition(" ")
        sent = key.strip().encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(sent, self._key) or scheme.lower() != "bearer":  # compared in constant time
            message = "this is not the key of the metrics; send `Authorization: Bearer` and `metrics.key` of the config"
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, message)
