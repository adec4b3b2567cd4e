"""Handlers of administration: keys, usage, records of requests and channels."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import grpc
import msgspec
from aiohttp import hdrs, web
from google.protobuf.message import Message

from http_facade.exchange import Exchange
from http_facade.grpc_calls import metadata
from http_facade.request_bodies import JSON, BodyReader
from http_facade.routes import Shape
from http_facade.settings import Settings
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import admin
from umg_grpc.wire.core.json import JsonObject
from umg_grpc.wire.message_json import from_query, to_json

SELF = "self"
"""Id in a path that means the calling key itself."""


@dataclass(frozen=True)
class Method:
    """RPC of `umg.v1.AdminService` behind a path, with the codec of its bodies."""

    name: str
    request: type[Message]
    decode: Callable[[bytes], Message] | None = None
    """Function that reads a body; None for requests in the query of the URL."""
    encode: Callable[..., JsonObject] | None = None
    """Function that writes the body, for clients; it takes the request."""


METHODS: Mapping[Shape, Method] = MappingProxyType(
    {
        Shape.CREATE_KEY: Method("CreateKey", pb.CreateKeyRequest, admin.decode_create, admin.encode_create),
        Shape.LIST_KEYS: Method("ListKeys", pb.ListKeysRequest),
        Shape.GET_KEY: Method("GetKey", pb.GetKeyRequest),
        Shape.UPDATE_KEY: Method("UpdateKey", pb.UpdateKeyRequest, admin.decode_update, admin.encode_update),
        Shape.ROTATE_KEY: Method("RotateKey", pb.RotateKeyRequest, admin.decode_rotate, admin.encode_rotate),
        Shape.REVOKE_KEY: Method("RevokeKey", pb.RevokeKeyRequest),
        Shape.GET_USAGE: Method("GetUsage", pb.GetUsageRequest),
        Shape.LIST_USAGE: Method("ListUsage", pb.ListUsageRequest),
        Shape.LIST_REQUESTS: Method("ListRequestRecords", pb.ListRequestRecordsRequest),
        Shape.GET_REQUEST: Method("GetRequestRecord", pb.GetRequestRecordRequest),
        Shape.LIST_CHANNELS: Method("ListChannels", pb.ListChannelsRequest),
    }
)
"""Methods by the shapes of their routes."""


class AdminHandlers:
    """Handlers of administration."""

    def __init__(self, face: str, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face = face
        self._stub = rpc.AdminServiceStub(channel)
        self._bodies = BodyReader(face, (), channel, settings)

    def handler(self, shape: Shape) -> Callable[[Exchange], Awaitable[web.StreamResponse]]:
        """Return the handler of an operation."""
        method = METHODS[shape]

        async def handle(exchange: Exchange) -> web.StreamResponse:
            message = await self._read(exchange, method)
            for name, value in exchange.parameters.items():
                setattr(message, name, "" if (name, value) == ("key_id", SELF) else value)
            response = await getattr(self._stub, method.name)(message, metadata=metadata(exchange, self._face))
            return _json(msgspec.json.encode(to_json(response)))

        return handle

    async def _read(self, exchange: Exchange, method: Method) -> Message:
        """Return the request without the parameters of its path."""
        if (decode := method.decode) is None:
            return from_query(method.request, exchange.request.query.items())
        return await self._bodies.read(exchange, lambda body, *_: decode(body))


def _json(body: bytes) -> web.Response:
    """Return a response that no cache keeps: it may have a secret."""
    return web.Response(headers={hdrs.CONTENT_TYPE: JSON, hdrs.CACHE_CONTROL: "no-store"}, body=body)
