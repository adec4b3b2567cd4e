"""Migration: adds the sessions of people."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Create the table without rows."""
    op.create_table(
        "sessions",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        sa.Column("session_id", sa.String(40), nullable=False, unique=True),
        sa.Column("is_code", sa.Boolean(), nullable=False),
        sa.Column("user_id", sa.String(40)),
        sa.Column("key_id", sa.String(40)),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("agent", sa.String(200), nullable=False),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_use_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expire_time", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_sessions_user_id", "sessions", ["user_id"])
    op.create_index("ix_sessions_expire_time", "sessions", ["expire_time"])
