"""Tables of the current database schema. The migrations create the same schema, which a test checks."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Connection,
    DateTime,
    Dialect,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
    event,
    false,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.sql.schema import Table

from umg_grpc.store.key_change_triggers import BELOW_ACCOUNT, parent_trigger_statements, trigger_statements


class UtcTime(TypeDecorator[datetime]):
    """Column type of a point in time, in UTC both in Python and in the database, since SQLite stores no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the time in UTC, as it is stored. Raise ValueError for a time without a zone: it is ambiguous."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored time needs a zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return a time read from the database as a time in UTC; None stays None."""
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


class Base(DeclarativeBase):
    """Base class of all tables, which gives constraints names, so that later migrations can refer to them."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
        }
    )


def only_where(condition: str) -> dict[str, dict[str, object]]:
    """Return the options of an index that has only the rows for which a condition holds, by the kind of database.
    `schema_migration.migrate` reads them: as arguments of the index, they would load the modules of both kinds.
    """
    return {kind: {"where": text(condition)} for kind in ("sqlite", "postgresql")}


class ApiKey(Base):
    """Table of API keys: the hash of the secret, and the settings that administrators change (`umg.v1.KeySettings`)."""

    __tablename__ = "api_keys"
    __table_args__ = (
        # The name of a revoked key is free for the key that replaces it.
        Index(
            "uq_api_keys_live_name",
            "name",
            unique=True,
            info=only_where("revoke_time IS NULL"),
        ),
        Index("uq_api_keys_previous_secret_hash", "previous_secret_hash", unique=True),
        Index("ix_api_keys_project_id", "project_id"),
        Index("ix_api_keys_user_id", "user_id"),
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
    """Patterns of the names of the channels that the key may use, with `*` as wildcard. Empty, or None for keys older
    than this column, allows every channel.
    """
    show_route: Mapped[bool] = mapped_column(Boolean, server_default=false())
    operations: Mapped[list[str] | None] = mapped_column(JSON)
    """Names of the operations that the key may call (`access/key_permissions.py`); empty or None allows all."""
    administrator: Mapped[bool] = mapped_column(Boolean, server_default=false())
    owner: Mapped[str | None] = mapped_column(String(200))
    tags: Mapped[dict[str, str] | None] = mapped_column(JSON)
    previous_secret_hash: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of the secret before the last rotation, in hex; None without a rotation."""
    previous_prefix: Mapped[str | None] = mapped_column(String(16))
    previous_expire_time: Mapped[datetime | None] = mapped_column(UtcTime)
    """Time until which the previous secret is valid too; None without a rotation."""
    tokens_per_minute: Mapped[int | None] = mapped_column(BigInteger)
    concurrent_requests: Mapped[int | None] = mapped_column(BigInteger)
    budget_micro_credits: Mapped[int | None] = mapped_column(BigInteger)
    budget_period: Mapped[str | None] = mapped_column(String(8))
    """`day` or `month` in UTC; "" or None for a budget without a period."""
    last_use_time: Mapped[datetime | None] = mapped_column(UtcTime)
    project_id: Mapped[str | None] = mapped_column(String(40))
    """Account of the kind `project` that the key belongs to; None for a key without a project."""
    user_id: Mapped[str | None] = mapped_column(String(40))
    """Person or service account that owns the key; None for none."""
    budgets: Mapped[list[list[Any]] | None] = mapped_column(JSON)
    """Further budgets as [period, micro-credits, whether soft]; None or empty for none."""


class AccountRow(Base):
    """Table of organisations and projects (`umg.v1.Account`), whose settings hold for all keys below them."""

    __tablename__ = "accounts"
    __table_args__ = (
        Index("uq_accounts_open_name", "kind", "name", unique=True, info=only_where("close_time IS NULL")),
        Index("ix_accounts_organization_id", "organization_id"),
    )

    account_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    """`organization` or `project`."""
    name: Mapped[str] = mapped_column(String(100))
    organization_id: Mapped[str | None] = mapped_column(String(40))
    """Organisation that a project belongs to; None for none."""
    model_patterns: Mapped[list[str]] = mapped_column(JSON)
    channels: Mapped[list[str]] = mapped_column(JSON)
    operations: Mapped[list[str]] = mapped_column(JSON)
    requests_per_minute: Mapped[int | None] = mapped_column(BigInteger)
    tokens_per_minute: Mapped[int | None] = mapped_column(BigInteger)
    concurrent_requests: Mapped[int | None] = mapped_column(BigInteger)
    budgets: Mapped[list[list[Any]]] = mapped_column(JSON)
    """Budgets as [period, micro-credits, whether soft]."""
    tags: Mapped[dict[str, str]] = mapped_column(JSON)
    create_time: Mapped[datetime] = mapped_column(UtcTime)
    close_time: Mapped[datetime | None] = mapped_column(UtcTime)


