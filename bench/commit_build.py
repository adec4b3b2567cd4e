"""Build of the gateway of another commit: a git worktree below `build/`, with its own generated code.

It runs with the packages of this virtualenv, so nothing is installed or downloaded.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.benchmark_rounds import Build
from bench.processes import BenchError, output_of

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ("proto", "third_party")
RULES_PROTO = "buf/validate/validate.proto"
LOCK = "requirements/serve.lock"


@asynccontextmanager
async def built(commit: str, name: str, root: Path = ROOT) -> AsyncGenerator[Build, None]:
    """Build a commit of the repository `root`, under the name of a target. Remove it again at the end of the block.

    Raises BenchError for an unknown commit, without git, or if protoc fails.
    """
    if shutil.which("git") is None:
        raise BenchError("git is missing, which writes the files of the other commit; install it")
    revision = await commit_id(commit, root)
    (root / "build").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"bench-{revision[:8]}-", dir=root / "build"))
    try:
        await output_of(["git", "worktree", "add", "--quiet", "--detach", "--force", str(folder), revision], root)
        await _generate(revision, folder, root)
        yield Build(name, folder)
    finally:
        _remove(folder, root)


def _remove(folder: Path, root: Path) -> None:
    """Remove a worktree. Nothing is awaited, so that a second signal cannot cancel it."""
    shutil.rmtree(folder, ignore_errors=True)
    for command in (["unlock", str(folder)], ["prune"]):  # git locks a worktree while it makes it, and may be killed
        subprocess.run(
            ["git", "worktree", *command], cwd=root, capture_output=True, check=False, start_new_session=True
        )


async def commit_id(commit: str, root: Path = ROOT) -> str:
    """Return the full id of a commit. Raises BenchError if the repository has none of this name."""
    try:
        return await output_of(
            ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}"], root
        )
    except BenchError:
        raise BenchError(f"no commit {commit!r} in {root}; name one of `git log`, or fetch it") from None


async def locks_differ(commit: str, root: Path = ROOT) -> bool:
    """Return whether a commit locks other packages than the ones that both builds run with."""
    return bool(await output_of(["git", "diff", "--name-only", commit, "--", LOCK], root))


async def _generate(revision: str, folder: Path, root: Path) -> None:
    """Write the generated code of a worktree: a copy of ours, over which a different schema is compiled."""
    shutil.copytree(root / "gen", folder / "gen")
    if not await output_of(["git", "diff", "--name-only", revision, "--", *SCHEMA], root):
        return
    files = sorted(str(path.relative_to(folder / "proto")) for path in (folder / "proto").rglob("*.proto"))
    imports = [f"-I{name}" for name in SCHEMA]
    outputs = ["--python_out=gen", "--grpc_python_out=gen"]
    await output_of([sys.executable, "-m", "grpc_tools.protoc", *imports, *outputs, *files, RULES_PROTO], folder)
