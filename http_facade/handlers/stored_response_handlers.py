"""Handlers of stored responses of the Responses API: get, delete, cancel, list the input."""

from collections.abc import Awaitable, Callable

import grpc
from aiohttp import hdrs, web

from http_facade.exchange.event_stream_response import STREAM_HEADERS
from http_facade.exchange.grpc_service_calls import metadata
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.request_bodies import JSON_TYPE
from http_facade.routes import Shape
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.sse import EVENT_STREAM
from umg_grpc.wire.responses import stored_responses


class StoredResponseHandlers:
    """Handlers of the operations on stored responses of the Responses API: get, delete, cancel, list input items."""

    def __init__(self, face: str, channel: grpc.aio.Channel) -> None:
        self._face = face
        self._stub = rpc.GenerationServiceStub(channel)

    def handler(self, shape: Shape) -> Callable[[HttpExchange], Awaitable[web.StreamResponse]]:
        """Return the handler method for an operation on stored responses."""
        return {
            Shape.GET_RESPONSE: self.get,
            Shape.DELETE_RESPONSE: self.delete,
            Shape.CANCEL_RESPONSE: self.cancel,
            Shape.LIST_INPUT_ITEMS: self.list_input_items,
        }[shape]

    async def get(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return the stored response, or stream it as events for `stream=true`."""
        found = await self._stub.GetStoredResponse(
            pb.GetStoredResponseRequest(response_id=exchange.parameters["response_id"]),
            metadata=metadata(exchange, self._face),
        )
        if exchange.request.query.get("stream") == "true":
            events = stored_responses.encode_events(
                found.response, stored_responses.decode_starting_after(exchange.request.query)
            )
            return web.Response(headers=STREAM_HEADERS | {hdrs.CONTENT_TYPE: EVENT_STREAM}, body=events)
        return web.Response(headers={hdrs.CONTENT_TYPE: JSON_TYPE}, body=stored_responses.encode_stored(found.response))

    async def delete(self, exchange: HttpExchange) -> web.StreamResponse:
        """Delete the stored response. Return the JSON confirmation."""
        response_id = exchange.parameters["response_id"]
        await self._stub.DeleteStoredResponse(
            pb.DeleteStoredResponseRequest(response_id=response_id), metadata=metadata(exchange, self._face)
        )
        return web.Response(headers={hdrs.CONTENT_TYPE: JSON_TYPE}, body=stored_responses.encode_deleted(response_id))

    async def cancel(self, exchange: HttpExchange) -> web.StreamResponse:
        """Cancel the stored response if it is still being generated. Return the response in its final state."""
        stopped = await self._stub.CancelStoredResponse(
            pb.CancelStoredResponseRequest(response_id=exchange.parameters["response_id"]),
            metadata=metadata(exchange, self._face),
        )
        return web.Response(
            headers={hdrs.CONTENT_TYPE: JSON_TYPE}, body=stored_responses.encode_stored(stopped.response)
        )

    async def list_input_items(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return a page of the input items from which the stored response was generated."""
        items_request = stored_responses.decode_input_items_query(
            exchange.parameters["response_id"], exchange.request.query
        )
        items = await self._stub.ListInputItems(items_request, metadata=metadata(exchange, self._face))
        return web.Response(headers={hdrs.CONTENT_TYPE: JSON_TYPE}, body=stored_responses.encode_input_items(items))
