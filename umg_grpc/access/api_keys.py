"""API keys of callers: creation, listing, changes, rotation, revocation, and lookup by secret."""

import hashlib
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, Unpack

from sqlalchemy import ColumnElement, Row, String, bindparam, func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.access.account_level_queries import find_project, levels_of
from umg_grpc.access.account_levels import Levels, closed_level, has_limit
from umg_grpc.access.audit_log import ChangedObject, record_change
from umg_grpc.access.budget_settings import Budget, budgets_of
from umg_grpc.access.key_references import check_name_is_no_prefix, find_key, find_live_key
from umg_grpc.access.key_settings import (
    BOOTSTRAP_KEY,
    KEY_PREFIX,
    SHOWN_CHARACTERS,
    KeyFields,
    NamedKeyFields,
    check_fields,
    set_columns,
)
from umg_grpc.access.users import disabled_users
from umg_grpc.base.errors import UmgError
from umg_grpc.store import Store
from umg_grpc.store.database import repeated, repeated_idempotent
from umg_grpc.store.database_time import GivenClock, utc_of
from umg_grpc.store.key_selection import EVERY_KEY, KeyScope, KeySelection, is_live_key
from umg_grpc.store.session_table import end_sessions_of_key
from umg_grpc.store.table_definitions import ApiKey, ApiKeyChange, UtcTime
from umg_grpc.v1 import pb

SECRET_BYTES = 32  # 43 characters
SHOWN_SHARE = 4
"""Smallest quotient of the characters of a secret and those of its prefix."""
DEFAULT_OVERLAP = timedelta(days=1)
MAX_OVERLAP = timedelta(days=30)


@dataclass(frozen=True)
class Key:
    """API key as it is stored: its state (times in UTC), and the settings of a `Caller`. The secret is not stored."""

    key_id: str
    prefix: str
    """First characters of the secret, by which its holder recognises it."""
    name: str
    """Name, unique among keys that are not revoked, expired ones included."""
    model_patterns: tuple[str, ...]
    requests_per_minute: int | None
    create_time: datetime
    expire_time: datetime | None
    revoke_time: datetime | None
    channels: tuple[str, ...] = ()
    show_route: bool = False
    operations: tuple[str, ...] = ()
    administrator: bool = False
    tokens_per_minute: int | None = None
    concurrent_requests: int | None = None
    budget_micro_credits: int | None = None
    budget_period: str = ""
    owner: str = ""
    """Person or team that the key belongs to, for the operator."""
    tags: Mapping[str, str] = field(default_factory=dict)
    previous_prefix: str = ""
    """First characters of the secret before the last rotation; "" without a rotation."""
    previous_expire_time: datetime | None = None
    """End of the overlap of the last rotation, from which on the secret before it is rejected."""
    last_use_time: datetime | None = None
    """Time of the last call with the key, accurate to a minute; None before its first use."""
    project_id: str = ""
    user_id: str = ""
    """Person or service account that owns the key."""
    budgets: tuple[Budget, ...] = ()
    """Further budgets."""
    levels: Levels = ()
    """Project and organisation of the key."""
    is_user_disabled: bool = False
    """Whether the owner of the key is disabled, which ends the calls with it; known in lookups by secret only."""

    @property
    def has_limits(self) -> bool:
        """Whether the key, its project or its organisation has a limit of requests, tokens or concurrency."""
        return has_limit(self) or any(map(has_limit, self.levels))

    def is_live(self, now: datetime) -> bool:
        """Return whether the key is neither revoked nor expired. Its account may be closed."""
        return self.revoke_time is None and (self.expire_time is None or self.expire_time > now)


class KeyChange(NamedTuple):
    """Key that was changed: number of the last change, and the key by the hashes of its current and former secrets."""

    number: int
    key_id: str
    keys: Mapping[str, Key]
    """Key by the hash of its secret and, in a rotation, of its former one; also a revoked key. Empty if deleted."""


def utc_now() -> datetime:
    """Return the current time in UTC, with its time zone."""
    return datetime.now(UTC)


