"""Time of the last use of a key."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, in a transaction. Keys have no uses before it."""
    op.add_column("api_keys", sa.Column("last_use_time", sa.DateTime(timezone=True)))
