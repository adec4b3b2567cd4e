"""Roles and permissions of the calling user or key, as messages of `umg.v1`."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from umg_grpc.access.access_control import Authority
from umg_grpc.access.caller_identity import Caller
from umg_grpc.access.principals import WHOLE_GATEWAY, Role
from umg_grpc.access.role_permissions import HOLDER_PERMISSIONS, Extent, permission_name
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names

ROLE_NAMES: Final = enum_names(pb.UserRole.DESCRIPTOR)
ROLE_VALUES: Final = {Role(name): pb.UserRole.ValueType(value) for value, name in ROLE_NAMES.items()}
_EXTENT_VALUES: Final = {
    Extent.OWN: pb.PERMISSION_EXTENT_OWN,
    Extent.PART: pb.PERMISSION_EXTENT_PART,
    Extent.ALL: pb.PERMISSION_EXTENT_ALL,
}


def caller_message(caller: Caller, authority: Authority) -> pb.GetCallerResponse:
    """Return the caller with its roles and their permissions."""
    principal = authority.principal
    memberships = () if principal is None else principal.memberships
    return pb.GetCallerResponse(
        name=caller.name if principal is None else principal.name,
        user_id=authority.user_id,
        key_id="" if authority.key_id == caller.session_id else authority.key_id,
        memberships=[pb.Membership(account_id=each.account_id, role=ROLE_VALUES[each.role]) for each in memberships],
        permissions=_permissions(authority),
        session_id=caller.session_id,
        session_expire_time=timestamp(caller.session_end),
    )


def _permissions(authority: Authority) -> Iterator[pb.CallerPermission]:
    for permission in sorted(set(pb.Permission.values()) - {pb.PERMISSION_UNSPECIFIED}):
        everywhere = authority.extent(permission, WHOLE_GATEWAY)
        name = permission_name(permission)
        if everywhere is not Extent.NONE:
            yield pb.CallerPermission(permission=name, extent=_EXTENT_VALUES[everywhere])
        accounts = defaultdict[Extent, list[str]](list)
        for account_id in authority.accounts:
            if (extent := authority.extent(permission, account_id)) > everywhere:
                accounts[extent].append(account_id)
        for extent, ids in sorted(accounts.items()):
            yield pb.CallerPermission(permission=name, extent=_EXTENT_VALUES[extent], account_ids=sorted(ids))
        if everywhere is Extent.NONE and permission in HOLDER_PERMISSIONS and authority.key_id:
            yield pb.CallerPermission(permission=name, extent=pb.PERMISSION_EXTENT_CALLING_KEY)
