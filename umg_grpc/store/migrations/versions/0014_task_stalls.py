"""Migration: adds the condition in which a video task makes no progress, and its begin."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the columns, in a transaction. They have no values in the rows of a version without them."""
    op.add_column("media_tasks", sa.Column("stall", sa.String(128), nullable=True))
    op.add_column("media_tasks", sa.Column("stall_since_micros", sa.BigInteger(), nullable=True))
