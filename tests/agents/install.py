"""The programs, installed once into a directory outside of git, one for each set of versions."""

import json
import os
import sys
import venv
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.agents.versions import NPM, PYPI
from tests.sdk.node_runner import NODE
from tests.sdk.node_runner import NPM as NPM_CLI
from tests.sdk.runner import installer, packages

NPMRC = Path(__file__).parents[1] / "sdk" / "node" / ".npmrc"
NATIVE = ("@anthropic-ai/claude-code", "opencode-ai")  # put their binary in its place by a script of the package


@dataclass(frozen=True)
class Installed:
    """Where the programs are."""

    node: Path  # directory of npm's packages
    python: Path  # virtualenv of aider, whose dependencies cannot stand beside those of the tests

    def command(self, executable: str) -> tuple[str, ...]:
        """The words that start a program."""
        if executable == "aider":
            return (str(self.python / "bin" / "python"), "-m", "aider")  # its script names where it was installed first
        return (str(self.node / "node_modules" / ".bin" / executable),)


def installed() -> Installed:
    """All programs, by npm and pip where they are not there yet. Raises RuntimeError where they cannot be had."""
    with ThreadPoolExecutor() as pool:
        node = pool.submit(packages, "umg-agents", _wanted(), _install_node)
        python = pool.submit(packages, "umg-aider", json.dumps(PYPI).encode() + sys.version.encode(), _install_python)
        return Installed(node.result(), python.result())


def _wanted() -> bytes:
    return json.dumps({"name": "umg-agents", "private": True, "dependencies": NPM}).encode() + NPMRC.read_bytes()


def _install_node(target: Path) -> None:
    (target / "package.json").write_text(json.dumps({"name": "umg-agents", "private": True, "dependencies": NPM}))
    (target / ".npmrc").write_bytes(NPMRC.read_bytes())
    environment = {**os.environ, "PATH": os.pathsep.join([str(NODE.parent), os.environ.get("PATH", "")])}
    npm = [str(NODE), str(NPM_CLI)]
    installer([*npm, "install"], cwd=target, env=environment)
    installer([*npm, "rebuild", "--ignore-scripts=false", *NATIVE], cwd=target, env=environment)


def _install_python(target: Path) -> None:
    venv.create(target, with_pip=True)
    wanted = [f"{name}=={version}" for name, version in PYPI.items()]
    installer([str(target / "bin" / "python"), "-m", "pip", "install", "--quiet", *wanted])
