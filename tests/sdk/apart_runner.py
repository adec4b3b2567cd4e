"""Runs the scripts of `apart/`: Python clients whose packages cannot stand beside those of the tests, installed once into
a directory outside of git.
"""

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).parent / "apart"
REQUIREMENTS = SCRIPTS / "requirements.txt"
CACHE = Path(sys.prefix) / "share" / "umg-apart"
INSTALL_SECONDS = 300
RUN_SECONDS = 120


@dataclass(frozen=True)
class Apart:
    """The directory of the packages."""

    packages: Path

    async def run(self, script: str, **request: Any) -> dict[str, Any]:
        """What the script printed, given the request."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-S", str(SCRIPTS / script)),  # -S: without the packages of the tests
            env={**os.environ, "PYTHONPATH": str(self.packages)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(RUN_SECONDS):
                out, err = await process.communicate(json.dumps(request).encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0, err.decode()
        found = json.loads(out)
        assert isinstance(found, dict)
        return found


def installed() -> Apart:
    """The packages of `requirements.txt`, installed by pip where they are not yet; one directory for each version of it.

    Raises RuntimeError with pip's words where they cannot be had.
    """
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode())
    target = CACHE / wanted.hexdigest()[:16]
    if not target.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=CACHE, prefix=".install-"))
        try:
            _install(made)
            made.rename(target)
        except OSError:
            if not target.exists():  # else another process was first
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return Apart(target)


def _install(target: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), "-r", str(REQUIREMENTS)],
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"pip install failed:\n{done.stdout}\n{done.stderr}")
