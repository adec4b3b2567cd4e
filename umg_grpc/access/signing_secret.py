"""Secret with which the gateway signs links to result files and notifications to callers."""

import secrets
from pathlib import Path

from umg_grpc.access.secret_files import create_secret_file

SIGNING_KEY_FILE = "link.secret"
SECRET_BYTES = 32


def link_secret(configured: str | None, data: Path) -> str:
    """Return the configured secret, or else the data directory's, created if missing. Raise OSError for its file."""
    if configured is not None:
        return configured
    file = data / SIGNING_KEY_FILE
    create_secret_file(file, secrets.token_urlsafe(SECRET_BYTES))
    return file.read_text().strip()
