"""Interface of the services for the console's pages, and the rights of the person of a session."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from google.protobuf.message import Message

from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names

PERMISSION_NAMES = enum_names(pb.Permission.DESCRIPTOR)
PERSONAL_PERMISSIONS = (pb.PERMISSION_SELF_READ, pb.PERMISSION_SESSIONS_READ)
SHOWN_PERMISSIONS = frozenset(
    PERMISSION_NAMES[value]
    for name, value in pb.Permission.items()
    if name.endswith("_READ") and value not in PERSONAL_PERMISSIONS
)
"""Permissions on which the content of a page about calls depends."""
ResponseT = TypeVar("ResponseT", bound=Message)
if TYPE_CHECKING:
    Permission: TypeAlias = pb.Permission.ValueType


class ServiceCalls(Protocol):
    """Client of the services that accept sessions, for one request of a browser."""

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        """Call the method with this type of request. Raise UmgError."""
        ...


@dataclass(frozen=True)
class CallerRights:
    """Person of the session with roles and their permissions, as the service states them."""

    caller: pb.GetCallerResponse

    @property
    def is_holder(self) -> bool:
        """Whether the person is the holder of a key without a role, and sees the key alone."""
        return not self.caller.memberships

    @property
    def audience(self) -> Hashable:
        """Value that people with the same permissions for the whole gateway have in common, as they see the same
        page if it has no forms; any other person has a value alone.
        """
        shown = [each for each in self.caller.permissions if each.permission in SHOWN_PERMISSIONS]
        extents = tuple((each.permission, each.extent, *each.account_ids) for each in shown)
        is_common = all(each.extent >= pb.PERMISSION_EXTENT_PART and not each.account_ids for each in shown)
        return extents if is_common else (self.caller.user_id, self.caller.key_id, extents)

    @property
    def sees_channels(self) -> bool:
        """Whether the person may see the channels, which belong to the whole gateway."""
        return self.extent(pb.PERMISSION_CHANNELS_READ) == pb.PERMISSION_EXTENT_ALL

    def may(self, permission: "Permission", account_id: str | None = None) -> bool:
        """Return whether a permission holds for more than the calling key: anywhere for None, else in an account."""
        return self.extent(permission, account_id) > pb.PERMISSION_EXTENT_CALLING_KEY

    def extent(self, permission: "Permission", account_id: str | None = None) -> "pb.PermissionExtent.ValueType":
        """Return the greatest extent of a permission: anywhere for None, else in an account or the whole gateway."""
        name = PERMISSION_NAMES[permission]
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
