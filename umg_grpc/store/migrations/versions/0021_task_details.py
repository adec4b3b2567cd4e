"""Migration: adds to each video task the details of the call that submitted it."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Add the column. It has no value in the rows of a version without it."""
    op.add_column("media_tasks", sa.Column("details", sa.Text(), nullable=True))
