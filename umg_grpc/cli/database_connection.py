"""Connection of a command to the database of a config. Commands import it in their bodies: it is slow to import."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from umg_grpc.cli.admin_client import CommandError
from umg_grpc.store import Store, StoreError, open_store


@asynccontextmanager
async def opened_database(database: str, data: Path) -> AsyncGenerator[Store, None]:
    """Yield the database. Raise CommandError if there is none: a running gateway would not have a new one's keys."""
    try:
        store = await open_store(database, data, create=False)
    except StoreError as error:
        raise CommandError(str(error)) from None
    try:
        yield store
    finally:
        await store.aclose()
