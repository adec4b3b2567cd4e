"""Sources of the judges outside this project: the cost map of litellm, request types of SDKs, facts with their reports.

Nothing here reads `umg_grpc.knowledge`, so that no judge repeats an error of the product's own tables.
"""

import json
import zipfile
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.json import decode

from scripts.knowledge import packages as data_packages
from tests.pairs.vendors.wheel_types import WheelTypes
from tests.world.sdk.runner import packages, wheels

HERE = Path(__file__).parent
LOCK = HERE / "sdk.lock"
TYPES = "mistralai/client/models/"

PREFIXES = {
    "openai": "",
    "azure": "",
    "anthropic": "",
    "bedrock-anthropic": "",
    "gemini": "gemini/",
    "vertex": "vertex_ai/",
    "together": "together_ai/",
    "ark": "volcengine/",
}
"""Vendor -> prefix of its ids in the cost map, if it is not its name."""


class Fact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fact about models of a vendor that the cost map lacks."""

    vendor: str
    models: str
    """Pattern of their ids."""
    efforts: tuple[str, ...] | None = None
    """Efforts that have an effect."""
    taken: tuple[str, ...] | None = None
    """Efforts that are not refused, if more than `efforts`."""
    ignores: bool = False
    """Whether other efforts are taken without effect, instead of refused."""
    switch: str = ""
    """Member that switches reasoning on and off."""
    default: str = ""
    """Reasoning where the request does not state it: `on`, `off` or `always`."""
    no_effect: tuple[str, ...] = ()
    """Features that are taken without effect."""
    no_effect_in: Mapping[str, tuple[str, ...]] = {}
    """Protocol -> features that are taken without effect there, or without a source for one."""
    off_below: str = ""
    """Lowest effort beside which reasoning cannot be off."""
    source: str


class ReportedRefusal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Refusal that public reports quote, with places for its variable parts."""

    id: str
    field: str
    message: str
    reports: tuple[str, ...]
    status: int = 400


NO_FACT = Fact(vendor="", models="*", source="")


@cache
def cost_map() -> Mapping[str, Mapping[str, Any]]:
    """Return the rows of the cost map, by id. Raise RuntimeError if its package cannot be downloaded."""
    (path,) = (data_packages.installed() / "litellm").glob("*.json")
    found = json.loads(path.read_text())
    assert isinstance(found, dict)
    return found


def flags(vendor: str, model: str) -> Mapping[str, Any]:
    """Return the row of a model in the cost map; empty if it has none."""
    return cost_map().get(PREFIXES.get(vendor, f"{vendor}/") + model, {})


@cache
def fact(vendor: str, model: str) -> Fact:
    """Return the first fact about a model; an empty one if there is none."""
    return next(
        (row for row in rows("facts", Fact) if row.vendor == vendor and fnmatchcase(model, row.models)), NO_FACT
    )


@cache
def refusals() -> Mapping[str, ReportedRefusal]:
    """Return the refusals by id."""
    return {row.id: row for row in rows("refusals", ReportedRefusal)}


@cache
def mistral_types() -> WheelTypes:
    """Return the request types of Mistral's SDK. Raise RuntimeError if it cannot be downloaded."""
    return WheelTypes(installed() / "models")


def installed() -> Path:
    """Return the directory with the walked SDK's types, after their download. Raise RuntimeError if it fails."""
    return packages("umg-vendor-sdks", LOCK.read_bytes(), _extract)


def _extract(target: Path) -> None:
    (wheel,) = wheels(LOCK).glob("mistralai-*.whl")
    (target / "models").mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(TYPES):
                (target / "models" / Path(name).name).write_bytes(archive.read(name))


@cache
def rows(name: str, of: type[Any]) -> tuple[Any, ...]:
    return tuple(decode(line, type=of) for line in (HERE / f"{name}.jsonl").read_text().splitlines())
