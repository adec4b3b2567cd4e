"""Comparison of the newest versions of SDKs and agents with the versions that the tests use."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from scripts.vendors.downloads import ROOT
from scripts.vendors.findings import Finding
from tests.world.agents.versions import NPM, PYPI

DEVELOP_LOCK = ROOT / "requirements" / "develop.lock"
NODE_LOCK = ROOT / "tests" / "world" / "sdk" / "node" / "package-lock.json"
RAISE_LOCKS = "make lock lock_args=--upgrade"
RAISE_AGENTS = "tests/world/agents/versions.py, then make lock"


def pinned_of_pypi(name: str, lock: Path = DEVELOP_LOCK) -> str:
    """Return the version of a package in a lock of Python packages, "" if it is not there."""
    found = re.search(rf"^{re.escape(name)}==(\S+)", lock.read_text(), re.MULTILINE)
    return found[1] if found else ""


def pinned_of_node() -> Mapping[str, str]:
    """Return the versions of the JavaScript SDKs that the tests use."""
    lock = msgspec.json.decode(NODE_LOCK.read_bytes(), type=dict[str, msgspec.Raw])
    packages = msgspec.json.decode(lock["packages"], type=dict[str, dict[str, object]])
    prefix = "node_modules/"
    return {
        path.removeprefix(prefix): str(each["version"]) for path, each in packages.items() if path.startswith(prefix)
    }


def of_sdk(name: str, pinned: str, newest: str) -> Iterator[Finding]:
    """Yield a finding if the tests use an older version of an SDK."""
    if pinned and pinned != newest:
        yield Finding("versions of SDKs", name, f"{pinned} -> {newest}", RAISE_LOCKS)


def of_agent(name: str, newest: str) -> Iterator[Finding]:
    """Yield a finding if the tests use an older version of an agent."""
    pinned = {**NPM, **PYPI}[name]
    if pinned != newest:
        yield Finding("versions of agents", name, f"{pinned} -> {newest}", RAISE_AGENTS)
