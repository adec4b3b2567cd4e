"""Migration: adds to each video task the process whose report about its submission is awaited."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Add the column, without a value for tasks of earlier versions: they are looked for at their providers at once."""
    op.add_column("media_tasks", sa.Column("submitter", sa.String(64), nullable=True))
