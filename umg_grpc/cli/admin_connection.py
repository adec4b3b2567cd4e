"""Connection of a command to the administration service: on the database of a config, or over HTTP to a gateway."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import typer

from umg_grpc.base.errors import UmgError
from umg_grpc.cli.admin_client import ADMIN_KEY_VARIABLE, AdminClient, CommandError
from umg_grpc.cli.common_flags import AdminTarget


@asynccontextmanager
async def opened(target: AdminTarget) -> AsyncGenerator[AdminClient, None]:
    """Yield an administration client. UmgError and CommandError in the block are printed, and the exit code is 1."""
    # imported here: commands on a database need no HTTP, and those at a gateway no database
    try:
        if target.gateway:
            from umg_grpc.cli.http_admin_client import RemoteAdmin

            async with RemoteAdmin.opened(target.gateway, admin_key(target.key_file)) as client:
                yield client
        else:
            from umg_grpc.cli.database_admin_client import LocalAdmin

            async with LocalAdmin.opened(target) as client:
                yield client
    except (UmgError, CommandError) as error:
        print(f"umg: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def admin_key(file: Path | None) -> str:
    """Return the API key for a gateway: from the file, else from UMG_ADMIN_KEY. Raise CommandError without one."""
    try:
        key = os.environ.get(ADMIN_KEY_VARIABLE, "") if file is None else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--api-key-file: {file} cannot be read: {error}") from None
    key = key.strip()
    if not key:
        place = ADMIN_KEY_VARIABLE if file is None else f"the file {file}"
        raise CommandError(f"--gateway needs the key of an administrator: put it into {place}")
    if not (key.isascii() and key.isprintable()):
        raise CommandError(f"a key has visible ASCII characters only; correct {file or ADMIN_KEY_VARIABLE}")
    return key
