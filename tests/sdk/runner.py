"""Runner of clients whose packages conflict with those of the tests: the packages are installed once into a directory
outside of git, and each script is a process that reads one request and prints one answer.
"""

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

INSTALL_SECONDS = 900
RUN_SECONDS = 300

Installed = TypeVar("Installed")


async def run(
    command: Sequence[str], request: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Run the script with the request, and return its output."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
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


def packages(name: str, wanted: bytes, install: Callable[[Path], None]) -> Path:
    """Return the directory of the packages that `wanted` pins, made by `install` if it is missing; one per content."""
    cache = Path(sys.prefix) / "share" / name
    target = cache / hashlib.sha256(wanted).hexdigest()[:16]
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=cache, prefix=".install-"))
        try:
            install(made)
            made.rename(target)
        except OSError:
            if not target.exists():  # otherwise another process was first
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return target


def pip_install(python: str, lock: Path) -> list[str]:
    """Return the command that installs exactly the versions that `lock` pins. Few of their modules are imported, so they
    are compiled at that time.
    """
    return [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--require-hashes",
        "--no-deps",
        "--requirement",
        str(lock),
    ]


def installer(command: Sequence[str], **options: Any) -> None:
    """Run the installing command. Raise RuntimeError with its output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False, **options)
    if done.returncode:
        raise RuntimeError(f"the packages could not be installed:\n{done.stdout}\n{done.stderr}")


def installed_or_skipped(installed: Callable[[], Installed]) -> Installed:
    """Return the installed packages. If they cannot be installed, fail in CI, and skip elsewhere (no network)."""
    try:
        return installed()
    except RuntimeError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(str(error))
