"""Migration: creates an index of the usage records by key, by which slow calls of a key with few calls are found."""

from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """Create the index, in a transaction."""
    columns = ["key_id", "start_micros", "record_id", "duration_micros"]
    op.create_index("ix_call_records_key", "call_records", columns)
