"""Migration: adds the prices of models that administrators set."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Create the table without rows."""
    op.create_table(
        "model_prices",
        sa.Column("model", sa.String(256), primary_key=True),
        sa.Column("channel", sa.String(64), primary_key=True),
        sa.Column("prices", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.String(64), nullable=False),
        sa.Column("actor_name", sa.Text(), nullable=False),
        sa.Column("update_micros", sa.BigInteger(), nullable=False),
    )
