"""The tables as this version of the code knows them. `migrations/` makes them; a test holds the two together."""

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
    TypeDecorator,
    false,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class UtcTime(TypeDecorator[datetime]):
    """A point in time, in UTC both ways. SQLite keeps no zone, so none but UTC may reach it."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Raises ValueError for a time without a zone, which could mean any point in time."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored time needs a zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


class Base(DeclarativeBase):
    """All tables. Constraints are named, so that a later migration can name them too."""

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
        # A revoked key frees its name, so that the key that replaces it can have it.
        Index(
            "uq_api_keys_live_name",
            "name",
            unique=True,
            sqlite_where=text("revoke_time IS NULL"),
            postgresql_where=text("revoke_time IS NULL"),
        ),
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
    """Names of channels, with `*`; none at all allows each. None where a key is older than this column."""
    show_route: Mapped[bool] = mapped_column(Boolean, server_default=false())


MAX_OBJECT_ID_CHARACTERS = 512


class RetainedRow(Base):
    """What is kept for one caller for a while: `retained.py` writes such rows, finds them and takes them away."""

    __abstract__ = True

    owner: Mapped[str] = mapped_column(String(64), primary_key=True, sort_order=-1)
    """Id of the key whose holder alone may see it."""
    object_id: Mapped[str] = mapped_column(String(MAX_OBJECT_ID_CHARACTERS), primary_key=True, sort_order=-1)
    expire_time: Mapped[datetime] = mapped_column(UtcTime, sort_order=-1)
    size_bytes: Mapped[int] = mapped_column(BigInteger, sort_order=-1)
    """About what the row takes."""


class KeptResponse(RetainedRow):
    """An answer, by its response id, with the conversation that it ends."""

    __tablename__ = "responses"
    __table_args__ = (
        Index("ix_responses_expire_time", "expire_time", "size_bytes"),
        Index("ix_responses_owner_expire_time", "owner", "expire_time", "size_bytes"),
    )

    create_time: Mapped[datetime] = mapped_column(UtcTime)
    channel: Mapped[str] = mapped_column(String)
    """Name of the channel that gave it."""
    upstream_response_id: Mapped[str] = mapped_column(String)
    """Its id at the provider, "" where the provider knows it by none."""
    earlier_count: Mapped[int] = mapped_column(Integer)
    """How many messages of the conversation earlier responses brought."""
    input_count: Mapped[int] = mapped_column(Integer)
    """How many after those its own request brought; what follows is its output."""
    # Last, so that whoever reads the columns above need not read past them.
    answer: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """`umg.v1.StoredResponse`, zlib."""
    conversation: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """`umg.v1.GenerateRequest` that has all messages and nothing else, zlib."""


class KeptThread(RetainedRow):
    """The conversation of a message thread up to one answer, by the id of the answer."""

    __tablename__ = "threads"
    __table_args__ = (
        Index("ix_threads_expire_time", "expire_time", "size_bytes"),
        Index("ix_threads_owner_expire_time", "owner", "expire_time", "size_bytes"),
    )

    channel: Mapped[str] = mapped_column(String)
    """Name of the channel that gave the answer."""
    upstream_response_id: Mapped[str] = mapped_column(String)
    """Id of the answer at the provider, "" where the provider keeps no thread."""
    claim_end_time: Mapped[datetime | None] = mapped_column(UtcTime)
    """Until when a call that continues it may last; None where no call does."""
    continued: Mapped[bool] = mapped_column(Boolean)
    """Whether a call has continued it, after which no other may."""
    conversation: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """`umg.v1.GenerateRequest`, zlib; `service/threads.py` says what is in it."""


class KeptReasoning(RetainedRow):
    """What a model thought before a tool call, or whose a reasoning state or an object of a provider's account is, by a
    digest of its id or of the state.
    """

    __tablename__ = "reasoning"
    __table_args__ = (
        Index("ix_reasoning_expire_time", "expire_time", "size_bytes"),
        Index("ix_reasoning_owner_expire_time", "owner", "expire_time", "size_bytes"),
    )

    channel: Mapped[str] = mapped_column(String)
    """Name of the channel whose account can read it."""
    thoughts: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """`umg.v1.Message`, b"" for a channel alone; `service/restoring.py` says what is in it."""
