"""Migration: adds the audit log, which can only grow."""

import sqlalchemy as sa
from alembic import op

from umg_grpc.store.audit_table import append_only_statements

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Create the table without rows, and its triggers."""
    op.create_table(
        "audit_events",
        sa.Column("event_id", sa.String(40), primary_key=True),
        sa.Column("time_micros", sa.BigInteger(), nullable=False),
        sa.Column("actor_kind", sa.String(16), nullable=False),
        sa.Column("actor_id", sa.String(64), nullable=False),
        sa.Column("actor_name", sa.Text(), nullable=False),
        sa.Column("credential", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("object_kind", sa.String(32), nullable=False),
        sa.Column("object_id", sa.String(300), nullable=False),
        sa.Column("object_name", sa.Text(), nullable=False),
        sa.Column("account_id", sa.String(40), nullable=False),
        sa.Column("refused", sa.Boolean(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("before_json", sa.Text(), nullable=False),
        sa.Column("after_json", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
    )
    op.create_index("ix_audit_events_time_micros", "audit_events", ["time_micros", "event_id"])
    op.create_index("ix_audit_events_object_id", "audit_events", ["object_id", "time_micros"])
    op.create_index("ix_audit_events_actor_id", "audit_events", ["actor_id", "time_micros"])
    op.create_index("ix_audit_events_account_id", "audit_events", ["account_id", "time_micros"])
    for statement in append_only_statements(op.get_bind().dialect.name):
        op.execute(statement)