class ApiKeyChange(Base):
    """Table of the number of the last change of each API key, also of a deleted one. Triggers write it."""

    __tablename__ = "api_key_changes"
    __table_args__ = (Index("uq_api_key_changes_number", "change_number", unique=True),)

    key_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    change_number: Mapped[int] = mapped_column(BigInteger)
    """Greater than the numbers of all earlier changes, of which none becomes visible later."""


@event.listens_for(Base.metadata, "after_create")
def _create_triggers(_: MetaData, connection: Connection, tables: Collection[Table], **_options: object) -> None:
    if ApiKeyChange.__table__ in tables and AccountRow.__table__ in tables:
        dialect = connection.dialect.name
        for statement in (
            *trigger_statements(dialect),
            *parent_trigger_statements(dialect, AccountRow.__tablename__, BELOW_ACCOUNT),
        ):
            connection.exec_driver_sql(statement)


MAX_OBJECT_ID_CHARACTERS = 512


class RetainedRow(Base):
    """Base of tables whose rows belong to a caller and expire; `expiring_rows.py` writes, reads and deletes them."""

    __abstract__ = True

    owner: Mapped[str] = mapped_column(String(64), primary_key=True, sort_order=-1)
    """Id of the only key that may read the row."""
    object_id: Mapped[str] = mapped_column(String(MAX_OBJECT_ID_CHARACTERS), primary_key=True, sort_order=-1)
    expire_time: Mapped[datetime] = mapped_column(UtcTime, sort_order=-1)
    size_bytes: Mapped[int] = mapped_column(BigInteger, sort_order=-1)
    """Approximate size of the row."""


class ResponseRow(RetainedRow):
    """Table of stored responses by id, with the conversation: all messages from the first request to this response."""

    __tablename__ = "responses"
    __table_args__ = (
        Index("ix_responses_expire_time", "expire_time", "size_bytes"),
        Index("ix_responses_owner_expire_time", "owner", "expire_time", "size_bytes"),
    )

    create_time: Mapped[datetime] = mapped_column(UtcTime)
    channel: Mapped[str] = mapped_column(String)
    """Name of the channel that made the response."""
    upstream_response_id: Mapped[str] = mapped_column(String)
    """Id of the response at the provider, "" if the provider does not store it."""
    earlier_count: Mapped[int] = mapped_column(Integer)
    """Number of messages of the conversation before those of the request that led to the response."""
    input_count: Mapped[int] = mapped_column(Integer)
    """Number of messages of the response's request; they follow the earlier ones, and the output follows them."""
    # Large columns last, so that a read of the columns above does not read past them.
    answer: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """`umg.v1.StoredResponse`, zlib-compressed."""
    conversation: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """`umg.v1.GenerateRequest` with all messages and no other fields, zlib-compressed."""


class ThreadRow(RetainedRow):
    """Table of message threads by the id of the last response, with the conversation up to and including it."""

    __tablename__ = "threads"
    __table_args__ = (
        Index("ix_threads_expire_time", "expire_time", "size_bytes"),
        Index("ix_threads_owner_expire_time", "owner", "expire_time", "size_bytes"),
    )

    channel: Mapped[str] = mapped_column(String)
    upstream_response_id: Mapped[str] = mapped_column(String)
    """Id of the response at the provider, "" if the provider does not store the thread."""
    claim_end_time: Mapped[datetime | None] = mapped_column(UtcTime)
    """Time until which a call in flight has the exclusive right to continue the response; None if there is no call."""
    continued: Mapped[bool] = mapped_column(Boolean)
    """Whether a call has continued the response; it can be continued only once."""
    conversation: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """`umg.v1.GenerateRequest`, zlib-compressed; `service/conversations/message_threads.py` describes its fields."""


class ReasoningRow(RetainedRow):
    """Table of data that clients do not send back, by digests. It is the reasoning before a tool call, or the name of
    the channel that made a reasoning state (opaque data that belongs to reasoning) or a provider's object.
    """

    __tablename__ = "reasoning"
    __table_args__ = (
        Index("ix_reasoning_expire_time", "expire_time", "size_bytes"),
        Index("ix_reasoning_owner_expire_time", "owner", "expire_time", "size_bytes"),
    )

    channel: Mapped[str] = mapped_column(String)
    """Name of the channel whose account can read the reasoning state or the object."""
    thoughts: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """Reasoning parts before a tool call, as `umg.v1.Message`; b"" if the row has only a channel."""


class LearnedQuirkRow(RetainedRow):
    """Table of restrictions of providers' models that refusals have shown, by a digest of channel, model and member."""

    __tablename__ = "learned_quirks"
    __table_args__ = (
        Index("ix_learned_quirks_expire_time", "expire_time", "size_bytes"),
        Index("ix_learned_quirks_owner_expire_time", "owner", "expire_time", "size_bytes"),
    )

    learned: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """Restriction with channel, model, protocol and member, as JSON."""


