"""Backups of docs/deploying.md: a dump of PostgreSQL and a copy of the folder bring keys, usage and files back."""

import asyncio
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.support.databases import Postgres
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store import open_store
from umg_grpc.store.database_constants import SQLITE_FILE, SQLITE_KIND

NAME = "a key of the backup"


async def create_key(database: str, data: Path) -> None:
    store = await open_store(database, data)
    await ApiKeys(store).create(NAME)
    await store.aclose()


async def has_key(database: str, data: Path) -> bool:
    """Return whether a restored database, which is opened as by a start, has the key."""
    store = await open_store(database, data, create=False)
    try:
        return any(key.name == NAME for key in await ApiKeys(store).list())
    finally:
        await store.aclose()


def test_a_dump_of_postgresql_is_restored(tmp_path: Path, postgres: Postgres) -> None:
    dump, restore = (postgres._bin / name for name in ("pg_dump", "pg_restore"))
    if not (dump.exists() and restore.exists()):
        pytest.skip("pg_dump and pg_restore are not installed")
    lost = postgres.create(f"{tmp_path.name}_lost")
    asyncio.run(create_key(lost, tmp_path))
    file = tmp_path / "umg.dump"
    subprocess.run([dump, "--format", "custom", "--file", file, lost], check=True)
    empty = postgres.create(f"{tmp_path.name}_restored")
    subprocess.run([restore, "--exit-on-error", "--no-owner", "--dbname", empty, file], check=True)
    assert asyncio.run(has_key(empty, tmp_path))


def test_a_copy_of_the_folder_is_restored_while_the_database_is_open(tmp_path: Path) -> None:
    async def copy_while_open() -> None:
        await create_key(SQLITE_KIND, tmp_path / "data")
        store = await open_store(SQLITE_KIND, tmp_path / "data")
        shutil.copytree(tmp_path / "data", tmp_path / "copy", ignore=shutil.ignore_patterns(f"{SQLITE_FILE}*"))
        with (
            sqlite3.connect(tmp_path / "data" / SQLITE_FILE) as source,
            sqlite3.connect(tmp_path / "copy" / SQLITE_FILE) as copy,
        ):
            source.backup(copy)  # as `sqlite3 FILE ".backup COPY"` does
        source.close()
        copy.close()
        await store.aclose()

    asyncio.run(copy_while_open())
    assert asyncio.run(has_key(SQLITE_KIND, tmp_path / "copy"))
