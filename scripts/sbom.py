"""Write the bill of materials of a release: a CycloneDX document of the gateway and all packages that `serve.lock`
pins.

The pinned packages are installed into a directory of their own, so that licences and dependencies are those of the
packages themselves and the tools of the tests are not among them.
"""

import json
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.lock import pins  # noqa: E402  the path above makes it importable

LOCK = ROOT / "requirements" / "serve.lock"
TARGET = ROOT / "dist" / "unified-model-gateway.cdx.json"


def write(target: Path) -> None:
    """Install the pinned packages and write their bill of materials. Raises CalledProcessError if they cannot be
    installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder)
        python = Path(folder) / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
        subprocess.run([*pip, "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(LOCK)], check=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        describe(python, target)


def describe(python: Path, target: Path) -> None:
    """Write the bill of materials of the packages of a Python installation; cyclonedx-py validates it against the
    schema.
    """
    cyclonedx = Path(sysconfig.get_path("scripts")) / "cyclonedx-py"
    command = [str(cyclonedx), "environment", "--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application"]
    command += ["--spec-version", "1.6", "--output-format", "JSON", "--output-reproducible", "--validate"]
    subprocess.run([*command, "--output-file", str(target), str(python)], check=True)


def missing(bill: dict[str, Any]) -> set[str]:
    """Return the pins for this platform that are no components of `bill`, as `name==version`."""
    components = {f"{canonicalize_name(part['name'])}=={part['version']}" for part in bill["components"]}
    wanted = [pin.requirement for pin in pins(LOCK.read_text())]
    here = [requirement for requirement in wanted if requirement.marker is None or requirement.marker.evaluate()]
    return {f"{canonicalize_name(requirement.name)}{requirement.specifier}" for requirement in here} - components


def main() -> int:
    """Write the bill into dist/. Return the exit status."""
    write(TARGET)
    bill = json.loads(TARGET.read_text())
    if absent := missing(bill):
        print(f"{TARGET.name} lacks {', '.join(sorted(absent))}, which {LOCK.name} pins", file=sys.stderr)
        return 1
    print(f"{TARGET.relative_to(ROOT)}: {len(bill['components'])} components")
    return 0


if __name__ == "__main__":
    sys.exit(main())
