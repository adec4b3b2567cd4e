"""Access control of the administration: which acts a caller may do, and on which accounts, keys and users."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import select

from umg_grpc.access.account_levels import PROJECT_KIND, unknown_account
from umg_grpc.access.api_keys import Key
from umg_grpc.access.caller_identity import Caller
from umg_grpc.access.key_permissions import ADMIN_SCOPE
from umg_grpc.access.key_references import unknown_key
from umg_grpc.access.principals import WHOLE_GATEWAY, Membership, Principal, Role
from umg_grpc.access.role_permissions import (
    HOLDER_PERMISSIONS,
    ROLE_PERMISSIONS,
    Extent,
    Permission,
    permission_name,
)
from umg_grpc.access.users import User, Users
from umg_grpc.base.errors import UmgError
from umg_grpc.store import Store
from umg_grpc.store.database import repeated
from umg_grpc.store.key_selection import KeyScope
from umg_grpc.store.table_definitions import AccountRow
from umg_grpc.v1 import pb

GRANTED_ROLES: Final = {Role.OWNER: frozenset(Role), Role.ADMIN: frozenset(Role) - {Role.OWNER}}
"""Role -> roles that it may give to others and take from them."""


@dataclass(frozen=True)
class ReachedAccount:
    """Account that a membership names, or that is below one."""

    account_id: str
    name: str
    kind: str
    organization_id: str


@dataclass(frozen=True)
class Authority:
    """Rights of one caller: its roles, and the accounts in which it has them."""

    principal: Principal | None
    """None for the holder of a key, which may use the key alone."""
    key_id: str
    """Key with which the caller calls; it may read itself."""
    accounts: Mapping[str, ReachedAccount] = field(default_factory=dict)
    """Accounts of the memberships and below them, by id."""

    @property
    def owns_gateway(self) -> bool:
        """Whether the caller is an owner of the whole gateway."""
        return self.principal is not None and self.principal.owns_gateway

    @property
    def user_id(self) -> str:
        """Id of the user that calls; "" for a key without one."""
        return "" if self.principal is None else self.principal.user_id

    def roles(self, account_id: str) -> list[Role]:
        """Return the roles that hold in an account, `WHOLE_GATEWAY` for the gateway."""
        return [membership.role for membership in self._memberships(account_id)]

    def extent(self, permission: Permission, account_id: str) -> Extent:
        """Return the extent of a permission in an account, `WHOLE_GATEWAY` for objects that belong to none."""
        extents = (ROLE_PERMISSIONS[role].get(permission, Extent.NONE) for role in self.roles(account_id))
        return max(extents, default=Extent.NONE)

    def greatest_extent(self, permission: Permission) -> Extent:
        """Return the greatest extent of a permission in any account."""
        memberships = () if self.principal is None else self.principal.memberships
        extents = (ROLE_PERMISSIONS[membership.role].get(permission, Extent.NONE) for membership in memberships)
        return max(extents, default=Extent.NONE)

    def require(self, permission: Permission) -> None:
        """Raise UmgError(PERMISSION_DENIED) if the caller has the permission nowhere, not even for its own key."""
        if permission in HOLDER_PERMISSIONS and self.key_id:
            return
        if self.greatest_extent(permission) is Extent.NONE:
            raise self.denied(permission)

    def denied(self, permission: Permission, account_id: str | None = None) -> UmgError:
        """Return the error for an act that the roles do not permit: in an account, or anywhere for None."""
        if self.principal is None:
            message = "this API key may not administer the gateway; use a key of an administrator"
            return UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation=ADMIN_SCOPE)
        permitted = f"`{permission_name(permission)}`"
        if account_id is not None and not self._memberships(account_id):
            permitted += f" {self._place(account_id)}"
        return self._refused(permission, f"does not permit {permitted}")

    def allowed_accounts(self, permission: Permission, least: Extent = Extent.PART) -> frozenset[str] | None:
        """Return the accounts in which the caller has at least this extent of a permission; None for all accounts."""
        if self.extent(permission, WHOLE_GATEWAY) >= least:
            return None
        return frozenset(account for account in self.accounts if self.extent(permission, account) >= least)

    def key_scope(self, permission: Permission, *, totals: bool = False) -> KeyScope | None:
        """Return the keys for which the caller has a permission; None for all keys. `totals`: include the keys of
        projects of which the caller may see the totals only.
        """
        projects = self.allowed_accounts(permission, Extent.OWN if totals else Extent.PART)
        if projects is None:
            return None
        own = self.allowed_accounts(permission, Extent.OWN)
        user_id = self.user_id if own is None or own else ""
        key_id = self.key_id if permission in HOLDER_PERMISSIONS else ""
        return KeyScope(projects, user_id, own, key_id)

    def check_key(self, permission: Permission, key: Key) -> None:
        """Raise UmgError if the caller does not have a permission for a key: OBJECT_NOT_FOUND if it may not see the
        key, else PERMISSION_DENIED.
        """
        for needed in (pb.PERMISSION_KEYS_READ, permission):
            scope = self.key_scope(needed)
            if scope is not None and not scope.includes(key.key_id, key.project_id, key.user_id):
                is_hidden = needed == pb.PERMISSION_KEYS_READ and self.principal is not None
                raise unknown_key(key.key_id) if is_hidden else self.denied(permission, key.project_id)
        if key.administrator and permission in _KEY_CHANGES and not self.owns_gateway and key.key_id != self.key_id:
            message = "not allowed: only an owner of the whole gateway changes the key of an administrator"
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation=ADMIN_SCOPE)

    def check_account(self, permission: Permission, account_id: str) -> None:
        """Raise UmgError if the caller does not have a permission in an account: OBJECT_NOT_FOUND if it may not see the
        account, else PERMISSION_DENIED.
        """
        if self.extent(permission, account_id) is Extent.ALL:
            return
        if account_id != WHOLE_GATEWAY and self.extent(pb.PERMISSION_ACCOUNTS_READ, account_id) is Extent.NONE:
            raise unknown_account(account_id)
        raise self.denied(permission, account_id)

    def check_grant(self, memberships: Iterable[Membership]) -> None:
        """Raise UmgError(PERMISSION_DENIED) for a role that the caller may not give or take: only owners make owners,
        and only for accounts of their own roles and below.
        """
        for membership in memberships:
            granted = frozenset[Role]().union(
                *(GRANTED_ROLES.get(role, ()) for role in self.roles(membership.account_id))
            )
            if membership.role not in granted:
                given = f"the role {membership.role} {self._place(membership.account_id)}"
                raise self._refused(pb.PERMISSION_USERS_WRITE, f"neither gives nor takes {given}")

    def only_project(self, permission: Permission) -> str:
        """Return the project of a caller that has a permission in one project alone; "" for any other caller."""
        accounts = self.allowed_accounts(permission, Extent.OWN)
        projects = [each for each in accounts or () if self.accounts[each].kind == PROJECT_KIND]
        return projects[0] if accounts is not None and len(projects) == 1 else ""

    def _memberships(self, account_id: str) -> list[Membership]:
        account = self.accounts.get(account_id)
        covering = {WHOLE_GATEWAY, account_id, account.organization_id if account is not None else WHOLE_GATEWAY}
        memberships = () if self.principal is None else self.principal.memberships
        return [membership for membership in memberships if membership.account_id in covering]

    def _refused(self, permission: Permission, reason: str) -> UmgError:
        memberships = () if self.principal is None else self.principal.memberships
        roles = ", ".join(f"{each.role} {self._place(each.account_id)}" for each in memberships) or "none"
        message = f"not allowed: your role is {roles}, which {reason}"
        return UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation=permission_name(permission))

    def _place(self, account_id: str) -> str:
        if account_id == WHOLE_GATEWAY:
            return "of the gateway"
        account = self.accounts.get(account_id)
        return "outside of your accounts" if account is None else f"in `{account.name}`"


_KEY_CHANGES = frozenset({pb.PERMISSION_KEYS_WRITE, pb.PERMISSION_KEYS_ROTATE})


class AccessControl:
    """Source of the rights of callers, by the memberships in the database."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._users = Users(store)

    async def authority(self, caller: Caller) -> Authority:
        """Return the rights of a caller: of a session, a key or a token. A key without a principal is its holder's."""
        principal = caller.principal or await self._users.principal_of_key(
            caller.name, caller.user_id, administrator=caller.administrator, has_token=caller.has_token
        )
        if principal is None or not principal.memberships:
            return Authority(None, caller.key_id)
        named = {each.account_id for each in principal.memberships} - {WHOLE_GATEWAY}
        return Authority(principal, caller.key_id, await self._accounts(named) if named else {})

    @repeated
    async def _accounts(self, named: Collection[str]) -> Mapping[str, ReachedAccount]:
        row = AccountRow
        query = select(row.account_id, row.name, row.kind, row.organization_id)
        query = query.where(row.account_id.in_(named) | row.organization_id.in_(named))
        async with self._store.read() as session:
            return {
                account_id: ReachedAccount(account_id, name, kind, organization_id or "")
                for account_id, name, kind, organization_id in await session.execute(query)
            }


def may_see_user(accounts: frozenset[str] | None, user: User) -> bool:
    """Return whether a user has a role in one of the accounts (None: all), and is therefore seen there."""
    memberships = (*user.memberships, *user.issuer_memberships)
    return accounts is None or any(membership.account_id in accounts for membership in memberships)
