"""Migration: adds to API keys the time of their last use."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the column, in a transaction. It is None until the next use of a key."""
    op.add_column("api_keys", sa.Column("last_use_time", sa.DateTime(timezone=True)))
