"""Rows of prices from the data of genai-prices: its providers, as its JSON file has them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from umg_grpc.knowledge.public_prices.shortest_rate_rows import SEARCH_RATE, Credits, Row, Term, rate_rows, text, texts
from umg_grpc.knowledge.shipped_prices import price_ids

PROVIDER_VENDORS = {
    **{name: name for name in ("openai", "anthropic", "azure", "openrouter", "groq", "cerebras", "together")},
    **{name: name for name in ("fireworks", "mistral", "deepseek", "zai", "cohere", "minimax")},
    "google": "gemini",
    "aws": "bedrock",
    "x-ai": "xai",
    "moonshotai": "moonshot",
    "voyageai": "voyage",
}
UNIT_MEMBERS = {
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
ONE_THOUSAND = 1000
OTHER_PRODUCTS = re.compile(r"regional\.|.*(?:\.ft-|:free|:extended|:batch)")
"""Ids of AWS with a surcharge, tunings, and variants of a model with other prices."""


def price_rows(listed: Sequence[Mapping[str, Any]], as_of: str) -> dict[tuple[str, str], Row]:
    """Return the prices on a day by vendor and model, with rates for long prompts, cheap hours, and later days."""
    rows: dict[tuple[str, str], Row] = {}
    aliases: dict[tuple[str, str], Row] = {}
    for provider in listed:
        if (vendor := PROVIDER_VENDORS.get(provider["id"])) is None:
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
    if model.startswith("claude"):
        return {"gemini": "vertex", "bedrock": "bedrock-anthropic"}.get(vendor, vendor)
    return vendor


def _names(model: Mapping[str, Any]) -> Iterator[str]:
    clauses = model["match"].get("or_") or model["match"].get("or") or [model["match"]]
    ids = [model["id"], *(clause[kind] for clause in clauses for kind in ("equals", "starts_with") if kind in clause)]
    return (price_ids(each.rstrip("-@:"))[0] for each in dict.fromkeys(ids))


def _row(prices: Mapping[str, Any] | Sequence[Mapping[str, Any]], day: date) -> Row:
    """Return the members of a model's row on a day, with the prices of the most expensive hours."""
    dated = [{"prices": prices}] if isinstance(prices, Mapping) else prices
    found: Mapping[str, Any] = {}
    later = []
    for each in dated:
        constraint = each.get("constraint") or {}
        start = _date(constraint["start_date"]) if constraint.get("start_date") else None
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


def _date(stated: str | Mapping[str, Any]) -> date:
    return date.fromisoformat(stated) if isinstance(stated, str) else date(*stated["arguments"])


def _later_rates(stated: Mapping[Term, Credits], later: Mapping[Term, Credits]) -> Iterator[Row]:
    """Yield the rates of later prices: one factor if it yields all of them, else the prices under each condition."""
    (factor, *others) = dict.fromkeys(
        later[term][unit] / price
        for term in stated
        for unit, price in stated[term].items()
        if price and unit != SEARCH_RATE and later[term].get(unit)
    )
    if not others:
        yield {"times": text(factor)}
    else:
        for term in sorted(later):
            yield ({"above": term.above} if term.above else {}) | texts(later[term])


def _input(prices: Mapping[str, Any]) -> Decimal:
    return _amount(prices.get("input_mtok") or 0, 0)


def _stated(prices: Mapping[str, Any]) -> dict[Term, dict[str, Decimal]]:
    """Return the prices of units by condition; prices of 0 are left out if the model has others."""
    starts = {0} | {tier["start"] for price in prices.values() if isinstance(price, Mapping) for tier in price["tiers"]}
    found = {
        Term(start): {
            name: _amount(prices[unit], start) / (ONE_THOUSAND if name == SEARCH_RATE else 1)
            for unit, name in UNIT_MEMBERS.items()
            if prices.get(unit) is not None
        }
        for start in sorted(starts)
    }
    is_free = not any(found[Term()].values())
    return {term: {unit: price for unit, price in units.items() if price or is_free} for term, units in found.items()}


def _amount(price: Mapping[str, Any] | str | float, above: int) -> Decimal:
    if not isinstance(price, Mapping):
        return Decimal(str(price))
    amounts = {0: price["base"], **{tier["start"]: tier["price"] for tier in price["tiers"]}}
    return Decimal(str(amounts[max(start for start in amounts if start <= above)]))
