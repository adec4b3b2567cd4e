"""Table of the sessions of people, and of the codes that open one."""

from datetime import datetime

from sqlalchemy import Boolean, Index, String, Update, update
from sqlalchemy.orm import Mapped, mapped_column

from umg_grpc.store.table_definitions import Base, UtcTime


class SessionRow(Base):
    """Table of sessions. The row of a code is deleted by the sign-in that uses it."""

    __tablename__ = "sessions"
    __table_args__ = (Index("ix_sessions_user_id", "user_id"), Index("ix_sessions_expire_time", "expire_time"))

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    """SHA-256 of the token or code, which is not stored."""
    session_id: Mapped[str] = mapped_column(String(40), unique=True)
    is_code: Mapped[bool] = mapped_column(Boolean)
    """Whether the row is a code that opens one session, and no session."""
    user_id: Mapped[str | None] = mapped_column(String(40))
    """User that signed in; None for a session that a key opened."""
    key_id: Mapped[str | None] = mapped_column(String(40))
    """Key that opened the session; None for a user."""
    address: Mapped[str] = mapped_column(String(64))
    """Address of the client at the sign-in."""
    agent: Mapped[str] = mapped_column(String(200))
    """Program of the client, as it names itself."""
    create_time: Mapped[datetime] = mapped_column(UtcTime)
    last_use_time: Mapped[datetime] = mapped_column(UtcTime)
    expire_time: Mapped[datetime] = mapped_column(UtcTime)
    """Time at which the session ends, however it is used."""


def end_sessions_of_key(key_id: str, time: datetime) -> Update:
    """Return the statement by which the sessions that a key has opened end at a time, unless they end before."""
    is_meant = (SessionRow.key_id == key_id) & (SessionRow.expire_time > time)
    return update(SessionRow).where(is_meant).values(expire_time=time)
