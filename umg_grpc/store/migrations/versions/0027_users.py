"""Migration: adds people and service accounts, and their roles in accounts."""

import sqlalchemy as sa
from alembic import op

from umg_grpc.store.key_change_triggers import parent_trigger_statements

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Create the tables without rows."""
    op.create_table(
        "users",
        sa.Column("user_id", sa.String(40), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("email", sa.String(254)),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("issuer", sa.String(300)),
        sa.Column("subject", sa.String(300)),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_sign_in_time", sa.DateTime(timezone=True)),
    )
    op.create_index("uq_users_email", "users", ["email"], unique=True)
    op.create_index("uq_users_issuer_subject", "users", ["issuer", "subject"], unique=True)
    op.create_index("ix_users_name", "users", ["name", "user_id"])
    op.create_table(
        "memberships",
        sa.Column("user_id", sa.String(40), primary_key=True),
        sa.Column("account_id", sa.String(40), primary_key=True),
        sa.Column("from_issuer", sa.Boolean(), primary_key=True),
        sa.Column("role", sa.String(16), nullable=False),
    )
    op.create_index("ix_memberships_account_id", "memberships", ["account_id"])
    for statement in parent_trigger_statements(op.get_bind().dialect.name, "users", "user_id = {row}.user_id"):
        op.execute(statement)
