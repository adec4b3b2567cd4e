"""Write the lock files of Python and npm packages; with `--check`, compare them with their requirements, without
network.

A lock pins every package that its requirements lead to, on every platform, by version and hashes. It names no host, so
that it holds for any registry or mirror.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.world.agents.versions import LIBRARIES, MANIFEST, PYPI  # noqa: E402  the path above makes it importable

EDITABLE = "editables>=0.5"  # needed by hatchling when it builds an editable wheel
READ_PACKAGES = "umg_grpc/knowledge/data/packages.json"  # whose data `make knowledge` reads
HEADER = "# Made by `make lock`, never edited. Requirements: sha256:{digest}\n"
EXTRAS = ("local", "otel", "blobs", "aws", "google", "azure")  # that the image has
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
HINT = "Run `make lock` and commit the result."


@dataclass(frozen=True)
class PythonLock:
    """A file of pins for pip, and the requirements that it is resolved from."""

    path: str
    requirements: tuple[str, ...]
    oldest_python: str
    within: str | None = None  # path of the lock of more packages whose versions this lock shares
    alone: bool = False  # whether the packages are read only, so that theirs are not needed


@dataclass(frozen=True)
class NpmLock:
    """A `package-lock.json`, and the `package.json` that it is resolved from."""

    path: str
    manifest: Mapping[str, Any]


@dataclass(frozen=True)
class Pin:
    """Package that a lock pins: name, version and hashes."""

    requirement: Requirement
    hashes: int


def python_locks(root: Path) -> list[PythonLock]:
    """Return the locks for pip, each after the lock that it is `within`."""
    gateway, client, kit = (
        _toml(root / folder / "pyproject.toml") for folder in (".", "clients/python", "clients/conformance")
    )
    groups = gateway["dependency-groups"]
    project = gateway["project"]
    extras = [line for name in EXTRAS for line in project["optional-dependencies"][name]]
    needed = [line for line in project["dependencies"] if Requirement(line).name != kit["project"]["name"]]
    serve = (*needed, *kit["project"]["dependencies"], *extras, *groups["weights"])
    builds = [requirement for each in (gateway, client, kit) for requirement in each["build-system"]["requires"]]
    build = (*builds, EDITABLE)
    tools = (*groups["check"], *groups["test"], *groups["release"], *client["project"]["dependencies"])
    apart = (root / "tests/world/sdk/apart/requirements.txt").read_text().splitlines()
    wanted = tuple(line for line in apart if not line.startswith("#"))
    sdks = (root / "tests/pairs/vendors/sdk.txt").read_text().splitlines()
    walked = tuple(line for line in sdks if not line.startswith("#"))
    read = json.loads((root / READ_PACKAGES).read_text())
    oldest = project["requires-python"].removeprefix(">=")
    return [
        PythonLock("requirements/develop.lock", (*serve, *build, *tools), oldest),
        PythonLock("requirements/serve.lock", serve, oldest, within="requirements/develop.lock"),
        PythonLock("requirements/build.lock", build, oldest, within="requirements/develop.lock"),
        PythonLock("requirements/plot.lock", tuple(groups["plot"]), oldest, within="requirements/develop.lock"),
        PythonLock("requirements/profile.lock", tuple(groups["profile"]), oldest, within="requirements/develop.lock"),
        PythonLock("requirements/docs.lock", tuple(groups["docs"]), oldest, within="requirements/develop.lock"),
        PythonLock(
            "requirements/knowledge.lock", tuple(f"{row['name']}=={row['version']}" for row in read), oldest, alone=True
        ),
        PythonLock("tests/world/sdk/apart/requirements.lock", wanted, oldest),
        PythonLock("tests/pairs/vendors/sdk.lock", walked, oldest, alone=True),
        *(
            PythonLock(
                f"tests/world/agents/{name}.lock",
                tuple(f"{name}=={version}" for name, version in pinned.items()),
                oldest,
            )
            for name, pinned in (("aider", PYPI), ("libraries", LIBRARIES))
        ),
    ]


def npm_locks(root: Path) -> list[NpmLock]:
    """Return the locks for npm."""
    sdks, issuer, pages = (
        json.loads((root / "tests/world" / folder / "package.json").read_text())
        for folder in ("sdk/node", "sign_on", "pages")
    )
    return [
        NpmLock("tests/world/sdk/node/package-lock.json", sdks),
        NpmLock("tests/world/sign_on/package-lock.json", issuer),
        NpmLock("tests/world/pages/package-lock.json", pages),
        NpmLock("tests/world/agents/package-lock.json", MANIFEST),
    ]


def problems(root: Path) -> list[str]:
    """Return the differences between the locks and their requirements; each names the file and the package."""
    resolver = _toml(root / "pyproject.toml")["tool"]["uv"]
    found = [problem for lock in python_locks(root) for problem in _python_problems(root, lock, resolver)]
    return found + [problem for lock in npm_locks(root) for problem in _npm_problems(root, lock)]


def pins(text: str) -> list[Pin]:
    """Return the pins of a lock. Raises InvalidRequirement on a line that pip would not take."""
    entries = re.split(r"\n(?=[^\s#])", "\n" + text)[1:]
    return [Pin(Requirement(entry.splitlines()[0].rstrip("\\ ")), len(HASH.findall(entry))) for entry in entries]


def _python_problems(root: Path, lock: PythonLock, resolver: Mapping[str, Any]) -> Iterator[str]:
    if not (root / lock.path).exists():
        yield f"{lock.path} is missing."
        return
    text = (root / lock.path).read_text()
    if not text.startswith(_header(lock, resolver)):
        yield f"{lock.path} was made from other requirements than those of now."
    if re.search(r"^-|://", text, re.MULTILINE):
        yield f"{lock.path} has an option or a host, which ties it to one registry."
        return
    pinned: dict[str, list[Pin]] = {}
    for pin in pins(text):
        pinned.setdefault(canonicalize_name(pin.requirement.name), []).append(pin)
        if not pin.hashes:
            yield f"{lock.path} has no hash for {pin.requirement.name}."
    for requirement in map(Requirement, lock.requirements):
        versions = [_version(pin) for pin in pinned.get(canonicalize_name(requirement.name), [])]
        if not versions:
            yield f"{lock.path} lacks {requirement.name}."
        for version in versions:
            if not requirement.specifier.contains(version, prereleases=True):
                yield f"{lock.path} pins {requirement.name} to {version}, but {requirement.specifier} is required."


def _npm_problems(root: Path, lock: NpmLock) -> Iterator[str]:
    if not (root / lock.path).exists():
        yield f"{lock.path} is missing."
        return
    packages = json.loads((root / lock.path).read_text())["packages"]
    if packages.pop("")["dependencies"] != lock.manifest["dependencies"]:
        yield f"{lock.path} was made from other requirements than those of now."
    for name, package in packages.items():
        if "resolved" in package:
            yield f"{lock.path} names the host of {name}, which ties it to one registry."
        if not package.get("integrity") and not package.get("inBundle"):
            yield f"{lock.path} has no hash for {name}."


def write(root: Path, *, upgrade: bool) -> None:
    """Resolve every lock again, from the registries. Versions stay where they still fit, unless `upgrade`."""
    resolver = _toml(root / "pyproject.toml")["tool"]["uv"]
    for python_lock in python_locks(root):
        _write_python(root, python_lock, resolver, upgrade=upgrade)
    for npm_lock in npm_locks(root):
        _write_npm(root, npm_lock, upgrade=upgrade)


def _write_python(root: Path, lock: PythonLock, resolver: Mapping[str, Any], *, upgrade: bool) -> None:
    path = root / lock.path
    command = [str(Path(sysconfig.get_path("scripts")) / "uv"), "pip", "compile", "-", "--output-file", lock.path]
    command += ["--universal", "--python-version", lock.oldest_python, "--generate-hashes"]
    command += ["--quiet", "--no-header", "--no-annotate", "--no-emit-index-url"]
    command += ["--constraints", lock.within] if lock.within else []
    command += ["--no-deps"] if lock.alone else []
    command += ["--upgrade"] if upgrade else []
    subprocess.run(command, cwd=root, input="\n".join(lock.requirements), text=True, check=True)
    path.write_text(_header(lock, resolver) + path.read_text())
    print(f"{lock.path}: {len(pins(path.read_text()))} packages")


def _write_npm(root: Path, lock: NpmLock, *, upgrade: bool) -> None:
    from tests.world.sdk.node_runner import NODE, NPM  # needs Node, which checking does not

    path = root / lock.path
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        (target / "package.json").write_text(json.dumps(lock.manifest))
        (target / ".npmrc").write_bytes((root / "tests/world/sdk/node/.npmrc").read_bytes())
        if path.exists() and not upgrade:
            (target / "package-lock.json").write_bytes(path.read_bytes())
        subprocess.run([str(NODE), str(NPM), "install", "--package-lock-only"], cwd=target, check=True)
        path.write_bytes((target / "package-lock.json").read_bytes())
    print(f"{lock.path}: {len(json.loads(path.read_text())['packages']) - 1} packages")


def _header(lock: PythonLock, resolver: Mapping[str, Any]) -> str:
    inputs = {"requirements": sorted(set(lock.requirements)), "resolver": resolver, "python": lock.oldest_python}
    return HEADER.format(digest=hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest())


def _version(pin: Pin) -> str:
    return str(pin.requirement.specifier).removeprefix("==")


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def main() -> int:
    """Write or check the locks. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only, without network")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that the requirements allow")
    arguments = parser.parse_args()
    if not arguments.check:
        write(ROOT, upgrade=arguments.upgrade)
    found = problems(ROOT)
    if found:
        print("\n".join([*found, HINT]), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
