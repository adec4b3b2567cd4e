"""Comparison of public data about models and prices with our rows: the cost map, the price list, ids of the AI SDK."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import msgspec

from scripts.knowledge.cost_map import model_rows
from scripts.knowledge.public_prices import providers
from scripts.vendors.findings import Finding
from umg_grpc.knowledge.data_files import DATA_FOLDER
from umg_grpc.knowledge.model_facts_by_id import find
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS
from umg_grpc.knowledge.public_prices import genai_prices
from umg_grpc.knowledge.public_prices.litellm_cost_map import price_rows as prices_of_cost_map
from umg_grpc.knowledge.public_prices.price_row_merging import MODEL_MAKERS, Rows, is_equal
from umg_grpc.knowledge.shipped_prices import price_ids

COST_MAP = "litellm"
PRICES = "genai-prices"
MEMBERS = {COST_MAP: "litellm/model_prices_and_context_window_backup.json", PRICES: "genai_prices/data.py"}
"""Package on PyPI -> file in its wheel that has the data."""
AI_SDK = {
    "@ai-sdk/openai": "openai",
    "@ai-sdk/anthropic": "anthropic",
    "@ai-sdk/google": "gemini",
    "@ai-sdk/mistral": "mistral",
    "@ai-sdk/xai": "xai",
    "@ai-sdk/deepseek": "deepseek",
    "@ai-sdk/moonshotai": "moonshot",
    "@ai-sdk/alibaba": "dashscope",
    "@ai-sdk/bytedance": "ark",
    "@ai-sdk/cohere": "cohere",
}
"""Provider package of the AI SDK on npm -> vendor."""
MODEL_TYPE = re.compile(r"type \w*(?:Chat|Language|Responses|Messages|Generative\w*)\w*ModelId\s*=([^;]+);")
MODEL_ID = re.compile(r"""['"](\w+[./:-][\w./:-]+|\w*\d\w*)['"]""")
NEVER = "9999-12-31"
KEPT = "make knowledge after raising the version in umg_grpc/knowledge/data/packages.json and make lock"


def of_cost_map(data: bytes, today: date) -> Iterator[Finding]:
    """Yield the differences of the newest cost map from our rows, and models of ours that it states as retired."""
    cost_map = msgspec.json.decode(data, type=dict[str, dict[str, Any]])
    yield from _of_rows("facts of models", COST_MAP, model_rows(cost_map), "generated_models")
    yield from _of_prices(prices_of_cost_map(cost_map), COST_MAP)
    for model in sorted(_named_models()):
        dates = {
            str(entry.get("deprecation_date", NEVER))
            for key, entry in cost_map.items()
            if key.rpartition("/")[2] == model
        }
        if dates and max(dates) <= today.isoformat():
            place = "presets.json, prices.json or models.json of umg_grpc/knowledge/data"
            yield Finding("retired models", COST_MAP, f"{model}, since {max(dates)}", place)


def of_prices(source: str, today: date) -> Iterator[Finding]:
    """Yield the prices for input and output in the newest price list, on a day, that differ from our rows."""
    yield from _of_prices(genai_prices.price_rows(providers(source), today.isoformat()), PRICES)


def of_ai_sdk(package: str, sources: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the ids of models in a provider package of the AI SDK that no row of ours is about."""
    for model in sorted(model_ids(sources)):
        if not find(model, AI_SDK[package]).applied:
            yield Finding("models", package, model, "umg_grpc/knowledge/data/models.json or series.json")


def model_ids(sources: Mapping[str, str]) -> set[str]:
    """Return the ids of text models that TypeScript files name in the types of model ids."""
    declared = (found[1] for text in sources.values() for found in MODEL_TYPE.finditer(text))
    return {found[1] for text in declared for found in MODEL_ID.finditer(text)}


def _of_prices(theirs: Rows, package: str) -> Iterator[Finding]:
    """Yield the prices for input and output in a package that differ from our rows."""
    ours = {(row["vendor"], row["model"]): row for row in _committed("generated_prices")}
    for (vendor, model), row in sorted(theirs.items()):
        keys = ((each, id_) for each in (vendor, *MODEL_MAKERS) for id_ in price_ids(model))
        known = [ours[key] for key in keys if key in ours]
        if not known:
            yield Finding("prices", package, f"{vendor}/{model}: new", KEPT)
        elif known[0].get("package", package) == package and not any(is_equal(each, row) for each in known):
            yield Finding("prices", package, f"{vendor}/{model}: {_changes(known[0], row)}", KEPT)
    for key in sorted(key for key, row in ours.items() if row.get("package") == package and key not in theirs):
        yield Finding("prices", package, f"{'/'.join(key)}: gone", KEPT)


def _of_rows(group: str, source: str, rows: Sequence[Mapping[str, Any]], name: str) -> Iterator[Finding]:
    """Yield the rows that differ from those of a generated data file."""
    ours = _by_id(_committed(name))
    theirs = _by_id(msgspec.json.decode(msgspec.json.encode(rows), type=list[dict[str, Any]]))
    for key in sorted(ours.keys() | theirs.keys()):
        if ours.get(key) == theirs.get(key):
            continue
        verb = "new" if key not in ours else "gone" if key not in theirs else _changes(ours[key], theirs[key])
        yield Finding(group, source, f"{key}: {verb}", KEPT)


def _changes(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    names = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    return ", ".join(f"{name} {ours.get(name)} -> {theirs.get(name)}" for name in names)


def _committed(name: str) -> list[dict[str, Any]]:
    return msgspec.json.decode((DATA_FOLDER / f"{name}.json").read_bytes(), type=list[dict[str, Any]])


def _by_id(rows: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {f"{row['vendor']}/{row['model']}": row for row in rows}


def _named_models() -> set[str]:
    ids = {str(row["model"]) for row in _committed("prices")}
    for provider in PROVIDER_PRESETS.values():
        ids |= {model if isinstance(model, str) else model.id for model in provider.models}
    return {model for model in ids if "*" not in model}
