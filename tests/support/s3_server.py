"""S3 server for tests, in a process of its own, like object storage that is compatible with S3."""

import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test-key",
    "AWS_SECRET_ACCESS_KEY": "test-secret",
    "AWS_REGION": "us-east-1",
}
"""Credentials, as operators set them."""


@dataclass(frozen=True)
class S3Server:
    endpoint: str

    def create_bucket(self, name: str) -> str:
        urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/{name}", method="PUT"), timeout=10).close()
        return f"s3://{name}"


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run the server on a free port, until the context ends."""
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if found := re.search(rb"Running on (http://127\.0\.0\.1:\d+)", line):
                    break
            else:
                raise RuntimeError("the S3 server did not start")
            threading.Thread(target=process.stderr.read, daemon=True).start()  # its log must not fill the pipe
            yield S3Server(found[1].decode())
        finally:
            process.terminate()
