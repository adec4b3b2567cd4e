"""Rows about prices, from the module of data in the package `genai-prices`."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from umg_grpc.knowledge.shipped_prices import price_ids
from umg_grpc.knowledge.vendors import CLOSED_MAKERS, OPEN_MAKERS

VENDORS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "gemini",
    "azure": "azure",
    "aws": "bedrock",
    "openrouter": "openrouter",
    "groq": "groq",
    "cerebras": "cerebras",
    "together": "together",
    "fireworks": "fireworks",
    "mistral": "mistral",
    "deepseek": "deepseek",
    "x-ai": "xai",
    "moonshotai": "moonshot",
    "zai": "zai",
    "cohere": "cohere",
    "voyageai": "voyage",
    "minimax": "minimax",
}
"""Provider in the package -> vendor."""
MAKERS = frozenset({*CLOSED_MAKERS, *OPEN_MAKERS})
UNITS = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "long_cache_write",
    "input_audio_mtok": "audio_input",
    "output_audio_mtok": "audio_output",
    "input_image_mtok": "image_input",
    "output_image_mtok": "image_output",
    "web_searches_kcount": "search",
}
"""Unit in the package -> member of our rows."""
OTHER_PRODUCTS = re.compile(r"regional\.|.*(?:\.ft-|:free|:extended)")  # ids of AWS with a surcharge, tunings, variants


def providers(source: str) -> list[dict[str, Any]]:
    """Return the providers in the source of the package's module of data, which is parsed and not executed."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "providers":
            found = _value(node.value)
            assert isinstance(found, list)
            return found
    raise ValueError("the module has no list of providers")


def price_rows(listed: Sequence[Mapping[str, Any]], as_of: str) -> list[dict[str, str]]:
    """Return the rows about prices, sorted by vendor and model: those of the standard tier and of short prompts, on a
    day, at the hours of the highest price.

    A model that other vendors sell at the price of its maker has a row of the maker alone.
    """
    rows: dict[tuple[str, str], dict[str, str]] = {}
    aliases: dict[tuple[str, str], dict[str, str]] = {}
    for provider in listed:
        if (vendor := VENDORS.get(provider["id"])) is None:
            continue
        for model in provider["models"]:
            prices = dict(_unit_prices(_prices_on(date.fromisoformat(as_of), model["prices"])))
            if not prices or OTHER_PRODUCTS.match(model["id"]):
                continue
            own, *others = _names(model)
            rows.setdefault((_vendor(vendor, own), own), prices)
            for name in others:
                aliases.setdefault((_vendor(vendor, name), name), prices)
    rows = aliases | rows
    return [
        {"model": model, "vendor": vendor} | prices
        for (vendor, model), prices in sorted(rows.items())
        if vendor in MAKERS or not any(rows.get((maker, model)) == prices for maker in MAKERS)
    ]


def _vendor(vendor: str, model: str) -> str:
    """Return the vendor by whose API a model is called, of a provider with several."""
    if model.startswith("claude"):
        return {"gemini": "vertex", "bedrock": "bedrock-anthropic"}.get(vendor, vendor)
    return vendor


def _names(model: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids of a model: its own, and the other ids in its conditions, each without prefixes."""
    clauses = model["match"].get("or_", [model["match"]])
    ids = [model["id"], *(clause[kind] for clause in clauses for kind in ("equals", "starts_with") if kind in clause)]
    return (price_ids(each.rstrip("-@:"))[0] for each in dict.fromkeys(ids))


def _prices_on(day: date, prices: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the prices of a model on a day. Of several for times of the day it is the one with the highest price."""
    if isinstance(prices, Mapping):
        return prices
    found: Mapping[str, Any] = {}
    for each in prices:
        constraint = each.get("constraint") or {}
        start = constraint.get("start_date")
        if start is not None and date(*start["arguments"]) > day:
            continue
        if "start_time" in constraint and _base(each["prices"].get("input_mtok")) <= _base(found.get("input_mtok")):
            continue
        found = each["prices"]
    return found


def _unit_prices(prices: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (member of a row, credits) for the units that are priced."""
    for unit, name in UNITS.items():
        if price := _base(prices.get(unit)):
            yield name, f"{(price / 1000 if name == 'search' else price).normalize():f}"


def _base(price: Mapping[str, str] | str | None) -> Decimal:
    """Return a price, or its first tier."""
    return Decimal((price["base"] if isinstance(price, Mapping) else price) or 0)


def _value(node: ast.expr) -> object:
    """Return the value of an expression: a literal, list or dictionary, or the arguments of a call by name."""
    match node:
        case ast.Constant():
            return node.value
        case ast.List() | ast.Tuple():
            return [_value(each) for each in node.elts]
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            return {_value(key): _value(value) for key, value in pairs if key is not None}
        case ast.Call(func=ast.Name(id="Decimal")):
            return _value(node.args[0])
        case ast.Call():
            named = {each.arg: _value(each.value) for each in node.keywords if each.arg is not None}
            return named | ({"arguments": [_value(each) for each in node.args]} if node.args else {})
        case ast.Attribute():
            return node.attr
        case _:  # of the many kinds of expressions the data has no other
            raise ValueError(f"no value in the data: {ast.dump(node)}")
