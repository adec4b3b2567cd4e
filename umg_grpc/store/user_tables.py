"""Tables of people and service accounts, and of their roles in accounts."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Boolean, Connection, Index, MetaData, String, event
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.sql.schema import Table

from umg_grpc.store.key_change_triggers import parent_trigger_statements
from umg_grpc.store.table_definitions import Base, UtcTime

OWNED_BY_USER = "user_id = {row}.user_id"
"""Condition of the keys of a user, the row of a trigger of the table of users."""


class UserRow(Base):
    """Table of people and service accounts (`umg.v1.User`)."""

    __tablename__ = "users"
    __table_args__ = (
        Index("uq_users_email", "email", unique=True),
        Index("uq_users_issuer_subject", "issuer", "subject", unique=True),
        Index("ix_users_name", "name", "user_id"),
    )

    user_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    """`person` or `service_account`."""
    name: Mapped[str] = mapped_column(String(100))
    email: Mapped[str | None] = mapped_column(String(254))
    """E-mail address in lower case; None for none."""
    disabled: Mapped[bool] = mapped_column(Boolean)
    issuer: Mapped[str | None] = mapped_column(String(300))
    """Issuer that signs the person in; None before the first sign-in, and for a service account."""
    subject: Mapped[str | None] = mapped_column(String(300))
    create_time: Mapped[datetime] = mapped_column(UtcTime)
    last_sign_in_time: Mapped[datetime | None] = mapped_column(UtcTime)


class MembershipRow(Base):
    """Table of the roles of users in accounts."""

    __tablename__ = "memberships"
    __table_args__ = (Index("ix_memberships_account_id", "account_id"),)

    user_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    account_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    """Organisation or project; "" for the whole gateway."""
    from_issuer: Mapped[bool] = mapped_column(Boolean, primary_key=True)
    """Whether the role comes from a group at the issuer, by the last sign-in."""
    role: Mapped[str] = mapped_column(String(16))


@event.listens_for(Base.metadata, "after_create")
def _create_trigger(_: MetaData, connection: Connection, tables: Collection[Table], **_options: object) -> None:
    if UserRow.__table__ in tables:
        for statement in parent_trigger_statements(connection.dialect.name, UserRow.__tablename__, OWNED_BY_USER):
            connection.exec_driver_sql(statement)
