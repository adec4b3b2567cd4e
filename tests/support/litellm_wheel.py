"""Files of the pinned package `litellm`, read in its wheel: the package is never installed or imported."""

import re
import sys
import zipfile
from functools import cache
from pathlib import Path

from scripts.knowledge.packages import LOCK
from tests.world.sdk.runner import installer, packages

QUOTED = re.compile(rb"[\"']([A-Z][A-Z0-9_]{3,})[\"']")


def installed() -> Path:
    """Return the directory with the wheel, after its download. Raise RuntimeError if it fails."""
    return packages("umg-litellm", LOCK.read_bytes(), _download)


@cache
def text_of(member: str) -> str:
    """Return the text of a file in the package, by its path there. Raise KeyError for an unknown one."""
    (wheel,) = installed().glob("litellm-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(f"litellm/{member}").decode()


def _download(target: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    installer([*command, "--only-binary", ":all:", "--requirement", str(LOCK), "--dest", str(target)])
    for other in target.iterdir():
        if not other.name.startswith("litellm-"):
            other.unlink()


@cache
def quoted_names() -> frozenset[str]:
    """Return all names in capitals that are texts in the package, among them those of environment variables."""
    (wheel,) = installed().glob("litellm-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if name.endswith((".py", "providers.json"))]
        found = (QUOTED.findall(archive.read(name)) for name in members)
        return frozenset(name.decode() for names in found for name in names)
