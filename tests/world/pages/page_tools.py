"""Tools of the web pages from npm, installed once outside of git: the TypeScript compiler, which checks the types of their
scripts, the packages whose files the pages contain, and axe, which finds barriers.
"""

import shutil
from pathlib import Path

from tests.world.sdk.node_runner import npm
from tests.world.sdk.runner import packages

SOURCES = Path(__file__).parent
PACKAGES = ("package.json", "package-lock.json", ".npmrc")


def installed() -> Path:
    """Return the directory of the installed packages, installed by npm if necessary. Raise RuntimeError with npm's output
    if this fails.
    """
    wanted = b"".join((SOURCES / name).read_bytes() for name in PACKAGES)
    return packages("umg-page-tools", wanted, _install) / "node_modules"


def _install(target: Path) -> None:
    for name in PACKAGES:
        shutil.copyfile(SOURCES / name, target / name)
    npm(target, "ci")
