"""Command `python -m tests.proofs.memory`: measures the full sizes, each with the memory of the gateway's process. The exit
code states whether all stayed below their limits.
"""

import sys
import tempfile
from pathlib import Path

import uvloop

from tests.proofs.memory.cases import FULL, MEBIBYTE, PAIRS, Measured, Run
from tests.proofs.memory.gateway import config, watched
from tests.proofs.memory.provider import provider

MAX_BYTES = 400 * MEBIBYTE


async def measure(directory: Path) -> list[Measured]:
    """Return the figures of all cases, and print each as soon as it is measured."""
    found = list[Measured]()

    def show(measured: Measured) -> None:
        sys.stdout.write(f"{measured}\n")
        sys.stdout.flush()
        found.append(measured)

    async with provider() as made, watched(config(made, FULL.models), directory) as gateway:
        run = Run(made, gateway, FULL)
        for kind in ("gzip", "plain", "chunked"):
            show((await run.whole(kind))[0])
        for face, upstream in PAIRS:
            show((await run.unread(face, upstream))[0])
        for face, upstream in PAIRS:
            show((await run.read(face, upstream))[0])
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        found = uvloop.run(measure(Path(directory)))
    most = max(measured.peak for measured in found)
    sys.stdout.write(f"at most {most / MEBIBYTE:.0f} MB of {MAX_BYTES / MEBIBYTE:.0f} MB\n")
    sys.exit(0 if most <= MAX_BYTES else 1)


if __name__ == "__main__":
    main()
