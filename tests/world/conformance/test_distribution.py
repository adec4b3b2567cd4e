"""The kit as a distribution of its own: its command runs without the gateway, and its requirements are declared."""

import ast
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import umg_conformance
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from umg_conformance.check_files import CHECKS_FOLDER, read_folder

from umg_grpc.cli.conformance_commands import KIT_ABSENT

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "clients/conformance/pyproject.toml").read_text())["project"]
PACKAGE = Path(umg_conformance.__file__).parent
ALONE = """
import sys
for name in ("umg", "buf", "umg_grpc", "umg_sandbox", "http_facade"):
    sys.modules[name] = None  # its import fails
sys.argv[1:] = {arguments}
from umg_conformance import __main__
"""


def alone(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the kit's own command in a process that has no module of the gateway."""
    command = [sys.executable, "-c", ALONE.format(arguments=list(arguments))]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_lists_all_checks_without_the_gateway() -> None:
    done = alone("http://127.0.0.1:1", "--list")
    assert (done.returncode, done.stderr) == (0, "")
    faces = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    assert faces == [f"{file.face}: {file.title}" for file in read_folder(CHECKS_FOLDER)]


def test_the_command_prints_its_own_name_before_an_error() -> None:
    done = alone("http://127.0.0.1:1", "--key", "none", "--face", "holograms")
    assert done.returncode == 2
    assert done.stderr.startswith("umg-conformance: --face holograms: unknown; the faces are chat")


def test_the_gateway_alone_has_its_other_commands_and_names_the_absent_kit() -> None:
    code = "import sys; sys.modules['umg_conformance'] = None; sys.argv[1:] = {}; from umg_grpc.cli import main; main()"
    helped, refused = (
        subprocess.run([sys.executable, "-c", code.format(given)], capture_output=True, text=True, check=False)
        for given in (["--help"], ["conformance", "http://127.0.0.1:1", "--list"])
    )
    assert (helped.returncode, "serve" in helped.stdout) == (0, True)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"umg: {KIT_ABSENT}\n"


def test_every_package_that_the_kit_imports_is_declared() -> None:
    imported = {
        name.partition(".")[0]
        for path in PACKAGE.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in _names(node)
    }
    owners = packages_distributions()
    needed = {name: {canonicalize_name(owner) for owner in owners[name]} for name in imported if name in owners}
    needed.pop("umg_conformance", None)
    declared = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    assert {name for name, owners in needed.items() if not owners & declared} == {"yarl"}, "aiohttp's API has its type"


def _names(node: ast.AST) -> list[str]:
    match node:
        case ast.ImportFrom(module=str(module)):
            return [module]
        case ast.Import(names=names):
            return [name.name for name in names]
        case _:  # no import
            return []
