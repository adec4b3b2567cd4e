"""Contents of the generated data files, and their differences from the committed ones."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.knowledge.cost_map import model_rows
from scripts.knowledge.litellm_models import source_model_rows
from scripts.knowledge.packages import LICENCE, installed
from scripts.knowledge.public_prices import providers
from umg_grpc.knowledge.price_data_packages import DATA_PACKAGES, Package
from umg_grpc.knowledge.public_prices import genai_prices, litellm_cost_map
from umg_grpc.knowledge.public_prices.price_row_merging import Rows as PriceRows
from umg_grpc.knowledge.public_prices.price_row_merging import merged

KEYS = ("vendor", "provider", "model", "mode")
"""Members that identify a row."""
OTHER_FILES = {"generated_models": ", litellm_models.json"}
"""Data file -> names of other files of the same package, in its notice."""

Rows = Sequence[Mapping[str, Any]]


def generated() -> Mapping[str, str]:
    """Return the text of each generated data file by its name."""
    models, prices = DATA_PACKAGES["generated_models"], DATA_PACKAGES["generated_prices"]
    costs = json.loads(_data(models).read_text())
    return {
        models.data: _text(model_rows(costs)),
        "litellm_models": _text(source_model_rows(costs)),
        prices.data: _text(merged(*public_prices())),
    }


def public_prices() -> tuple[PriceRows, PriceRows]:
    """Return the prices of genai-prices, and those of the cost map of litellm."""
    models, prices = DATA_PACKAGES["generated_models"], DATA_PACKAGES["generated_prices"]
    return (
        genai_prices.price_rows(providers(_data(prices).read_text()), prices.as_of),
        litellm_cost_map.price_rows(json.loads(_data(models).read_text())),
    )


def licences() -> str:
    """Return the licence notices of the packages, which go with each copy of the generated data."""
    notices = [
        f"{package.data}.json{OTHER_FILES.get(package.data, '')}: made from data of {package} ({package.source}).\n\n"
        + (installed() / package.name / LICENCE).read_text().strip()
        for package in DATA_PACKAGES.values()
    ]
    return "\n\n---\n\n".join(notices) + "\n"


def changes(before: str, after: str) -> str:
    """Return a summary of the differences between two texts of a data file: ids that were added, removed or changed."""
    old, new = _by_id(before), _by_id(after)
    parts = {
        "added": [each for each in new if each not in old],
        "removed": [each for each in old if each not in new],
        "changed": [each for each in new if each in old and new[each] != old[each]],
    }
    lines = [f"{len(ids)} {verb}: {', '.join(ids)}" for verb, ids in parts.items() if ids]
    return "\n  ".join([f"{len(new)} rows", *(lines or ["nothing changed"])])


def _by_id(text: str) -> Mapping[str, Mapping[str, Any]]:
    rows = json.loads(text)
    return {"/".join(str(row[name]) for name in KEYS if name in row): row for row in rows}


def _data(package: Package) -> Path:
    return installed() / package.name / Path(package.member).name


def _text(rows: Rows) -> str:
    return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n"
