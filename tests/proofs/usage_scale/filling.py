"""Fills a database with usage records, their totals and their numbers, by statements of the database alone."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text

from umg_grpc.base.time_units import micros_of
from umg_grpc.store import Store
from umg_grpc.store.call_count_tables import (
    COUNT_TABLES,
    DURATION_TABLES,
    FAILED_CALL,
    FAILURE_HOURS,
    FIRST_BYTE,
    WHOLE_CALL,
)
from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.duration_steps import step_sql
from umg_grpc.store.usage_partitions import create_partitions, day_of
from umg_grpc.store.usage_parts import bucket_start
from umg_grpc.store.usage_tables import AGENT_COLUMN, SUM_COLUMNS, TOTAL_TABLES, Totals
from umg_grpc.store.usage_totals import ADDED_COLUMNS, BUCKET_MICROS

COUNTED = {
    "input_tokens": "100 + n % 900",
    "cache_read_tokens": "n % 50",
    "output_tokens": "n % 400",
    "images": "n % 3",
    "micro_credits": "n % 5000",
}
"""Sums that are not 0 -> SQL expression of the number of the record."""
KEY_DURATIONS = next(each for each in DURATION_TABLES if "key_id" in each.columns)
LARGEST_KEY, SMALL_KEY, RARE_MODEL = "key_0000000000000000", "key_0000000000000007", "vendor/model-rare"


@dataclass(frozen=True)
class Filling:
    """Records that are spread evenly over the days before `end`."""

    end: datetime
    rows: int
    days: int = 90
    keys: int = 400
    """The first one has half of all calls. Each calls two models, three of four times by its first channel, by one or two
    programs.
    """
    models: int = 60

    @property
    def begin(self) -> datetime:
        """Arrival of the oldest record."""
        return self.end - timedelta(days=self.days)


async def fill(store: Store, filling: Filling) -> None:
    """Insert the records, all totals and all numbers of calls. The database must have no usage."""
    begin, micros = micros_of(filling.begin), filling.days * BUCKET_MICROS["day"]
    async with store.write() as session:
        dialect = (await session.connection()).dialect.name
        if dialect != SQLITE_KIND:
            await create_partitions(session, range(day_of(begin), day_of(begin + micros) + 1))
        await session.execute(text(_records(filling, dialect)))
    for statement in _statements(begin, micros, dialect):
        async with store.write() as session:
            await session.execute(text(statement))
    if dialect != SQLITE_KIND:
        engine = store._engine.execution_options(isolation_level="AUTOCOMMIT")
        async with engine.connect() as connection:  # as autovacuum does, by which indexes are read without the rows
            for table in ("call_records", *(each.table.name for each in (*TOTAL_TABLES, *COUNT_TABLES))):
                await connection.execute(text(f"VACUUM (ANALYZE) {table}"))


async def bytes_of_record(store: Store) -> int:
    """Return the mean size of a record with its indexes in the database."""
    async with store.read() as session:
        if (await session.connection()).dialect.name == SQLITE_KIND:
            size = "SELECT sum(pgsize) FROM dbstat WHERE name LIKE '%call_records%'"
        else:
            size = (
                "SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits"
                " WHERE inhparent = CAST('call_records' AS regclass)"
            )
        return int(await session.scalar(text(f"SELECT ({size}) / (SELECT count(*) FROM call_records)")) or 0)


def _records(filling: Filling, dialect: str) -> str:
    begin, micros = micros_of(filling.begin), filling.days * BUCKET_MICROS["day"]
    last = filling.rows - 1
    if dialect == SQLITE_KIND:
        numbers = f"WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {last})"
    else:
        numbers = f"WITH numbers AS (SELECT n FROM generate_series(CAST(0 AS BIGINT), {last}) AS n)"

    def padded(prefix: str, length: int, number: str) -> str:
        if dialect == SQLITE_KIND:
            return f"printf('{prefix}%0{length - len(prefix)}d', {number})"
        return f"'{prefix}' || lpad(CAST({number} AS TEXT), {length - len(prefix)}, '0')"

    duration = "(300000 + (n * 7919 % 1000) * (n * 104729 % 997) * 10)"
    key = padded("key_", 20, "key")
    # The key is a pseudo-random number, so that records of one key are far from each other.
    return (
        f"INSERT INTO call_records (start_micros, record_id, request_id, key_id, operation, method, face, model,"
        f" channel, duration_micros, first_byte_micros, status, reason, failure_kind, attempts, cached, estimated,"
        f" details, agent, end_user, {', '.join(SUM_COLUMNS)}) {numbers}"
        f" SELECT {begin} + n * {micros // filling.rows}, {padded('scale', 29, 'n')}, {padded('req_', 36, 'n')}, {key},"
        f" CASE WHEN model % 10 = 0 THEN 'embed' ELSE 'generate' END, 'GenerationService/Generate', 'chat',"
        f" CASE WHEN n % 500009 = 7 THEN '{RARE_MODEL}' ELSE 'vendor/model-' || model END,"
        f" 'channel-' || model % 4 || CASE WHEN n % 4 = 0 THEN '-b' ELSE '' END,"
        f" {duration}, CASE WHEN n % 3 = 0 THEN NULL ELSE {duration} / 4 END,"
        f" CASE WHEN n % 50 = 0 THEN 'UNAVAILABLE' ELSE 'OK' END,"
        f" CASE WHEN n % 50 <> 0 THEN '' WHEN n % 250000 = 0 THEN 'UPSTREAM_TIMEOUT' ELSE 'UPSTREAM_UNPAID' END,"
        f" CASE WHEN n % 50 <> 0 THEN '' WHEN n % 250000 = 0 THEN 'slow' ELSE 'unpaid' END, 1, n % 20 = 1, false,"
        f' \'[[["channel","model",5,9,200,"req_upstream","","","","",""]],"",5,[],[[1,5],[2,7]],[]]\','
        f" CASE WHEN key % 3 = 0 THEN '' WHEN key % 5 = n % 2 THEN 'codex' ELSE 'claude-code' END,"
        f" CASE WHEN n % 10 = 0 THEN 'person-' || n % 9973 ELSE '' END,"
        f" {', '.join(COUNTED.get(name, '0') for name in SUM_COLUMNS)}"
        f" FROM (SELECT n, key, (key + (n / 7) % 2) % {filling.models} AS model FROM"
        f" (SELECT n, CASE WHEN n % 2 = 0 THEN 0 ELSE 1 + (n * 7919 + n / 1000 * 31) % {filling.keys - 1} END AS key"
        f" FROM numbers) AS keys) AS calls"
    )


def _statements(begin: int, micros: int, dialect: str) -> list[str]:
    def since(totals: Totals) -> int:
        kept = totals.kept
        first = begin if kept is None else max(begin, begin + micros - kept // timedelta(microseconds=1))
        return first - first % BUCKET_MICROS["day"]

    statements = list[str]()
    for totals in TOTAL_TABLES:
        columns = ", ".join(totals.columns)
        known = f"{AGENT_COLUMN} <> ''" if totals.has_agents else "true"
        sums = ", ".join(f"nullif(sum({name}), 0)" for name in SUM_COLUMNS)
        statements.append(
            f"INSERT INTO {totals.table.name} (start_micros, {columns}, {', '.join(ADDED_COLUMNS)})"
            f" SELECT {bucket_start(totals.bucket, dialect)} AS start, {columns}, count(*),"
            f" count(*) FILTER (WHERE status <> 'OK'), {sums}, nullif(count(*) FILTER (WHERE cached), 0)"
            f" FROM call_records WHERE start_micros >= {since(totals)} AND {known}"
            f" GROUP BY 1, {columns} ORDER BY 1, {columns}"
        )
    for totals in sorted(COUNT_TABLES, key=lambda totals: totals is not KEY_DURATIONS):
        keys = [name for name in totals.table.columns.keys() if name != "calls"]  # noqa: SIM118
        if totals.bucket == KEY_DURATIONS.bucket and totals is not KEY_DURATIONS:  # fewer rows than records
            columns = ", ".join(keys)
            statements.append(
                f"INSERT INTO {totals.table.name} ({columns}, calls) SELECT {columns}, sum(calls)"
                f" FROM {KEY_DURATIONS.table.name} GROUP BY {columns} ORDER BY {columns}"
            )
            continue
        source = f"call_records WHERE start_micros >= {since(totals)}"
        if totals is FAILURE_HOURS:
            rows = f"{source} AND status <> 'OK'"
        else:
            rows = " UNION ALL ".join(
                f"SELECT *, {measure} AS measure, {step_sql(column)} AS step FROM {source} AND {condition}"
                for measure, column, condition in (
                    (WHOLE_CALL, "duration_micros", "status = 'OK'"),
                    (FIRST_BYTE, "first_byte_micros", "status = 'OK' AND first_byte_micros IS NOT NULL"),
                    (FAILED_CALL, "duration_micros", "status <> 'OK'"),
                )
            )
            rows = f"({rows}) AS calls"
        groups = [str(bucket_start(totals.bucket, dialect)) if name == "start_micros" else name for name in keys]
        places = ", ".join(str(number) for number in range(1, len(keys) + 1))
        statements.append(
            f"INSERT INTO {totals.table.name} ({', '.join(keys)}, calls) SELECT {', '.join(groups)}, count(*)"
            f" FROM {rows} GROUP BY {places} ORDER BY {places}"
        )
    return statements
