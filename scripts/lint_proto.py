"""Check the schema: run `buf lint`, and `buf breaking` against the commit named in `proto/RELEASED`.

buf gets compiled images, not sources: the rules' schema that our files import is no file here (see `hatch_build.py`).
"""

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hatch_build import compile_protos  # noqa: E402  the path above makes it importable

BUF = Path(sysconfig.get_path("scripts")) / "buf"
IMPORTED = ["buf/validate", "google"]


def image(root: Path, folder: Path) -> Path:
    """Return an image of the .proto files below `root`, with their comments."""
    made = folder / "image.binpb"
    folder.mkdir(exist_ok=True)
    compile_protos(root, ["--include_source_info", "--include_imports", f"--descriptor_set_out={made}"], [])
    return made


def buf(command: str, *arguments: str) -> int:
    """Run a command of buf, which prints its findings. Return its exit status."""
    excluded = [part for path in IMPORTED for part in ("--exclude-path", path)]
    return subprocess.run([BUF, command, *arguments, *excluded], cwd=ROOT, check=False).returncode


def main() -> int:
    """Check the schema. Return the exit status, 0 if it passes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        current = image(ROOT, folder / "current")
        failed = buf("lint", str(current))
        released = ROOT / "proto" / "RELEASED"
        if not released.exists():
            print("buf breaking: proto/RELEASED names no commit, so nothing is released yet and nothing can break")
            return failed
        commit = released.read_text().strip()
        archive = subprocess.run(
            ["git", "archive", commit, "proto"], cwd=ROOT, check=True, stdout=subprocess.PIPE
        ).stdout
        (folder / "released").mkdir()
        subprocess.run(["tar", "-x"], cwd=folder / "released", input=archive, check=True)
        old = image(folder / "released", folder / "old")
        return failed or buf("breaking", str(current), "--against", str(old))


if __name__ == "__main__":
    sys.exit(main())
