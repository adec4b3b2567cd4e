"""Callers' keys: made, listed, revoked, and found by their secrets."""

import hashlib
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.errors import UmgError
from umg_grpc.store import Store
from umg_grpc.store.tables import ApiKey
from umg_grpc.v1 import pb

KEY_PREFIX = "sk-umg-"
SECRET_BYTES = 32  # 43 characters
SHOWN_CHARACTERS = len(KEY_PREFIX) + 4
BOOTSTRAP = "bootstrap"
"""Name of the key that `bootstrap.py` looks after."""

MAX_NAME_CHARACTERS = 100
MAX_PATTERNS = 1000
MAX_PATTERN_CHARACTERS = 256
MAX_REQUESTS_PER_MINUTE = 1_000_000


@dataclass(frozen=True)
class Key:
    """A key as it may be shown: all but its secret, which only its holder knows. Times are in UTC."""

    key_id: str
    prefix: str
    """First characters of the secret, by which its holder knows it again."""
    name: str
    """Unique among keys that are not revoked, expired ones included."""
    model_patterns: tuple[str, ...]
    requests_per_minute: int | None
    create_time: datetime
    expire_time: datetime | None
    revoke_time: datetime | None
    channels: tuple[str, ...] = ()
    """Names of the channels that may serve it, with `*`; none at all allows each."""
    show_route: bool = False
    """Whether its holder is told which channel served a call."""


def utc_now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


def hash_secret(secret: str) -> str:
    """SHA-256 in hex. A slow hash would protect secrets that can be guessed; ours have 256 random bits."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def new_secret() -> str:
    """A secret that nobody has seen."""
    return KEY_PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def shown_prefix(secret: str) -> str:
    """The first characters: `sk-umg-AbCd`. Of a secret that an operator chose, no more than a quarter, if any."""
    return secret[: min(SHOWN_CHARACTERS, len(secret) // 4)]


class Keys:
    """The keys in the store."""

    def __init__(self, store: Store, now: Callable[[], datetime] = utc_now) -> None:
        self._store = store
        self._now = now

    async def create(
        self,
        name: str,
        *,
        model_patterns: Collection[str] = (),
        requests_per_minute: int | None = None,
        expire_time: datetime | None = None,
        channels: Collection[str] = (),
        show_route: bool = False,
    ) -> tuple[Key, str]:
        """A new key and its secret, which is never to be had again.

        Raises UmgError: INVALID_FIELD, ALREADY_EXISTS if a key that is not revoked has the name.
        """
        _check(name, requests_per_minute, expire_time)
        _check_patterns("model_patterns", "model pattern", "`gpt-4o`, `famG-*`", model_patterns)
        _check_patterns("channels", "channel's name", "`openai`, `azure-*`", channels)
        if expire_time is not None and expire_time < self._now():
            raise _invalid("expire_time", "the time of expiry is over; give a later one")
        secret = new_secret()
        row = new_row(secret, name, self._now())
        row.model_patterns = list(model_patterns)
        row.requests_per_minute = requests_per_minute
        row.expire_time = expire_time
        row.channels = list(channels)
        row.show_route = show_route
        try:
            async with self._store.write() as session:
                session.add(row)
        except IntegrityError:
            message = f"a key named `{name}` exists; choose another name, or revoke that key first"
            raise UmgError(pb.ERROR_REASON_ALREADY_EXISTS, message) from None
        return _key(row), secret

    async def list(self) -> list[Key]:
        """All keys, revoked ones too, the oldest first."""
        async with self._store.read() as session:
            return [
                _key(row) for row in await session.scalars(select(ApiKey).order_by(ApiKey.create_time, ApiKey.key_id))
            ]

    async def get(self, reference: str) -> Key:
        """The key with this id, name or shown prefix, in this order; a revoked one where no other is meant.

        Raises UmgError: OBJECT_NOT_FOUND, INVALID_FIELD if several are meant.
        """
        async with self._store.read() as session:
            return _key(await _find(session, reference))

    async def revoke(self, reference: str) -> Key:
        """The key, found as by `get` and good for nothing from now on. Doing it again changes nothing."""
        async with self._store.write() as session:
            row = await _find(session, reference)
            if row.revoke_time is None:
                row.revoke_time = self._now()
        return _key(row)

    async def by_hash(self, hashes: Collection[str]) -> dict[str, Key]:
        """Those keys whose secrets have these hashes, revoked and expired ones too. Raises SQLAlchemyError."""
        async with self._store.read() as session:
            rows = await session.scalars(select(ApiKey).where(ApiKey.secret_hash.in_(hashes)))
            return {row.secret_hash: _key(row) for row in rows}


def new_row(secret: str, name: str, create_time: datetime) -> ApiKey:
    """A key without limits, not yet in the store. The operator's own first key is told of routes."""
    return ApiKey(
        key_id=f"key_{secrets.token_hex(8)}",
        secret_hash=hash_secret(secret),
        prefix=shown_prefix(secret),
        name=name,
        model_patterns=[],
        requests_per_minute=None,
        create_time=create_time,
        expire_time=None,
        revoke_time=None,
        channels=[],
        show_route=name == BOOTSTRAP,
    )


