"""Operations, administration, owner and tags of an API key, and its former secret while a rotation overlaps."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, in a transaction. The bootstrap key is an administrator's."""
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
