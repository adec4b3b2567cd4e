"""People and service accounts: creation, listing, changes and sign-ins. None is deleted, so that usage and audit log
name it for ever.
"""

import re
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TypedDict

from sqlalchemy import ColumnElement, Select, delete, exists, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.access.account_levels import unknown_account
from umg_grpc.access.audit_log import ChangedObject, record_change
from umg_grpc.access.principals import WHOLE_GATEWAY, Membership, Principal, Role, gateway_owner
from umg_grpc.base.errors import UmgError
from umg_grpc.store import Store
from umg_grpc.store.database import repeated, repeated_idempotent
from umg_grpc.store.database_time import GivenClock, utc_of
from umg_grpc.store.key_selection import is_live_key
from umg_grpc.store.table_definitions import AccountRow, ApiKey
from umg_grpc.store.user_tables import MembershipRow, UserRow
from umg_grpc.v1 import pb

PERSON_KIND, SERVICE_ACCOUNT = "person", "service_account"
MAX_NAME_CHARACTERS = 100
MAX_EMAIL_CHARACTERS = 254
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")
"""Rough form of an address: whether it exists is the issuer's knowledge."""


@dataclass(frozen=True)
class User:
    """Person or service account as it is stored; times in UTC."""

    user_id: str
    kind: str
    name: str
    email: str
    memberships: tuple[Membership, ...]
    """Roles that administrators gave."""
    disabled: bool
    create_time: datetime
    issuer: str = ""
    subject: str = ""
    last_sign_in_time: datetime | None = None
    issuer_memberships: tuple[Membership, ...] = ()
    """Roles by the groups of the issuer, as of the last sign-in."""

    @property
    def principal(self) -> Principal:
        """The user as the subject of acts of administration; a disabled one has no role."""
        roles = () if self.disabled else tuple(dict.fromkeys((*self.memberships, *self.issuer_memberships)))
        return Principal(self.user_id, self.name, roles)


class UserFields(TypedDict, total=False):
    """Settings of a user, by the names of fields in `umg.v1.UserSettings`."""

    name: str
    email: str
    memberships: Collection[Membership]
    disabled: bool


