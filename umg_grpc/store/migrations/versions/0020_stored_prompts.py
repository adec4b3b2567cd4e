"""Migration: creates the table of beginnings of prompts that providers store."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Create the table, in a transaction."""
    op.create_table(
        "stored_prompts",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("object_id", sa.String(512), nullable=False),
        sa.Column("expire_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("stored", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "object_id", name="pk_stored_prompts"),
    )
    op.create_index("ix_stored_prompts_expire_time", "stored_prompts", ["expire_time", "size_bytes"])
    op.create_index("ix_stored_prompts_owner_expire_time", "stored_prompts", ["owner", "expire_time", "size_bytes"])
