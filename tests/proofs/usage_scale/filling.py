"""Fills a PostgreSQL database with usage records and their totals, by the server alone."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text

from umg_grpc.base.time_units import micros_of
from umg_grpc.store import Store
from umg_grpc.store.usage_partitions import create_partitions, day_of
from umg_grpc.store.usage_sum_queries import bucket_start
from umg_grpc.store.usage_tables import AGENT_COLUMN, SUM_COLUMNS, TOTAL_TABLES
from umg_grpc.store.usage_totals import ADDED_COLUMNS, BUCKET_MICROS

COUNTED = {
    "input_tokens": "100 + n % 900",
    "cache_read_tokens": "n % 50",
    "output_tokens": "n % 400",
    "images": "n % 3",
    "micro_credits": "n % 5000",
}
"""Sums that are not 0 -> SQL expression of the number of the record."""


@dataclass(frozen=True)
class Filling:
    """Records that are spread evenly over the days before `end`."""

    end: datetime
    rows: int
    days: int = 90
    keys: int = 300
    """Each calls two models, three of four times by its first channel, by one or two programs."""
    models: int = 20

    @property
    def begin(self) -> datetime:
        """Arrival of the oldest record."""
        return self.end - timedelta(days=self.days)


async def fill(store: Store, filling: Filling) -> None:
    """Insert the records and all totals. The database must have no usage."""
    begin, micros = micros_of(filling.begin), filling.days * BUCKET_MICROS["day"]
    async with store.write() as session:
        days = range(day_of(begin), day_of(begin + micros) + 1)
        await create_partitions(session, days)
        # The key is a pseudo-random number, so that records of one key are far from each other.
        await session.execute(
            text(
                f"INSERT INTO call_records (start_micros, record_id, request_id, key_id, operation, method, face, model,"
                f" channel, duration_micros, status, reason, attempts, cached, estimated, details, agent,"
                f" {', '.join(SUM_COLUMNS)})"
                f" SELECT {begin} + n * {micros // filling.rows}, 'scale-' || n, 'req-' || n,"
                f" 'key_' || lpad(key::text, 16, '0'), CASE WHEN model % 10 = 0 THEN 'embed' ELSE 'generate' END,"
                f" 'GenerationService/Generate', 'chat', 'vendor/model-' || model,"
                f" 'channel-' || model % 4 || CASE WHEN n % 4 = 0 THEN '-b' ELSE '' END, 1500000,"
                f" CASE WHEN n % 50 = 0 THEN 'UNAVAILABLE' ELSE 'OK' END, '', 1, false, false,"
                f' \'[[["channel","model",5,9,200,"req_upstream","","","","",""]],"",5,[],[[1,5],[2,7]],[]]\','
                f" CASE WHEN key % 3 = 0 THEN '' WHEN key % 5 = n % 2 THEN 'codex' ELSE 'claude-code' END,"
                f" {', '.join(COUNTED.get(name, '0') for name in SUM_COLUMNS)}"
                f" FROM (SELECT n, key, (key + (n / 7) % 2) % {filling.models} AS model FROM"
                f" (SELECT n, (n * 7919 + n / 1000 * 31) % {filling.keys} AS key"
                f" FROM generate_series(CAST(0 AS BIGINT), {filling.rows - 1}) AS n) AS keys) AS calls"
            )
        )
        for totals in TOTAL_TABLES:
            columns, since = ", ".join(totals.columns), begin
            if totals.kept is not None:
                since = max(since, begin + micros - totals.kept // timedelta(microseconds=1))
            known = f"{AGENT_COLUMN} <> ''" if totals.has_agents else "true"
            sums = ", ".join(f"nullif(sum({name}), 0)" for name in SUM_COLUMNS)
            await session.execute(
                text(
                    f"INSERT INTO {totals.table.name} (start_micros, {columns}, {', '.join(ADDED_COLUMNS)})"
                    f" SELECT {bucket_start(totals.bucket, 'postgresql')} AS start, {columns}, count(*),"
                    f" count(*) FILTER (WHERE status <> 'OK'), {sums} FROM call_records"
                    f" WHERE start_micros >= {since} - {since} % {BUCKET_MICROS['day']}"
                    f" AND {known}"
                    f" GROUP BY 1, {columns} ORDER BY 1, {columns}"
                )
            )
    for table in ("call_records", *(totals.table.name for totals in TOTAL_TABLES)):
        async with store.write() as session:
            await session.execute(text(f"ANALYZE {table}"))
