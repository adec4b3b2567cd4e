"""Store: it behaves the same on SQLite and PostgreSQL, for any number of processes that open it."""

import asyncio
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, delete, func, select, text
from sqlalchemy.exc import IntegrityError, StatementError

from tests.support.databases import Database
from umg_grpc.store import StoreError, open_store
from umg_grpc.store.schema_migration import migrate
from umg_grpc.store.schema_version import NEWEST_MIGRATION, VERSION_TABLE
from umg_grpc.store.table_definitions import ApiKey, Base, ReasoningRow, ResponseRow
from umg_grpc.store.usage_parts import CallFilter
from umg_grpc.store.usage_record_table import UsageRecords
from umg_grpc.store.video_task_table import VideoTasks

NOW = datetime(2026, 5, 4, 3, 2, 1, 987654, tzinfo=UTC)


def api_key(key_id: str, *, name: str = "n", revoke_time: datetime | None = None) -> ApiKey:
    return ApiKey(
        key_id=key_id,
        secret_hash=key_id,
        prefix="p",
        name=name,
        model_patterns=["b", "a"],
        requests_per_minute=2**40,
        create_time=NOW,
        expire_time=None,
        revoke_time=revoke_time,
    )


async def test_written_rows_are_read_again(database: Database) -> None:
    store = await open_store(database.url, database.data_dir)
    async with store.write() as session:
        session.add(api_key("k", revoke_time=NOW.astimezone(timezone(timedelta(hours=5)))))
    await store.aclose()

    store = await open_store(database.url, database.data_dir)
    async with store.read() as session:
        (key,) = await session.scalars(select(ApiKey))
    await store.aclose()
    assert (key.model_patterns, key.requests_per_minute, key.expire_time) == (["b", "a"], 2**40, None)
    assert (key.create_time, key.revoke_time) == (NOW, NOW)
    assert {time.tzinfo for time in (key.create_time, key.revoke_time) if time} == {UTC}


async def test_a_text_with_a_character_that_postgresql_does_not_store_finds_nothing(database: Database) -> None:
    store = await open_store(database.url, database.data_dir)
    async with store.write() as session:
        session.add(api_key("k"))
    records, tasks = UsageRecords(store), VideoTasks(store, process="p")
    calls = CallFilter(NOW, only={"model": ["a\0"], "channel": ["\0", "main"]})
    async with store.read() as session:
        assert await session.scalar(select(ApiKey.name).where(ApiKey.key_id == "k\0")) is None
    assert await records.find("\0") == await records.page(calls, None, 9) == await records.sums(["key"], calls) == []
    assert await tasks.get("\0") is await tasks.find_external("o", "\0") is None
    await store.aclose()


async def test_a_time_without_a_zone_is_refused(database: Database) -> None:
    store = await open_store(database.url, database.data_dir)
    with pytest.raises(StatementError, match="needs a zone"):
        async with store.write() as session:
            session.add(api_key("k", revoke_time=NOW.replace(tzinfo=None)))
    await store.aclose()


async def test_the_migrations_make_exactly_the_tables_of_the_code(database: Database) -> None:
    def differences(connection: Connection) -> list[object]:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        return list(compare_metadata(context, Base.metadata))

    def migrated_from_nothing(connection: Connection) -> None:
        Base.metadata.drop_all(connection)
        connection.execute(text(f"DROP TABLE {VERSION_TABLE}"))
        connection.execute(text("CREATE TABLE stranger (id INTEGER)"))  # an empty one would get its tables
        migrate(connection)
        connection.execute(text("DROP TABLE stranger"))

    store = await open_store(database.url, database.data_dir)
    async with store.write() as session:
        await (await session.connection()).run_sync(migrated_from_nothing)
    async with store.read() as session:
        assert await (await session.connection()).run_sync(differences) == []
        assert await session.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) == NEWEST_MIGRATION
    await store.aclose()


ADDED = (
    *(
        "accounts",
        "end_user_days",
        "api_key_changes",
        "responses",
        "reasoning",
        "threads",
        "usage_records",
        "budget_accounts",
        "budget_leases",
    ),
    *("media_tasks", "task_callbacks", "learned_quirks", "stored_prompts", "call_records", "refused_calls"),
    *("users", "memberships", "audit_events", "sessions"),
    *("usage_minutes", "usage_hours", "usage_days", "usage_months"),
    *("usage_key_hours", "usage_key_days", "usage_key_months"),
    *("usage_agent_hours", "usage_agent_days", "usage_agent_months"),
    *("usage_key_agent_hours", "usage_key_agent_days", "usage_key_agent_months"),
    *("call_duration_minutes", "call_duration_hours", "call_duration_days"),
    *("call_duration_program_days", "call_duration_key_days", "call_failure_hours"),
    *("alerts", "alert_deliveries", "channel_outages", "work_leases"),
    *("channel_overrides", "channel_checks", "model_prices"),
)
"""Tables that the first version did not have."""
ADDED_COLUMNS = (
    *("channels", "show_route", "operations", "administrator", "owner", "tags"),
    *("previous_secret_hash", "previous_prefix", "previous_expire_time"),
    *("tokens_per_minute", "concurrent_requests"),
    *("budget_micro_credits", "budget_period", "last_use_time", "project_id", "user_id", "budgets"),
)
"""Columns of `api_keys` that the first version did not have."""