def hash_secret(secret: str) -> str:
    """Return the SHA-256 of an API key's secret in hex. No slow hash is needed: the secrets are 256 random bits."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def new_secret() -> str:
    """Return a new random secret for an API key."""
    return KEY_PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def shown_prefix(secret: str) -> str:
    """Return the first characters of a secret, by which people recognise the key. They are at most a quarter of the
    secret, since an operator may have chosen a short one.
    """
    return secret[: min(SHOWN_CHARACTERS, len(secret) // SHOWN_SHARE)]


class ApiKeys:
    """Repository of API keys in the database: creates, finds, changes, rotates and revokes them."""

    def __init__(self, store: Store, now: Callable[[], datetime] | None = None) -> None:
        self._store = store
        self._clock = store.clock if now is None else GivenClock(now)

    async def create(self, name: str, **fields: Unpack[KeyFields]) -> tuple[Key, str]:
        """Create an API key. Return it and its secret, which is not stored and cannot be read again. Raises UmgError:
        INVALID_FIELD for an invalid setting, ALREADY_EXISTS if a key that is not revoked has the name, OBJECT_NOT_FOUND
        for an unknown project, WRONG_STATE for a closed one.
        """
        named: NamedKeyFields = {"name": name, **fields}
        check_fields(named, utc_of(self._clock))
        secret = new_secret()
        row = new_row(secret, name, utc_of(self._clock))
        set_columns(row, named, "project_id")  # `_insert` finds it
        try:
            levels = await self._insert(row, fields.get("project_id", ""))
        except IntegrityError:
            raise _name_exists(name) from None
        return _key_of(row, levels), secret

    @repeated_idempotent
    async def _insert(self, row: ApiKey, project: str) -> Levels:
        async with self._store.write() as session:
            await check_name_is_no_prefix(session, row)
            levels = await _assign_project(session, row, project)
            await session.merge(row)  # it is there already if an earlier run was committed without a response
            await record_change(session, utc_of(self._clock), changed_key(row), None, audited_settings(row))
            return levels

    @repeated_idempotent
    async def update(self, reference: str, fields: NamedKeyFields) -> Key:
        """Change settings of the key with the id, name or prefix `reference`; absent ones stay. Return the changed key.
        Raises UmgError: OBJECT_NOT_FOUND, INVALID_FIELD for several keys or an invalid setting, ALREADY_EXISTS for a
        used name, WRONG_STATE for a revoked key and for a closed project.
        """
        check_fields(fields, utc_of(self._clock))
        try:
            async with self._store.write() as session:
                row = await find_live_key(session, reference)
                if row.name == BOOTSTRAP_KEY and "name" in fields:
                    message = f"`{BOOTSTRAP_KEY}` is the gateway's own first key, which keeps its name"
                    raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="name")
                before = audited_settings(row)
                levels = await _assign_project(session, row, fields.get("project_id"))
                set_columns(row, fields, "project_id")
                if "name" in fields:
                    await check_name_is_no_prefix(session, row)
                await record_change(session, utc_of(self._clock), changed_key(row), before, audited_settings(row))
        except IntegrityError:
            raise _name_exists(fields.get("name", "")) from None
        return _key_of(row, levels)

    @repeated
    async def rotate(self, reference: str, overlap: timedelta = DEFAULT_OVERLAP) -> tuple[Key, str]:
        """Replace the secret of the key with the id, name or prefix `reference`. Return the key and the new secret,
        which is not stored. The former secret stays valid for `overlap`; a secret that an earlier rotation replaced
        becomes invalid now. Sessions of the key end with the former secret. Raises UmgError: OBJECT_NOT_FOUND,
        INVALID_FIELD for several keys and for an overlap outside its range, WRONG_STATE for a revoked key, for the
        bootstrap key, whose secret comes from a file or a variable, and for a caller whose credentials are tokens of an
        issuer.
        """
        if not timedelta(0) <= overlap <= MAX_OVERLAP:
            message = f"the overlap is 0 to {MAX_OVERLAP.days} days; give another"
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="overlap")
        secret = new_secret()
        async with self._store.write() as session:
            row = await find_live_key(session, reference)
            if row.name == BOOTSTRAP_KEY:
                flag = "umg serve --replace-bootstrap-key"
                message = f"the first key has its secret from its file or UMG_API_KEY; `{flag}` takes another"
                raise UmgError(pb.ERROR_REASON_WRONG_STATE, message, state=BOOTSTRAP_KEY)
            if row.secret_hash == row.key_id:
                message = "this caller has tokens of an issuer and no secret; its issuer replaces them"
                raise UmgError(pb.ERROR_REASON_WRONG_STATE, message, state="token")
            before = audited_settings(row)
            row.previous_secret_hash, row.previous_prefix = row.secret_hash, row.prefix
            row.previous_expire_time = utc_of(self._clock) + overlap
            row.secret_hash, row.prefix = hash_secret(secret), shown_prefix(secret)
            await session.execute(end_sessions_of_key(row.key_id, row.previous_expire_time))
            await record_change(session, utc_of(self._clock), changed_key(row), before, audited_settings(row))
            return (await _keys_of(session, [row]))[0], secret

    @repeated
    async def page(
        self, after: str, size: int, *, include_ended: bool = False, selection: KeySelection = EVERY_KEY
    ) -> tuple[list[Key], str]:
        """Return up to `size` of the selected keys, newest first, and the id after which the next page begins (""
        if there is none). The page begins after the key with the id `after`, "" for the first page. Raise
        UmgError(INVALID_FIELD) for an unknown key.
        """
        async with self._store.read() as session:
            query = select(*KEY_COLUMNS).order_by(ApiKey.create_time.desc(), ApiKey.key_id.desc()).limit(size + 1)
            query = query.where(*selection.conditions())
            if not include_ended:
                query = query.where(self._is_live())
            if after:
                created = await session.scalar(select(ApiKey.create_time).where(ApiKey.key_id == after))
                if created is None:
                    message = "`page_token`: it belongs to no page of keys; begin with the first page, without a token"
                    raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="page_token")
                is_older = (ApiKey.create_time == created) & (ApiKey.key_id < after)
                query = query.where(or_(ApiKey.create_time < created, is_older))
            keys = await _keys_of(session, await session.execute(query))
        return keys[:size], keys[size - 1].key_id if len(keys) > size else ""

    @repeated
    async def list(self) -> list[Key]:
        """Return all keys, including revoked ones, oldest first."""
        async with self._store.read() as session:
            query = select(*KEY_COLUMNS).order_by(ApiKey.create_time, ApiKey.key_id)
            return await _keys_of(session, await session.execute(query))

    def _is_live(self) -> ColumnElement[bool]:
        return is_live_key(self._clock.sql_time())

    @repeated
    async def get(self, reference: str, scope: KeyScope | None = None) -> Key:
        """Return the key with this id, name or prefix, tried in this order; a revoked one only if no other key matches.
        `scope`: keys that exist for the caller; None for all. Raises UmgError: OBJECT_NOT_FOUND, INVALID_FIELD if
        several keys match.
        """
        async with self._store.read() as session:
            return (await _keys_of(session, [await find_key(session, reference, scope)]))[0]

    @repeated_idempotent
    async def revoke(self, reference: str) -> Key:
        """Revoke the key with the id, name or prefix `reference`. Return it. Revoking it again has no effect. Raises
        UmgError: OBJECT_NOT_FOUND, INVALID_FIELD if several keys match.
        """
        async with self._store.write() as session:
            row = await find_key(session, reference)
            before = audited_settings(row)
            if row.revoke_time is None:
                row.revoke_time = utc_of(self._clock)
            await record_change(session, utc_of(self._clock), changed_key(row), before, audited_settings(row))
            return (await _keys_of(session, [row]))[0]

    @repeated_idempotent
    async def record_uses(self, times: Mapping[str, datetime]) -> None:
        """Store the times of keys' last calls, by key id, unless it has a later time. Raises SQLAlchemyError."""
        key, time = bindparam("used_key", type_=String()), bindparam("use_time", type_=UtcTime)
        is_earlier = or_(ApiKey.last_use_time.is_(None), ApiKey.last_use_time < time)
        statement = update(ApiKey).where(ApiKey.key_id == key, is_earlier).values(last_use_time=time)
        # in one order, so that two processes cannot wait for each other
        rows = [{"used_key": key_id, "use_time": used} for key_id, used in sorted(times.items())]
        async with self._store.write() as session:
            await (await session.connection()).execute(statement, rows)

    @repeated
    async def by_hash(self, hashes: Collection[str]) -> dict[str, Key]:
        """Return hash -> key for the keys whose secrets have these hashes, including invalid keys. During a rotation
        the hash of the former secret finds the key, too, with the end of the overlap as its expiry. Raises
        SQLAlchemyError.
        """
        has_hash = or_(ApiKey.secret_hash.in_(hashes), ApiKey.previous_secret_hash.in_(hashes))
        async with self._store.read() as session:
            found = await _by_secret_hash(session, await session.scalars(select(ApiKey).where(has_hash)))
            return {digest: found[digest] for digest in hashes if digest in found}

    @repeated
    async def last_change(self) -> int:
        """Return the number of the last change of a key; 0 if none was recorded. Raises SQLAlchemyError."""
        async with self._store.read() as session:
            return await session.scalar(select(func.max(ApiKeyChange.change_number))) or 0

    @repeated
    async def changes(self, after: int, size: int) -> Sequence["KeyChange"]:
        """Return up to `size` keys changed after the change `after`, in order of change. Raises SQLAlchemyError."""
        query = (
            select(ApiKeyChange.change_number, ApiKeyChange.key_id, ApiKey)
            .outerjoin(ApiKey, ApiKey.key_id == ApiKeyChange.key_id)
            .where(ApiKeyChange.change_number > after)
            .order_by(ApiKeyChange.change_number)
            .limit(size)
        )
        async with self._store.read() as session:
            rows: list[tuple[int, str, ApiKey | None]] = [(*row,) for row in await session.execute(query)]
            keys = await _by_secret_hash(session, [row for _, _, row in rows if row is not None])
        by_id = dict[str, dict[str, Key]]()
        for digest, key in keys.items():
            by_id.setdefault(key.key_id, {})[digest] = key
        return [KeyChange(number, key_id, by_id.get(key_id, {})) for number, key_id, _ in rows]

    @repeated
    async def live_page(self, after: str, size: int) -> tuple[dict[str, Key], str]:
        """Return up to `size` valid keys by the hashes of their secrets, and the id after which the next page begins
        ("" if there is none). The page is ordered by id, and begins after the key `after`. Raises SQLAlchemyError.
        """
        query = select(ApiKey).where(self._is_live(), ApiKey.key_id > after).order_by(ApiKey.key_id).limit(size)
        async with self._store.read() as session:
            rows = list(await session.scalars(query))
            found = await _by_secret_hash(session, rows)
        return found, rows[-1].key_id if len(rows) == size else ""


