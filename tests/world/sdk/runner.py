"""Runner of clients whose packages conflict with those of the tests: the packages are installed once into a directory
outside of git, and each script is a process that reads requests and prints a response to each.
"""

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

UV = str(Path(sysconfig.get_path("scripts")) / "uv")
INSTALL_SECONDS = 900
RUN_SECONDS = 300

Installed = TypeVar("Installed")


class Scripts:
    """Processes of scripts, each started by its first request: to import a client takes longer than its calls."""

    def __init__(self) -> None:
        self._started = dict[tuple[str, ...], Script]()

    async def run(
        self, command: Sequence[str], request: Mapping[str, Any], environment: Mapping[str, str] = os.environ
    ) -> dict[str, Any]:
        script = self._started.get(tuple(command))
        if script is None:
            script = self._started[tuple(command)] = Script(command, environment)
        try:
            async with asyncio.timeout(RUN_SECONDS):
                line = await asyncio.to_thread(script.answer, json.dumps(request))
        except BaseException:
            self._started.pop(tuple(command)).close()  # so that the thread ends, and no later request waits
            raise
        if not line:
            pytest.fail(f"the script ended:\n{self._started.pop(tuple(command)).close()}")
        found = json.loads(line)
        assert isinstance(found, dict)
        return found

    def close(self) -> None:
        while self._started:
            self._started.popitem()[1].close()


class Script:
    """Process that reads requests and prints answers, one per line."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
        )

    def answer(self, request: str) -> str:
        """Return the line of the response; empty if the process ended."""
        assert self._process.stdin
        assert self._process.stdout
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{request}\n")
            self._process.stdin.flush()
        return self._process.stdout.readline()

    def close(self) -> str:
        """Stop the process. Return its standard error."""
        self._process.kill()
        with suppress(BrokenPipeError):
            self._process.communicate()
        with self._errors:
            self._errors.seek(0)
            return self._errors.read().decode()


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


def wheels(lock: Path) -> Path:
    """Return the directory with the wheels that `lock` pins, after their download, one for all tests that read them as
    archives. Raise RuntimeError if it fails.
    """

    def download(target: Path) -> None:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        installer([*command, "--only-binary", ":all:", "--requirement", str(lock), "--dest", str(target)])

    return packages("umg-wheels", lock.read_bytes(), download)


def install_locked(lock: Path, python: str, *options: str) -> None:
    """Install exactly the versions that `lock` pins for the interpreter `python`, without compiling their modules, most
    of which are never imported. Raise RuntimeError with the output if they cannot be installed.

    uv takes a tenth of pip's time. It does not read the config of pip, e.g. the address of a registry: where it
    fails, pip installs.
    """
    locked = ["--quiet", "--require-hashes", "--no-deps", "--requirement", str(lock), *options]
    try:
        installer([UV, "pip", "install", "--python", python, *locked])
    except RuntimeError:
        installer([sys.executable, "-m", "pip", "--python", python, "install", "--no-compile", *locked])


def compile_imported(modules: str, python: str, *options: str, **environment: str) -> None:
    """Import modules once, so that processes that start at the same time do not all compile them."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    installer([python, *options, "-c", f"import {modules}"], env={**kept, **environment})


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
