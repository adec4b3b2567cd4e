"""Migration: adds to usage records and video tasks the program of the call, and creates the totals by program.

The new totals have the calls of known programs alone. Other calls, those of earlier versions among them, are the
difference to the totals of all calls, so that no total is written again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

NAME_TYPE = sa.String().with_variant(sa.String(collation="C"), "postgresql")
ID_TYPE = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
GROUP_COLUMNS = ("model", "operation", "channel", "agent")
TIME_BUCKETS = ("hours", "days", "months")
SUM_COLUMNS = (
    *("input_tokens", "cache_read_tokens", "cache_write_tokens", "long_cache_write_tokens", "audio_input_tokens"),
    *("output_tokens", "reasoning_tokens", "audio_output_tokens", "searches"),
    *("images", "video_seconds", "videos", "image_input_tokens", "image_output_tokens", "micro_credits"),
)


def upgrade() -> None:
    """Add the columns and create the tables, in a transaction. Records made before have no program."""
    for table, kind in (("usage_records", NAME_TYPE), ("call_records", NAME_TYPE), ("media_tasks", sa.String(32))):
        op.add_column(table, sa.Column("agent", kind, nullable=False, server_default=sa.text("''")))
    for table, group in (
        *((f"usage_agent_{name}", GROUP_COLUMNS) for name in TIME_BUCKETS),
        *((f"usage_key_agent_{name}", ("key_id", *GROUP_COLUMNS)) for name in TIME_BUCKETS),
    ):
        op.create_table(
            table,
            sa.Column("start_micros", sa.BigInteger(), nullable=False, autoincrement=False),
            *(sa.Column(name, ID_TYPE if name == "key_id" else NAME_TYPE, nullable=False) for name in group),
            *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("requests", "failed")),
            *(sa.Column(name, sa.BigInteger()) for name in SUM_COLUMNS),
            sa.PrimaryKeyConstraint("start_micros", *group, name=f"pk_{table}"),
            postgresql_with={"fillfactor": 70},
        )
        if "key_id" in group:
            op.create_index(f"ix_{table}_key_id", table, ["key_id", "start_micros"])
