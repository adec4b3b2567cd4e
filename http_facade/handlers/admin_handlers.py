"""Handlers of the administration API over HTTP, one for each row of `admin_rpc_table.py`."""

from collections.abc import Awaitable, Callable

import grpc
import msgspec
from aiohttp import hdrs, web
from google.protobuf.message import Message

from http_facade.exchange.grpc_service_calls import administrative_metadata
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.request_bodies import JSON_TYPE, BodyReader
from http_facade.exchange.server_settings import Settings
from http_facade.handlers.admin_rpc_table import ADMIN_METHODS, SELF_PLACE, AdminMethod
from http_facade.routes import Shape
from umg_grpc.operations import ADMINISTRATIVE_SERVICES
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.protobuf_json import from_query, to_json


class AdminHandlers:
    """Handlers of the administration API."""

    def __init__(self, face: str, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face = face
        self._keys = rpc.AdminServiceStub(channel)
        self._stubs = {name: getattr(rpc, f"{name}Stub")(channel) for name in ADMINISTRATIVE_SERVICES}
        self._bodies = BodyReader(face, (), channel, settings)

    def handler(self, shape: Shape) -> Callable[[HttpExchange], Awaitable[web.StreamResponse]]:
        """Return the handler that calls the RPC of an operation. Raise KeyError for one without a row in the table."""
        method = ADMIN_METHODS[shape]

        async def handle(exchange: HttpExchange) -> web.StreamResponse:
            message = await self._read(exchange, method)
            for name, value in exchange.parameters.items():
                is_own = (name, value) == ("key_id", SELF_PLACE)
                setattr(message, name, await self._own_key(exchange) if is_own else value)
            for field, number in method.values.items():
                setattr(message, field, number)
            response = await getattr(self._stubs[method.service], method.name)(
                message, metadata=administrative_metadata(exchange, self._face)
            )
            return _json(msgspec.json.encode(to_json(response)))

        return handle

    async def _own_key(self, exchange: HttpExchange) -> str:
        """Return the calling key as methods name it: a method that changes a key refuses an empty id."""
        if exchange.request.method == hdrs.METH_GET:
            return ""
        metadata = administrative_metadata(exchange, self._face)
        found = await self._keys.GetKey(pb.GetKeyRequest(), metadata=metadata)
        return found.key.key_id

    async def _read(self, exchange: HttpExchange, method: AdminMethod) -> Message:
        if (decode := method.decode) is None:
            return from_query(method.request, exchange.request.query.items(), {*exchange.parameters, *method.values})
        return await self._bodies.read(exchange, lambda body, *_: decode(body))


def _json(body: bytes) -> web.Response:
    """Return a JSON response with the header `Cache-Control: no-store`, because the body may contain a secret."""
    return web.Response(headers={hdrs.CONTENT_TYPE: JSON_TYPE, hdrs.CACHE_CONTROL: "no-store"}, body=body)
