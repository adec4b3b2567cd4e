"""Installation of the programs, once, into a directory outside of git, one for each set of versions."""

import json
import sys
import venv
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from scripts.vendors.downloads import newest_of_npm
from tests.world.agents.versions import MANIFEST, NPM
from tests.world.sdk.node_runner import npm
from tests.world.sdk.runner import compile_imported, install_locked, packages

NPMRC = Path(__file__).parents[1] / "sdk" / "node" / ".npmrc"
NPM_LOCK = Path(__file__).parent / "package-lock.json"
PYTHON_LOCK = Path(__file__).parent / "aider.lock"
LIBRARIES_LOCK = Path(__file__).parent / "libraries.lock"
NATIVE = ("@anthropic-ai/claude-code", "opencode-ai")  # put their binary in its place by a script of the package


@dataclass(frozen=True)
class Installed:
    node: Path  # directory of npm's packages
    python: Path  # virtualenv of aider, whose dependencies conflict with those of the tests

    def command(self, executable: str) -> tuple[str, ...]:
        if executable == "aider":
            return (str(self.python / "bin" / "python"), "-m", "aider")  # its script names where it was installed first
        return (str(self.node / "node_modules" / ".bin" / executable),)


def installed() -> Installed:
    """Install all programs by npm and uv where they are missing. Raises RuntimeError where this fails."""
    with ThreadPoolExecutor() as pool:
        node = pool.submit(packages, "umg-agents", _wanted(), _install_node)
        python = pool.submit(packages, "umg-aider", PYTHON_LOCK.read_bytes() + sys.version.encode(), _install_aider)
        return Installed(node.result(), python.result())


def newer_releases() -> dict[str, str]:
    """Return the package and the newest version of each program of npm that has a release newer than `versions.py`.
    Raise DownloadError where npm cannot state it.
    """
    with ThreadPoolExecutor() as pool:
        newest = dict(zip(NPM, pool.map(newest_of_npm, NPM), strict=True))
    return {package: version for package, version in newest.items() if version != NPM[package]}


def installed_releases(releases: Mapping[str, str]) -> Installed:
    """Install these releases beside the usual programs, without a lock. Raise RuntimeError where this fails."""
    install = partial(_install_releases, releases=releases)
    return replace(installed(), node=packages("umg-agents-newest", json.dumps(releases).encode(), install))


def installed_libraries() -> Path:
    """Return the Python with the packages of `libraries.lock`, after their installation. Raises RuntimeError where this
    fails.
    """
    wanted = LIBRARIES_LOCK.read_bytes() + sys.version.encode()
    return packages("umg-libraries", wanted, partial(_install_python, lock=LIBRARIES_LOCK)) / "bin" / "python"


def _wanted() -> bytes:
    return json.dumps(MANIFEST).encode() + NPM_LOCK.read_bytes() + NPMRC.read_bytes()


def _install_node(target: Path) -> None:
    (target / "package.json").write_text(json.dumps(MANIFEST))
    for file in (NPM_LOCK, NPMRC):
        (target / file.name).write_bytes(file.read_bytes())
    # Not `npm ci`: it wants the binaries of all platforms in the lock, and not every mirror has them.
    npm(target, "install", "--no-save")
    if unlocked := _unlocked(target):  # no script of a package ran yet
        raise RuntimeError(f"{NPM_LOCK.name} does not have {', '.join(unlocked)}: run `make lock`")
    npm(target, "rebuild", "--ignore-scripts=false", *NATIVE)


def _install_releases(target: Path, releases: Mapping[str, str]) -> None:
    (target / "package.json").write_text(json.dumps(MANIFEST | {"dependencies": releases}))
    (target / NPMRC.name).write_bytes(NPMRC.read_bytes())
    npm(target, "install", "--no-save")
    npm(target, "rebuild", "--ignore-scripts=false", *(name for name in NATIVE if name in releases))


def _unlocked(target: Path) -> list[str]:
    """Return the installed packages that the lock lacks, or has with another hash."""
    locked = json.loads(NPM_LOCK.read_text())["packages"]
    installed = json.loads((target / "node_modules" / ".package-lock.json").read_text())["packages"]
    return sorted(
        name
        for name, package in installed.items()
        if name not in locked or package.get("integrity") != locked[name].get("integrity")
    )


def _install_aider(target: Path) -> None:
    _install_python(target, PYTHON_LOCK)
    compile_imported("aider.main, litellm", str(target / "bin" / "python"))


def _install_python(target: Path, lock: Path) -> None:
    venv.create(target)
    install_locked(lock, str(target / "bin" / "python"))
