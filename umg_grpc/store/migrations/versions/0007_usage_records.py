"""Migration: creates the table of usage records, one for each call."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the table, in a transaction."""
    op.create_table(
        "usage_records",
        sa.Column("record_id", sa.String(64), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("operation", sa.String(), nullable=False),
        sa.Column("method", sa.String(), nullable=False),
        sa.Column("face", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("start_micros", sa.BigInteger(), nullable=False),
        sa.Column("duration_micros", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("cached", sa.Boolean(), nullable=False),
        sa.Column("estimated", sa.Boolean(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cache_read_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cache_write_tokens", sa.BigInteger(), nullable=False),
        sa.Column("long_cache_write_tokens", sa.BigInteger(), nullable=False),
        sa.Column("audio_input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("reasoning_tokens", sa.BigInteger(), nullable=False),
        sa.Column("audio_output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("searches", sa.BigInteger(), nullable=False),
        sa.Column("micro_credits", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("record_id", name="pk_usage_records"),
    )
    op.create_index("ix_usage_records_start_micros", "usage_records", ["start_micros"])
    op.create_index("ix_usage_records_request_id", "usage_records", ["request_id"])