async def _by_secret_hash(session: AsyncSession, rows: Iterable[ApiKey]) -> dict[str, Key]:
    rows = list(rows)
    levels = await levels_of(session, {row.project_id for row in rows})
    disabled = await disabled_users(session, {row.user_id for row in rows})
    found = dict[str, Key]()
    for row in rows:
        found.update(by_secret_hash(row, levels.get(row.project_id, ()), is_user_disabled=row.user_id in disabled))
    return found


def by_secret_hash(row: ApiKey, levels: Levels = (), *, is_user_disabled: bool = False) -> dict[str, Key]:
    """Return hash of the secret -> key for a database row. During a rotation the hash of the former secret is included;
    its key has the former prefix, and expires at the end of the overlap. `levels`: of the key's project.
    """
    key = replace(_key_of(row, levels), is_user_disabled=is_user_disabled)
    if row.previous_secret_hash is None or key.previous_expire_time is None:
        return {row.secret_hash: key}
    ends = min(key.previous_expire_time, key.expire_time or key.previous_expire_time)
    former = replace(key, expire_time=ends, prefix=key.previous_prefix)
    return {row.secret_hash: key, row.previous_secret_hash: former}


def new_row(secret: str, name: str, create_time: datetime) -> ApiKey:
    """Return the database row of a new key without limits, which is not stored yet. A key with the name of the
    bootstrap key gets the permissions of an administrator and `show_route`.
    """
    return ApiKey(
        key_id=f"key_{secrets.token_hex(8)}",
        secret_hash=hash_secret(secret),
        prefix=shown_prefix(secret),
        name=name,
        model_patterns=[],
        requests_per_minute=None,
        tokens_per_minute=None,
        concurrent_requests=None,
        create_time=create_time,
        expire_time=None,
        revoke_time=None,
        channels=[],
        show_route=name == BOOTSTRAP_KEY,
        operations=[],
        administrator=name == BOOTSTRAP_KEY,
        owner="",
        tags={},
    )


