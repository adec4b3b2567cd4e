"""Migration: creates the table of message threads, which callers continue by sending only new messages."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table, in a transaction."""
    op.create_table(
        "threads",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("object_id", sa.String(512), nullable=False),
        sa.Column("expire_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("upstream_response_id", sa.String(), nullable=False),
        sa.Column("claim_end_time", sa.DateTime(timezone=True)),
        sa.Column("continued", sa.Boolean(), nullable=False),
        sa.Column("conversation", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "object_id", name="pk_threads"),
    )
    op.create_index("ix_threads_expire_time", "threads", ["expire_time", "size_bytes"])
    op.create_index("ix_threads_owner_expire_time", "threads", ["owner", "expire_time", "size_bytes"])
