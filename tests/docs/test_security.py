"""Security policy: its version is the one of the package, and its list of measures leads to the pages about them."""

import re
import tomllib

from scripts import docs_site
from tests.docs.tables import rows

ROOT = docs_site.ROOT
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
[UNIT] = (ROOT / "deploy/systemd").glob("*.service")


def test_the_supported_version_is_the_one_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    [supported] = [cells[0] for cells in rows(PAGE, "Supported versions") if cells[1] == "yes"]
    assert supported == f"{version.rpartition('.')[0]}.x"


def test_the_page_names_no_address_of_a_person() -> None:
    assert not re.search(r"\S+@\S+\.\w", PAGE)


def test_each_measure_leads_to_a_page() -> None:
    found = rows(PAGE, "Hardening")
    assert len(found) > 10
    assert [cells[0] for cells in found if "](docs/" not in cells[1]] == []


def test_the_image_and_the_unit_have_the_restrictions_of_the_page() -> None:
    assert re.search(r"^USER [1-9]\d*", DOCKERFILE, re.MULTILINE)
    unit = UNIT.read_text(encoding="utf-8")
    assert "DynamicUser=yes" in unit
    assert "NoNewPrivileges=yes" in unit
