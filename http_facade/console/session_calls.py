"""Calls of the administrative services with the session of a person, and the rights of this person."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import grpc
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message

from http_facade.exchange.grpc_service_calls import administrative_metadata
from http_facade.exchange.http_exchange import HttpExchange
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.operations import ADMINISTRATIVE_SERVICES
from umg_grpc.v1 import pb, rpc

CONSOLE_FACE = "admin"
"""Face of the console's calls in records and logs."""
SESSION_SCHEME = "Session"
MODEL_SERVICE = "ModelService"

ResponseT = TypeVar("ResponseT", bound=Message)
if TYPE_CHECKING:
    Permission: TypeAlias = pb.Permission.ValueType
    Methods: TypeAlias = Mapping[str, grpc.aio.UnaryUnaryMultiCallable[Any, Any]]


def session_methods(channel: grpc.aio.Channel) -> "Methods":
    """Return the methods that accept sessions, by the full names of their request types."""
    found = {}
    for service in (*ADMINISTRATIVE_SERVICES, MODEL_SERVICE):
        stub = getattr(rpc, f"{service}Stub")(channel)
        for method in Default().FindServiceByName(f"umg.v1.{service}").methods:
            found[method.input_type.full_name] = getattr(stub, method.name)
    return found


class SessionCalls:
    """Client of the services that accept sessions, for one request of a browser."""

    def __init__(self, methods: "Methods", exchange: HttpExchange, token: str) -> None:
        """Create a client. `token`: of the session, which becomes the credential of the calls."""
        exchange.authorization = f"{SESSION_SCHEME} {token}"
        self._methods, self._exchange = methods, exchange

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        """Call the method with this type of request. Raise UmgError."""
        method = self._methods[request.DESCRIPTOR.full_name]
        try:
            response = await method(request, metadata=administrative_metadata(self._exchange, CONSOLE_FACE))
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from None
        if not isinstance(response, kind):
            raise TypeError(f"expected a {kind.__name__}")
        return response


@dataclass(frozen=True)
class CallerRights:
    """Person of the session with roles and their permissions, as the service states them."""

    caller: pb.GetCallerResponse

    @property
    def is_holder(self) -> bool:
        """Whether the person is the holder of a key without a role, and sees the key alone."""
        return not self.caller.memberships

    def may(self, permission: "Permission", account_id: str | None = None) -> bool:
        """Return whether a permission holds for more than the calling key: anywhere for None, else in an account."""
        return self.extent(permission, account_id) > pb.PERMISSION_EXTENT_CALLING_KEY

    def extent(self, permission: "Permission", account_id: str | None = None) -> "pb.PermissionExtent.ValueType":
        """Return the greatest extent of a permission: anywhere for None, else in an account or the whole gateway."""
        name = pb.Permission.Name(permission).removeprefix("PERMISSION_").lower()
        extents = [
            each.extent
            for each in self.caller.permissions
            if each.permission == name
            and (account_id is None or not each.account_ids or account_id in each.account_ids)
        ]
        return max(extents, default=pb.PERMISSION_EXTENT_UNSPECIFIED)

    def may_change(self, permission: "Permission", key: pb.Key) -> bool:
        """Return whether a permission holds for a key."""
        match self.extent(permission, key.settings.project_id):
            case pb.PERMISSION_EXTENT_ALL | pb.PERMISSION_EXTENT_PART:
                return True
            case pb.PERMISSION_EXTENT_OWN if key.settings.user_id == self.caller.user_id:
                return True
            case _:  # a key may have the permission for itself alone
                own = self.extent(permission) >= pb.PERMISSION_EXTENT_CALLING_KEY
                return own and key.key_id == self.caller.key_id
