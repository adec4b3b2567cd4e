"""Migration: adds organisations and projects, to keys the project, the owner and further budgets, and to video tasks
the further budgets that they are charged to.
"""

import sqlalchemy as sa
from alembic import op

from umg_grpc.store.key_change_triggers import (
    BELOW_ACCOUNT,
    drop_statements,
    parent_trigger_statements,
    trigger_statements,
)

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Create the table without rows, and add the columns, which have no value in the rows of keys and tasks."""
    op.create_table(
        "accounts",
        sa.Column("account_id", sa.String(40), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("organization_id", sa.String(40)),
        sa.Column("model_patterns", sa.JSON(), nullable=False),
        sa.Column("channels", sa.JSON(), nullable=False),
        sa.Column("operations", sa.JSON(), nullable=False),
        sa.Column("requests_per_minute", sa.BigInteger()),
        sa.Column("tokens_per_minute", sa.BigInteger()),
        sa.Column("concurrent_requests", sa.BigInteger()),
        sa.Column("budgets", sa.JSON(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("close_time", sa.DateTime(timezone=True)),
    )
    is_open = sa.text("close_time IS NULL")
    op.create_index(
        "uq_accounts_open_name",
        "accounts",
        ["kind", "name"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    op.create_index("ix_accounts_organization_id", "accounts", ["organization_id"])
    op.add_column("api_keys", sa.Column("project_id", sa.String(40)))
    op.add_column("api_keys", sa.Column("user_id", sa.String(40)))
    op.add_column("api_keys", sa.Column("budgets", sa.JSON()))
    op.create_index("ix_api_keys_project_id", "api_keys", ["project_id"])
    op.create_index("ix_api_keys_user_id", "api_keys", ["user_id"])
    op.add_column("media_tasks", sa.Column("budgets", sa.JSON()))
    dialect = op.get_bind().dialect.name
    for statement in (
        *drop_statements(dialect),
        *trigger_statements(dialect),
        *parent_trigger_statements(dialect, "accounts", BELOW_ACCOUNT),
    ):
        op.execute(statement)
