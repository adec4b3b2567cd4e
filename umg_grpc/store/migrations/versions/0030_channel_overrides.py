"""Migration: adds the overrides of channels, and the checks of channels that succeeded."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Create the tables without rows."""
    op.create_table(
        "channel_overrides",
        sa.Column("channel", sa.String(64), primary_key=True),
        sa.Column("setting", sa.String(16), primary_key=True),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.String(64), nullable=False),
        sa.Column("actor_name", sa.Text(), nullable=False),
        sa.Column("update_micros", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "channel_checks",
        sa.Column("channel", sa.String(64), primary_key=True),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("check_micros", sa.BigInteger(), nullable=False),
    )
