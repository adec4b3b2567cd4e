"""Administration of people and service accounts and of their roles, as messages of `umg.v1`."""

from __future__ import annotations  # the context is needed by type checkers alone, and slow to import

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from umg_grpc.access.accounts import Accounts
from umg_grpc.access.principals import WHOLE_GATEWAY, Membership, Role
from umg_grpc.access.role_permissions import Extent
from umg_grpc.access.users import User, UserFields, Users
from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline.call_state import current
from umg_grpc.service.servicers.administrative_calls import AdministrativeCalls, RequestCheck
from umg_grpc.service.servicers.caller_permissions import ROLE_NAMES, ROLE_VALUES, caller_message
from umg_grpc.service.servicers.session_administration import SessionActs
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.service.servicers.update_masks import check_mask
from umg_grpc.v1 import pb
from umg_grpc.wire.core.model_list_page_token import PageBoundary, decode_token, encode_token
from umg_grpc.wire.protobuf_json import enum_names

if TYPE_CHECKING:
    from umg_grpc.access.access_control import Authority
    from umg_grpc.base.inprocess_channel import Context
    from umg_grpc.config.sign_on_section import Sessions as SessionTimes
    from umg_grpc.store import Store

PAGE_SIZE = 100
KIND_NAMES: Final = enum_names(pb.UserKind.DESCRIPTOR)
KIND_VALUES: Final = {name: pb.UserKind.ValueType(value) for value, name in KIND_NAMES.items()}
READ_USERS, WRITE_USERS = pb.PERMISSION_USERS_READ, pb.PERMISSION_USERS_WRITE
SETTING_NAMES: Final = tuple(field.name for field in pb.UserSettings.DESCRIPTOR.fields)
OF_PERSON = frozenset({"name", "email", "disabled"})
"""Settings that hold in all accounts of a user, so that its administrators change them together."""


class UserAdministration:
    """Methods of `umg.v1.UserService`. `check` raises UmgError for a request that breaks a rule of the schema."""

    def __init__(self, store: Store, sessions: SessionTimes, check: RequestCheck) -> None:
        """Create the methods. `sessions`: times after which sessions end."""
        self._calls = AdministrativeCalls("UserService", store, check)
        self._acts, self._sessions = UserActs(store), SessionActs(store, sessions)

    async def CreateUser(self, request: pb.CreateUserRequest, context: Context) -> pb.CreateUserResponse:
        return await self._calls.run(request, context, self._acts.create)

    async def GetUser(self, request: pb.GetUserRequest, context: Context) -> pb.GetUserResponse:
        return await self._calls.run(request, context, self._acts.get)

    async def GetCaller(self, request: pb.GetCallerRequest, context: Context) -> pb.GetCallerResponse:
        return await self._calls.run(request, context, _caller)

    async def ListUsers(self, request: pb.ListUsersRequest, context: Context) -> pb.ListUsersResponse:
        return await self._calls.run(request, context, self._acts.page)

    async def UpdateUser(self, request: pb.UpdateUserRequest, context: Context) -> pb.UpdateUserResponse:
        return await self._calls.run(request, context, self._acts.update)

    async def ListSessions(self, request: pb.ListSessionsRequest, context: Context) -> pb.ListSessionsResponse:
        return await self._calls.run(request, context, self._sessions.page)

    async def EndSession(self, request: pb.EndSessionRequest, context: Context) -> pb.EndSessionResponse:
        return await self._calls.run(request, context, self._sessions.end)


