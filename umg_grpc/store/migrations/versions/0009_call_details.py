"""Migration: adds a column to usage records: attempts, error message, time to the first output, dropped fields."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column, in a transaction. Records made before have no details (None)."""
    op.add_column("usage_records", sa.Column("details", sa.Text()))
