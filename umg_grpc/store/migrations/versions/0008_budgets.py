"""Migration: adds budgets to API keys, and creates the tables of spent amounts and of the leases of processes."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the columns and tables, in a transaction. Keys made before have no budget (None)."""
    op.add_column("api_keys", sa.Column("budget_micro_credits", sa.BigInteger()))
    op.add_column("api_keys", sa.Column("budget_period", sa.String(8)))
    op.create_table(
        "budget_accounts",
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("period_start", sa.BigInteger(), nullable=False),
        sa.Column("spent_micro_credits", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", "period_start", name="pk_budget_accounts"),
    )
    op.create_table(
        "budget_leases",
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("period_start", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("directory", sa.String(64), nullable=False),
        sa.Column("held_micro_credits", sa.BigInteger(), nullable=False),
        sa.Column("renew_micros", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", "period_start", "holder", name="pk_budget_leases"),
    )
    op.create_index("ix_budget_leases_directory", "budget_leases", ["directory"])
