"""Migration: creates the table of API keys. Applied migrations must not change, so they define their column types."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create `api_keys`, in a transaction. There is no downgrade: an older version rejects a newer database."""
    op.create_table(
        "api_keys",
        sa.Column("key_id", sa.String(40), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("prefix", sa.String(16), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("model_patterns", sa.JSON(), nullable=False),
        sa.Column("requests_per_minute", sa.BigInteger()),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expire_time", sa.DateTime(timezone=True)),
        sa.Column("revoke_time", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("key_id", name="pk_api_keys"),
        sa.UniqueConstraint("secret_hash", name="uq_api_keys_secret_hash"),
    )
    live = sa.text("revoke_time IS NULL")
    op.create_index(
        "uq_api_keys_live_name", "api_keys", ["name"], unique=True, sqlite_where=live, postgresql_where=live
    )
