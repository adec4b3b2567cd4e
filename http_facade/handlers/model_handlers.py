"""Handlers of the model list and of single models, in the format that the path or the request selects."""

import hashlib
from collections.abc import Awaitable, Callable

import grpc
from aiohttp import hdrs, web

from http_facade.exchange.caller_credentials import key_headers
from http_facade.exchange.grpc_service_calls import metadata
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.request_bodies import JSON_TYPE, BodyReader
from http_facade.exchange.server_settings import Settings
from http_facade.routes import Shape
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.model_lists import CHOOSING_HEADERS, MODEL_LISTS, ModelList, shape_for


class ModelHandlers:
    """Handlers of the list and the descriptions of the models that the caller's key may use."""

    def __init__(self, face: str, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face = face
        self._bodies = BodyReader(face, (), channel, settings)
        self._stub = rpc.ModelServiceStub(channel)
        # all that the response depends on besides the path and the query
        vary = (str(hdrs.AUTHORIZATION), *key_headers(face), *CHOOSING_HEADERS)
        self._vary = ", ".join(dict.fromkeys(vary))

    def handler(self, shape: Shape) -> Callable[[HttpExchange], Awaitable[web.StreamResponse]]:
        """Return the handler method for the kind of operation `shape`: to list the models, or to get one."""
        return {Shape.LIST_MODELS: self.list, Shape.GET_MODEL: self.get}[shape]

    async def list(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return one page of the models, as selected by the query."""
        shape = self._shape(exchange)
        list_request = shape.decode_query(exchange.request.query)
        response = await self._stub.ListModels(list_request, metadata=metadata(exchange, self._face))
        return self._respond(exchange, shape.encode_list(response, list_request))

    async def get(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return the model whose id is in the path or, in some formats, in the body."""
        shape, model = self._shape(exchange), exchange.model
        if (decode := shape.decode_model) is not None:
            model = await self._bodies.read(exchange, lambda body, *_: decode(body), accepted=shape.media_types)
        get_request = pb.GetModelRequest(model=model)
        response = await self._stub.GetModel(get_request, metadata=metadata(exchange, self._face))
        return self._respond(exchange, shape.encode_model(response.model))

    def _shape(self, exchange: HttpExchange) -> ModelList:
        return MODEL_LISTS[shape_for(self._face, exchange.request.headers, exchange.request.query)]

    def _respond(self, exchange: HttpExchange, body: bytes) -> web.Response:
        """Return a JSON response with `body`, or 304 if the client's copy is current (RFC 9110, "If-None-Match")."""
        etag = hashlib.blake2b(body, digest_size=16).hexdigest()
        lifetime = f"private, max-age={self._shape(exchange).max_age}"
        headers = {hdrs.CACHE_CONTROL: lifetime, hdrs.VARY: self._vary}
        known = exchange.request.if_none_match or ()
        if any(tag.value in (etag, "*") for tag in known):
            response = web.Response(status=304, headers=headers)
        else:
            response = web.Response(headers={hdrs.CONTENT_TYPE: JSON_TYPE, **headers}, body=body)
        response.etag = etag
        return response
