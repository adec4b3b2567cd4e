"""Bundle of the TypeScript client for browsers, in one file."""

import shutil
from pathlib import Path

from tests.world.sdk.node_runner import npm
from tests.world.sdk.runner import packages

ROOT = Path(__file__).parents[3]
CLIENT = Path("clients/typescript")
SOURCES = (
    "buf.yaml",
    "proto/umg/v1/*.proto",
    "third_party/**/*.proto",
    "clients/typescript/*.json",
    "clients/typescript/*.yaml",
    "clients/typescript/.npmrc",
    "clients/typescript/src/*.ts",
)
"""Files from which the client is built."""


def bundle() -> bytes:
    """Return the client of the page, built by npm if necessary: outside of the sources, once for each version of them.

    Raises RuntimeError with npm's output if it cannot be built.
    """
    sources = sorted(path.relative_to(ROOT) for pattern in SOURCES for path in ROOT.glob(pattern))
    wanted = b"".join((ROOT / path).read_bytes() for path in sources)

    def build(target: Path) -> None:
        for path in sources:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, target / path)
        for arguments in (["install", "--no-fund", "--no-audit"], ["run", "build"], ["run", "bundle"]):
            npm(target / CLIENT, *arguments)

    return (packages("umg-browser", wanted, build) / CLIENT / "dist" / "umg.browser.js").read_bytes()
