"""Files of the pinned package `litellm`, read in its wheel: the package is never installed or imported."""

import re
import zipfile
from functools import cache

from scripts.knowledge.packages import LOCK
from tests.world.sdk.runner import wheels

QUOTED = re.compile(rb"[\"']([A-Z][A-Z0-9_]{3,})[\"']")


@cache
def text_of(member: str) -> str:
    """Return the text of a file in the package, by its path there. Raise KeyError for an unknown one, and RuntimeError
    if the wheel cannot be downloaded.
    """
    with _wheel() as archive:
        return archive.read(f"litellm/{member}").decode()


@cache
def quoted_names() -> frozenset[str]:
    """Return all names in capitals that are texts in the package, among them those of environment variables."""
    with _wheel() as archive:
        members = [name for name in archive.namelist() if name.endswith((".py", "providers.json"))]
        found = (QUOTED.findall(archive.read(name)) for name in members)
        return frozenset(name.decode() for names in found for name in names)


def _wheel() -> zipfile.ZipFile:
    (path,) = wheels(LOCK).glob("litellm-*.whl")
    return zipfile.ZipFile(path)
