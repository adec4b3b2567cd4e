"""Objects that requests of administration name by id or name: projects and users, as far as the caller may see them."""

from collections.abc import Collection, Sequence
from typing import TypeAlias

from umg_grpc.access.access_control import Authority
from umg_grpc.access.account_levels import PROJECT_KIND
from umg_grpc.access.accounts import Accounts
from umg_grpc.access.role_permissions import Extent, Permission
from umg_grpc.access.users import User, Users
from umg_grpc.store import Store
from umg_grpc.store.key_selection import KeySelection
from umg_grpc.v1 import pb

Filtered: TypeAlias = (
    pb.ListKeysRequest
    | pb.ListUsageRequest
    | pb.GetCallSummaryRequest
    | pb.ListEndUserUsageRequest
    | pb.ListRequestRecordsRequest
)
PRIVATE_DIMENSIONS = frozenset({pb.USAGE_DIMENSION_KEY, pb.USAGE_DIMENSION_OWNER, pb.USAGE_DIMENSION_TAG})
"""Dimensions that divide the totals of a project into those of keys."""


class CallerReferences:
    """Finder of the objects that requests name."""

    def __init__(self, store: Store) -> None:
        self._accounts, self._users = Accounts(store), Users(store)

    async def project_id(self, reference: str, authority: Authority, permission: Permission) -> str:
        """Return the id of the project with this id or name, in which the caller has the permission to any extent.
        Raise UmgError(OBJECT_NOT_FOUND) for any other.
        """
        among = authority.allowed_accounts(permission, Extent.OWN)
        return (await self._accounts.get(reference, PROJECT_KIND, among)).account_id

    async def project_ids(self, references: Sequence[str], authority: Authority, permission: Permission) -> list[str]:
        """Return the ids of several projects, as `project_id` does: all ids by one query, names one by one."""
        if len(references) < 2:
            return [await self.project_id(each, authority, permission) for each in references]
        among = authority.allowed_accounts(permission, Extent.OWN)
        found, _ = await self._accounts.page(
            "", len(references), kind=PROJECT_KIND, account_ids=references, include_closed=True, among=among
        )
        known = {each.account_id for each in found}
        return [each if each in known else await self.project_id(each, authority, permission) for each in references]

    async def user(self, reference: str, authority: Authority, permission: Permission) -> User:
        """Return the user with this id, e-mail address or name: the caller itself, or one with a role in an account in
        which the caller has the permission. Raise UmgError(OBJECT_NOT_FOUND) for any other.
        """
        return await self._users.get(reference, authority.allowed_accounts(permission), authority.user_id)

    async def keys(self, request: Filtered, authority: Authority, permission: Permission) -> KeySelection:
        """Return the keys that a request selects, of those for which the caller has the permission. Raise
        UmgError(OBJECT_NOT_FOUND) for a project or user that the caller may not see.
        """
        return KeySelection(
            projects=await self.project_ids(request.project_ids, authority, permission),
            users=[(await self.user(each, authority, permission)).user_id for each in request.user_ids],
            tags=dict(request.tags),
            scope=authority.key_scope(permission, totals=_sums_projects(request)),
            key_ids=request.key_ids if isinstance(request, pb.ListKeysRequest) else (),
            text=request.text if isinstance(request, pb.ListKeysRequest) else "",
        )


def _sums_projects(request: Filtered) -> bool:
    """Return whether a request is for sums of projects that do not show single keys."""
    if not isinstance(request, pb.ListUsageRequest | pb.GetCallSummaryRequest):
        return False
    dimensions = request.group_by if isinstance(request, pb.ListUsageRequest) else [request.group_by]
    filters: tuple[Collection[str], ...] = (request.key_ids, request.user_ids, request.tags)
    return not any(filters) and PRIVATE_DIMENSIONS.isdisjoint(dimensions)
