"""Hook of git that `make hooks` installs: a long subject is refused, in a repository of the test's own."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT = "a" * 72


@dataclass(frozen=True)
class Message:
    id: str
    text: str
    accepted: bool


MESSAGES = [
    Message("a subject of 72 characters", LIMIT, accepted=True),
    Message("a subject of 72 characters of several bytes", "é" * 72, accepted=True),
    Message("a long body", f"Move the rooms\n\n{LIMIT * 3}", accepted=True),
    Message("a long comment of git", f"# {LIMIT * 3}\nMove the rooms", accepted=True),
    Message("a commit that a rebase unites with another", f"fixup! {LIMIT}", accepted=True),
    Message("a subject of 73 characters", f"{LIMIT}a", accepted=False),
    Message("a second line without an empty one before it", f"{LIMIT}\nof the subject", accepted=False),
    Message("a subject below a comment", f"# a comment\n\n{LIMIT}a", accepted=False),
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with the hooks of this one, installed by the command of the Makefile."""
    folder = tmp_path_factory.mktemp("repository")
    shutil.copytree(ROOT / "scripts" / "hooks", folder / "scripts" / "hooks")
    for command in (("git", "init", "--quiet"), ("make", "-f", str(ROOT / "Makefile"), "hooks")):
        made = run(folder, *command)
        assert made.returncode == 0, made.stderr
    return folder


def run(folder: Path, *command: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    """Run a command with an author of its own, and without the settings of the machine and of a repository around it."""
    names = {f"GIT_{role}_{key}": "test@example.com" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**inherited, **names, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return subprocess.run(command, cwd=folder, env=environment, input=text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: case.id)
def test_the_hook_refuses_long_subjects_alone(case: Message, repository: Path) -> None:
    made = run(repository, "git", "commit", "--allow-empty", "--cleanup=strip", "--file=-", text=case.text)
    assert (made.returncode == 0) == case.accepted, made.stderr
    assert case.accepted or "72 are allowed" in made.stderr
