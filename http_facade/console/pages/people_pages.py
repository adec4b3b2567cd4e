"""Pages of people and service accounts: the list, one of them with its roles, and the form of a new one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from http_facade.console import form_values
from http_facade.console.address_filters import ListPages
from http_facade.console.call_outcomes import Mark
from http_facade.console.object_names import WHOLE_GATEWAY, OfferedAccounts, accounts_of, offered_accounts
from http_facade.console.page_interface import Done, Form, Shown, Visit, object_path
from http_facade.console.pages.audit_page import history_path
from http_facade.console.pages.key_pages import KeyRow, key_row, new_secret
from http_facade.console.pages.session_rows import OpenSessionRow, end_session, session_rows
from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb
from umg_grpc.wire import account_api_json as bodies
from umg_grpc.wire.protobuf_json import enum_names

PAGE_SIZE, MAX_KEYS = 100, 50
ROLE_NAMES = enum_names(pb.UserRole.DESCRIPTOR)
USER_KIND_NAMES = enum_names(pb.UserKind.DESCRIPTOR)
ALL_ROLES = [name for value, name in ROLE_NAMES.items() if value]
OWNER_ROLE = ROLE_NAMES[pb.USER_ROLE_OWNER]
PERSON_KIND, SERVICE_KIND = USER_KIND_NAMES[pb.USER_KIND_PERSON], USER_KIND_NAMES[pb.USER_KIND_SERVICE_ACCOUNT]
WRITE_USERS = pb.PERMISSION_USERS_WRITE


@dataclass(frozen=True)
class RoleRow:
    """Role of a user in an account."""

    role: str
    account_id: str
    """ "" for the whole gateway."""
    account: str
    """Name of the account."""
    may_take: bool


@dataclass(frozen=True)
class PersonRow:
    """Row of a person or a service account."""

    user: pb.User
    path: str
    name: str
    kind: str
    mark: Mark
    roles: Sequence[RoleRow]


@dataclass(frozen=True)
class PeopleList:
    """Content of the list of people."""

    rows: Sequence[PersonRow]
    roles: Sequence[str]
    include_disabled: bool
    pages: ListPages
    may_add: bool


@dataclass(frozen=True)
class PersonView:
    """Content of the page of one person or service account."""

    row: PersonRow
    seen: str
    """Version of the settings that the forms show."""
    issuer_roles: Sequence[RoleRow]
    """Roles by groups of the issuer, which only the next sign-in changes."""
    keys: Sequence[KeyRow]
    history: str
    """Page of the acts on it; "" if the person may not see it."""
    grantable: Sequence[str]
    accounts: OfferedAccounts
    """Accounts in which the person of the session gives roles."""
    may_change: bool
    may_create_key: bool
    sessions: Sequence[OpenSessionRow] | None
    """None for a person that may not end them."""


@dataclass(frozen=True)
class NewPerson:
    """Content of the form of a new person or service account."""

    kinds: Sequence[str]
    roles: Sequence[str]
    accounts: OfferedAccounts


class Granting:
    """Accounts and roles that the person of a session may give, by the rule that only owners make owners."""

    def __init__(self, visit: Visit, accounts: Mapping[str, pb.Account]) -> None:
        """Describe the rights of the person. `accounts`: those of the roles that are shown, by their ids."""
        self._rights, self._accounts = visit.rights, accounts
        memberships = visit.rights.caller.memberships
        self._owned = {each.account_id for each in memberships if each.role == pb.USER_ROLE_OWNER}

    def name(self, account_id: str) -> str:
        """Return the name of an account; "" for the whole gateway."""
        account = self._accounts.get(account_id)
        return printable(account.settings.name) if account else account_id

    def roles(self) -> list[str]:
        """Return the roles that may be given in some account; the first is the least."""
        if not self._rights.may(WRITE_USERS):
            return []
        return [role for role in reversed(ALL_ROLES) if role != OWNER_ROLE or self._owned]

    def may(self, role: str, account_id: str) -> bool:
        """Return whether a role in an account may be given and taken."""
        account = self._accounts.get(account_id)
        above = {WHOLE_GATEWAY, account_id, account.settings.organization_id if account else WHOLE_GATEWAY}
        return self._rights.may(WRITE_USERS, account_id) and (role != OWNER_ROLE or not above.isdisjoint(self._owned))

    def row(self, membership: pb.Membership) -> RoleRow:
        """Return the row of a membership."""
        role, account_id = ROLE_NAMES[membership.role], membership.account_id
        return RoleRow(role, account_id, self.name(account_id), self.may(role, account_id))


async def load_people(visit: Visit) -> PeopleList:
    """Return a page of people and service accounts by name."""
    filters = visit.filters
    include_disabled = bool(filters.text("disabled"))
    request = pb.ListUsersRequest(
        account_id=filters.text("project"),
        include_disabled=include_disabled,
        page_size=PAGE_SIZE,
        page_token=filters.page_token,
    )
    response = await visit.calls.call(request, pb.ListUsersResponse)
    granting = await _granting(visit, *response.users)
    return PeopleList(
        rows=[_row(user, granting) for user in response.users],
        roles=ALL_ROLES,
        include_disabled=include_disabled,
        pages=filters.pages(response.next_page_token),
        may_add=visit.rights.may(WRITE_USERS),
    )


async def load_person(visit: Visit) -> PersonView:
    """Return a person or a service account. Raise UmgError(OBJECT_NOT_FOUND)."""
    user = await _find(visit)
    granting = await _granting(visit, user)
    row = _row(user, granting)
    given = [*row.roles, *(granting.row(each) for each in user.issuer_memberships)]
    may_change = all(each.may_take for each in given) and visit.rights.may(
        WRITE_USERS, None if given else WHOLE_GATEWAY
    )
    request = pb.ListKeysRequest(user_ids=[user.user_id], page_size=MAX_KEYS)
    keys = (await visit.calls.call(request, pb.ListKeysResponse)).keys
    return PersonView(
        row=row,
        seen=form_values.version(user.settings),
        issuer_roles=given[len(row.roles) :],
        keys=[key_row(key, {}, visit.now) for key in keys],
        history=history_path(visit, user.user_id),
        grantable=granting.roles(),
        accounts=await offered_accounts(visit.calls, visit.rights, WRITE_USERS),
        may_change=may_change,
        may_create_key=may_change and row.kind == SERVICE_KIND and visit.rights.may(pb.PERMISSION_KEYS_WRITE),
        sessions=await _sessions(visit, user) if may_change else None,
    )


async def load_new_person(visit: Visit) -> NewPerson:
    """Return the choices of the form of a new person or service account."""
    granting = await _granting(visit)
    accounts = await offered_accounts(visit.calls, visit.rights, WRITE_USERS)
    return NewPerson((PERSON_KIND, SERVICE_KIND), granting.roles(), accounts)


async def create_person(visit: Visit, form: Form) -> Done:
    """Add a person by the e-mail address, or a service account by its name, with one role."""
    kind, email, name = (form_values.text(form, field) for field in ("kind", "email", "name"))
    if kind != SERVICE_KIND and not email:
        message = "not saved: `email` must be the address with which the person signs in"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="email")
    settings = {"name": name or email, "email": email, "memberships": [_membership(form)]}
    request = bodies.decode_create_user(msgspec.json.encode({"settings": settings, "kind": kind or PERSON_KIND}))
    user = (await visit.calls.call(request, pb.CreateUserResponse)).user
    return Done(_path(user), "person_added")


async def give_role(visit: Visit, form: Form) -> Done:
    """Give a role in an account, in place of the one there."""
    user, given = await _seen(visit, form), _membership(form)
    if account := given["account_id"]:  # it may be a name
        found = await visit.calls.call(pb.GetAccountRequest(account_id=account), pb.GetAccountResponse)
        given["account_id"] = found.account.account_id
    await _set_roles(visit, user, given["account_id"], given)
    return Done(_path(user), "roles_changed")


async def take_role(visit: Visit, form: Form) -> Done:
    """Take the role in an account."""
    user = await _seen(visit, form)
    await _set_roles(visit, user, form_values.text(form, "account"))
    return Done(_path(user), "roles_changed")


async def rename_person(visit: Visit, form: Form) -> Done:
    """Change the name and the e-mail address."""
    user = await _seen(visit, form)
    await _update(visit, user, {name: form_values.text(form, name) for name in ("name", "email") if name in form})
    return Done(_path(user), "person_changed")


async def disable_person(visit: Visit, form: Form) -> Done:
    """Disable the user whose name the form repeats."""
    user = await _seen(visit, form)
    form_values.check_typed(form, "confirm", user.settings.name)
    await _update(visit, user, {"disabled": True})
    return Done(_path(user), "person_disabled")


async def enable_person(visit: Visit, form: Form) -> Done:
    """Enable the user again."""
    user = await _seen(visit, form)
    await _update(visit, user, {"disabled": False})
    return Done(_path(user), "person_enabled")


async def end_session_of(visit: Visit, form: Form) -> Done:
    """End a session of the user."""
    await end_session(visit, form)
    return Done(_path(await _find(visit)), "session_ended")


async def create_key_of(visit: Visit, form: Form) -> Shown:
    """Create a key of the service account, and show its secret once."""
    user = await _find(visit)
    settings = pb.KeySettings(name=form_values.text(form, "name"), user_id=user.user_id)
    made = await visit.calls.call(pb.CreateKeyRequest(settings=settings), pb.CreateKeyResponse)
    return new_secret(made.key, made.secret, is_rotated=False)


def _path(user: pb.User) -> str:
    return object_path("people", user.user_id)


def _row(user: pb.User, granting: Granting) -> PersonRow:
    settings = user.settings
    return PersonRow(
        user=user,
        path=_path(user),
        name=printable(settings.name),
        kind=USER_KIND_NAMES[user.kind],
        mark=Mark("off", "disabled") if settings.disabled else Mark("good", "active"),
        roles=[granting.row(each) for each in settings.memberships],
    )


async def _granting(visit: Visit, *users: pb.User) -> Granting:
    shown = (each for user in users for each in (*user.settings.memberships, *user.issuer_memberships))
    return Granting(visit, await accounts_of(visit.calls, visit.rights, (each.account_id for each in shown)))


async def _sessions(visit: Visit, user: pb.User) -> list[OpenSessionRow] | None:
    try:
        return await session_rows(visit, user.user_id)
    except UmgError as error:  # the user may have roles in accounts that the person does not see
        if error.reason != pb.ERROR_REASON_PERMISSION_DENIED:
            raise
        return None


async def _find(visit: Visit) -> pb.User:
    request = pb.GetUserRequest(user_id=visit.parameters["user_id"])
    return (await visit.calls.call(request, pb.GetUserResponse)).user


async def _seen(visit: Visit, form: Form) -> pb.User:
    """Return the user. Raise UmgError(ALREADY_EXISTS) if it was changed since the form was shown."""
    user = await _find(visit)
    form_values.check_seen(form, user.settings)
    return user


def _membership(form: Form) -> dict[str, str]:
    return {"account_id": form_values.text(form, "account"), "role": form_values.text(form, "role")}


async def _set_roles(visit: Visit, user: pb.User, account_id: str, *given: Mapping[str, str]) -> None:
    """Replace the role in an account by another one, or by none."""
    kept = [
        {"account_id": each.account_id, "role": ROLE_NAMES[each.role]}
        for each in user.settings.memberships
        if each.account_id != account_id
    ]
    await _update(visit, user, {"memberships": [*kept, *given]})


async def _update(visit: Visit, user: pb.User, settings: Mapping[str, object]) -> None:
    request = bodies.decode_update_user(msgspec.json.encode({"settings": settings}))
    request.user_id = user.user_id
    await visit.calls.call(request, pb.UpdateUserResponse)
