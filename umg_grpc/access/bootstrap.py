"""The key that is there before anybody made one, so that a first start can be used at once.

It is one row of the keys, named `bootstrap`, whatever its secret: when the operator sets another value (or deletes the
file) the row gets the new secret, the old one is unknown from then on, and what was counted on the key stays together.
A value that was revoked stays revoked, whichever start names it again.
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

from umg_grpc.access.keys import BOOTSTRAP, hash_secret, new_row, new_secret, shown_prefix, utc_now
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
    """Where it is kept; None if the variable gave it."""
    revoked: bool
    """Whether the secret was revoked and is refused: another value, or deleting the file, makes a new key."""


async def ensure_bootstrap(
    store: Store, data_dir: Path, variable: str | None, now: Callable[[], datetime] = utc_now
) -> Bootstrap:
    """The key of `variable` (the value of UMG_API_KEY) or, where that is unset or empty, of the file in the data dir,
    which is made if it is not there. Replicas with data dirs of their own need the variable: each would replace the
    others' key.

    Raises UmgError(INVALID_FIELD) for a value that no client could send, OSError if the file cannot be read or made.
    """
    file = None if variable else data_dir / FILE
    secret = variable or _kept(data_dir / FILE)
    if not (secret.isascii() and secret.isprintable() and " " not in secret and secret):
        where = file or VARIABLE
        message = f"{where} must be printable ASCII without spaces, for it travels in a header"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=VARIABLE)
    try:
        revoked = await _install(store, secret, now())
    except IntegrityError:  # another replica did the same at the same moment; now its row is there
        revoked = await _install(store, secret, now())
    return Bootstrap(secret, file, revoked)


async def _install(store: Store, secret: str, now: datetime) -> bool:
    """Makes the secret that of the bootstrap key; returns whether it was revoked before, which then stands."""
    async with store.write() as session:
        known = await session.scalar(select(ApiKey).where(ApiKey.secret_hash == hash_secret(secret)))
        current = await _current(session)
        if known is None and current is None:
            session.add(new_row(secret, BOOTSTRAP, now))
        elif known is None and current is not None:
            current.secret_hash, current.prefix = hash_secret(secret), shown_prefix(secret)
        elif known is not None and current is not None and known is not current:
            current.revoke_time = now  # another key has its part
        return known is not None and known.revoke_time is not None


async def _current(session: AsyncSession) -> ApiKey | None:
    live = select(ApiKey).where(ApiKey.name == BOOTSTRAP, ApiKey.revoke_time.is_(None))
    row: ApiKey | None = await session.scalar(live.with_for_update())
    return row


def _kept(file: Path) -> str:
    """The secret in the file, which is made if need be. Whoever else makes it at this moment, all read the same one."""
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{FILE}.")  # 0600
        try:
            with os.fdopen(descriptor, "w") as stream:
                stream.write(new_secret() + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            with suppress(FileExistsError):
                os.link(temporary, file)  # whole or not at all, and never over another
        finally:
            Path(temporary).unlink()
    return file.read_text().strip()
