"""Process of a real OpenID Connect issuer: the certified `oidc-provider` of npm, installed once outside of git."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.world.sdk import runner
from tests.world.sdk.node_runner import NODE, npm

SOURCES = Path(__file__).parent
PACKAGES = ("package.json", "package-lock.json", ".npmrc")
SCRIPT = "issuer.mjs"
START_SECONDS = 60
CLIENT, SECRET = "umg", "secret of the client"
PROGRAM, PROGRAM_SECRET = "program", "secret of the program"


def installed() -> Path:
    """Return the directory of the packages, installed by npm if necessary. Raise RuntimeError if that fails."""
    wanted = b"".join((SOURCES / name).read_bytes() for name in PACKAGES)

    def install(target: Path) -> None:
        for name in PACKAGES:
            shutil.copyfile(SOURCES / name, target / name)
        npm(target, "ci")

    return runner.packages("umg-issuer", wanted, install)


@dataclass(frozen=True)
class IssuerProcess:
    """Running issuer."""

    url: str
    process: asyncio.subprocess.Process

    async def configure(self, **settings: Any) -> None:
        """Change settings: `redirect`, `groups`, `audience`, and `keys`, the number of the key that signs."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(settings).encode() + b"\n")
        async with asyncio.timeout(START_SECONDS):
            assert await self.process.stdout.readline() == b"done\n"


@asynccontextmanager
async def running_issuer() -> AsyncGenerator[IssuerProcess, None]:
    """Run an issuer until the context ends. Skip the test where npm cannot install it."""
    try:
        root = await asyncio.to_thread(installed)
    except RuntimeError as error:
        pytest.skip(f"npm cannot install the issuer: {str(error)[-300:]}")
    script = root / SCRIPT
    shutil.copyfile(SOURCES / SCRIPT, script)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(NODE, script), stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        assert process.stdout
        async with asyncio.timeout(START_SECONDS):
            url = (await process.stdout.readline()).decode().strip()
        yield IssuerProcess(url, process)
    finally:
        process.kill()
        await process.wait()
