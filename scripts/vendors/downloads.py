"""Newest packages of the registries, kept below `build/vendors`. They are read as archives, never installed or run."""

import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "vendors"
SECONDS = 300


class DownloadError(Exception):
    """Package that could not be downloaded, with the reason as the message."""


def newest_wheel(package: str) -> Path:
    """Return the newest wheel of a package on PyPI, after its download. Raise DownloadError if it fails."""
    folder = FOLDER / "wheels" / package
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    _run([*command, "--disable-pip-version-check", "--dest", str(folder), package])
    return max(folder.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def wheel_version(wheel: Path) -> str:
    """Return the version in the name of a wheel."""
    return wheel.name.split("-")[1]


def newest_of_pypi(package: str) -> str:
    """Return the newest version of a package on PyPI. Raise DownloadError if it fails."""
    command = [sys.executable, "-m", "pip", "index", "--disable-pip-version-check", "versions", package]
    found = re.match(r"\S+ \(([^)]+)\)", _run(command))
    if found is None:
        raise DownloadError(f"pip does not state the newest version of {package}")
    return found[1]


def newest_of_npm(package: str) -> str:
    """Return the version of a package that npm installs by default. Raise DownloadError if it fails."""
    version = json.loads(_run(["npm", "view", package, "version", "--json"]))
    if not isinstance(version, str):
        raise DownloadError(f"npm does not state the newest version of {package}")
    return version


def npm_sources(package: str, version: str) -> Mapping[str, str]:
    """Return the TypeScript files of a version of an npm package by their paths. Raise DownloadError if it fails."""
    folder = FOLDER / "npm"
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{package.strip('@').replace('/', '-')}-{version}.tgz"
    if not archive.exists():
        _run(["npm", "pack", "--silent", "--ignore-scripts", f"{package}@{version}"], folder)
    try:
        with tarfile.open(archive) as files:
            members = [member for member in files if member.isfile() and member.name.endswith(".ts")]
            read = {member.name: file.read() for member in members if (file := files.extractfile(member)) is not None}
    except (OSError, tarfile.TarError) as error:
        raise DownloadError(f"{archive.name} cannot be read: {error}") from error
    return {name: text.decode(errors="replace") for name, text in read.items()}


def _run(command: Sequence[str], folder: Path = ROOT) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DownloadError(f"{command[-1]}: {error}") from error
    if done.returncode != 0:
        raise DownloadError(f"{command[-1]}: {done.stderr.strip()[-300:]}")
    return done.stdout.strip()
