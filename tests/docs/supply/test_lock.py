"""Locks: they fit their requirements, and a change of one without the other is reported."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts import lock

ROOT = Path(__file__).parents[3]
INPUTS = ["pyproject.toml", "clients/python/pyproject.toml", "clients/conformance/pyproject.toml"]
INPUTS += [
    "tests/world/sdk/apart/requirements.txt",
    "tests/pairs/vendors/sdk.txt",
    "tests/world/sdk/node/package.json",
    "tests/world/sign_on/package.json",
    "tests/world/pages/package.json",
    lock.READ_PACKAGES,
]


@dataclass(frozen=True)
class Change:
    """Edit of one file without `make lock`, and the problem that it causes."""

    id: str
    path: str
    edit: Callable[[str], str]
    problem: str


def _without_hashes(text: str) -> str:
    return re.sub(r" \\\n    --hash=\S+", "", text)


def _unlisted(text: str) -> str:
    return text.replace("dependencies = [", 'dependencies = [\n  "attrs-of-another-name>=1",', 1)


def _with_host(text: str) -> str:
    found = json.loads(text)
    found["packages"]["node_modules/zod"]["resolved"] = "https://registry.example/zod.tgz"
    return json.dumps(found)


def _without_integrity(text: str) -> str:
    found = json.loads(text)
    del found["packages"]["node_modules/zod"]["integrity"]
    return json.dumps(found)


OTHER = "was made from other requirements than those of now"
CHANGES = [
    Change("a new dependency", "pyproject.toml", _unlisted, "requirements/serve.lock lacks attrs-of-another-name."),
    Change(
        "a higher bound",
        "pyproject.toml",
        lambda text: text.replace('"msgspec>=0.22"', '"msgspec>=99"'),
        "but >=99 is required.",
    ),
    Change(
        "a dependency less",
        "pyproject.toml",
        lambda text: text.replace('  "trustme>=1.2",', ""),
        f"requirements/develop.lock {OTHER}.",
    ),
    Change(
        "another extra",
        "pyproject.toml",
        lambda text: text.replace("SQLAlchemy[asyncio]", "SQLAlchemy[asyncio,mypy]"),
        f"requirements/serve.lock {OTHER}.",
    ),
    Change(
        "another way to resolve",
        "pyproject.toml",
        lambda text: text.replace("requires-dist = []", 'requires-dist = ["llm"]'),
        f"requirements/serve.lock {OTHER}.",
    ),
    Change(
        "another build requirement of the client",
        "clients/python/pyproject.toml",
        lambda text: text.replace('"googleapis-common-protos>=1.70"', '"googleapis-common-protos>=1.71"'),
        f"requirements/build.lock {OTHER}.",
    ),
    Change(
        "a higher bound of the conformance kit",
        "clients/conformance/pyproject.toml",
        lambda text: text.replace('"PyYAML>=6.0.2"', '"PyYAML>=99"'),
        "but >=99 is required.",
    ),
    Change(
        "another package of a client that is tested apart",
        "tests/world/sdk/apart/requirements.txt",
        lambda text: text + "langchain-of-another-name\n",
        "tests/world/sdk/apart/requirements.lock lacks langchain-of-another-name.",
    ),
    Change(
        "another package of npm",
        "tests/world/sdk/node/package.json",
        lambda text: text.replace('"zod": ">=4.6.7"', '"zod": ">=4.6.8"'),
        f"tests/world/sdk/node/package-lock.json {OTHER}.",
    ),
    Change(
        "pins without hashes",
        "requirements/serve.lock",
        _without_hashes,
        "requirements/serve.lock has no hash for aiohttp.",
    ),
    Change(
        "a registry's host",
        "requirements/build.lock",
        lambda text: text + "--index-url https://registry.example/simple\n",
        "requirements/build.lock has an option or a host, which ties it to one registry.",
    ),
    Change(
        "a registry's host in npm's",
        "tests/world/sdk/node/package-lock.json",
        _with_host,
        "tests/world/sdk/node/package-lock.json names the host of node_modules/zod, which ties it to one registry.",
    ),
    Change(
        "npm's without a hash",
        "tests/world/sdk/node/package-lock.json",
        _without_integrity,
        "tests/world/sdk/node/package-lock.json has no hash for node_modules/zod.",
    ),
]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return a directory with the locks and their requirements."""
    locks = [entry.path for entry in (*lock.python_locks(ROOT), *lock.npm_locks(ROOT))]
    for path in (*INPUTS, *locks):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, tmp_path / path)
    return tmp_path


def test_the_locks_fit_their_requirements() -> None:
    assert lock.problems(ROOT) == []


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.id)
def test_a_change_without_the_lock_is_found(change: Change, copied: Path) -> None:
    before = (copied / change.path).read_text()
    after = change.edit(before)
    assert after != before
    (copied / change.path).write_text(after)
    assert [problem for problem in lock.problems(copied) if change.problem in problem] != []


def test_a_missing_lock_is_found(copied: Path) -> None:
    (copied / "requirements/build.lock").unlink()
    (copied / "tests/world/agents/package-lock.json").unlink()
    assert lock.problems(copied) == [
        "requirements/build.lock is missing.",
        "tests/world/agents/package-lock.json is missing.",
    ]


def test_locks_of_fewer_packages_have_the_versions_of_the_tested_ones() -> None:
    tested = {str(pin.requirement) for pin in lock.pins((ROOT / "requirements/develop.lock").read_text())}
    versions = {entry.partition(";")[0] for entry in tested}
    for name in ("serve", "build"):
        pinned = lock.pins((ROOT / f"requirements/{name}.lock").read_text())
        assert {str(pin.requirement).partition(";")[0] for pin in pinned} - versions == set()
