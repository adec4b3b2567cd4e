"""Tables of usage: the records of calls, and totals of them by time and by columns, for example key and model."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, String, Table, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from umg_grpc.store.table_definitions import Base

NAME_TYPE = String().with_variant(String(collation="C"), "postgresql")
"""Type of names in usage. They are ordered by code points, as in Python and SQLite, which merges sorted sums."""
ID_TYPE = String(64).with_variant(String(64, collation="C"), "postgresql")
COUNT_COLUMNS = (
    *("input_tokens", "cache_read_tokens", "cache_write_tokens", "long_cache_write_tokens", "audio_input_tokens"),
    *("output_tokens", "reasoning_tokens", "audio_output_tokens", "searches"),
    *("images", "video_seconds", "videos", "image_input_tokens", "image_output_tokens", "characters", "audio_seconds"),
)
"""Columns that count units, for example tokens. Each token is counted in exactly one of them."""
SUM_COLUMNS = (*COUNT_COLUMNS, "micro_credits")
MINUTE_BUCKET, FIVE_MINUTES_BUCKET, HOUR_BUCKET = "minute", "five_minutes", "hour"
DAY_BUCKET, MONTH_BUCKET = "day", "month"
KEPT_MINUTES, KEPT_HOURS = timedelta(days=2), timedelta(days=400)
"""Times for which totals by minute and by hour are kept."""


class _RecordColumns(Base):
    """Columns of a usage record: key, model, channel, outcome, counted units and cost of one admitted call."""

    __abstract__ = True

    request_id: Mapped[str] = mapped_column(NAME_TYPE)
    key_id: Mapped[str] = mapped_column(ID_TYPE)
    operation: Mapped[str] = mapped_column(NAME_TYPE)
    method: Mapped[str] = mapped_column(NAME_TYPE)
    face: Mapped[str] = mapped_column(NAME_TYPE)
    model: Mapped[str] = mapped_column(NAME_TYPE)
    channel: Mapped[str] = mapped_column(NAME_TYPE)
    duration_micros: Mapped[int] = mapped_column(BigInteger)
    status: Mapped[str] = mapped_column(NAME_TYPE)
    reason: Mapped[str] = mapped_column(NAME_TYPE)
    attempts: Mapped[int] = mapped_column(Integer)
    cached: Mapped[bool] = mapped_column(Boolean)
    estimated: Mapped[bool] = mapped_column(Boolean)
    input_tokens: Mapped[int] = mapped_column(BigInteger)
    cache_read_tokens: Mapped[int] = mapped_column(BigInteger)
    cache_write_tokens: Mapped[int] = mapped_column(BigInteger)
    long_cache_write_tokens: Mapped[int] = mapped_column(BigInteger)
    audio_input_tokens: Mapped[int] = mapped_column(BigInteger)
    output_tokens: Mapped[int] = mapped_column(BigInteger)
    reasoning_tokens: Mapped[int] = mapped_column(BigInteger)
    audio_output_tokens: Mapped[int] = mapped_column(BigInteger)
    searches: Mapped[int] = mapped_column(BigInteger)
    micro_credits: Mapped[int] = mapped_column(BigInteger)
    details: Mapped[str | None] = mapped_column(Text)
    """`CallDetails` in JSON; None for records of earlier versions."""
    images: Mapped[int] = mapped_column(BigInteger, server_default="0")
    video_seconds: Mapped[int] = mapped_column(BigInteger, server_default="0")
    videos: Mapped[int] = mapped_column(BigInteger, server_default="0")
    image_input_tokens: Mapped[int] = mapped_column(BigInteger, server_default="0")
    image_output_tokens: Mapped[int] = mapped_column(BigInteger, server_default="0")
    agent: Mapped[str] = mapped_column(NAME_TYPE, server_default=text("''"))
    characters: Mapped[int] = mapped_column(BigInteger, server_default="0")
    audio_seconds: Mapped[int] = mapped_column(BigInteger, server_default="0")
    end_user: Mapped[str] = mapped_column(NAME_TYPE, server_default=text("''"))
    failure_kind: Mapped[str] = mapped_column(NAME_TYPE, server_default=text("''"))
    first_byte_micros: Mapped[int | None] = mapped_column(BigInteger)


FACT_COLUMNS = (
    *("start_micros", "record_id", "key_id", "model", "channel", "operation", "agent", "status"),
    *("duration_micros", "first_byte_micros", "micro_credits"),
)
"""Columns of the index by which records are searched in the order of their arrival, without reading their rows."""
HAS_FAILED, HAS_END_USER = "status <> 'OK'", "end_user <> ''"
"""Conditions of partial indexes. A query has to repeat them literally, since SQLite compares the texts."""


def _partial(name: str, columns: Sequence[str], condition: str) -> Index:
    where = {"where": text(condition)}
    return Index(name, *columns, info={"sqlite": where, "postgresql": where})


class UsageRow(_RecordColumns):
    """Table of usage records, one for each admitted call. On PostgreSQL it is partitioned by day of arrival."""

    __tablename__ = "call_records"
    __table_args__ = (
        Index("ix_call_records_request_id", "request_id", "start_micros", "record_id"),
        Index("ix_call_records_facts", *FACT_COLUMNS),
        Index("ix_call_records_key", "key_id", "start_micros", "record_id", "duration_micros"),
        _partial(
            "ix_call_records_failed",
            ("start_micros", "record_id", "reason", "failure_kind", *FACT_COLUMNS[2:9]),
            HAS_FAILED,
        ),
        _partial("ix_call_records_end_user", ("end_user", "start_micros", "record_id"), HAS_END_USER),
        {"info": {"postgresql": {"partition_by": "RANGE (start_micros)"}}},
    )

    start_micros: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False, sort_order=-2)
    record_id: Mapped[str] = mapped_column(ID_TYPE, primary_key=True, sort_order=-1)


class EarlierUsageRow(_RecordColumns):
    """Table of the usage records of versions without partitions and totals, which may still write during a rolling
    upgrade. `usage_record_migration.py` moves them to `UsageRow`.
    """

    __tablename__ = "usage_records"
    __table_args__ = (
        Index("ix_usage_records_start_micros", "start_micros"),
        Index("ix_usage_records_request_id", "request_id"),
    )

    start_micros: Mapped[int] = mapped_column(BigInteger, sort_order=-2)
    record_id: Mapped[str] = mapped_column(ID_TYPE, primary_key=True, sort_order=-1)


class RefusedCallRow(Base):
    """Table of records of calls that were refused before their admission. They are in no total and in no budget."""

    __tablename__ = "refused_calls"
    __table_args__ = (
        Index("ix_refused_calls_start_micros", "start_micros"),
        Index("ix_refused_calls_request_id", "request_id"),
    )

    start_micros: Mapped[int] = mapped_column(BigInteger)
    record_id: Mapped[str] = mapped_column(ID_TYPE, primary_key=True)
    request_id: Mapped[str] = mapped_column(NAME_TYPE)
    key_id: Mapped[str] = mapped_column(ID_TYPE)
    operation: Mapped[str] = mapped_column(NAME_TYPE)
    method: Mapped[str] = mapped_column(NAME_TYPE)
    face: Mapped[str] = mapped_column(NAME_TYPE)
    agent: Mapped[str] = mapped_column(NAME_TYPE)
    model: Mapped[str] = mapped_column(NAME_TYPE)
    channel: Mapped[str] = mapped_column(NAME_TYPE)
    """Always "", by which filters of channels select no refused call."""
    duration_micros: Mapped[int] = mapped_column(BigInteger)
    status: Mapped[str] = mapped_column(NAME_TYPE)
    reason: Mapped[str] = mapped_column(NAME_TYPE)
    message: Mapped[str] = mapped_column(Text)
    calls: Mapped[int] = mapped_column(BigInteger)
    """Number of calls that the record counts."""


@dataclass(frozen=True)
class Totals:
    """Table of totals: for each group of calls with the same values in some columns, the sums of their records."""

    table: Table
    bucket: str
    """Time span by which the calls are grouped, in addition to the columns."""
    columns: Sequence[str]
    kept: timedelta | None = None
    """Time for which the totals are kept; None for the configured one."""

    @property
    def has_agents(self) -> bool:
        """Whether the calls are also grouped by agent. If so, the table has no rows for calls of unknown agents."""
        return AGENT_COLUMN in self.columns


def _totals(name: str, bucket: str, columns: Sequence[str], kept: timedelta | None = None) -> Totals:
    indexed = ["key_id"] if "key_id" in columns else list[str]()
    if (bucket, columns) == (HOUR_BUCKET, OF_CHANNEL):
        indexed += ["model", "channel"]  # by these hours, records of few calls are found
    table = Table(
        name,
        Base.metadata,
        Column("start_micros", BigInteger, primary_key=True, autoincrement=False),
        *(Column(column, ID_TYPE if column == "key_id" else NAME_TYPE, primary_key=True) for column in columns),
        Column("requests", BigInteger, nullable=False),
        Column("failed", BigInteger, nullable=False),
        # None in place of 0: it takes no space, and no time in sums. Most calls have few of the units.
        *(Column(sum_of, BigInteger, nullable=True) for sum_of in SUM_COLUMNS),
        Column("cached", BigInteger, nullable=True),
        *(Index(f"ix_{name}_{column}", column, "start_micros") for column in indexed),
        # room for new versions of rows, which then need no new index entries
        info={"postgresql": {"with": {"fillfactor": 70}}},
    )
    return Totals(table, bucket, columns, kept)


AGENT_COLUMN = "agent"
OF_CHANNEL = ("model", "operation", "channel")
OF_KEY = ("key_id", *OF_CHANNEL)
OF_AGENT = (*OF_CHANNEL, AGENT_COLUMN)
OF_KEY_AND_AGENT = (*OF_KEY, AGENT_COLUMN)
TOTAL_TABLES = (
    _totals("usage_minutes", MINUTE_BUCKET, OF_CHANNEL, KEPT_MINUTES),
    _totals("usage_hours", HOUR_BUCKET, OF_CHANNEL, KEPT_HOURS),
    _totals("usage_days", DAY_BUCKET, OF_CHANNEL),
    _totals("usage_months", MONTH_BUCKET, OF_CHANNEL),
    _totals("usage_key_hours", HOUR_BUCKET, OF_KEY, KEPT_HOURS),
    _totals("usage_key_days", DAY_BUCKET, OF_KEY),
    _totals("usage_key_months", MONTH_BUCKET, OF_KEY),
    _totals("usage_agent_hours", HOUR_BUCKET, OF_AGENT, KEPT_HOURS),
    _totals("usage_agent_days", DAY_BUCKET, OF_AGENT),
    _totals("usage_agent_months", MONTH_BUCKET, OF_AGENT),
    _totals("usage_key_agent_hours", HOUR_BUCKET, OF_KEY_AND_AGENT, KEPT_HOURS),
    _totals("usage_key_agent_days", DAY_BUCKET, OF_KEY_AND_AGENT),
    _totals("usage_key_agent_months", MONTH_BUCKET, OF_KEY_AND_AGENT),
)
"""All tables of totals, in the order in which a transaction writes them. A further column of a group is a name in the
lists above, and a migration. The tables without the key are small however many keys there are.
"""
END_USER_SUMS = ("requests", "failed", "input_tokens", "output_tokens", "micro_credits")
END_USER_DAYS = Table(
    "end_user_days",
    Base.metadata,
    Column("start_micros", BigInteger, primary_key=True, autoincrement=False),
    Column("end_user", NAME_TYPE, primary_key=True),
    Column("key_id", ID_TYPE, primary_key=True),
    *(Column(name, BigInteger, nullable=False) for name in END_USER_SUMS),
    Index("ix_end_user_days_key_id", "key_id", "start_micros"),
    info={"postgresql": {"with": {"fillfactor": 70}}},
)
"""Table of the usage of end users (`end_user_usage.py`) by day and key."""
