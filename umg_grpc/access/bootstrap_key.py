"""Bootstrap key: the first API key, created at the first start so that the gateway can be used at once.

It is the row named `bootstrap` in the table of keys, which all gateways on a database share. A start keeps a valid
bootstrap key: if UMG_API_KEY is unset the key is unchanged, and if UMG_API_KEY has another value the start is refused.
Only `--replace-bootstrap-key` replaces it; the row keeps its id, and the old secret becomes unknown. A revoked secret
stays revoked even if a later start sets it again.
"""

import socket
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.access.api_keys import (
    SHOWN_SHARE,
    audited_settings,
    changed_key,
    hash_secret,
    new_row,
    new_secret,
    shown_prefix,
    utc_now,
)
from umg_grpc.access.audit_log import record_change
from umg_grpc.access.key_settings import BOOTSTRAP_KEY
from umg_grpc.access.secret_files import BOOTSTRAP_FILE, create_secret_file
from umg_grpc.base.errors import UmgError
from umg_grpc.base.lazy_logger import LazyLogger
from umg_grpc.store import Store
from umg_grpc.store.table_definitions import ApiKey
from umg_grpc.v1 import pb

logger = LazyLogger(__name__)

BOOTSTRAP_KEY_VARIABLE = "UMG_API_KEY"
REPLACE_FLAG = "--replace-bootstrap-key"
MIN_EXPOSED_CHARACTERS = 20
"""Fewest characters of a secret where callers on other machines could guess it."""
HOST_TAG = "host"
"""Tag of the row with the name of the machine whose start made the secret."""


@dataclass(frozen=True)
class Bootstrap:
    """Bootstrap key as this start found or created it, with its secret if the secret is known."""

    prefix: str
    secret: str | None = field(repr=False)
    """Secret; None if another start made the key and its secret is unknown here."""
    file: Path | None = None
    """File with the secret; None if the secret is from the environment variable, or unknown."""
    created: bool = False
    """Whether this start created the key or its new secret."""
    revoked: bool = False
    """Whether the secret was revoked and is rejected. Another value, or deleting the file, creates a new key."""
    replaced_prefix: str | None = None
    """First characters of the secret that this start replaced."""
    origin: str = ""
    """Host and time of the start that made the key of which the secret is unknown."""

    @property
    def source(self) -> str:
        """Name of the file or environment variable that contains the secret; "" if the secret is unknown."""
        return "" if self.secret is None else str(self.file or BOOTSTRAP_KEY_VARIABLE)


async def ensure_bootstrap(
    store: Store, data_dir: Path, variable: str | None, *, replace: bool = False, exposed: bool = False
) -> Bootstrap:
    """Return the bootstrap key of the database; create it if there is no valid one. Log its prefix and source. The
    secret is `variable` (the value of UMG_API_KEY) or, if that is empty, the content of a file in the data directory,
    which is created if necessary. A valid key with another secret stays unless `replace` is set; without `variable` it
    is returned without its secret. `exposed`: whether other machines can connect.

    Raises UmgError(INVALID_FIELD) for a secret that no client could send, UmgError(WRONG_STATE) for a secret other than
    that of the valid key and for a short one if `exposed`, OSError if the file cannot be read or created.
    """
    if variable:
        _check_secret(variable, BOOTSTRAP_KEY_VARIABLE)
    file = data_dir / BOOTSTRAP_FILE
    existed = file.exists()
    try:
        found = await _install(store, file, variable, utc_now(), replace=replace)
    except IntegrityError:  # another replica created the same row at the same moment
        found = await _install(store, file, variable, utc_now(), replace=replace)
        if found.secret is None and not existed:
            file.unlink(missing_ok=True)  # its secret never became the key
    if exposed:
        async with store.read() as session:
            _check_length(await _current_row(session))
    _log(found)
    return found


def configured_secret(data_dir: Path, variable: str | None) -> str | None:
    """Return the bootstrap key's secret from `variable` or the data directory; None if neither has a secret."""
    return variable or _read(data_dir / BOOTSTRAP_FILE)


