"""One handler for each call shape: body -> `umg.v1` request -> generated stub -> body. None names a format."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import grpc
from aiohttp import hdrs, web

from http_facade.answers import Whole
from http_facade.bodies import JSON, Bodies
from http_facade.calls import exchange, metadata, model_of, opened, shown
from http_facade.errors import explain
from http_facade.models import Models
from http_facade.responses import Responses
from http_facade.routes import Route, Shape
from http_facade.settings import Settings
from http_facade.sse import EVENTS, EventStream
from http_facade.unary import Unary
from umg_grpc.errors import UmgError, shutting_down
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import EMBEDDING_FORMATS, FORMATS, RERANK_FORMATS
from umg_grpc.wire.format import FaceRequest, name_model

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


def handler(route: Route, channel: grpc.aio.Channel, settings: Settings) -> Handler:
    """The handler of a row of the table."""
    match route.shape:
        case Shape.GENERATE:
            return Generate(route, channel, settings).answer
        case Shape.COUNT_TOKENS:
            return CountTokens(route, channel, settings).answer
        case Shape.EMBED:
            embed = rpc.EmbeddingServiceStub(channel).Embed
            return Unary(route, EMBEDDING_FORMATS[route.format], embed, channel, settings).answer
        case Shape.RERANK:
            rerank = rpc.RerankServiceStub(channel).Rerank
            return Unary(route, RERANK_FORMATS[route.format], rerank, channel, settings).answer
        case Shape.GET_RESPONSE | Shape.DELETE_RESPONSE | Shape.CANCEL_RESPONSE | Shape.LIST_INPUT_ITEMS:
            return Responses(route.format, channel).handler(route.shape)
        case Shape.LIST_MODELS:
            return Models(route.format, channel).list
        case Shape.GET_MODEL:
            return Models(route.format, channel).get
        case Shape.ALIVE:
            return alive
        case Shape.READY:
            return Ready(settings).answer
        case Shape.METRICS:
            return Metrics(settings).answer


class Generate:
    """Text in one wire format: one answer, or a stream where the body or the path asks for one."""

    def __init__(self, route: Route, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face = route.format
        self._codec = FORMATS[route.format]
        self._path_streams = route.stream
        self._stub = rpc.GenerationServiceStub(channel)
        self._bodies = Bodies(route.format, self._codec.source_headers, channel, settings)
        self._settings = settings

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Body of the format in, body or events of the format out."""

        def decode(body: bytes, headers: Mapping[str, str]) -> FaceRequest:
            decoded = self._codec.decode_request(body, headers)
            if not self._codec.model_in_path:
                return decoded
            name_model(decoded.canonical, model_of(request))
            return FaceRequest(decoded.canonical, self._path_streams is True)

        canonical, stream = await self._bodies.decoded(request, decode)
        if stream:
            return await self._stream(request, canonical)
        call = self._stub.Generate(canonical, metadata=metadata(request, self._face))
        answer = await call
        headers = {hdrs.CONTENT_TYPE: JSON, **shown(await call.initial_metadata())}
        return Whole(headers=headers, body=self._codec.encode_response(answer, canonical))

    async def _stream(self, request: web.Request, canonical: pb.GenerateRequest) -> web.StreamResponse:
        """The status line waits for the first message: a failure before it is a JSON error with its own status."""
        encoder, content_type = self._codec.stream_encoder(canonical), EVENTS
        if self._codec.array_encoder is not None and request.query.get("alt") != "sse":
            encoder, content_type = self._codec.array_encoder(canonical), JSON
        call = self._stub.StreamGenerate(
            pb.StreamGenerateRequest(request=canonical), metadata=metadata(request, self._face)
        )

        def cut() -> bytes:
            return encoder.error(shutting_down())

        async with (
            opened(call),
            EventStream(request, content_type, self._codec.heartbeat, self._settings, cut) as events,
        ):
            try:
                async for message in call:
                    frames = encoder.feed(message)
                    if not events.response.prepared:
                        await events.begin(shown(await call.initial_metadata()))
                    if frames:
                        await events.write(frames)
                if not events.response.prepared:
                    raise UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "the provider's stream ended before it began")
                await events.write(encoder.close())
            except ConnectionError:  # the client's: a provider's comes as an error of the call
                raise
            except Exception as failure:
                if not events.response.prepared:
                    raise
                error = explain(failure, request, self._face)
                exchange(request).failure = error.name
                await events.write(encoder.error(error))
        return events.response


class CountTokens:
    """How many tokens a prompt has, in one wire format."""

    def __init__(self, route: Route, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face = route.format
        self._codec = FORMATS[route.format]
        self._stub = rpc.GenerationServiceStub(channel)
        self._bodies = Bodies(route.format, self._codec.source_headers, channel, settings)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Body of a counting call in, the number out."""
        count, encode = self._codec.decode_count, self._codec.encode_count
        if count is None or encode is None:
            raise ValueError(f"{self._face} has no call that counts tokens")

        def decode(body: bytes, headers: Mapping[str, str]) -> pb.GenerateRequest:
            counted = count(body, headers)
            if self._codec.model_in_path:
                name_model(counted, model_of(request))
            return counted

        canonical = await self._bodies.decoded(request, decode)
        asked = pb.CountTokensRequest(request=canonical)
        counted = await self._stub.CountTokens(asked, metadata=metadata(request, self._face))
        return web.Response(headers={hdrs.CONTENT_TYPE: JSON}, body=encode(counted.input_tokens))


async def alive(_: web.Request) -> web.StreamResponse:
    """That the process answers."""
    return web.json_response({"status": "alive"})


class Ready:
    """Whether calls would be served."""

    def __init__(self, settings: Settings) -> None:
        self._ready = settings.ready

    async def answer(self, _: web.Request) -> web.StreamResponse:
        """200, or 503 while starting or draining."""
        ready = self._ready()
        if inspect.isawaitable(ready):
            ready = await ready
        if not ready:
            raise UmgError(pb.ERROR_REASON_UNAVAILABLE, "the gateway cannot serve now: it is starting or draining")
        return web.json_response({"status": "ready"})


class Metrics:
    """What Prometheus scrapes."""

    def __init__(self, settings: Settings) -> None:
        self._metrics = settings.metrics

    async def answer(self, _: web.Request) -> web.StreamResponse:
        """The text that was given, with its content type."""
        body, content_type = self._metrics()
        return web.Response(headers={hdrs.CONTENT_TYPE: content_type}, body=body)
