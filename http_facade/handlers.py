"""One handler for each call shape: body -> `umg.v1` request -> generated stub -> body. None names a format."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import grpc
from aiohttp import hdrs, web

from http_facade.bodies import JSON, read_body
from http_facade.calls import exchange, metadata, opened, shown
from http_facade.errors import explain
from http_facade.routes import Route, Shape
from http_facade.settings import Settings
from http_facade.sse import EventStream
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import FORMATS, models
from umg_grpc.wire.format import BIG_BYTES, FaceRequest
from umg_grpc.wire.headers import source_headers

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

MODEL_LIST_HEADERS = {
    hdrs.CONTENT_TYPE: JSON,
    hdrs.CACHE_CONTROL: "private, max-age=3600",  # "about one hour" (text document, GET /v1/models)
    hdrs.VARY: hdrs.AUTHORIZATION,
}


def handler(route: Route, channel: grpc.aio.Channel, settings: Settings) -> Handler:
    """The handler of a row of the table."""
    match route.shape:
        case Shape.GENERATE:
            return Generate(route.format, channel, settings).answer
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
    """Text in one wire format: one answer, or a stream where the body asks for one."""

    def __init__(self, face: str, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face = face
        self._codec = FORMATS[face]
        self._stub = rpc.GenerationServiceStub(channel)
        self._models = rpc.ModelServiceStub(channel)
        self._settings = settings

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Body of the format in, body or events of the format out."""
        try:
            asked = await self._decode(request)
        except UmgError:
            await self._check_key(request)  # whoever has none is told that first
            raise
        if asked.stream:
            return await self._stream(request, asked.canonical)
        call = self._stub.Generate(asked.canonical, metadata=metadata(request, self._face))
        answer = await call
        headers = {hdrs.CONTENT_TYPE: JSON, **shown(await call.initial_metadata())}
        return web.Response(headers=headers, body=self._codec.encode_response(answer, asked.canonical))

    async def _check_key(self, request: web.Request) -> None:
        """Raises the service's error for a key that is not good."""
        await self._models.ListModels(pb.ListModelsRequest(page_size=1), metadata=metadata(request, self._face))

    async def _decode(self, request: web.Request) -> FaceRequest:
        if (request.content_length or BIG_BYTES) >= BIG_BYTES:
            await self._check_key(request)  # before the work that a large body makes
        body = await read_body(request, self._settings.body_limit_bytes, self._settings.upload_idle_seconds)
        headers = source_headers(self._codec.source_headers, request.headers)
        if len(body) < BIG_BYTES:
            return self._codec.decode_request(body, headers)
        return await asyncio.to_thread(self._codec.decode_request, body, headers)

    async def _stream(self, request: web.Request, canonical: pb.GenerateRequest) -> web.StreamResponse:
        """The status line waits for the first message: a failure before it is a JSON error with its own status."""
        encoder = self._codec.stream_encoder(canonical)
        call = self._stub.StreamGenerate(
            pb.StreamGenerateRequest(request=canonical), metadata=metadata(request, self._face)
        )
        async with (
            opened(call),
            EventStream(
                request, self._codec.heartbeat, self._settings, lambda: encoder.error(shutting_down())
            ) as events,
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


def shutting_down() -> UmgError:
    """What ends a stream that a drain did not wait for."""
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, "the gateway is shutting down; try again")


class Models:
    """The models that the caller's key may use."""

    def __init__(self, face: str, channel: grpc.aio.Channel) -> None:
        self._face = face
        self._stub = rpc.ModelServiceStub(channel)

    async def list(self, request: web.Request) -> web.StreamResponse:
        """All of them."""
        response = await self._stub.ListModels(pb.ListModelsRequest(), metadata=metadata(request, self._face))
        return web.Response(headers=MODEL_LIST_HEADERS, body=models.encode_list(response))

    async def get(self, request: web.Request) -> web.StreamResponse:
        """The one that the path names."""
        asked = pb.GetModelRequest(model=request.match_info["model"])
        response = await self._stub.GetModel(asked, metadata=metadata(request, self._face))
        return web.Response(headers=MODEL_LIST_HEADERS, body=models.encode_model(response))


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
