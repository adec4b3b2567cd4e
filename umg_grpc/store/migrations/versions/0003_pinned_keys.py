"""Allowed channels of an API key, and whether its responses name the channel that served them."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, in a transaction. The bootstrap key's responses name the channel."""
    op.add_column("api_keys", sa.Column("channels", sa.JSON()))
    op.add_column("api_keys", sa.Column("show_route", sa.Boolean(), nullable=False, server_default=sa.false()))
    keys = sa.table("api_keys", sa.column("name", sa.String()), sa.column("show_route", sa.Boolean()))
    op.execute(keys.update().where(keys.c.name == "bootstrap").values(show_route=sa.true()))
