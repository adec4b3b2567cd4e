"""Secret by which links to result files and notifications are signed."""

import secrets
from pathlib import Path

from umg_grpc.access.secret_files import create_secret_file

FILE = "link.secret"
SECRET_BYTES = 32


def link_secret(configured: str | None, data: Path) -> str:
    """Return the secret of the config, or that of the data directory, which is made if necessary. Raise OSError."""
    if configured is not None:
        return configured
    file = data / FILE
    create_secret_file(file, secrets.token_urlsafe(SECRET_BYTES))
    return file.read_text().strip()
