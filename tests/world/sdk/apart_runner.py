"""Runner of the scripts of `apart/`: Python clients whose packages conflict with those of the tests."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.world.sdk import runner

SCRIPTS = Path(__file__).parent / "apart"
LOCK = SCRIPTS / "requirements.lock"


@dataclass(frozen=True)
class Apart:
    packages: Path
    scripts: runner.Scripts = field(default_factory=runner.Scripts)

    async def run(self, script: str, **request: Any) -> dict[str, Any]:
        command = [sys.executable, "-S", str(SCRIPTS / script)]  # -S: without the packages of the tests
        return await self.scripts.run(command, request, {**os.environ, "PYTHONPATH": str(self.packages)})


def installed() -> Apart:
    """Return the packages of `requirements.lock`, installed if necessary. Raise RuntimeError if this fails."""
    wanted = LOCK.read_bytes() + sys.version.encode()
    return Apart(runner.packages("umg-apart", wanted, _install))


def _install(target: Path) -> None:
    runner.install_locked(LOCK, sys.executable, "--target", str(target))
    runner.compile_imported("langchain_google_genai", sys.executable, "-S", PYTHONPATH=str(target))
