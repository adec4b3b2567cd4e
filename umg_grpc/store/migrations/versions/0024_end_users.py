"""Migration: adds to usage records the end user of the call, and creates the totals by end user and day."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

NAME_TYPE = sa.String().with_variant(sa.String(collation="C"), "postgresql")
ID_TYPE = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns and create the table, in a transaction. Records made before have no end user."""
    for table in ("usage_records", "call_records"):
        op.add_column(table, sa.Column("end_user", NAME_TYPE, nullable=False, server_default=sa.text("''")))
    op.create_table(
        "end_user_days",
        sa.Column("start_micros", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("end_user", NAME_TYPE, nullable=False),
        sa.Column("key_id", ID_TYPE, nullable=False),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in ("requests", "failed", "input_tokens", "output_tokens", "micro_credits")
        ),
        sa.PrimaryKeyConstraint("start_micros", "end_user", "key_id", name="pk_end_user_days"),
        postgresql_with={"fillfactor": 70},
    )
    op.create_index("ix_end_user_days_key_id", "end_user_days", ["key_id", "start_micros"])
