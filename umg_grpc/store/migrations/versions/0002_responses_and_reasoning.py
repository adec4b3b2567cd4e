"""Migration: creates the tables of stored responses, and of reasoning by the digest of a tool call id."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the tables `responses` and `reasoning`, in a transaction."""
    op.create_table(
        "responses",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("object_id", sa.String(512), nullable=False),
        sa.Column("expire_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("upstream_response_id", sa.String(), nullable=False),
        sa.Column("earlier_count", sa.Integer(), nullable=False),
        sa.Column("input_count", sa.Integer(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.Column("conversation", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "object_id", name="pk_responses"),
    )
    op.create_index("ix_responses_expire_time", "responses", ["expire_time", "size_bytes"])
    op.create_index("ix_responses_owner_expire_time", "responses", ["owner", "expire_time", "size_bytes"])
    op.create_table(
        "reasoning",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("object_id", sa.String(512), nullable=False),
        sa.Column("expire_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("thoughts", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "object_id", name="pk_reasoning"),
    )
    op.create_index("ix_reasoning_expire_time", "reasoning", ["expire_time", "size_bytes"])
    op.create_index("ix_reasoning_owner_expire_time", "reasoning", ["owner", "expire_time", "size_bytes"])