class Users:
    """Repository of people and service accounts in the database."""

    def __init__(self, store: Store, now: Callable[[], datetime] | None = None) -> None:
        self._store = store
        self._clock = store.clock if now is None else GivenClock(now)

    async def create(self, kind: str, fields: UserFields) -> User:
        """Create a user of the kind `PERSON_KIND` or `SERVICE_ACCOUNT`. Raise UmgError: INVALID_FIELD,
        OBJECT_NOT_FOUND for an unknown account, ALREADY_EXISTS if another user has the e-mail address.
        """
        row = _new_row(kind, fields.get("name", ""), utc_of(self._clock))
        fields = checked({"name": row.name, **fields})
        try:
            return await self._insert(row, fields)
        except IntegrityError:
            raise _email_exists(fields.get("email", "")) from None

    @repeated_idempotent
    async def _insert(self, row: UserRow, fields: UserFields) -> User:
        async with self._store.write() as session:
            stored = await session.merge(row)  # it is there already if an earlier run was committed without a response
            await _set_fields(session, stored, fields)
            [user] = await _users_of(session, [stored])
            await self._record(session, None, user)
            return user

    @repeated
    async def get(self, reference: str, among: Collection[str] | None = None, own: str = "") -> User:
        """Return the user with this id, e-mail address or name, tried in this order. `among`: accounts of which users
        exist for the caller, None for all; `own`: id of a user that exists besides. Raise UmgError: OBJECT_NOT_FOUND,
        INVALID_FIELD if several users have the name.
        """
        seen = None if among is None else or_(_has_role_in(among), UserRow.user_id == own)
        async with self._store.read() as session:
            return (await _users_of(session, [await find_user(session, reference, seen)]))[0]

    @repeated
    async def find(self, user_id: str) -> User | None:
        """Return the user with this id; None for an unknown one."""
        async with self._store.read() as session:
            row = await session.get(UserRow, user_id)
            return None if row is None else (await _users_of(session, [row]))[0]

    async def principal_of_key(
        self, name: str, user_id: str, *, administrator: bool, has_token: bool = False
    ) -> Principal | None:
        """Return the principal as which a key administers, as `principal_of` does; reads its owner if that matters."""
        owner = await self.find(user_id) if user_id and not administrator else None
        return principal_of(name, user_id, owner, administrator=administrator, has_token=has_token)

    @repeated
    async def page(
        self,
        after: str,
        size: int,
        *,
        kind: str = "",
        accounts: Collection[str] | None = None,
        include_disabled: bool = False,
    ) -> tuple[list[User], str]:
        """Return up to `size` users by name, and the id after which the next page begins ("" if there is none).
        `accounts`: only users with a role in one of these accounts themselves; None for all users. Raise
        UmgError(INVALID_FIELD) for an unknown `after`.
        """
        query = select(UserRow).order_by(UserRow.name, UserRow.user_id).limit(size + 1)
        if kind:
            query = query.where(UserRow.kind == kind)
        if not include_disabled:
            query = query.where(UserRow.disabled.is_(False))
        if accounts is not None:
            query = query.where(_has_role_in(accounts))
        async with self._store.read() as session:
            if after:
                query = await _after(session, query, after)
            users = await _users_of(session, await session.scalars(query))
        return users[:size], users[size - 1].user_id if len(users) > size else ""

    @repeated_idempotent
    async def update(self, user_id: str, fields: UserFields) -> User:
        """Change settings of the user with this id; absent ones stay. Raise UmgError as `create`, OBJECT_NOT_FOUND for
        an unknown user, WRONG_STATE if neither an owner of the gateway nor a key of an administrator would be left.
        """
        fields = checked(fields)
        try:
            async with self._store.write() as session:
                row = await find_user(session, user_id)
                [before] = await _users_of(session, [row])
                await _set_fields(session, row, fields)
                [user] = await _users_of(session, [row])
                if before.principal.owns_gateway and not user.principal.owns_gateway:
                    await self._check_owner_is_left(session)
                await self._record(session, before, user)
                return user
        except IntegrityError:
            raise _email_exists(fields.get("email", "")) from None

    async def _check_owner_is_left(self, session: AsyncSession) -> None:
        is_owner = (
            (MembershipRow.user_id == UserRow.user_id)
            & (MembershipRow.account_id == WHOLE_GATEWAY)
            & (MembershipRow.role == Role.OWNER.value)
        )
        owners = exists().where(is_owner, UserRow.disabled.is_(False))
        keys = exists().where(ApiKey.administrator.is_(True), is_live_key(self._clock.sql_time()))
        if not await session.scalar(select(or_(owners, keys))):
            message = (
                "the gateway would have no owner: first make another user an owner of the whole gateway, or create the"
                " key of an administrator"
            )
            raise UmgError(pb.ERROR_REASON_WRONG_STATE, message, state="last owner")

    @repeated_idempotent
    async def sign_in(
        self,
        issuer: str,
        subject: str,
        *,
        name: str,
        email: str = "",
        memberships: Collection[Membership] = (),
    ) -> User:
        """Record a sign-in at an issuer, and return the user: the one with this issuer and subject, else the person
        with this e-mail address that has not signed in yet, else a new one. `email`: "" unless the issuer has verified
        it; `memberships`: roles by the groups of the issuer, which replace those of the last sign-in; unknown accounts
        are left out. A disabled user is returned unchanged: the caller rejects it.
        """
        email, now = email.strip().lower(), utc_of(self._clock)
        async with self._store.write() as session:
            row = await session.scalar(select(UserRow).where(UserRow.issuer == issuer, UserRow.subject == subject))
            if row is None and email:
                invited = select(UserRow).where(
                    UserRow.email == email, UserRow.kind == PERSON_KIND, UserRow.issuer.is_(None)
                )
                row = await session.scalar(invited)
            before: User | None = None
            if row is None:
                row = _new_row(PERSON_KIND, shown_name(name, email, subject), now)
                session.add(row)
            else:
                [before] = await _users_of(session, [row])
            if not row.disabled:
                row.issuer, row.subject, row.last_sign_in_time = issuer, subject, now
                if email and row.email != email and not await _is_used(session, email, row.user_id):
                    row.email = email
                known = await _known_accounts(session, [membership.account_id for membership in memberships])
                kept = [membership for membership in memberships if membership.account_id in known]
                await _replace_memberships(session, row.user_id, kept, from_issuer=True)
            [user] = await _users_of(session, [row])
            await self._record(session, before, user)
            return user

    async def _record(self, session: AsyncSession, before: User | None, after: User) -> None:
        users = [user for user in (before, after) if user is not None]
        accounts = {each.account_id for user in users for each in (*user.memberships, *user.issuer_memberships)}
        account = accounts.pop() if len(accounts) == 1 else ""
        changed = ChangedObject("user", after.user_id, after.name, account)
        former = None if before is None else _audited(before)
        await record_change(session, utc_of(self._clock), changed, former, _audited(after))


