"""Runs the scripts of `apart/`: Python clients whose packages cannot stand beside those of the tests."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sdk import runner

SCRIPTS = Path(__file__).parent / "apart"
REQUIREMENTS = SCRIPTS / "requirements.txt"


@dataclass(frozen=True)
class Apart:
    """The directory of the packages."""

    packages: Path

    async def run(self, script: str, **request: Any) -> dict[str, Any]:
        """What the script printed, given the request."""
        command = [sys.executable, "-S", str(SCRIPTS / script)]  # -S: without the packages of the tests
        return await runner.run(command, request, {**os.environ, "PYTHONPATH": str(self.packages)})


def installed() -> Apart:
    """The packages of `requirements.txt`, by pip. Raises RuntimeError where they cannot be had."""
    wanted = REQUIREMENTS.read_bytes() + sys.version.encode()
    return Apart(runner.packages("umg-apart", wanted, _install))


def _install(target: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    runner.installer([*pip, "--target", str(target), "-r", str(REQUIREMENTS)])
