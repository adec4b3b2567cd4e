"""Migration: creates the table of restrictions of providers' models that refusals have shown."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Create the table, in a transaction."""
    op.create_table(
        "learned_quirks",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("object_id", sa.String(512), nullable=False),
        sa.Column("expire_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("learned", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "object_id", name="pk_learned_quirks"),
    )
    op.create_index("ix_learned_quirks_expire_time", "learned_quirks", ["expire_time", "size_bytes"])
    op.create_index("ix_learned_quirks_owner_expire_time", "learned_quirks", ["owner", "expire_time", "size_bytes"])
