"""Source tree of an earlier version of the gateway, with its generated code."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from umg_grpc.store.schema_version import NEWEST_MIGRATION

ROOT = Path(__file__).parents[3]
PACKAGES = ("umg_grpc", "umg_sandbox", "http_facade", "proto", "third_party", "hatch_build.py")
STORE = Path("umg_grpc/store")
MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision = "next"
down_revision = "{head}"


def upgrade() -> None:
    op.add_column("api_keys", sa.Column("next_version", sa.Text()))
"""


@dataclass(frozen=True)
class Version:
    name: str
    tree: Path | None
    """Folder of its sources; None for the installed ones."""

    @property
    def program(self) -> tuple[str, ...]:
        """Command that runs `umg` of this version; empty for the installed one."""
        return (sys.executable, "-P", "-m", "umg_grpc.cli") if self.tree is not None else ()

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the processes. The packages that it depends on are those of today."""
        return {"PYTHONPATH": f"{self.tree}{os.pathsep}{self.tree}/gen"} if self.tree is not None else {}


CURRENT = Version("this version", None)


def previous_commit() -> str:
    """Return the name of the commit before the current one; "" in a clone without history."""
    return _git("rev-parse", "--verify", "--quiet", "HEAD~1")


def extract(revision: str, folder: Path) -> Version:
    """Write the tree of a commit into a folder, and generate its code unless the schema is that of today."""
    tree = folder / "version"
    tree.mkdir()
    found = _git("ls-tree", "--name-only", revision, *PACKAGES).split()  # an earlier version may lack one
    archive = subprocess.run(["git", "archive", revision, *found], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "x"], cwd=tree, input=archive, check=True)
    if _git("diff", "--name-only", revision, "--", "proto", "third_party"):
        generate = f"import hatch_build, pathlib; hatch_build.generate(pathlib.Path({str(tree)!r}))"
        subprocess.run([sys.executable, "-c", generate], cwd=tree, check=True)
    else:
        shutil.copytree(ROOT / "gen", tree / "gen")
    return Version(_git("log", "-1", "--format=%h, %s", revision), tree)


def next_version(folder: Path) -> Version:
    """Write the tree of this version into a folder, with one more migration of the database: a new column of a table
    that every process reads.
    """
    tree = folder / "next"
    for name in ("umg_grpc", "umg_sandbox", "http_facade", "gen"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tree / STORE / "migrations/versions/next.py").write_text(MIGRATION.format(head=NEWEST_MIGRATION))
    text, line = (file := tree / STORE / "schema_version.py").read_text(), f'NEWEST_MIGRATION = "{NEWEST_MIGRATION}"'
    assert line in text
    file.write_text(text.replace(line, 'NEWEST_MIGRATION = "next"'))
    return Version("this version with one more migration", tree)


def _git(*arguments: str) -> str:
    if shutil.which("git") is None:
        return ""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
