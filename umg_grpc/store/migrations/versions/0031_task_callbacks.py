"""Migration: stores the results of notifications about video tasks, and adds the index for lists of tasks."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"

NOT_DELIVERED = sa.text("deliver_micros IS NULL")


def upgrade() -> None:
    """Add the columns, which have no value in the rows of a version without them, and the indexes."""
    op.add_column("task_callbacks", sa.Column("state", sa.Integer(), nullable=False, server_default=sa.text("0")))
    op.add_column("task_callbacks", sa.Column("attempt_micros", sa.BigInteger()))
    op.add_column("task_callbacks", sa.Column("deliver_micros", sa.BigInteger()))
    op.add_column("task_callbacks", sa.Column("status", sa.Integer()))
    op.add_column("task_callbacks", sa.Column("error", sa.Text()))
    op.create_index(
        "ix_task_callbacks_undelivered",
        "task_callbacks",
        ["create_micros"],
        sqlite_where=NOT_DELIVERED,
        postgresql_where=NOT_DELIVERED,
    )
    op.create_index("ix_media_tasks_create_micros", "media_tasks", ["create_micros", "task_id"])
