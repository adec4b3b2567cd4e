"""Tables of the current schema. `migrations/` creates the same schema, which a test checks."""

from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    DateTime,
    Dialect,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
    false,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class UtcTime(TypeDecorator[datetime]):
    """Column type of a point in time, in UTC both in Python and in the database, since SQLite stores no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the time to write, in UTC. Raises ValueError for a time without a zone, which is ambiguous."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored time needs a zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return a time read from the database, in UTC."""
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


class Base(DeclarativeBase):
    """Base class of all tables. It names the constraints, so that later migrations can refer to them."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
        }
    )


class ApiKey(Base):
    """A caller's key, as `umg.v1.Key` describes it."""

    __tablename__ = "api_keys"
    __table_args__ = (
        # The name of a revoked key is free for the key that replaces it.
        Index(
            "uq_api_keys_live_name",
            "name",
            unique=True,
            sqlite_where=text("revoke_time IS NULL"),
            postgresql_where=text("revoke_time IS NULL"),
        ),
        Index("uq_api_keys_previous_secret_hash", "previous_secret_hash", unique=True),
    )

    key_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of the secret, in hex."""
    prefix: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(100))
    model_patterns: Mapped[list[str]] = mapped_column(JSON)
    requests_per_minute: Mapped[int | None] = mapped_column(BigInteger)
    create_time: Mapped[datetime] = mapped_column(UtcTime)
    expire_time: Mapped[datetime | None] = mapped_column(UtcTime)
    revoke_time: Mapped[datetime | None] = mapped_column(UtcTime)
    channels: Mapped[list[str] | None] = mapped_column(JSON)
    """Names of allowed channels, with `*` as wildcard; empty allows every channel. None for keys made before this
    column existed.
    """
    show_route: Mapped[bool] = mapped_column(Boolean, server_default=false())
    operations: Mapped[list[str] | None] = mapped_column(JSON)
    """Allowed operations, as in `access/permissions.py`; empty or None allows every operation."""
    administrator: Mapped[bool] = mapped_column(Boolean, server_default=false())
    owner: Mapped[str | None] = mapped_column(String(200))
    tags: Mapped[dict[str, str] | None] = mapped_column(JSON)
    previous_secret_hash: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of the secret before the last rotation, in hex; None without a rotation."""
    previous_prefix: Mapped[str | None] = mapped_column(String(16))
    previous_expire_time: Mapped[datetime | None] = mapped_column(UtcTime)
    """End of the overlap, in which both secrets are valid."""
    tokens_per_minute: Mapped[int | None] = mapped_column(BigInteger)
    concurrent_requests: Mapped[int | None] = mapped_column(BigInteger)
    budget_micro_credits: Mapped[int | None] = mapped_column(BigInteger)
    budget_period: Mapped[str | None] = mapped_column(String(8))
    """`day` or `month` in UTC; "" or None for a budget without a period."""
    last_use_time: Mapped[datetime | None] = mapped_column(UtcTime)
    """Time of the last call, accurate to a minute; None before the first use."""


MAX_OBJECT_ID_CHARACTERS = 512


class RetainedRow(Base):
    """Base class of rows kept for one caller for a limited time, which `retained.py` writes, reads and deletes."""

    __abstract__ = True

    owner: Mapped[str] = mapped_column(String(64), primary_key=True, sort_order=-1)
    """Id of the only key that may read the row."""
    object_id: Mapped[str] = mapped_column(String(MAX_OBJECT_ID_CHARACTERS), primary_key=True, sort_order=-1)
    expire_time: Mapped[datetime] = mapped_column(UtcTime, sort_order=-1)
    size_bytes: Mapped[int] = mapped_column(BigInteger, sort_order=-1)
    """Approximate size of the row."""


class ResponseRow(RetainedRow):
    """Stored response, by its id, with the conversation up to and including it."""

    __tablename__ = "responses"
    __table_args__ = (
        Index("ix_responses_expire_time", "expire_time", "size_bytes"),
        Index("ix_responses_owner_expire_time", "owner", "expire_time", "size_bytes"),
    )

    create_time: Mapped[datetime] = mapped_column(UtcTime)
    channel: Mapped[str] = mapped_column(String)
    """Name of the channel that made the response."""
    upstream_response_id: Mapped[str] = mapped_column(String)
    """Id of the response at the provider, "" if the provider stores no response."""
    earlier_count: Mapped[int] = mapped_column(Integer)
    """Number of messages of the conversation before the response's own request."""
    input_count: Mapped[int] = mapped_column(Integer)
    """Number of messages of the response's own request; the messages after them are its output."""
    # Large columns last, so that a read of the columns above does not read past them.
    answer: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """`umg.v1.StoredResponse`, zlib-compressed."""
    conversation: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """`umg.v1.GenerateRequest` with all messages and no other fields, zlib-compressed."""


