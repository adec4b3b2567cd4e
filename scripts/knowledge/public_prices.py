"""Rows about prices, from the module of data in the package `genai-prices`."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from scripts.knowledge.price_rates import SEARCH, Credits, Row, Term, rate_rows, text, texts
from umg_grpc.knowledge.shipped_prices import price_ids

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
THOUSAND = 1000
OTHER_PRODUCTS = re.compile(r"regional\.|.*(?:\.ft-|:free|:extended)")  # ids of AWS with a surcharge, tunings, variants


def providers(source: str) -> list[dict[str, Any]]:
    """Return the providers in the source of the package's module of data, which is parsed and not executed."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "providers":
            found = _value(node.value)
            assert isinstance(found, list)
            return found
    raise ValueError("the module has no list of providers")


def price_rows(listed: Sequence[Mapping[str, Any]], as_of: str) -> dict[tuple[str, str], Row]:
    """Return the prices on a day by vendor and model, with rates for long prompts, the hours of lower prices, and later
    days.
    """
    rows: dict[tuple[str, str], Row] = {}
    aliases: dict[tuple[str, str], Row] = {}
    for provider in listed:
        if (vendor := VENDORS.get(provider["id"])) is None:
            continue
        for model in provider["models"]:
            row = _row(model["prices"], date.fromisoformat(as_of))
            if not row or OTHER_PRODUCTS.match(model["id"]):
                continue
            own, *others = _names(model)
            rows.setdefault((_vendor(vendor, own), own), row)
            for name in others:
                aliases.setdefault((_vendor(vendor, name), name), row)
    return aliases | rows


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


def _row(prices: Mapping[str, Any] | Sequence[Mapping[str, Any]], day: date) -> Row:
    """Return the members of the row of a model on a day, in the hours of the highest prices."""
    dated = [{"prices": prices}] if isinstance(prices, Mapping) else prices
    found: Mapping[str, Any] = {}
    later = []
    for each in dated:
        constraint = each.get("constraint") or {}
        start = date(*constraint["start_date"]["arguments"]) if constraint.get("start_date") else None
        if start is not None and start > day:
            later.append((start, each["prices"]))
        elif "start_time" not in constraint or _input(each["prices"]) > _input(found):
            found = each["prices"]
    stated = _stated(found)
    base = stated[Term()]
    rates = [*rate_rows(stated)]
    for start, others in later:
        rates += [{"start": start.isoformat()} | dict(rate) for rate in _later_rates(stated, _stated(others))]
    return texts(base) | ({"rates": rates} if rates else {})


def _later_rates(stated: Mapping[Term, Credits], later: Mapping[Term, Credits]) -> Iterator[Row]:
    """Yield the rates of later prices: a factor where one gives them all, else the prices of each condition."""
    (factor, *others) = dict.fromkeys(
        later[term][unit] / price
        for term in stated
        for unit, price in stated[term].items()
        if price and unit != SEARCH and later[term].get(unit)
    )
    if not others:
        yield {"times": text(factor)}
    else:
        for term in sorted(later):
            yield ({"above": term.above} if term.above else {}) | texts(later[term])


def _input(prices: Mapping[str, Any]) -> Decimal:
    return _amount(prices.get("input_mtok", 0), 0)


def _stated(prices: Mapping[str, Any]) -> dict[Term, dict[str, Decimal]]:
    """Return the priced units by condition, without prices of 0 beside others."""
    starts = {0} | {tier["start"] for price in prices.values() if isinstance(price, Mapping) for tier in price["tiers"]}
    found = {
        Term(start): {
            name: _amount(prices[unit], start) / (THOUSAND if name == SEARCH else 1)
            for unit, name in UNITS.items()
            if unit in prices
        }
        for start in sorted(starts)
    }
    is_free = not any(found[Term()].values())
    return {term: {unit: price for unit, price in units.items() if price or is_free} for term, units in found.items()}


def _amount(price: Mapping[str, Any] | str | int, above: int) -> Decimal:
    """Return a price of prompts with more tokens than `above`."""
    if not isinstance(price, Mapping):
        return Decimal(price)
    amounts = {0: price["base"], **{tier["start"]: tier["price"] for tier in price["tiers"]}}
    return Decimal(amounts[max(start for start in amounts if start <= above)])


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