async def _assign_project(session: AsyncSession, row: ApiKey, reference: str | None) -> Levels:
    """Assign a key to the project with the id or name `reference` (None: no change; "": none), and return its levels.
    Raise UmgError: OBJECT_NOT_FOUND for an unknown project, INVALID_FIELD for a key of another one, WRONG_STATE for a
    closed one.
    """
    former = row.project_id
    project = await find_project(session, reference) if reference else None
    if reference is not None and former and (project is None or project.account_id != former):
        message = "a key stays in its project, so that its usage belongs to one; create a key in the other project"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="project_id")
    row.project_id = project.account_id if project is not None else former
    levels = (await levels_of(session, [row.project_id])).get(row.project_id, ())
    if not former and (closed := closed_level(levels)) is not None:
        message = f"{closed.title} is closed; open it first, or name another project"
        raise UmgError(pb.ERROR_REASON_WRONG_STATE, message, state="closed")
    return levels


_UNAUDITED = frozenset({"key_id", "secret_hash", "previous_secret_hash", "last_use_time"})
"""Columns that the audit log leaves out: secrets, the id, and the time of the last use."""


def audited_settings(row: ApiKey) -> dict[str, object]:
    """Return the settings and the state of a key for the audit log, without secrets."""
    return {column.name: getattr(row, column.name) for column in KEY_COLUMNS if column.name not in _UNAUDITED}


