"""The model list and its models, in the shape that the path or the request chooses."""

import hashlib

import grpc
from aiohttp import hdrs, web

from http_facade.auth import KEY_HEADERS
from http_facade.bodies import JSON
from http_facade.calls import check_key, metadata, model_of
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.models import CHOOSING_HEADERS, MODEL_LISTS, ModelList, shape_for

CACHE_CONTROL = "private, max-age=3600"
""""About one hour" (text document, GET /v1/models)."""


class Models:
    """The models that the caller's key may use."""

    def __init__(self, face: str, channel: grpc.aio.Channel) -> None:
        self._face = face
        self._stub = rpc.ModelServiceStub(channel)
        # all that the answer depends on beside the path and the query
        vary = (str(hdrs.AUTHORIZATION), *KEY_HEADERS[face], *CHOOSING_HEADERS)
        self._headers = {hdrs.CACHE_CONTROL: CACHE_CONTROL, hdrs.VARY: ", ".join(dict.fromkeys(vary))}

    async def list(self, request: web.Request) -> web.StreamResponse:
        """The page that the query asks for."""
        shape = self._shape(request)
        try:
            asked = shape.decode_query(request.query)
        except UmgError:  # whoever has no good key is told that first
            await check_key(self._stub, request, self._face)
            raise
        response = await self._stub.ListModels(asked, metadata=metadata(request, self._face))
        return self._answer(request, shape.encode_list(response, asked))

    async def get(self, request: web.Request) -> web.StreamResponse:
        """The one that the path names."""
        asked = pb.GetModelRequest(model=model_of(request))
        response = await self._stub.GetModel(asked, metadata=metadata(request, self._face))
        return self._answer(request, self._shape(request).encode_model(response.model))

    def _shape(self, request: web.Request) -> ModelList:
        return MODEL_LISTS[shape_for(self._face, request.headers, request.query)]

    def _answer(self, request: web.Request, body: bytes) -> web.Response:
        """The body; 304 to a caller who has it already (RFC 9110, "If-None-Match")."""
        etag = hashlib.blake2b(body, digest_size=16).hexdigest()
        known = request.if_none_match or ()
        if any(tag.value in (etag, "*") for tag in known):
            response = web.Response(status=304, headers=self._headers)
        else:
            response = web.Response(headers={hdrs.CONTENT_TYPE: JSON, **self._headers}, body=body)
        response.etag = etag
        return response