async def test_a_database_of_the_first_version_is_migrated_to_the_newest_with_its_rows(database: Database) -> None:
    def as_at_first(connection: Connection) -> None:
        Base.metadata.drop_all(connection, tables=[Base.metadata.tables[name] for name in ADDED])
        for trigger in ("insert", "update", "delete"):
            table = "" if connection.dialect.name == "sqlite" else " ON api_keys"
            connection.execute(text(f"DROP TRIGGER umg_key_{trigger}{table}"))
        for index in ("uq_api_keys_previous_secret_hash", "ix_api_keys_project_id", "ix_api_keys_user_id"):
            connection.execute(text(f"DROP INDEX {index}"))
        for column in ADDED_COLUMNS:
            connection.execute(text(f"ALTER TABLE api_keys DROP COLUMN {column}"))
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0001'"))

    store = await open_store(database.url, database.data_dir)
    async with store.write() as session:
        session.add_all([api_key("k"), api_key("first", name="bootstrap")])
        await session.flush()
        await (await session.connection()).run_sync(as_at_first)
    await store.aclose()

    store = await open_store(database.url, database.data_dir)
    async with store.read() as session:
        columns = select(ApiKey.key_id, ApiKey.channels, ApiKey.show_route, ApiKey.administrator, ApiKey.owner)
        rows = (await session.execute(columns.order_by(ApiKey.key_id))).all()
        assert rows == [("first", None, True, True, None), ("k", None, False, False, None)]
        assert await session.scalar(select(func.count()).select_from(ResponseRow)) == 0
        assert await session.scalar(select(func.count()).select_from(ReasoningRow)) == 0
        assert await session.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) == NEWEST_MIGRATION
    await store.aclose()


def test_an_empty_database_is_given_the_newest_version() -> None:
    config = Config()
    config.set_main_option("script_location", "umg_grpc.store:migrations")
    assert ScriptDirectory.from_config(config).get_heads() == [NEWEST_MIGRATION]


async def test_many_may_open_a_new_database_at_once(database: Database) -> None:
    stores = await asyncio.gather(*(open_store(database.url, database.data_dir) for _ in range(4)))
    async with stores[0].read() as session:
        assert await session.scalar(text("SELECT count(*) FROM alembic_version")) == 1
    await asyncio.gather(*(store.aclose() for store in stores))


OPEN = """
import asyncio, pathlib, sys
from umg_grpc.store import open_store
async def main():
    sys.stdin.readline()  # all begin together
    await (await open_store(sys.argv[1], pathlib.Path(sys.argv[2]))).aclose()
asyncio.run(main())
"""


async def test_processes_that_start_together_wait_for_the_one_that_migrates(database: Database) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", OPEN, database.url, str(database.data_dir)),
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for _ in range(4)
    ]
    ends = await asyncio.gather(*(process.communicate(b"\n") for process in processes))
    assert [process.returncode for process in processes] == [0] * 4, ends


async def test_a_database_of_a_newer_version_is_left_alone(database: Database) -> None:
    store = await open_store(database.url, database.data_dir)
    async with store.write() as session:
        await session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    await store.aclose()
    with pytest.raises(StoreError, match=r"newer version of the gateway \(schema 9999\)"):
        await open_store(database.url, database.data_dir)


async def test_a_failed_write_leaves_nothing(database: Database) -> None:
    store = await open_store(database.url, database.data_dir)

    async def fail() -> None:
        async with store.write() as session:
            session.add(api_key("k"))
            await session.flush()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    async with store.read() as session:
        assert await session.scalar(select(func.count()).select_from(ApiKey)) == 0
    await store.aclose()


async def test_a_name_is_free_again_when_its_key_is_revoked(database: Database) -> None:
    store = await open_store(database.url, database.data_dir)
    async with store.write() as session:
        session.add_all([api_key("old", revoke_time=NOW), api_key("older", revoke_time=NOW), api_key("live")])
    with pytest.raises(IntegrityError):
        async with store.write() as session:
            session.add(api_key("second"))
    await store.aclose()


async def test_transactions_that_read_and_then_write_wait_for_each_other(database: Database) -> None:
    store = await open_store(database.url, database.data_dir)

    async def replace(name: str) -> None:
        async with store.write() as session:
            await session.execute(select(ApiKey).with_for_update())
            await session.execute(delete(ApiKey).where(ApiKey.name == name))
            session.add(api_key(name, name=name))

    await asyncio.gather(*(replace(f"k{number}") for number in range(8)))
    async with store.read() as session:
        assert await session.scalar(select(func.count()).select_from(ApiKey)) == 8
    await store.aclose()


async def test_sqlite_is_set_up_for_many_readers_and_one_writer(tmp_path: Path) -> None:
    store = await open_store("sqlite", tmp_path / "new" / "data")
    async with store.read() as session:
        pragmas = {
            name: await session.scalar(text(f"PRAGMA {name}"))
            for name in ("journal_mode", "foreign_keys", "synchronous", "busy_timeout")
        }
    await store.aclose()
    assert pragmas == {"journal_mode": "wal", "foreign_keys": 1, "synchronous": 1, "busy_timeout": 30_000}
    assert (tmp_path / "new" / "data").stat().st_mode & 0o777 == 0o700


async def test_a_database_that_cannot_be_opened_is_named_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot open the database /nowhere/umg: ") as caught:
        await open_store("postgresql://me:pass-word@/umg?host=/nowhere", tmp_path)
    assert "pass-word" not in str(caught.value)
    (tmp_path / "umg.db").write_text("not a database, and long enough to be taken for one")
    with pytest.raises(StoreError, match=r"cannot open the database .*umg\.db: file is not a database"):
        await open_store("sqlite", tmp_path)
    with pytest.raises(StoreError, match="cannot make the data dir"):
        await open_store("sqlite", tmp_path / "umg.db" / "below")