class UserActs:
    """Acts on people and service accounts, with the rights of a caller."""

    def __init__(self, store: Store) -> None:
        self._users, self._accounts = Users(store), Accounts(store)

    async def create(self, request: pb.CreateUserRequest, authority: Authority) -> pb.CreateUserResponse:
        """Create a user."""
        memberships = await self._memberships(request.settings.memberships, authority)
        if not memberships and authority.extent(WRITE_USERS, WHOLE_GATEWAY) is not Extent.ALL:
            message = "give the user a role in an account of yours: without one you would not see it"
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="memberships")
        authority.check_grant(memberships)
        settings = request.settings
        fields: UserFields = {
            "name": settings.name,
            "email": settings.email,
            "memberships": memberships,
            "disabled": settings.disabled,
        }
        user = await self._users.create(KIND_NAMES[request.kind], fields)
        return pb.CreateUserResponse(user=_message(user, authority))

    async def get(self, request: pb.GetUserRequest, authority: Authority) -> pb.GetUserResponse:
        """Return a user that the caller may see."""
        return pb.GetUserResponse(user=_message(await self._find(request.user_id, authority), authority))

    async def page(self, request: pb.ListUsersRequest, authority: Authority) -> pb.ListUsersResponse:
        """Return one page of users that the caller may see."""
        accounts = authority.allowed_accounts(READ_USERS)
        if request.account_id:
            accounts = frozenset({(await self._accounts.get(request.account_id, among=accounts)).account_id})
        users, last = await self._users.page(
            decode_token(request.page_token).id,
            request.page_size if request.HasField("page_size") else PAGE_SIZE,
            kind=KIND_NAMES.get(request.kind, ""),
            accounts=accounts,
            include_disabled=request.include_disabled,
        )
        token = encode_token(PageBoundary(last)) if last else ""
        return pb.ListUsersResponse(users=[_message(user, authority) for user in users], next_page_token=token)

    async def update(self, request: pb.UpdateUserRequest, authority: Authority) -> pb.UpdateUserResponse:
        """Change a user."""
        user, paths = await self._find(request.user_id, authority), list(request.update_mask.paths)
        check_mask(paths, SETTING_NAMES)
        settings, fields = request.settings, UserFields()
        if "memberships" in paths:
            wanted = await self._memberships(settings.memberships, authority)
            fields["memberships"] = _changed_memberships(user, wanted, authority)
        if not OF_PERSON.isdisjoint(paths):
            memberships = (*user.memberships, *user.issuer_memberships)
            authority.check_grant(memberships or [Membership(WHOLE_GATEWAY, Role.ADMIN)])
        if "name" in paths:
            fields["name"] = settings.name
        if "email" in paths:
            fields["email"] = settings.email
        if "disabled" in paths:
            fields["disabled"] = settings.disabled
        changed = await self._users.update(user.user_id, fields)
        return pb.UpdateUserResponse(user=_message(changed, authority))

    async def _find(self, reference: str, authority: Authority) -> User:
        return await self._users.get(reference, authority.allowed_accounts(READ_USERS), authority.user_id)

    async def _memberships(self, memberships: Iterable[pb.Membership], authority: Authority) -> tuple[Membership, ...]:
        """Return the memberships of a request, with ids in place of names of accounts. Raise UmgError(OBJECT_NOT_FOUND)
        for an account that the caller may not see.
        """
        among = authority.allowed_accounts(pb.PERMISSION_ACCOUNTS_READ)
        found = list[Membership]()
        for membership in memberships:
            account_id = membership.account_id
            if account_id != WHOLE_GATEWAY:
                account_id = (await self._accounts.get(account_id, among=among)).account_id
            found.append(Membership(account_id, Role(ROLE_NAMES[membership.role])))
        return tuple(found)


async def _caller(_: pb.GetCallerRequest, authority: Authority) -> pb.GetCallerResponse:
    return caller_message(current().caller, authority)


def _changed_memberships(user: User, wanted: Collection[Membership], authority: Authority) -> tuple[Membership, ...]:
    """Return the new memberships of a user. Those in accounts that the caller does not see stay: the caller could not
    repeat them. Raise UmgError(PERMISSION_DENIED) for a role that the caller may not give or take.
    """
    seen = authority.allowed_accounts(READ_USERS)
    hidden = () if seen is None else tuple(each for each in user.memberships if each.account_id not in seen)
    memberships = dict.fromkeys((*hidden, *wanted))
    authority.check_grant(memberships.keys() ^ set(user.memberships))
    return tuple(memberships)


def _message(user: User, authority: Authority) -> pb.User:
    """Return a user as a message for the caller: memberships in accounts that it sees, and the e-mail address if its
    role permits that.
    """
    seen = authority.allowed_accounts(READ_USERS)
    is_own = user.user_id == authority.user_id
    accounts = {WHOLE_GATEWAY, *(each.account_id for each in (*user.memberships, *user.issuer_memberships))}
    has_email = is_own or any(authority.extent(READ_USERS, account) is Extent.ALL for account in accounts)

    def shown(memberships: Iterable[Membership]) -> list[pb.Membership]:
        return [
            pb.Membership(account_id=each.account_id, role=ROLE_VALUES[each.role])
            for each in memberships
            if is_own or seen is None or each.account_id in seen
        ]

    return pb.User(
        user_id=user.user_id,
        kind=KIND_VALUES[user.kind],
        settings=pb.UserSettings(
            name=user.name,
            email=user.email if has_email else "",
            memberships=shown(user.memberships),
            disabled=user.disabled,
        ),
        issuer=user.issuer,
        subject=user.subject if has_email else "",
        create_time=timestamp(user.create_time),
        last_sign_in_time=timestamp(user.last_sign_in_time),
        issuer_memberships=shown(user.issuer_memberships),
    )
