"""Commands that check a property of the gateway in two settings: on SQLite with one gateway, and on PostgreSQL with
two.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.databases import Postgres
from umg_grpc.store.database_constants import SQLITE_KIND


@dataclass(frozen=True)
class Setting:
    """Setting of one check: the kind of database and the number of gateways."""

    title: str
    database: str
    """URL of the database, as in the config."""
    gateways: int
    """Number of gateways that share the database."""
    directory: Path
    """Empty folder of the run."""


def prove(name: str, holds: Callable[[Setting], bool]) -> None:
    """Check a property in both settings, and exit with code 0 if it holds in both."""
    directory = Path(tempfile.mkdtemp(prefix=f"umg-{name}-"))
    directory.chmod(0o755)  # PostgreSQL runs as another user
    try:
        (directory / "server").mkdir()
        server = Postgres(directory / "server")
        results = list[bool]()
        for title, database, gateways in (
            ("SQLite", SQLITE_KIND, 1),
            ("PostgreSQL, two gateways", server.create(name), 2),
        ):
            place = directory / f"{gateways}"
            place.mkdir()
            results.append(holds(Setting(title, database, gateways, place)))
        server.stop()
    finally:
        shutil.rmtree(directory)
    sys.exit(0 if all(results) else 1)
