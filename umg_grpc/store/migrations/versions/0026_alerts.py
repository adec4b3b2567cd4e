"""Migration: creates the tables of alerts, of their notifications, and of the leases and reports behind them."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Create the tables, in a transaction."""
    op.create_table(
        "alerts",
        sa.Column("alert_id", sa.String(40), nullable=False),
        sa.Column("rule", sa.String(32), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("threshold", sa.Integer(), nullable=False),
        sa.Column("period_start", sa.BigInteger(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("open_micros", sa.BigInteger(), nullable=False),
        sa.Column("close_micros", sa.BigInteger()),
        sa.Column("calm_micros", sa.BigInteger()),
        sa.Column("notify_micros", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("alert_id", name="pk_alerts"),
    )
    is_open = sa.text("close_micros IS NULL")
    op.create_index(
        "uq_alerts_open",
        "alerts",
        ["rule", "object", "threshold", "period_start"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    op.create_index("ix_alerts_open_micros", "alerts", ["open_micros", "alert_id"])
    op.create_index("ix_alerts_close_micros", "alerts", ["close_micros"])
    op.create_table(
        "alert_deliveries",
        sa.Column("notification_id", sa.String(40), nullable=False),
        sa.Column("alert_id", sa.String(40), nullable=False),
        sa.Column("receiver", sa.String(32), nullable=False),
        sa.Column("event", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(64), nullable=False),
        sa.Column("next_attempt_micros", sa.BigInteger()),
        sa.Column("create_micros", sa.BigInteger(), nullable=False),
        sa.Column("deliver_micros", sa.BigInteger()),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("notification_id", name="pk_alert_deliveries"),
    )
    op.create_index("ix_alert_deliveries_next_attempt_micros", "alert_deliveries", ["next_attempt_micros"])
    op.create_index("ix_alert_deliveries_alert_id", "alert_deliveries", ["alert_id"])
    op.create_table(
        "channel_outages",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("process", sa.String(64), nullable=False),
        sa.Column("since_micros", sa.BigInteger(), nullable=False),
        sa.Column("seen_micros", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("channel", "model", "process", name="pk_channel_outages"),
    )
    op.create_table(
        "work_leases",
        sa.Column("work", sa.String(32), nullable=False),
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("end_micros", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("work", name="pk_work_leases"),
    )
