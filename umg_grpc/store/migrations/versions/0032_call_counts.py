"""Migration: adds to usage records the kind of the failure and the time to the first byte, and to totals the cached
calls; creates indexes to search records, and the tables of numbers of calls by duration and by failure.

Calls of earlier versions are in none of these tables: their times to the first byte are in the details alone.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.types import TypeEngine

revision = "0032"
down_revision = "0031"

NAME_TYPE = sa.String().with_variant(sa.String(collation="C"), "postgresql")
ID_TYPE = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
TOTAL_TABLES = (
    *("usage_minutes", "usage_hours", "usage_days", "usage_months"),
    *("usage_key_hours", "usage_key_days", "usage_key_months"),
    *("usage_agent_hours", "usage_agent_days", "usage_agent_months"),
    *("usage_key_agent_hours", "usage_key_agent_days", "usage_key_agent_months"),
)
GROUP_COLUMNS = ("model", "channel", "agent")
STEP_COLUMNS = ("start_micros", "measure", "step")
COUNT_TABLES = {
    "call_duration_minutes": STEP_COLUMNS,
    "call_duration_hours": STEP_COLUMNS,
    "call_duration_days": STEP_COLUMNS,
    "call_duration_program_days": (*STEP_COLUMNS, *GROUP_COLUMNS),
    "call_duration_key_days": ("key_id", *STEP_COLUMNS, *GROUP_COLUMNS),
    "call_failure_hours": ("start_micros", "key_id", *GROUP_COLUMNS, "reason", "failure_kind"),
}
FOUND_COLUMNS = ("key_id", "model", "channel", "operation", "agent")


def upgrade() -> None:
    """Add the columns, and create the tables without rows and the indexes, in a transaction."""
    for table in ("usage_records", "call_records"):
        op.add_column(table, sa.Column("failure_kind", NAME_TYPE, nullable=False, server_default=sa.text("''")))
        op.add_column(table, sa.Column("first_byte_micros", sa.BigInteger()))
    for table in TOTAL_TABLES:
        op.add_column(table, sa.Column("cached", sa.BigInteger()))
    kinds: dict[str, TypeEngine[Any]] = {
        "start_micros": sa.BigInteger(),
        "key_id": ID_TYPE,
        "measure": sa.SmallInteger(),
        "step": sa.SmallInteger(),
    }
    for table, keys in COUNT_TABLES.items():
        op.create_table(
            table,
            *(sa.Column(key, kinds.get(key, NAME_TYPE), nullable=False, autoincrement=False) for key in keys),
            sa.Column("calls", sa.BigInteger(), nullable=False),
            sa.PrimaryKeyConstraint(*keys, name=f"pk_{table}"),
            postgresql_with={"fillfactor": 70},
            sqlite_with_rowid=False,
        )
    for name in ("model", "channel"):
        op.create_index(f"ix_usage_hours_{name}", "usage_hours", [name, "start_micros"])
    order = ("start_micros", "record_id")
    op.drop_index("ix_call_records_request_id", "call_records")
    op.create_index("ix_call_records_request_id", "call_records", ["request_id", *order])
    facts = (*FOUND_COLUMNS, "status", "duration_micros", "first_byte_micros", "micro_credits")
    op.create_index("ix_call_records_facts", "call_records", [*order, *facts])
    _create_partial_index(
        "failed", [*order, "reason", "failure_kind", *FOUND_COLUMNS, "status", "duration_micros"], "status <> 'OK'"
    )
    _create_partial_index("end_user", ["end_user", *order], "end_user <> ''")


def _create_partial_index(name: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(f"ix_call_records_{name}", "call_records", columns, sqlite_where=where, postgresql_where=where)
