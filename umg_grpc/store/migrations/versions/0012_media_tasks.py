"""Migration: creates the tables of video tasks, and of notifications to their callers."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

OPEN_TASKS = sa.text("next_poll_micros IS NOT NULL")


def upgrade() -> None:
    """Create the tables `media_tasks` and `task_callbacks`, in a transaction."""
    _create_tasks()
    op.create_index(
        "ix_media_tasks_open",
        "media_tasks",
        ["channel", "next_poll_micros"],
        sqlite_where=OPEN_TASKS,
        postgresql_where=OPEN_TASKS,
    )
    op.create_index("ix_media_tasks_owner", "media_tasks", ["owner", "create_micros", "task_id"])
    op.create_index("ix_media_tasks_owner_body_hash", "media_tasks", ["owner", "body_hash"])
    op.create_index("ix_media_tasks_expire_micros", "media_tasks", ["expire_micros"])
    for column in ("idempotency_key", "external_task_id"):
        op.create_index(f"uq_media_tasks_{column}", "media_tasks", ["owner", column], unique=True)
    op.create_table(
        "task_callbacks",
        sa.Column("callback_id", sa.String(40), nullable=False),
        sa.Column("task_id", sa.String(40), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(64), nullable=False),
        sa.Column("next_attempt_micros", sa.BigInteger()),
        sa.Column("create_micros", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("callback_id", name="pk_task_callbacks"),
    )
    op.create_index("ix_task_callbacks_next_attempt_micros", "task_callbacks", ["next_attempt_micros"])
    op.create_index("ix_task_callbacks_task_id", "task_callbacks", ["task_id"])


def _create_tasks() -> None:
    op.create_table(
        "media_tasks",
        sa.Column("task_id", sa.String(40), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("entry", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Integer(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("public_model", sa.Text(), nullable=False),
        sa.Column("source_task_id", sa.String(40)),
        sa.Column("external_task_id", sa.String(191)),
        sa.Column("idempotency_key", sa.String(255)),
        sa.Column("body_hash", sa.String(64), nullable=False),
        sa.Column("callback_url", sa.Text()),
        sa.Column("callback_error", sa.Text()),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("face", sa.String(32), nullable=False),
        sa.Column("prices", sa.LargeBinary(), nullable=False),
        sa.Column("budget_period", sa.BigInteger()),
        sa.Column("micro_credits", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Integer(), nullable=False),
        sa.Column("progress", sa.Integer()),
        sa.Column("channel", sa.String(64), nullable=False),
        sa.Column("upstream_task_id", sa.Text(), nullable=False),
        sa.Column("upstream_model", sa.Text(), nullable=False),
        sa.Column("upstream_key_id", sa.String(64), nullable=False),
        sa.Column("upstream_facts", sa.Text(), nullable=False),
        sa.Column("results", sa.Text()),
        sa.Column("error", sa.LargeBinary()),
        sa.Column("usage", sa.LargeBinary()),
        sa.Column("lease_owner", sa.String(64), nullable=False),
        sa.Column("next_poll_micros", sa.BigInteger()),
        sa.Column("poll_failures", sa.Integer(), nullable=False),
        sa.Column("deadline_micros", sa.BigInteger(), nullable=False),
        sa.Column("create_micros", sa.BigInteger(), nullable=False),
        sa.Column("update_micros", sa.BigInteger(), nullable=False),
        sa.Column("start_micros", sa.BigInteger()),
        sa.Column("complete_micros", sa.BigInteger()),
        sa.Column("expire_micros", sa.BigInteger()),
        sa.Column("request", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("task_id", name="pk_media_tasks"),
    )