class ThreadRow(RetainedRow):
    """Conversation of a message thread up to and including one response, by the id of the response."""

    __tablename__ = "threads"
    __table_args__ = (
        Index("ix_threads_expire_time", "expire_time", "size_bytes"),
        Index("ix_threads_owner_expire_time", "owner", "expire_time", "size_bytes"),
    )

    channel: Mapped[str] = mapped_column(String)
    """Name of the channel that made the response."""
    upstream_response_id: Mapped[str] = mapped_column(String)
    """Id of the response at the provider, "" if the provider stores no thread."""
    claim_end_time: Mapped[datetime | None] = mapped_column(UtcTime)
    """Latest end of the call in flight that continues the response; None if there is none."""
    continued: Mapped[bool] = mapped_column(Boolean)
    """Whether a call has continued the response; it can be continued only once."""
    conversation: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """`umg.v1.GenerateRequest`, zlib-compressed; `service/conversations/threads.py` describes its fields."""


class ReasoningRow(RetainedRow):
    """Reasoning before a tool call, or the channel of a reasoning state or of an object in a provider's account, by a
    digest of the id or state.
    """

    __tablename__ = "reasoning"
    __table_args__ = (
        Index("ix_reasoning_expire_time", "expire_time", "size_bytes"),
        Index("ix_reasoning_owner_expire_time", "owner", "expire_time", "size_bytes"),
    )

    channel: Mapped[str] = mapped_column(String)
    """Name of the channel whose account can read the state or object."""
    thoughts: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """`umg.v1.Message` as in `service/conversations/reasoning_restore.py`; b"" for a channel alone."""


class UsageRow(Base):
    """Usage record of one call; `UsageRecord` in `usage_records.py` describes the columns."""

    __tablename__ = "usage_records"
    __table_args__ = (
        Index("ix_usage_records_start_micros", "start_micros"),
        Index("ix_usage_records_request_id", "request_id"),
    )

    record_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    request_id: Mapped[str] = mapped_column(String)
    key_id: Mapped[str] = mapped_column(String(64))
    operation: Mapped[str] = mapped_column(String)
    method: Mapped[str] = mapped_column(String)
    face: Mapped[str] = mapped_column(String)
    model: Mapped[str] = mapped_column(String)
    channel: Mapped[str] = mapped_column(String)
    start_micros: Mapped[int] = mapped_column(BigInteger)
    duration_micros: Mapped[int] = mapped_column(BigInteger)
    status: Mapped[str] = mapped_column(String)
    reason: Mapped[str] = mapped_column(String)
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
    """`CallDetails` in JSON."""
    images: Mapped[int] = mapped_column(BigInteger, server_default="0")
    video_seconds: Mapped[int] = mapped_column(BigInteger, server_default="0")
    videos: Mapped[int] = mapped_column(BigInteger, server_default="0")
    image_input_tokens: Mapped[int] = mapped_column(BigInteger, server_default="0")
    image_output_tokens: Mapped[int] = mapped_column(BigInteger, server_default="0")


class BudgetAccount(Base):
    """Amount that a key has spent of its budget in one period. `budgets.py` describes the accounts and the leases."""

    __tablename__ = "budget_accounts"

    key_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    period_start: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    """Start of the period in seconds since 1970 in UTC; 0 for a budget without a period."""
    spent_micro_credits: Mapped[int] = mapped_column(BigInteger)


class BudgetLease(Base):
    """Amount of a budget that one holder may still spend, or has spent without its usage record in the database."""

    __tablename__ = "budget_leases"
    __table_args__ = (Index("ix_budget_leases_directory", "directory"),)

    key_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    period_start: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    holder: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Process, by the prefix of its usage records; or `task:ID`."""
    directory: Mapped[str] = mapped_column(String(64))
    """Id of the data directory whose journal has the usage records of the holder; "" for a task."""
    held_micro_credits: Mapped[int] = mapped_column(BigInteger)
    renew_micros: Mapped[int] = mapped_column(BigInteger)
    """Last renewal, in microseconds since 1970 in UTC."""
