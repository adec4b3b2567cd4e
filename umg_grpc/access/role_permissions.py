"""Table of the permissions of roles. Permissions are options of the methods in the schema (`umg.v1.permission`)."""

from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

from google.protobuf.descriptor_pool import Default

from umg_grpc.access.principals import Role
from umg_grpc.v1 import pb

Permission: TypeAlias = "pb.Permission.ValueType"


class Extent(IntEnum):
    """Extent to which a role permits an act, in ascending order."""

    NONE = 0
    OWN = 1
    """For the own keys; of usage also the totals of a project, without a division by key, owner or tag; of prices those
    that every caller sees.
    """
    PART = 2
    """For all objects, but only a part of their fields: budgets of keys, prices without routes, users without e-mail
    addresses, alerts of budgets.
    """
    ALL = 3


_SELF: Mapping[Permission, Extent] = {pb.PERMISSION_SELF_READ: Extent.ALL}
_OWN_SESSIONS: Mapping[Permission, Extent] = dict.fromkeys(
    (pb.PERMISSION_SESSIONS_READ, pb.PERMISSION_SESSIONS_WRITE), Extent.OWN
)
_READS: Mapping[Permission, Extent] = {
    **_SELF,
    pb.PERMISSION_KEYS_READ: Extent.ALL,
    pb.PERMISSION_USAGE_READ: Extent.ALL,
    pb.PERMISSION_RECORDS_READ: Extent.ALL,
    pb.PERMISSION_CHANNELS_READ: Extent.ALL,
    pb.PERMISSION_ACCOUNTS_READ: Extent.ALL,
    pb.PERMISSION_USERS_READ: Extent.ALL,
    pb.PERMISSION_AUDIT_READ: Extent.ALL,
    pb.PERMISSION_ALERTS_READ: Extent.ALL,
    pb.PERMISSION_TASKS_READ: Extent.ALL,
    pb.PERMISSION_CONFIG_READ: Extent.ALL,
    pb.PERMISSION_PRICES_READ: Extent.ALL,
    **_OWN_SESSIONS,
}
_EVERYTHING = dict.fromkeys(pb.Permission.values(), Extent.ALL)

ROLE_PERMISSIONS: Mapping[Role, Mapping[Permission, Extent]] = MappingProxyType(
    {
        Role.OWNER: _EVERYTHING,
        # but `access_control.py` lets only owners make owners
        Role.ADMIN: {
            **_EVERYTHING,
            pb.PERMISSION_CHANNELS_WRITE: Extent.NONE,
            pb.PERMISSION_PRICES_WRITE: Extent.NONE,
        },
        Role.MEMBER: {
            **_SELF,
            pb.PERMISSION_KEYS_READ: Extent.OWN,
            pb.PERMISSION_KEYS_WRITE: Extent.OWN,
            pb.PERMISSION_KEYS_ROTATE: Extent.OWN,
            pb.PERMISSION_USAGE_READ: Extent.OWN,
            pb.PERMISSION_RECORDS_READ: Extent.OWN,
            pb.PERMISSION_ACCOUNTS_READ: Extent.ALL,
            pb.PERMISSION_TASKS_READ: Extent.OWN,
            pb.PERMISSION_TASKS_WRITE: Extent.OWN,
            pb.PERMISSION_PRICES_READ: Extent.OWN,
            **_OWN_SESSIONS,
        },
        Role.VIEWER: {**_READS, pb.PERMISSION_USERS_READ: Extent.PART},
        Role.BILLING: {
            **_SELF,
            pb.PERMISSION_KEYS_READ: Extent.PART,
            pb.PERMISSION_USAGE_READ: Extent.ALL,
            pb.PERMISSION_CHANNELS_READ: Extent.PART,
            pb.PERMISSION_ACCOUNTS_READ: Extent.ALL,
            pb.PERMISSION_ALERTS_READ: Extent.PART,
            pb.PERMISSION_PRICES_READ: Extent.PART,
            **_OWN_SESSIONS,
        },
    }
)
"""Role -> extent of each permission that it has."""

HOLDER_PERMISSIONS: frozenset[Permission] = frozenset(
    {
        pb.PERMISSION_KEYS_READ,
        pb.PERMISSION_KEYS_ROTATE,
        pb.PERMISSION_USAGE_READ,
        pb.PERMISSION_RECORDS_READ,
        pb.PERMISSION_TASKS_READ,
        pb.PERMISSION_TASKS_WRITE,
        pb.PERMISSION_SELF_READ,
        *_OWN_SESSIONS,
    }
)
"""Permissions that every key has for itself."""


CHANGING_PERMISSIONS: frozenset[Permission] = frozenset(
    permission for name, permission in pb.Permission.items() if name.endswith(("_WRITE", "_ROTATE", "_CHECK"))
)
"""Permissions of acts that change something, which are audited when they are refused, too."""


@cache
def permission_of(service: str, method: str) -> Permission:
    """Return the permission that a method of a service of `umg.v1` requires. Raise KeyError for one without."""
    descriptor = Default().FindMethodByName(f"umg.v1.{service}.{method}")
    permission: Permission = descriptor.GetOptions().Extensions[pb.permission]
    if permission == pb.PERMISSION_UNSPECIFIED:
        raise KeyError(f"{service}.{method} states no permission")
    return permission


def permission_name(permission: Permission) -> str:
    """Return the name of a permission in error messages, for example `keys_write`."""
    return pb.Permission.Name(permission).removeprefix("PERMISSION_").lower()
