"""Clients that cannot stand beside the tests: their packages, installed once into a directory outside of git, and their
scripts, each a process that reads one request and prints one answer.
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

INSTALL_SECONDS = 300
RUN_SECONDS = 120

Installed = TypeVar("Installed")


async def run(
    command: Sequence[str], request: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """What the script printed, given the request."""
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
    """The directory of what `wanted` describes, made by `install` where it is not yet; one for each version of it."""
    cache = Path(sys.prefix) / "share" / name
    target = cache / hashlib.sha256(wanted).hexdigest()[:16]
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=cache, prefix=".install-"))
        try:
            install(made)
            made.rename(target)
        except OSError:
            if not target.exists():  # else another process was first
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return target


def installer(command: Sequence[str], **options: Any) -> None:
    """Runs what installs packages. Raises RuntimeError with its words where they cannot be had."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False, **options)
    if done.returncode:
        raise RuntimeError(f"the packages could not be installed:\n{done.stdout}\n{done.stderr}")


def installed_or_skipped(installed: Callable[[], Installed]) -> Installed:
    """Where they cannot be installed CI fails; elsewhere (no network) their tests are skipped."""
    try:
        return installed()
    except RuntimeError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(str(error))
