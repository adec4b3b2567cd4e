"""Migration: creates the table of usage records that PostgreSQL partitions by day, and the tables of totals.

The records of the earlier table are moved in the background (`usage_record_migration.py`): to copy millions of them
here would delay the start, and an earlier version that still runs writes to that table.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

NAME_TYPE = sa.String().with_variant(sa.String(collation="C"), "postgresql")
ID_TYPE = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
FIRST_COUNTS = (
    *("input_tokens", "cache_read_tokens", "cache_write_tokens", "long_cache_write_tokens", "audio_input_tokens"),
    *("output_tokens", "reasoning_tokens", "audio_output_tokens", "searches"),
)
MEDIA_COUNTS = ("images", "video_seconds", "videos", "image_input_tokens", "image_output_tokens")
TOTAL_TABLES = {
    "usage_minutes": ("model", "operation", "channel"),
    "usage_hours": ("model", "operation", "channel"),
    "usage_days": ("model", "operation", "channel"),
    "usage_months": ("model", "operation", "channel"),
    "usage_key_hours": ("key_id", "model", "operation", "channel"),
    "usage_key_days": ("key_id", "model", "operation", "channel"),
    "usage_key_months": ("key_id", "model", "operation", "channel"),
}


def upgrade() -> None:
    """Create the tables, in a transaction."""
    op.create_table(
        "call_records",
        sa.Column("start_micros", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("record_id", ID_TYPE, nullable=False),
        sa.Column("request_id", NAME_TYPE, nullable=False),
        sa.Column("key_id", ID_TYPE, nullable=False),
        *(sa.Column(name, NAME_TYPE, nullable=False) for name in ("operation", "method", "face", "model", "channel")),
        sa.Column("duration_micros", sa.BigInteger(), nullable=False),
        sa.Column("status", NAME_TYPE, nullable=False),
        sa.Column("reason", NAME_TYPE, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("cached", sa.Boolean(), nullable=False),
        sa.Column("estimated", sa.Boolean(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in FIRST_COUNTS),
        sa.Column("micro_credits", sa.BigInteger(), nullable=False),
        sa.Column("details", sa.Text()),
        *(sa.Column(name, sa.BigInteger(), nullable=False, server_default="0") for name in MEDIA_COUNTS),
        sa.PrimaryKeyConstraint("start_micros", "record_id", name="pk_call_records"),
        postgresql_partition_by="RANGE (start_micros)",
    )
    op.create_index("ix_call_records_request_id", "call_records", ["request_id"])
    for table, columns in TOTAL_TABLES.items():
        op.create_table(
            table,
            sa.Column("start_micros", sa.BigInteger(), nullable=False, autoincrement=False),
            *(sa.Column(name, ID_TYPE if name == "key_id" else NAME_TYPE, nullable=False) for name in columns),
            *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("requests", "failed")),
            *(sa.Column(name, sa.BigInteger()) for name in (*FIRST_COUNTS, *MEDIA_COUNTS, "micro_credits")),
            sa.PrimaryKeyConstraint("start_micros", *columns, name=f"pk_{table}"),
            postgresql_with={"fillfactor": 70},
        )
        if "key_id" in columns:
            op.create_index(f"ix_{table}_key_id", table, ["key_id", "start_micros"])