def principal_of(
    name: str, user_id: str, owner: User | None, *, administrator: bool, has_token: bool = False
) -> Principal | None:
    """Return the principal as which a key of `owner` administers. The key of an administrator owns the gateway; the key
    of a service account, and the token of a user (`has_token`), have the user's roles; None for any other key.
    """
    if administrator:
        return gateway_owner(user_id, name)
    return owner.principal if owner is not None and (owner.kind == SERVICE_ACCOUNT or has_token) else None


def _audited(user: User) -> dict[str, object]:
    """Return the settings of a user for the audit log."""
    return {name: value for name, value in asdict(user).items() if name not in {"user_id", "last_sign_in_time"}}


async def find_user(session: AsyncSession, reference: str, seen: ColumnElement[bool] | None = None) -> UserRow:
    """Return the user with the id, e-mail address or name `reference`, tried in this order. `seen`: condition of the
    users that are searched; None for all. Raise UmgError.
    """
    named = or_(UserRow.user_id == reference, UserRow.email == reference.lower(), UserRow.name == reference)
    query = select(UserRow).where(named).order_by(UserRow.create_time)
    rows = list(await session.scalars(query if seen is None else query.where(seen)))
    by_id = [row for row in rows if row.user_id == reference]
    by_email = [row for row in rows if row.email == reference.lower()]
    for found in (by_id, by_email, rows):
        if len(found) > 1:
            ids = ", ".join(row.user_id for row in found)
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, f"several users are meant, say which: {ids}", field="user")
        if found:
            return found[0]
    raise unknown_user(reference)


async def disabled_users(session: AsyncSession, users: Collection[str | None]) -> set[str | None]:
    """Return those of the users, by id, that are disabled."""
    ids = {user_id for user_id in users if user_id}
    query = select(UserRow.user_id).where(UserRow.user_id.in_(ids), UserRow.disabled.is_(True))
    return {*await session.scalars(query)} if ids else set()


def unknown_user(reference: str) -> UmgError:
    """Return the error for an unknown user, and for one that the caller may not see."""
    message = "there is no such user; `umg users list` shows ids, names and e-mail addresses"
    return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=reference[:MAX_NAME_CHARACTERS])


def checked(fields: UserFields) -> UserFields:
    """Return the settings with the e-mail address in lower case. Raise UmgError(INVALID_FIELD) for an invalid one."""
    name, email = fields.get("name", "-"), fields.get("email", "").strip().lower()
    if not (0 < len(name) <= MAX_NAME_CHARACTERS and name.isprintable() and name == name.strip()):
        raise _invalid("name", f"a name has 1 to {MAX_NAME_CHARACTERS} printable characters and no space at its ends")
    if name.startswith("user_"):
        raise _invalid("name", "it looks like the id of a user, by which users are named too; choose another")
    if email and (len(email) > MAX_EMAIL_CHARACTERS or not email.isprintable() or _EMAIL.fullmatch(email) is None):
        raise _invalid("email", "it is no e-mail address: ada@example.com")
    accounts = [membership.account_id for membership in fields.get("memberships", ())]
    if len(accounts) > len(set(accounts)):
        raise _invalid("memberships", "at most one role for each account")
    return {**fields, "email": email} if "email" in fields else fields


