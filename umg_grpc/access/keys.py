"""API keys of callers: creation, listing, revocation, and lookup by secret."""

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
"""Name of the key that `bootstrap.py` creates."""

MAX_NAME_CHARACTERS = 100
MAX_PATTERNS = 1000
MAX_PATTERN_CHARACTERS = 256
MAX_REQUESTS_PER_MINUTE = 1_000_000


@dataclass(frozen=True)
class Key:
    """API key without its secret, which only its holder has. Times are in UTC."""

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
    """Names of the allowed channels, with `*` as wildcard; empty allows every channel."""
    show_route: bool = False
    """Whether responses name the channel that served the call."""


def utc_now() -> datetime:
    """Return the current time, with its zone."""
    return datetime.now(UTC)


def hash_secret(secret: str) -> str:
    """Return the SHA-256 of a secret in hex. A slow hash is only for guessable secrets; ours have 256 random bits."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def new_secret() -> str:
    """Return a new random secret."""
    return KEY_PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def shown_prefix(secret: str) -> str:
    """Return the first characters of a secret, as in `sk-umg-AbCd`; at most a quarter of it, since an operator may have
    chosen a short one.
    """
    return secret[: min(SHOWN_CHARACTERS, len(secret) // 4)]


class Keys:
    """API keys in the store."""

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
        """Create a key. Return it and its secret, which is not stored and cannot be read again.

        Raises UmgError: INVALID_FIELD, ALREADY_EXISTS if a key that is not revoked has the name.
        """
        _check_fields(name, requests_per_minute, expire_time)
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
        return _key_of(row), secret

    async def list(self) -> list[Key]:
        """Return all keys, including revoked ones, the oldest first."""
        async with self._store.read() as session:
            return [
                _key_of(row)
                for row in await session.scalars(select(ApiKey).order_by(ApiKey.create_time, ApiKey.key_id))
            ]

    async def get(self, reference: str) -> Key:
        """Return the key with this id, name or shown prefix, in this order; a revoked one only if no other key matches.

        Raises UmgError: OBJECT_NOT_FOUND, INVALID_FIELD if several keys match.
        """
        async with self._store.read() as session:
            return _key_of(await _find(session, reference))

    async def revoke(self, reference: str) -> Key:
        """Revoke a key, found as by `get`. Return it. Revoking it again has no effect."""
        async with self._store.write() as session:
            row = await _find(session, reference)
            if row.revoke_time is None:
                row.revoke_time = self._now()
        return _key_of(row)

    async def by_hash(self, hashes: Collection[str]) -> dict[str, Key]:
        """Return the keys with these secret hashes, including revoked and expired ones. Raises SQLAlchemyError."""
        async with self._store.read() as session:
            rows = await session.scalars(select(ApiKey).where(ApiKey.secret_hash.in_(hashes)))
            return {row.secret_hash: _key_of(row) for row in rows}


def new_row(secret: str, name: str, create_time: datetime) -> ApiKey:
    """Return a row for a key without limits, not yet in the store. The bootstrap key has `show_route`."""
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
    prefix = reference.rstrip("….")  # as `umg keys list` shows it
    by_prefix_too = (ApiKey.prefix == prefix) & (ApiKey.prefix != "")
    named = or_(ApiKey.key_id == reference, ApiKey.name == reference, by_prefix_too)
    rows = list(await session.scalars(select(ApiKey).where(named).order_by(ApiKey.create_time.desc())))
    live = [row for row in rows if row.revoke_time is None]
    by_id = [row for row in rows if row.key_id == reference]
    by_name = [row for row in live if row.name == reference]
    # Of several revoked keys with one name the newest matches, so that `revoke NAME` twice finds the same key.
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


def _check_fields(name: str, requests_per_minute: int | None, expire_time: datetime | None) -> None:
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


def _check_patterns(field: str, noun: str, examples: str, patterns: Collection[str]) -> None:
    if len(patterns) > MAX_PATTERNS:
        raise _invalid(field, f"at most {MAX_PATTERNS} {noun}s")
    for pattern in patterns:
        if not 0 < len(pattern) <= MAX_PATTERN_CHARACTERS or any(letter.isspace() for letter in pattern):
            message = f"a {noun} has 1 to {MAX_PATTERN_CHARACTERS} characters and no spaces: {examples}"
            raise _invalid(field, message)


def _invalid(field: str, message: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=field)


def _key_of(row: ApiKey) -> Key:
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
