"""Migration: creates the table of records of refused calls."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Create the table and its indexes, in a transaction."""
    name = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    identifier = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
    op.create_table(
        "refused_calls",
        sa.Column("start_micros", sa.BigInteger(), nullable=False),
        sa.Column("record_id", identifier, nullable=False),
        sa.Column("request_id", name, nullable=False),
        sa.Column("key_id", identifier, nullable=False),
        *(
            sa.Column(column, name, nullable=False)
            for column in ("operation", "method", "face", "agent", "model", "channel")
        ),
        sa.Column("duration_micros", sa.BigInteger(), nullable=False),
        sa.Column("status", name, nullable=False),
        sa.Column("reason", name, nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("record_id", name=op.f("pk_refused_calls")),
    )
    for column in ("start_micros", "request_id"):
        op.create_index(f"ix_refused_calls_{column}", "refused_calls", [column])
