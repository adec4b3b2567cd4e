"""Migration: adds to usage records the numbers of images, videos and seconds of video, and the tokens of images."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

ADDED_COLUMNS = ("images", "video_seconds", "videos", "image_input_tokens", "image_output_tokens")


def upgrade() -> None:
    """Add the columns, in a transaction. Records made before have 0 of each unit."""
    for name in ADDED_COLUMNS:
        op.add_column("usage_records", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
