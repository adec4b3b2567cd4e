"""Handlers of the administration of keys."""

from collections.abc import Awaitable, Callable

import grpc
from aiohttp import hdrs, web

from http_facade.grpc_calls import exchange, metadata
from http_facade.request_bodies import JSON, BodyReader
from http_facade.routes import Shape
from http_facade.settings import Settings
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import admin

SELF = "self"
"""Id in a path that stands for the calling key."""


class AdminHandlers:
    """Handlers of keys, one method for each operation."""

    def __init__(self, face: str, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face = face
        self._stub = rpc.AdminServiceStub(channel)
        self._bodies = BodyReader(face, (), channel, settings)

    def handler(self, shape: Shape) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
        """Return the handler of an operation."""
        return {
            Shape.CREATE_KEY: self.create,
            Shape.LIST_KEYS: self.list,
            Shape.GET_KEY: self.get,
            Shape.UPDATE_KEY: self.update,
            Shape.ROTATE_KEY: self.rotate,
            Shape.REVOKE_KEY: self.revoke,
        }[shape]

    async def create(self, request: web.BaseRequest) -> web.StreamResponse:
        """Create a key. Return it with its secret."""
        create_request = await self._bodies.read(request, lambda body, _: admin.decode_create(body))
        created = await self._stub.CreateKey(create_request, metadata=metadata(request, self._face))
        return _json(admin.encode_key(created.key, created.secret))

    async def list(self, request: web.BaseRequest) -> web.StreamResponse:
        """Return a page of keys."""
        pairs = metadata(request, self._face)
        page = await self._stub.ListKeys(admin.decode_list(request.query), metadata=pairs)
        return _json(admin.encode_list(page))

    async def get(self, request: web.BaseRequest) -> web.StreamResponse:
        """Return the key of the path."""
        key_id = _key_id(request)
        get_request = pb.GetKeyRequest(key_id="" if key_id == SELF else key_id)
        found = await self._stub.GetKey(get_request, metadata=metadata(request, self._face))
        return _json(admin.encode_key(found.key))

    async def update(self, request: web.BaseRequest) -> web.StreamResponse:
        """Change the fields of a key that the body has."""
        key_id = _key_id(request)
        update_request = await self._bodies.read(request, lambda body, _: admin.decode_update(key_id, body))
        changed = await self._stub.UpdateKey(update_request, metadata=metadata(request, self._face))
        return _json(admin.encode_key(changed.key))

    async def rotate(self, request: web.BaseRequest) -> web.StreamResponse:
        """Give a key a new secret. Return the key with this secret."""
        key_id = _key_id(request)
        rotate_request = await self._bodies.read(request, lambda body, _: admin.decode_rotate(key_id, body))
        rotated = await self._stub.RotateKey(rotate_request, metadata=metadata(request, self._face))
        return _json(admin.encode_key(rotated.key, rotated.secret))

    async def revoke(self, request: web.BaseRequest) -> web.StreamResponse:
        """Revoke a key."""
        revoke_request = pb.RevokeKeyRequest(key_id=_key_id(request))
        revoked = await self._stub.RevokeKey(revoke_request, metadata=metadata(request, self._face))
        return _json(admin.encode_key(revoked.key))


def _key_id(request: web.BaseRequest) -> str:
    return exchange(request).parameters["key_id"]


def _json(body: bytes) -> web.Response:
    """Return a response that no cache keeps: it may have a secret."""
    return web.Response(headers={hdrs.CONTENT_TYPE: JSON, hdrs.CACHE_CONTROL: "no-store"}, body=body)