def changed_key(row: ApiKey) -> ChangedObject:
    """Return a key as an object of the audit log."""
    return ChangedObject("key", row.key_id, row.name, row.project_id or "")


def _name_exists(name: str) -> UmgError:
    message = f"a key named `{name}` exists; choose another name, or revoke that key first"
    return UmgError(pb.ERROR_REASON_ALREADY_EXISTS, message)


KEY_COLUMNS: Final = tuple(ApiKey.__table__.columns)  # of which many rows are read faster than objects


async def _keys_of(session: AsyncSession, rows: Iterable[ApiKey | Row[Any]]) -> list[Key]:
    rows = list(rows)
    levels = await levels_of(session, {row.project_id for row in rows})
    return [_key_of(row, levels.get(row.project_id, ())) for row in rows]


def _key_of(row: ApiKey | Row[Any], levels: Levels) -> Key:
    return Key(
        key_id=row.key_id,
        prefix=row.prefix,
        name=row.name,
        model_patterns=tuple(row.model_patterns),
        requests_per_minute=row.requests_per_minute,
        create_time=row.create_time,
        expire_time=row.expire_time.astimezone(UTC) if row.expire_time else None,
        revoke_time=row.revoke_time,
        channels=tuple(row.channels or ()),
        show_route=row.show_route,
        operations=tuple(row.operations or ()),
        administrator=row.administrator,
        tokens_per_minute=row.tokens_per_minute,
        concurrent_requests=row.concurrent_requests,
        budget_micro_credits=row.budget_micro_credits,
        budget_period=row.budget_period or "",
        owner=row.owner or "",
        tags=row.tags or {},
        previous_prefix=row.previous_prefix or "",
        previous_expire_time=row.previous_expire_time,
        last_use_time=row.last_use_time,
        project_id=row.project_id or "",
        user_id=row.user_id or "",
        budgets=budgets_of(row.budgets),
        levels=levels,
    )
