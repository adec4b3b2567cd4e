"""Sessions of people: opened by a sign-in, found by their token, ended by time, sign-out, or the end of user or key."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from sqlalchemy import ColumnElement, delete, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.access.account_levels import closed_level
from umg_grpc.access.api_keys import ApiKeys, Key, hash_secret
from umg_grpc.access.audit_log import CURRENT_ACT, KEY_ACTOR, USER_ACTOR, Act, ChangedObject, record_change
from umg_grpc.access.cached_api_keys import caller_of
from umg_grpc.access.caller_identity import Caller
from umg_grpc.access.principals import Membership
from umg_grpc.access.session_keys import revoke_keys_of_session
from umg_grpc.access.users import User, Users, principal_of
from umg_grpc.base.errors import UmgError
from umg_grpc.config.sign_on_section import Sessions as SessionTimes
from umg_grpc.store import Store
from umg_grpc.store.database import repeated, repeated_idempotent
from umg_grpc.store.database_time import GivenClock, utc_of
from umg_grpc.store.session_table import SessionRow
from umg_grpc.store.user_tables import UserRow
from umg_grpc.v1 import pb

SESSION_SCHEME = "session"
"""Scheme of `authorization` metadata with the token of a session, in lower case."""
SESSION_KIND, SIGN_IN_METHOD = "session", "sign_in"
"""Kind of the object and name of the act in the audit log."""
TOKEN_BYTES = 32
CODE_MINUTES = 10
MAX_ADDRESS_CHARACTERS, MAX_AGENT_CHARACTERS = 64, 200
USE_SECONDS = 30
"""Seconds between two writes of the last use of a session."""


class SessionClient(Protocol):
    """Client that signs in, for the list of sessions and the audit log."""

    @property
    def address(self) -> str:
        """Network address."""
        ...

    @property
    def agent(self) -> str:
        """Name of the program, as it states it."""
        ...


@dataclass(frozen=True)
class _NoClient:
    address: str = ""
    agent: str = ""


@dataclass(frozen=True)
class UserSession:
    """Session as it is now; times in UTC."""

    session_id: str
    caller: Caller
    """Subject of the calls of the session."""
    email: str
    """E-mail address of the user; "" for none, and for a key."""
    key_id: str
    """Key that opened the session; "" for a user."""
    roles: tuple[Membership, ...]
    create_time: datetime
    idle_end: datetime
    """Time at which the session ends unless it is used before."""
    end: datetime
    """Time at which it ends, however it is used."""

    @property
    def name(self) -> str:
        """Name of the user or the key."""
        return self.caller.name

    @property
    def user_id(self) -> str:
        """User of the session; "" for a key without a user."""
        return self.caller.user_id


class UserSessions:
    """Repository of sessions."""

    def __init__(self, store: Store, times: SessionTimes, now: Callable[[], datetime] | None = None) -> None:
        self._store = store
        self._clock = store.clock if now is None else GivenClock(now)
        self._times = times
        self._idle, self._absolute = timedelta(seconds=times.idle), timedelta(seconds=times.absolute)
        self._users, self._keys = Users(store), ApiKeys(store)

    async def open_of_user(self, user: User, client: SessionClient) -> str:
        """Open a session of a user. Return its token, which is not stored. Raise UmgError(PERMISSION_DENIED) for a user
        that is disabled or has no role.
        """
        _check_user(user)
        return await self._open(client, user.name, user_id=user.user_id)

    async def open_of_key(self, secret: str, client: SessionClient) -> str:
        """Open a session by the secret of a key, and return its token. It has the rights of the key as a credential.
        Raise UmgError(INVALID_KEY).
        """
        digest = hash_secret(secret)
        key = (await self._keys.by_hash([digest])).get(digest)
        if key is None or not self._is_valid(key):
            message = "this API key is not known here, expired or revoked; use another"
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, message)
        return await self._open(client, key.name, key_id=key.key_id)

    async def new_code(self, key_id: str) -> str:
        """Return a code that opens one session of a key within `CODE_MINUTES`."""
        return await self._open(_NoClient(), "", key_id=key_id, is_code=True)

    async def open_by_code(self, code: str, client: SessionClient) -> str:
        """Open a session by a code, which ends the code, and return its token. Raise UmgError(INVALID_KEY)."""
        key_id = await self._take_code(hash_secret(code))
        if key_id is None:
            message = "this link was used or is older than 10 minutes; sign in by a key, or start the gateway again"
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, message)
        key = await self._keys.get(key_id)
        return await self._open(client, key.name, key_id=key_id)

    async def get(self, token: str) -> UserSession | None:
        """Return the session with a token, and record its use; None if it has ended, or its user or key has."""
        row = await self._use(hash_secret(token))
        subject = None if row is None else await self._subject(row)
        if row is None or subject is None:
            return None
        caller, roles, email = subject
        idle_end = min(row.last_use_time + self._idle, row.expire_time)
        caller = replace(caller, session_id=row.session_id, session_end=idle_end)
        times = (row.create_time, idle_end, row.expire_time)
        return UserSession(row.session_id, caller, email, row.key_id or "", roles, *times)

    async def _subject(self, row: SessionRow) -> tuple[Caller, tuple[Membership, ...], str] | None:
        """Return the caller, roles and e-mail address of a session; None if its user or key may not act any more."""
        if row.user_id is not None:
            user = await self._users.find(row.user_id)
            if user is None or not (roles := user.principal.memberships):
                return None
            return _caller_of_user(user, row.session_id), roles, user.email
        try:
            key = await self._keys.get(row.key_id or "")
        except UmgError:
            return None
        owner = await self._users.find(key.user_id) if key.user_id else None
        if not self._is_valid(key) or (owner is not None and owner.disabled):
            return None
        principal = principal_of(key.name, key.user_id, owner, administrator=key.administrator)
        return replace(caller_of(key), principal=principal), () if principal is None else principal.memberships, ""

    async def authenticate(self, token: str) -> Caller:
        """Return the subject of the calls of a session. Raise UmgError: INVALID_KEY if it has ended, UNAVAILABLE if the
        database does not answer.
        """
        try:
            session = await self.get(token)
        except (SQLAlchemyError, OSError):  # TimeoutError is an OSError
            message = "the session cannot be checked at the moment; try again"
            raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds="1") from None
        if session is None:
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, "the session has ended; sign in again")
        return session.caller

    @repeated
    async def is_known(self, issuer: str, subject: str, email: str) -> bool:
        """Return whether a person has signed in before, or was added by this verified e-mail address ("" for none)."""
        is_same = (UserRow.issuer == issuer) & (UserRow.subject == subject)
        is_added = (UserRow.email == email.strip().lower()) & UserRow.issuer.is_(None) & (UserRow.email != "")
        async with self._store.read() as session:
            return await session.scalar(select(UserRow.user_id).where(or_(is_same, is_added)).limit(1)) is not None

    async def end(self, token: str) -> None:
        """End a session, and the keys that end with it; nothing happens if there is none."""
        digest = hash_secret(token)
        if session_id := await self._id(digest):
            await revoke_keys_of_session(self._keys, session_id)
            await self._delete(digest)

    @repeated
    async def _id(self, digest: str) -> str | None:
        async with self._store.read() as session:
            found: str | None = await session.scalar(
                select(SessionRow.session_id).where(SessionRow.token_hash == digest)
            )
            return found

    @repeated_idempotent
    async def _delete(self, digest: str) -> None:
        async with self._store.write() as session:
            await session.execute(delete(SessionRow).where(SessionRow.token_hash == digest))

    async def _open(
        self,
        client: SessionClient,
        name: str,
        *,
        user_id: str | None = None,
        key_id: str | None = None,
        is_code: bool = False,
    ) -> str:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        lifetime = timedelta(minutes=CODE_MINUTES) if is_code else self._absolute
        now = utc_of(self._clock)
        row = SessionRow(
            token_hash=hash_secret(token),
            session_id=f"ses_{secrets.token_hex(8)}",
            is_code=is_code,
            user_id=user_id,
            key_id=key_id,
            address=client.address[:MAX_ADDRESS_CHARACTERS],
            agent="".join(letter for letter in client.agent if letter.isprintable())[:MAX_AGENT_CHARACTERS],
            create_time=now,
            last_use_time=now,
            expire_time=now + lifetime,
        )
        kind, actor = (KEY_ACTOR, key_id) if user_id is None else (USER_ACTOR, user_id)
        act = Act(kind, actor or "", name, row.session_id, row.address, SIGN_IN_METHOD)
        context = CURRENT_ACT.set(act)
        try:
            await self._insert(row, name)
        finally:
            CURRENT_ACT.reset(context)
        return token

    @repeated_idempotent
    async def _insert(self, row: SessionRow, name: str) -> None:
        async with self._store.write() as session:
            await session.execute(delete(SessionRow).where(self._has_ended()))  # sign-ins are rare, and keep it small
            await session.merge(row)
            if not row.is_code:
                opened = ChangedObject(SESSION_KIND, row.session_id, name)
                await record_change(session, row.create_time, opened, None, {"agent": row.agent})

    def _has_ended(self) -> ColumnElement[bool]:
        return has_ended(self._times, utc_of(self._clock))

    @repeated
    async def _take_code(self, digest: str) -> str | None:
        is_meant = (SessionRow.token_hash == digest) & SessionRow.is_code.is_(True) & ~self._has_ended()
        async with self._store.write() as session:
            taken = await session.execute(delete(SessionRow).where(is_meant).returning(SessionRow.key_id))
            key_id: str | None = taken.scalar()
        return key_id

    @repeated_idempotent
    async def _use(self, digest: str) -> SessionRow | None:
        is_meant = (SessionRow.token_hash == digest) & SessionRow.is_code.is_(False) & ~self._has_ended()
        async with self._store.read() as session:
            row = await session.scalar(select(SessionRow).where(is_meant))
        now = utc_of(self._clock)
        if row is not None and now - row.last_use_time >= timedelta(seconds=USE_SECONDS):
            async with self._store.write() as session:
                used = update(SessionRow).where(is_meant).values(last_use_time=now)
                await session.execute(used)
            row.last_use_time = now
        return row

    def _is_valid(self, key: Key) -> bool:
        is_usable = not key.is_user_disabled and closed_level(key.levels) is None
        return is_usable and key.is_live(utc_of(self._clock))


def has_ended(times: SessionTimes, now: datetime) -> ColumnElement[bool]:
    """Return the condition of the sessions and codes that have ended at a time."""
    is_idle = SessionRow.is_code.is_(False) & (SessionRow.last_use_time <= now - timedelta(seconds=times.idle))
    return or_(SessionRow.expire_time <= now, is_idle)


def _caller_of_user(user: User, session_id: str) -> Caller:
    return Caller(
        key_id=session_id,
        name=user.name,
        model_patterns=(),
        requests_per_minute=None,
        expires_at=None,
        administrator=user.principal.owns_gateway,
        user_id=user.user_id,
        principal=user.principal,
    )


def _check_user(user: User) -> None:
    if user.disabled:
        message = "your account is disabled here; ask the gateway's administrators"
        raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation="sign_in")
    if not user.principal.memberships:
        message = "you have no role here; ask the gateway's administrators for one"
        raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation="sign_in")
