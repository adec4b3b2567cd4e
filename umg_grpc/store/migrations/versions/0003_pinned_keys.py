"""Migration: adds to API keys the channels that they may use, and whether responses to them name the channel."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the columns `channels` (None: all) and `show_route` to the table of keys, in a transaction. Responses to the
    key that the first start has created (`bootstrap`) name the channel, responses to other keys do not.
    """
    op.add_column("api_keys", sa.Column("channels", sa.JSON()))
    op.add_column("api_keys", sa.Column("show_route", sa.Boolean(), nullable=False, server_default=sa.false()))
    keys = sa.table("api_keys", sa.column("name", sa.String()), sa.column("show_route", sa.Boolean()))
    op.execute(keys.update().where(keys.c.name == "bootstrap").values(show_route=sa.true()))
