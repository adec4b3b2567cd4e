"""Generate the Go client's code, `clients/go/gen`, which is committed, because `go get` reads the repository.

`buf.gen.yaml` names the plugins and their versions, which `go run` downloads. `--check` compares instead of writing.
Without Go the script prints a note and does nothing, unless `UMG_CLIENTS` names `go`.
"""

import filecmp
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
BUF = Path(sysconfig.get_path("scripts")) / "buf"
COMMITTED = "clients/go/gen"


def generate(target: Path) -> str | None:
    """Write the generated code into a directory. Return the reason if it cannot be generated on this machine, else
    None.
    """
    if shutil.which("go") is None:
        return "there is no go on PATH"
    template = yaml.safe_load((ROOT / "buf.gen.yaml").read_text(encoding="utf-8"))
    plugins = [plugin for plugin in template["plugins"] if plugin["out"] == COMMITTED]
    for plugin in plugins:
        got = subprocess.run([*plugin["local"], "--version"], capture_output=True, text=True, check=False)
        if got.returncode != 0:
            return f"go cannot get a plugin: {got.stderr.strip()[-300:]}"
    template["plugins"] = [plugin | {"out": str(target)} for plugin in plugins]
    subprocess.run([BUF, "generate", "--template", json.dumps(template)], cwd=ROOT, check=True)
    return None


def differences(made: Path, committed: Path) -> Iterator[str]:
    """Yield the path of each file that only one of two directories has, or that differs."""
    names = {path.relative_to(place) for place in (made, committed) for path in place.rglob("*.go")}
    for name in sorted(names):
        files = (made / name, committed / name)
        if not all(file.is_file() for file in files) or not filecmp.cmp(*files, shallow=False):
            yield str(name)


def main() -> int:
    """Generate or compare the code. Return the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        check = "--check" in sys.argv[1:]
        reason = generate(Path(folder) if check else ROOT / COMMITTED)
        if reason is not None:
            print(f"{COMMITTED} is not {'checked' if check else 'generated'}: {reason}")
            return 1 if "go" in os.environ.get("UMG_CLIENTS", "").split(",") else 0
        changed = list(differences(Path(folder), ROOT / COMMITTED)) if check else []
    for name in changed:
        print(f"{COMMITTED}/{name} differs from the schema: run `make proto` and commit the result")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
