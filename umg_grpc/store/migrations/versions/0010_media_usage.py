"""Counts of images and videos, and of the tokens of images, in usage records."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

COLUMNS = ("images", "video_seconds", "videos", "image_input_tokens", "image_output_tokens")


def upgrade() -> None:
    """Add the columns, in a transaction. Records made before have none of these units."""
    for name in COLUMNS:
        op.add_column("usage_records", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
