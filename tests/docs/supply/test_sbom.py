"""Bill of materials: a valid CycloneDX document of the gateway and its packages."""

import json
import shutil
import sysconfig
import venv
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from scripts import sbom
from scripts.lock import Requirement, pins, python_locks


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """Return the interpreter of a virtualenv that has the metadata of one package."""
    venv.create(tmp_path / "venv")
    packages = sysconfig.get_path("purelib", "venv", vars={"base": str(tmp_path / "venv")})
    (metadata,) = Path(str(distribution("aiohttp").locate_file(""))).glob("aiohttp-*.dist-info")
    shutil.copytree(metadata, Path(packages) / metadata.name)
    return tmp_path / "venv" / "bin" / "python"


def test_a_bill_describes_the_gateway_and_the_packages_of_an_environment(python: Path, tmp_path: Path) -> None:
    target = tmp_path / "bill.json"
    sbom.describe(python, target)
    text = target.read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bill = json.loads(text)
    gateway = bill["metadata"]["component"]
    assert (gateway["name"], gateway["type"]) == ("unified-model-gateway", "application")
    assert {"name": "aiohttp", "version": version("aiohttp")}.items() <= _component(bill, "aiohttp").items()
    assert _component(bill, "aiohttp")["purl"] == f"pkg:pypi/aiohttp@{version('aiohttp')}"
    assert str(tmp_path) not in text


def test_a_pin_that_a_bill_lacks_is_found() -> None:
    here = [pin.requirement for pin in pins(sbom.LOCK.read_text()) if _is_here(pin.requirement)]
    parts = [{"name": pin.name, "version": str(pin.specifier).removeprefix("==")} for pin in here]
    assert sbom.missing({"components": parts}) == set()
    assert sbom.missing({"components": parts[1:]}) == {f"{here[0].name}{here[0].specifier}"}


def test_the_bill_is_of_the_lock_that_is_served() -> None:
    assert sbom.LOCK in [sbom.ROOT / lock.path for lock in python_locks(sbom.ROOT)]


def _component(bill: dict[str, list[dict[str, str]]], name: str) -> dict[str, str]:
    (found,) = [part for part in bill["components"] if part["name"] == name]
    return found


def _is_here(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate()