class StoredPromptRow(RetainedRow):
    """Table of beginnings of prompts that providers store, by a digest of the beginning, for all processes."""

    __tablename__ = "stored_prompts"
    __table_args__ = (
        Index("ix_stored_prompts_expire_time", "expire_time", "size_bytes"),
        Index("ix_stored_prompts_owner_expire_time", "owner", "expire_time", "size_bytes"),
    )

    stored: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """Channel, name at the provider and end, as JSON; b"" while a process stores the beginning."""


class BudgetAccount(Base):
    """Table of the micro-credits that were spent of each budget in each period."""

    __tablename__ = "budget_accounts"
    __table_args__ = (Index("ix_budget_accounts_wanted", "wanted_micros"),)

    key_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Account of the budget, as in `budget_accounts.LeaseId`."""
    period_start: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    """Start of the period in seconds since 1970 in UTC; 0 for a budget without a period."""
    spent_micro_credits: Mapped[int] = mapped_column(BigInteger)
    wanted_micros: Mapped[int | None] = mapped_column(BigInteger)
    """Unix microseconds of the last refusal of an amount that unused leases of others would pay for."""


class BudgetLease(Base):
    """Table of leases on budgets: the micro-credits that a process or a video task may spend without a query. They may
    be spent already while the usage records are not in the database.
    """

    __tablename__ = "budget_leases"
    __table_args__ = (Index("ix_budget_leases_directory", "directory"), Index("ix_budget_leases_holder", "holder"))

    key_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    period_start: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    holder: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Unique name of the process, with which its usage records' ids begin, or `task:ID` for a video task."""
    directory: Mapped[str] = mapped_column(String(64))
    """Id of the data directory whose journal has the usage records of the process; "" for a video task."""
    held_micro_credits: Mapped[int] = mapped_column(BigInteger)
    renew_micros: Mapped[int] = mapped_column(BigInteger)
    """Last confirmation by the process, in microseconds since 1970 in UTC; 0 for a video task."""
    booked_micros: Mapped[int | None] = mapped_column(BigInteger)
    """Time at which the amount was booked as spent, since the process confirmed it no longer; None for other leases."""


_OPEN = "next_poll_micros IS NOT NULL"