async def _find(session: AsyncSession, reference: str) -> ApiKey:
    prefix = reference.rstrip("….")  # as a table shows it
    by_prefix_too = (ApiKey.prefix == prefix) & (ApiKey.prefix != "")
    named = or_(ApiKey.key_id == reference, ApiKey.name == reference, by_prefix_too)
    rows = list(await session.scalars(select(ApiKey).where(named).order_by(ApiKey.create_time.desc())))
    live = [row for row in rows if row.revoke_time is None]
    by_id = [row for row in rows if row.key_id == reference]
    by_name = [row for row in live if row.name == reference]
    # Of revoked keys of one name the last is meant: `revoke NAME` twice finds the same key.
    revoked_name = [row for row in rows if row.name == reference][:1]
    by_prefix = [row for row in live if row.prefix == prefix]
    for found in (by_id, by_name, by_prefix, revoked_name, rows):
        if len(found) > 1:
            ids = ", ".join(row.key_id for row in found)
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, f"several keys are meant, say which: {ids}", field="key")
        if found:
            return found[0]
    message = "there is no such key; `umg keys list` shows ids, names and prefixes"
    raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=reference[:SHOWN_CHARACTERS])


def _check(name: str, requests_per_minute: int | None, expire_time: datetime | None) -> None:
    if not (0 < len(name) <= MAX_NAME_CHARACTERS and name.isprintable() and name == name.strip()):
        raise _invalid("name", f"a name has 1 to {MAX_NAME_CHARACTERS} printable characters and no space at its ends")
    if name == BOOTSTRAP:
        raise _invalid("name", f"`{BOOTSTRAP}` is the name of the gateway's own first key; choose another")
    if requests_per_minute is not None and not 1 <= requests_per_minute <= MAX_REQUESTS_PER_MINUTE:
        raise _invalid(
            "requests_per_minute", f"requests per minute are 1 to {MAX_REQUESTS_PER_MINUTE}; leave it out for no limit"
        )
    if expire_time is not None and expire_time.tzinfo is None:
        raise _invalid("expire_time", "the time of expiry needs a zone: 2027-01-31T12:00:00Z")


def _check_patterns(field: str, what: str, examples: str, patterns: Collection[str]) -> None:
    if len(patterns) > MAX_PATTERNS:
        raise _invalid(field, f"at most {MAX_PATTERNS} {what}s")
    for pattern in patterns:
        if not 0 < len(pattern) <= MAX_PATTERN_CHARACTERS or any(letter.isspace() for letter in pattern):
            message = f"a {what} has 1 to {MAX_PATTERN_CHARACTERS} characters and no spaces: {examples}"
            raise _invalid(field, message)


def _invalid(field: str, message: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=field)


def _key(row: ApiKey) -> Key:
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
    )
