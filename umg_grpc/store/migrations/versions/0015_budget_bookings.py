"""Migration: adds the time at which a budget was wanted by a process that was refused, and the time at which a lease of
a lost process was booked as spent.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the columns and their indexes, in a transaction. The rows of a version without them have no values."""
    op.add_column("budget_accounts", sa.Column("wanted_micros", sa.BigInteger(), nullable=True))
    op.create_index("ix_budget_accounts_wanted", "budget_accounts", ["wanted_micros"])
    op.add_column("budget_leases", sa.Column("booked_micros", sa.BigInteger(), nullable=True))
    op.create_index("ix_budget_leases_holder", "budget_leases", ["holder"])