class MediaTask(Base):
    """Table of video tasks, which `video_task_table.py` reads and writes. Times are microseconds since 1970 in UTC."""

    __tablename__ = "media_tasks"
    __table_args__ = (
        Index("ix_media_tasks_open", "channel", "next_poll_micros", info=only_where(_OPEN)),
        Index("ix_media_tasks_create_micros", "create_micros", "task_id"),
        Index("ix_media_tasks_owner", "owner", "create_micros", "task_id"),
        Index("ix_media_tasks_owner_body_hash", "owner", "body_hash"),
        Index("ix_media_tasks_expire_micros", "expire_micros"),
        Index("uq_media_tasks_idempotency_key", "owner", "idempotency_key", unique=True),
        Index("uq_media_tasks_external_task_id", "owner", "external_task_id", unique=True),
    )

    task_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    owner: Mapped[str] = mapped_column(String(64))
    """Id of the key that submitted the task. No other key may read it."""
    entry: Mapped[int] = mapped_column(Integer)
    """HTTP API by which the task was submitted: number of `umg.v1.VideoEntry`."""
    kind: Mapped[int] = mapped_column(Integer)
    """Kind of the task, for example from a text or an image: number of `umg.v1.VideoTaskKind`."""
    model: Mapped[str] = mapped_column(Text)
    """Model id or alias as the caller sent it."""
    public_model: Mapped[str] = mapped_column(Text)
    """Id of the model that the caller's model id or alias refers to."""
    source_task_id: Mapped[str | None] = mapped_column(String(40))
    """For a remix, id of the task whose video it changes; else None."""
    external_task_id: Mapped[str | None] = mapped_column(String(191))
    idempotency_key: Mapped[str | None] = mapped_column(String(255))
    body_hash: Mapped[str] = mapped_column(String(64))
    """Fingerprint of the request, by which repeated submissions are found: SHA-256 in hex."""
    callback_url: Mapped[str | None] = mapped_column(Text)
    callback_error: Mapped[str | None] = mapped_column(Text)
    """Reason why a notification of the caller was given up; None if none was."""
    request_id: Mapped[str] = mapped_column(Text)
    """Request id of the call that submitted the task."""
    face: Mapped[str] = mapped_column(String(32))
    agent: Mapped[str] = mapped_column(String(32), server_default=text("''"))
    prices: Mapped[bytes] = mapped_column(LargeBinary)
    """`umg.v1.Model` with the prices at the submission and no other fields."""
    budget_period: Mapped[int | None] = mapped_column(BigInteger)
    """Start of the period of the key's own budget that the task is charged to, in seconds since 1970 in UTC; 0 for a
    budget without a period, None if the key has no budget of its own.
    """
    budgets: Mapped[list[list[Any]] | None] = mapped_column(JSON)
    """Further budgets that the task is charged to, as [account, start of the period]; None or empty for none."""
    micro_credits: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[int] = mapped_column(Integer)
    """Number of `umg.v1.VideoTaskState`."""
    progress: Mapped[int | None] = mapped_column(Integer)
    """Percentage that the provider reported last; None if it reports none."""
    channel: Mapped[str] = mapped_column(String(64))
    upstream_task_id: Mapped[str] = mapped_column(Text)
    """Provider's id of the task; "" before the provider has accepted it."""
    upstream_model: Mapped[str] = mapped_column(Text)
    upstream_key_id: Mapped[str] = mapped_column(String(64))
    """Fingerprint of the provider key with which the task was submitted; polls must use the same key."""
    upstream_facts: Mapped[str] = mapped_column(Text)
    """Further data of the provider that polls need, in the form of the provider's protocol; "" if there is none."""
    results: Mapped[str | None] = mapped_column(Text)
    """List of `TaskResult` in JSON; None before success."""
    error: Mapped[bytes | None] = mapped_column(LargeBinary)
    """`umg.v1.VideoTaskError` of a failed task, else None."""
    usage: Mapped[bytes | None] = mapped_column(LargeBinary)
    """`umg.v1.VideoUsage` of a task that has succeeded, else None."""
    lease_owner: Mapped[str] = mapped_column(String(64))
    """Process that submits or polls the task now; "" if there is none."""
    next_poll_micros: Mapped[int | None] = mapped_column(BigInteger)
    """Time of the next poll or, while a process has leased the task, end of the lease; None for no more polls."""
    poll_failures: Mapped[int] = mapped_column(Integer)
    """Number of successive polls without a usable response."""
    stall: Mapped[str | None] = mapped_column(String(128))
    """Condition that all responses since `stall_since_micros` had and that fails the task if it lasts, for example an
    unknown state; None if there is none.
    """
    stall_since_micros: Mapped[int | None] = mapped_column(BigInteger)
    submitter: Mapped[str | None] = mapped_column(String(64))
    """Process that submits the task; None once it, or another one with its data directory, has reported the outcome."""
    details: Mapped[str | None] = mapped_column(Text)
    """`CallDetails` of the submission in JSON, for the usage record; None for tasks of earlier versions."""
    deadline_micros: Mapped[int] = mapped_column(BigInteger)
    """Time at which a task that has not ended fails."""
    create_micros: Mapped[int] = mapped_column(BigInteger)
    update_micros: Mapped[int] = mapped_column(BigInteger)
    start_micros: Mapped[int | None] = mapped_column(BigInteger)
    complete_micros: Mapped[int | None] = mapped_column(BigInteger)
    expire_micros: Mapped[int | None] = mapped_column(BigInteger)
    """Time at which the task is deleted; None before it has ended."""
    request: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """`umg.v1.CreateVideoTaskRequest` without the data of its media."""


class TaskCallback(Base):
    """Table of notifications to callers, one for each change of the state of a video task. It is deleted with the task,
    so that a delivered one can be delivered again.
    """

    __tablename__ = "task_callbacks"
    __table_args__ = (
        Index("ix_task_callbacks_next_attempt_micros", "next_attempt_micros"),
        Index("ix_task_callbacks_task_id", "task_id"),
        Index("ix_task_callbacks_undelivered", "create_micros", info=only_where("deliver_micros IS NULL")),
    )

    callback_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    """Unique id, also sent as `webhook-id`, by which the receiver recognizes a repeated notification."""
    task_id: Mapped[str] = mapped_column(String(40))
    owner: Mapped[str] = mapped_column(String(64))
    url: Mapped[str] = mapped_column(Text)
    attempts: Mapped[int] = mapped_column(Integer)
    lease_owner: Mapped[str] = mapped_column(String(64))
    next_attempt_micros: Mapped[int | None] = mapped_column(BigInteger)
    """Time of the next attempt or, while a process has a lease, end of the lease; None after the last attempt."""
    create_micros: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    """State of the task that it reports: number of `umg.v1.VideoTaskState`; 0 for one of earlier versions."""
    attempt_micros: Mapped[int | None] = mapped_column(BigInteger)
    """End of the last attempt; None before it."""
    deliver_micros: Mapped[int | None] = mapped_column(BigInteger)
    """Time at which the receiver accepted it; None before."""
    status: Mapped[int | None] = mapped_column(Integer)
    """HTTP status of the response to the last attempt; None without one."""
    error: Mapped[str | None] = mapped_column(Text)
    """Reason why the last attempt failed; None if it did not."""
    body: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
