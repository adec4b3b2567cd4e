"""Bootstrap key: the first API key, created at the first start so that the gateway can be used at once.

It is one row of the table of keys, named `bootstrap`. If the operator sets another value or deletes the file, the row
gets the new secret and keeps its id, and the old secret becomes unknown. A revoked secret stays revoked even if a later
start sets it again.
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.access.key_fields import BOOTSTRAP
from umg_grpc.access.keys import hash_secret, new_row, new_secret, shown_prefix, utc_now
from umg_grpc.errors import UmgError
from umg_grpc.store import Store
from umg_grpc.store.tables import ApiKey
from umg_grpc.v1 import pb

VARIABLE = "UMG_API_KEY"
FILE = "bootstrap.key"


@dataclass(frozen=True)
class Bootstrap:
    """The bootstrap key of this start."""

    secret: str = field(repr=False)
    file: Path | None
    """File with the secret; None if the secret is from the environment variable."""
    revoked: bool
    """Whether the secret was revoked and is rejected. Another value, or deleting the file, creates a new key."""


async def ensure_bootstrap(
    store: Store, data_dir: Path, variable: str | None, now: Callable[[], datetime] = utc_now
) -> Bootstrap:
    """Store and return the bootstrap key, whose secret is `variable` (the value of UMG_API_KEY) or, if that is unset or
    empty, the content of a file in the data dir, which is created if necessary. Replicas with separate data dirs need
    the variable, since each would otherwise replace the others' key.

    Raises UmgError(INVALID_FIELD) for a value that no client could send, OSError if the file cannot be read or created.
    """
    file = None if variable else data_dir / FILE
    secret = variable or _read_or_create(data_dir / FILE)
    if not (secret.isascii() and secret.isprintable() and " " not in secret and secret):
        where = file or VARIABLE
        message = f"{where} must be printable ASCII without spaces, for it travels in a header"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=VARIABLE)
    try:
        revoked = await _install(store, secret, now())
    except IntegrityError:  # another replica created the same row at the same moment
        revoked = await _install(store, secret, now())
    return Bootstrap(secret, file, revoked)


async def _install(store: Store, secret: str, now: datetime) -> bool:
    """Set the secret of the bootstrap key. Return whether the secret was revoked before, which remains in force."""
    async with store.write() as session:
        known = await session.scalar(select(ApiKey).where(ApiKey.secret_hash == hash_secret(secret)))
        current = await _current_row(session)
        if known is None and current is None:
            session.add(new_row(secret, BOOTSTRAP, now))
        elif known is None and current is not None:
            current.secret_hash, current.prefix = hash_secret(secret), shown_prefix(secret)
        elif known is not None and current is not None and known is not current:
            current.revoke_time = now  # another row has this secret
        return known is not None and known.revoke_time is not None


async def _current_row(session: AsyncSession) -> ApiKey | None:
    live = select(ApiKey).where(ApiKey.name == BOOTSTRAP, ApiKey.revoke_time.is_(None))
    row: ApiKey | None = await session.scalar(live.with_for_update())
    return row


def _read_or_create(file: Path) -> str:
    """Return the secret in the file, which is created if necessary. Concurrent processes all read the same secret."""
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{FILE}.")  # mode 0600
        try:
            with os.fdopen(descriptor, "w") as stream:
                stream.write(new_secret() + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            with suppress(FileExistsError):
                os.link(temporary, file)  # atomic, and never replaces an existing file
        finally:
            Path(temporary).unlink()
    return file.read_text().strip()
