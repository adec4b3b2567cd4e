"""Migration: adds to API keys the operations that they may call, the right to administrate, an owner, tags, and the
former secret, which stays valid for a while after a rotation.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the columns, in a transaction. The key of the first start (`bootstrap`) becomes an administrator's."""
    op.add_column("api_keys", sa.Column("operations", sa.JSON()))
    op.add_column("api_keys", sa.Column("administrator", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("api_keys", sa.Column("owner", sa.String(200)))
    op.add_column("api_keys", sa.Column("tags", sa.JSON()))
    op.add_column("api_keys", sa.Column("previous_secret_hash", sa.String(64)))
    op.add_column("api_keys", sa.Column("previous_prefix", sa.String(16)))
    op.add_column("api_keys", sa.Column("previous_expire_time", sa.DateTime(timezone=True)))
    op.create_index("uq_api_keys_previous_secret_hash", "api_keys", ["previous_secret_hash"], unique=True)
    keys = sa.table("api_keys", sa.column("name", sa.String()), sa.column("administrator", sa.Boolean()))
    op.execute(keys.update().where(keys.c.name == "bootstrap").values(administrator=sa.true()))
