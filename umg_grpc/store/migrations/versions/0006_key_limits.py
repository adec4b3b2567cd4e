"""Migration: adds to API keys the limits of tokens per minute and of concurrent requests."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the columns to the table of keys, in a transaction. Keys made before have neither limit (None)."""
    op.add_column("api_keys", sa.Column("tokens_per_minute", sa.BigInteger()))
    op.add_column("api_keys", sa.Column("concurrent_requests", sa.BigInteger()))
