"""Tokens per minute and concurrent requests of an API key."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, in a transaction. Keys made before have neither limit."""
    op.add_column("api_keys", sa.Column("tokens_per_minute", sa.BigInteger()))
    op.add_column("api_keys", sa.Column("concurrent_requests", sa.BigInteger()))
