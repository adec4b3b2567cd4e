"""Migration: adds the numbers of the last changes of API keys, and the triggers that record them."""

import sqlalchemy as sa
from alembic import op

from umg_grpc.store.key_change_triggers import FIRST_WATCHED_COLUMNS, trigger_statements

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Create the table without rows, since each process loads all keys when it starts, and the triggers."""
    op.create_table(
        "api_key_changes",
        sa.Column("key_id", sa.String(40), primary_key=True),
        sa.Column("change_number", sa.BigInteger(), nullable=False),
    )
    op.create_index("uq_api_key_changes_number", "api_key_changes", ["change_number"], unique=True)
    for statement in trigger_statements(op.get_bind().dialect.name, FIRST_WATCHED_COLUMNS):
        op.execute(statement)
