"""Copy the files of other projects that the pages contain from their npm packages, and write their table again:
`python -m scripts.pages.vendored_files`.

`http_facade/assets/vendor/packages.json` has the package, version, licence and SHA-256 of each file. A test compares
the files with the packages of `tests/world/pages/package-lock.json`.
"""

import hashlib
import json
import shutil
from pathlib import Path
from typing import NamedTuple

from tests.world.pages import page_tools

ASSETS = Path(__file__).parents[2] / "http_facade" / "assets"
FOLDER = ASSETS / "vendor"
TABLE = FOLDER / "packages.json"


class VendoredFile(NamedTuple):
    """Row of the table: a file of another project."""

    name: str
    package: str
    path: str
    """Path of the file in its package."""
    types: str
    """Path of the file with its types; "" for none."""
    version: str
    licence: str
    sha256: str


def vendored_files() -> list[VendoredFile]:
    """Return the rows of the table."""
    return [VendoredFile(**row) for row in json.loads(TABLE.read_text(encoding="utf-8"))]


def renewed(file: VendoredFile, modules: Path) -> VendoredFile:
    """Return the row of a file as its installed package has it."""
    package = json.loads((modules / file.package / "package.json").read_text(encoding="utf-8"))
    digest = hashlib.sha256((modules / file.package / file.path).read_bytes()).hexdigest()
    return file._replace(version=package["version"], licence=package["license"], sha256=digest)


def main() -> None:
    """Copy all files, and write the table."""
    modules = page_tools.installed()
    rows = [renewed(file, modules) for file in vendored_files()]
    for file in rows:
        shutil.copyfile(modules / file.package / file.path, FOLDER / file.name)
    TABLE.write_text(json.dumps([file._asdict() for file in rows], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
