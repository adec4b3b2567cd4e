"""Table of the audit log, which triggers of the database make append-only, for every program."""

from collections.abc import Collection

from sqlalchemy import BigInteger, Boolean, Connection, Index, MetaData, String, Text, event
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.sql.schema import Table

from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.table_definitions import Base

_REFUSAL = "events of the audit log cannot be changed or deleted"
_FUNCTION = f"""
CREATE OR REPLACE FUNCTION umg_refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '{_REFUSAL}';
END $$
"""


class AuditRow(Base):
    """Table of acts of administration (`umg.v1.AuditEvent`)."""

    __tablename__ = "audit_events"
    __table_args__ = (
        Index("ix_audit_events_time_micros", "time_micros", "event_id"),
        Index("ix_audit_events_object_id", "object_id", "time_micros"),
        Index("ix_audit_events_actor_id", "actor_id", "time_micros"),
        Index("ix_audit_events_account_id", "account_id", "time_micros"),
    )

    event_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    time_micros: Mapped[int] = mapped_column(BigInteger)
    """Time of the act in microseconds since 1970 in UTC."""
    actor_kind: Mapped[str] = mapped_column(String(16))
    """Name of the `umg.v1.AuditActorKind` in JSON."""
    actor_id: Mapped[str] = mapped_column(String(64))
    actor_name: Mapped[str] = mapped_column(Text)
    credential: Mapped[str] = mapped_column(Text)
    address: Mapped[str] = mapped_column(Text)
    method: Mapped[str] = mapped_column(Text)
    object_kind: Mapped[str] = mapped_column(String(32))
    object_id: Mapped[str] = mapped_column(String(300))
    object_name: Mapped[str] = mapped_column(Text)
    account_id: Mapped[str] = mapped_column(String(40))
    """Project or organisation of the object; "" for none and for several."""
    refused: Mapped[bool] = mapped_column(Boolean)
    message: Mapped[str] = mapped_column(Text)
    before_json: Mapped[str] = mapped_column(Text)
    after_json: Mapped[str] = mapped_column(Text)
    request_id: Mapped[str] = mapped_column(Text)


def append_only_statements(dialect: str) -> list[str]:
    """Return the statements that create the triggers. `dialect`: SQLAlchemy's name of the kind of database."""
    table = AuditRow.__tablename__
    if dialect == SQLITE_KIND:
        # INSERT OR REPLACE deletes the former row without its trigger
        exists = f"EXISTS (SELECT 1 FROM {table} WHERE event_id = NEW.event_id OR rowid = NEW.rowid)"  # noqa: S608  names of our own
        return [
            f"CREATE TRIGGER umg_{table}_{act.lower()} BEFORE {act} ON {table}{condition}"
            f" BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
            for act, condition in (("UPDATE", ""), ("DELETE", ""), ("INSERT", f" WHEN {exists}"))
        ]
    trigger = f"CREATE TRIGGER umg_{table}_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}"
    return [_FUNCTION, f"{trigger} FOR EACH STATEMENT EXECUTE FUNCTION umg_refuse_audit_change()"]


@event.listens_for(Base.metadata, "after_create")
def _create_triggers(_: MetaData, connection: Connection, tables: Collection[Table], **_options: object) -> None:
    if AuditRow.__table__ in tables:
        for statement in append_only_statements(connection.dialect.name):
            connection.exec_driver_sql(statement)
