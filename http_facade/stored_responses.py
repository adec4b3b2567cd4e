"""Handlers of stored responses."""

from collections.abc import Awaitable, Callable

import grpc
from aiohttp import hdrs, web

from http_facade.bodies import JSON
from http_facade.calls import metadata
from http_facade.routes import Shape
from http_facade.sse import EVENTS, HEADERS
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.responses import stored


class Responses:
    """Stored responses."""

    def __init__(self, face: str, channel: grpc.aio.Channel) -> None:
        self._face = face
        self._stub = rpc.GenerationServiceStub(channel)

    def handler(self, shape: Shape) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """What answers calls of the shape."""
        return {
            Shape.GET_RESPONSE: self.get,
            Shape.DELETE_RESPONSE: self.delete,
            Shape.CANCEL_RESPONSE: self.cancel,
            Shape.LIST_INPUT_ITEMS: self.list_input_items,
        }[shape]

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