async def _install(store: Store, file: Path, variable: str | None, now: datetime, *, replace: bool) -> Bootstrap:
    async with store.write() as session:
        current = await _current_row(session)
        if not variable and (current is None or replace):
            create_secret_file(file, new_secret())
        secret = variable or _read(file)
        source = None if variable else file
        if secret is None and current is not None:
            return _unknown(current)
        if secret is None:
            raise FileNotFoundError(f"{file} was deleted during the start")
        known = await session.scalar(select(ApiKey).where(ApiKey.secret_hash == hash_secret(secret)))
        found = Bootstrap(shown_prefix(secret), secret, source, revoked=bool(known and known.revoke_time))
        if found.revoked or (known is not None and known is current):
            return found
        if current is None:
            if known is None:
                session.add(row := _stamped(new_row(secret, BOOTSTRAP_KEY, now), now))
                await record_change(session, now, changed_key(row), None, audited_settings(row))
            return _created(found, new=known is None)
        if not replace:
            if variable:
                raise _refusal(found, current)
            return _unknown(current)
        replaced_prefix, before = current.prefix, audited_settings(current)
        if known is None:
            current.secret_hash, current.prefix = hash_secret(secret), found.prefix
            _stamped(current, now)
        else:
            current.revoke_time = now  # a key that the operator made by hand takes its place
        await record_change(session, now, changed_key(current), before, audited_settings(current))
        return _created(found, new=known is None, replaced_prefix=replaced_prefix)


async def _current_row(session: AsyncSession) -> ApiKey | None:
    live = select(ApiKey).where(ApiKey.name == BOOTSTRAP_KEY, ApiKey.revoke_time.is_(None))
    row: ApiKey | None = await session.scalar(live.with_for_update())
    return row


def _check_length(current: ApiKey | None) -> None:
    """Raise UmgError(WRONG_STATE) if the secret of the valid bootstrap key is short, as a start on loopback permits.
    Its length is inferred from that of the stored prefix, since the secret itself is not stored.
    """
    if current is not None and len(current.prefix) < MIN_EXPOSED_CHARACTERS // SHOWN_SHARE:
        message = (
            f"the first key of this database, made {_origin(current)}, has fewer than {MIN_EXPOSED_CHARACTERS} "
            f"characters, which is too short where other machines can connect: add {REPLACE_FLAG} to replace it by a "
            f"longer {BOOTSTRAP_KEY_VARIABLE} or a generated key, or bind 127.0.0.1"
        )
        raise UmgError(pb.ERROR_REASON_WRONG_STATE, message, state="live")


def _stamped(row: ApiKey, now: datetime) -> ApiKey:
    row.create_time, row.tags = now, {**(row.tags or {}), HOST_TAG: socket.gethostname()}
    return row


def _created(found: Bootstrap, *, new: bool, replaced_prefix: str | None = None) -> Bootstrap:
    return Bootstrap(found.prefix, found.secret, found.file, created=new, replaced_prefix=replaced_prefix)


def _unknown(current: ApiKey) -> Bootstrap:
    return Bootstrap(current.prefix, None, origin=_origin(current))


def _origin(row: ApiKey) -> str:
    host = (row.tags or {}).get(HOST_TAG)
    time = row.create_time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"on {host} at {time}" if host else f"at {time}"


def _refusal(found: Bootstrap, current: ApiKey) -> UmgError:
    message = (
        f"{BOOTSTRAP_KEY_VARIABLE} ({found.prefix}…) is not the first key of this database ({current.prefix}…, made "
        f"{_origin(current)}): set that value, or unset {BOOTSTRAP_KEY_VARIABLE} to leave the key alone, or add "
        f"{REPLACE_FLAG} to replace it, which ends the old value for all its callers"
    )
    return UmgError(pb.ERROR_REASON_WRONG_STATE, message, state="live")


def _log(found: Bootstrap) -> None:
    key, source = f"{found.prefix}…", found.source
    if found.secret is None:
        message = "the first API key stays as another start made it; its secret is not known here"
        logger.warning(message, key=key, made=found.origin, replace=REPLACE_FLAG)
    elif found.revoked:
        message = (
            f"the first API key was revoked: set another {BOOTSTRAP_KEY_VARIABLE}, or delete its file to get a new one"
        )
        logger.warning(message, key=key, source=source)
    elif found.replaced_prefix is not None:
        logger.warning("the first API key was replaced", key=key, source=source, replaced=f"{found.replaced_prefix}…")
    else:
        logger.info("first API key", key=key, source=source, created=found.created)


def _check_secret(secret: str, place: object) -> None:
    if not (secret.isascii() and secret.isprintable() and " " not in secret and secret):
        message = f"{place} must be printable ASCII without spaces, for it travels in a header"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=BOOTSTRAP_KEY_VARIABLE)


def _read(file: Path) -> str | None:
    try:
        secret = file.read_text().strip()
    except FileNotFoundError:
        return None
    _check_secret(secret, file)
    return secret
