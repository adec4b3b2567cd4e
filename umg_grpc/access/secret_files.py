"""Files with a secret in the data directory, which all processes with this directory share."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

BOOTSTRAP_FILE = "bootstrap.key"


def create_secret_file(file: Path, secret: str) -> None:
    """Write the secret to a new file, unless the file exists: concurrent processes all read the same secret from it."""
    if file.exists():
        return
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # mode 0600
    try:
        with os.fdopen(descriptor, "w") as stream:
            stream.write(secret + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):
            os.link(temporary, file)  # atomic, and never replaces an existing file
    finally:
        Path(temporary).unlink()