def shown_name(name: str, email: str, subject: str) -> str:
    """Return the name for a new person: that of the issuer, else the e-mail address, else the subject."""
    for text in (name, email, subject):
        if shown := " ".join("".join(letter for letter in text if letter.isprintable()).split())[:MAX_NAME_CHARACTERS]:
            return shown
    return "unnamed"


def _new_row(kind: str, name: str, create_time: datetime) -> UserRow:
    return UserRow(
        user_id=f"user_{secrets.token_hex(8)}", kind=kind, name=name, disabled=False, create_time=create_time
    )


async def _set_fields(session: AsyncSession, row: UserRow, fields: UserFields) -> None:
    if "name" in fields:
        row.name = fields["name"]
    if "email" in fields:
        row.email = fields["email"] or None
    if "disabled" in fields:
        row.disabled = fields["disabled"]
    if "memberships" in fields:
        memberships = fields["memberships"]
        known = await _known_accounts(session, [membership.account_id for membership in memberships])
        for membership in memberships:
            if membership.account_id not in known:
                raise unknown_account(membership.account_id)
        await _replace_memberships(session, row.user_id, memberships, from_issuer=False)


async def _known_accounts(session: AsyncSession, accounts: Collection[str]) -> set[str]:
    query = select(AccountRow.account_id).where(AccountRow.account_id.in_(accounts))
    return {WHOLE_GATEWAY, *(await session.scalars(query) if accounts else ())}


async def _replace_memberships(
    session: AsyncSession, user_id: str, memberships: Collection[Membership], *, from_issuer: bool
) -> None:
    of_user = delete(MembershipRow).where(MembershipRow.user_id == user_id, MembershipRow.from_issuer.is_(from_issuer))
    await session.execute(of_user)
    roles = {membership.account_id: membership.role for membership in reversed(list(memberships))}
    session.add_all(
        MembershipRow(user_id=user_id, account_id=account, from_issuer=from_issuer, role=role.value)
        for account, role in roles.items()
    )


async def _is_used(session: AsyncSession, email: str, user_id: str) -> bool:
    query = select(UserRow.user_id).where(UserRow.email == email, UserRow.user_id != user_id)
    return await session.scalar(query) is not None


def _has_role_in(accounts: Collection[str]) -> ColumnElement[bool]:
    return exists().where(MembershipRow.user_id == UserRow.user_id, MembershipRow.account_id.in_(accounts))


async def _after(session: AsyncSession, query: "Select[UserRow]", after: str) -> "Select[UserRow]":
    name = await session.scalar(select(UserRow.name).where(UserRow.user_id == after))
    if name is None:
        message = "`page_token`: it belongs to no page of users; begin with the first page, without a token"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="page_token")
    return query.where(or_(UserRow.name > name, (UserRow.name == name) & (UserRow.user_id > after)))


async def _users_of(session: AsyncSession, rows: Iterable[UserRow]) -> list[User]:
    rows = list(rows)
    await session.flush()
    given = await _memberships(session, [row.user_id for row in rows])
    return [
        User(
            user_id=row.user_id,
            kind=row.kind,
            name=row.name,
            email=row.email or "",
            memberships=tuple(given.get((row.user_id, False), ())),
            disabled=row.disabled,
            create_time=row.create_time,
            issuer=row.issuer or "",
            subject=row.subject or "",
            last_sign_in_time=row.last_sign_in_time,
            issuer_memberships=tuple(given.get((row.user_id, True), ())),
        )
        for row in rows
    ]


async def _memberships(session: AsyncSession, users: Collection[str]) -> Mapping[tuple[str, bool], list[Membership]]:
    query = select(MembershipRow).where(MembershipRow.user_id.in_(users)).order_by(MembershipRow.account_id)
    found = dict[tuple[str, bool], list[Membership]]()
    for row in await session.scalars(query):
        membership = Membership(row.account_id, Role(row.role))
        found.setdefault((row.user_id, row.from_issuer), []).append(membership)
    return found


def _email_exists(email: str) -> UmgError:
    message = f"a user with the e-mail address `{email}` exists; change its roles, or ask an owner if you do not see it"
    return UmgError(pb.ERROR_REASON_ALREADY_EXISTS, message)


def _invalid(field: str, message: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=field)
