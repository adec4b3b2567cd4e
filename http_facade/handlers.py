"""One handler for each call shape: body -> `umg.v1` request -> generated stub -> body. None names a format."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, TypeVar

import grpc
from aiohttp import hdrs, web

from http_facade.bodies import JSON, read_body
from http_facade.calls import exchange, metadata, opened, shown
from http_facade.errors import explain
from http_facade.routes import Route, Shape
from http_facade.settings import Settings
from http_facade.sse import EVENTS, HEADERS, EventStream
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import FORMATS, models
from umg_grpc.wire.format import BIG_BYTES, name_model
from umg_grpc.wire.headers import source_headers
from umg_grpc.wire.responses import stored

Decoded = TypeVar("Decoded")
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
            return Generate(route, channel, settings).answer
        case Shape.COUNT_TOKENS:
            return CountTokens(route, channel, settings).answer
        case Shape.GET_RESPONSE:
            return Responses(route.format, channel).get
        case Shape.DELETE_RESPONSE:
            return Responses(route.format, channel).delete
        case Shape.CANCEL_RESPONSE:
            return Responses(route.format, channel).cancel
        case Shape.LIST_INPUT_ITEMS:
            return Responses(route.format, channel).list_input_items
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


class Bodies:
    """Reads the bodies of one row: each decoded by the row's format, off the event loop where it is large."""

    def __init__(self, face: str, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face = face
        self._codec = FORMATS[face]
        self._models = rpc.ModelServiceStub(channel)
        self._settings = settings

    async def decoded(self, request: web.Request, decode: Callable[[bytes, Mapping[str, str]], Decoded]) -> Decoded:
        """What `decode` makes of the body. Raises UmgError; that of the key first, if that is not good."""
        try:
            if (request.content_length or BIG_BYTES) >= BIG_BYTES:
                await self._check_key(request)  # before the work that a large body makes
            body = await read_body(request, self._settings.body_limit_bytes, self._settings.upload_idle_seconds)
            headers = source_headers(self._codec.source_headers, request.headers)
            if len(body) < BIG_BYTES:
                return decode(body, headers)
            return await asyncio.to_thread(decode, body, headers)
        except UmgError:
            await self._check_key(request)  # whoever has none is told that first
            raise

    async def name_model(self, canonical: pb.GenerateRequest, request: web.Request) -> None:
        """Names the model as the path does. Raises UmgError as `decoded` does, where the body names another."""
        try:
            name_model(canonical, model_of(request))
        except UmgError:
            await self._check_key(request)
            raise

    async def _check_key(self, request: web.Request) -> None:
        """Raises the service's error for a key that is not good."""
        await self._models.ListModels(pb.ListModelsRequest(page_size=1), metadata=metadata(request, self._face))


class Generate:
    """Text in one wire format: one answer, or a stream where the body or the path asks for one."""

    def __init__(self, route: Route, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face = route.format
        self._codec = FORMATS[route.format]
        self._path_streams = route.stream
        self._stub = rpc.GenerationServiceStub(channel)
        self._bodies = Bodies(route.format, channel, settings)
        self._settings = settings

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Body of the format in, body or events of the format out."""
        canonical, stream = await self._bodies.decoded(request, self._codec.decode_request)
        if self._codec.model_in_path:
            stream = self._path_streams is True
            await self._bodies.name_model(canonical, request)
        if stream:
            return await self._stream(request, canonical)
        call = self._stub.Generate(canonical, metadata=metadata(request, self._face))
        answer = await call
        headers = {hdrs.CONTENT_TYPE: JSON, **shown(await call.initial_metadata())}
        return web.Response(headers=headers, body=self._codec.encode_response(answer, canonical))

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
        self._bodies = Bodies(route.format, channel, settings)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Body of a counting call in, the number out."""
        decode, encode = self._codec.decode_count, self._codec.encode_count
        if decode is None or encode is None:
            raise ValueError(f"{self._face} has no call that counts tokens")
        canonical = await self._bodies.decoded(request, decode)
        if self._codec.model_in_path:
            await self._bodies.name_model(canonical, request)
        asked = pb.CountTokensRequest(request=canonical)
        counted = await self._stub.CountTokens(asked, metadata=metadata(request, self._face))
        return web.Response(headers={hdrs.CONTENT_TYPE: JSON}, body=encode(counted.input_tokens))


def model_of(request: web.Request) -> str:
    """The model that the path names, as SDKs write it: one leading `models/` is theirs."""
    return request.match_info["model"].removeprefix("models/")


class Responses:
    """Stored responses."""

    def __init__(self, face: str, channel: grpc.aio.Channel) -> None:
        self._face = face
        self._stub = rpc.GenerationServiceStub(channel)

    async def get(self, request: web.Request) -> web.StreamResponse:
        """The response, or with `stream=true` the events that told it."""
        found = await self._stub.GetResponse(
            pb.GetResponseRequest(response_id=request.match_info["response_id"]),
            metadata=metadata(request, self._face),
        )
        if request.query.get("stream") == "true":
            told = stored.encode_events(found.response, stored.decode_starting_after(request.query))
            return web.Response(headers=HEADERS | {hdrs.CONTENT_TYPE: EVENTS}, body=told)
        return web.Response(headers={hdrs.CONTENT_TYPE: JSON}, body=stored.encode_stored(found.response))

    async def delete(self, request: web.Request) -> web.StreamResponse:
        """That it is gone."""
        response_id = request.match_info["response_id"]
        await self._stub.DeleteResponse(
            pb.DeleteResponseRequest(response_id=response_id), metadata=metadata(request, self._face)
        )
        return web.Response(headers={hdrs.CONTENT_TYPE: JSON}, body=stored.encode_deleted(response_id))

    async def cancel(self, request: web.Request) -> web.StreamResponse:
        """The response as it was stopped."""
        stopped = await self._stub.CancelResponse(
            pb.CancelResponseRequest(response_id=request.match_info["response_id"]),
            metadata=metadata(request, self._face),
        )
        return web.Response(headers={hdrs.CONTENT_TYPE: JSON}, body=stored.encode_stored(stopped.response))

    async def list_input_items(self, request: web.Request) -> web.StreamResponse:
        """What the response was asked, in pages."""
        asked = stored.decode_input_items_query(request.match_info["response_id"], request.query)
        items = await self._stub.ListInputItems(asked, metadata=metadata(request, self._face))
        return web.Response(headers={hdrs.CONTENT_TYPE: JSON}, body=stored.encode_input_items(items))


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
