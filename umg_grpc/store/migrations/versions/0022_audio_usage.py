"""Migration: adds spoken characters and seconds of transcribed audio to usage records and totals."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

ADDED_COLUMNS = ("characters", "audio_seconds")
RECORD_TABLES = ("usage_records", "call_records")
TOTAL_TABLES = (
    *("usage_minutes", "usage_hours", "usage_days", "usage_months"),
    *("usage_key_hours", "usage_key_days", "usage_key_months"),
    *("usage_agent_hours", "usage_agent_days", "usage_agent_months"),
    *("usage_key_agent_hours", "usage_key_agent_days", "usage_key_agent_months"),
)


def upgrade() -> None:
    """Add the columns, in a transaction. Records and totals made before have 0 of each unit."""
    for name in ADDED_COLUMNS:
        for table in RECORD_TABLES:
            op.add_column(table, sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
        for table in TOTAL_TABLES:
            op.add_column(table, sa.Column(name, sa.BigInteger()))
