"""Price files of the operator: their rows, and the rows that an update from public data adds. Pure: no clock."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from umg_grpc.knowledge.public_price_rows import FilePrice, UnitPrices, messages_of, rates_of
from umg_grpc.knowledge.public_prices import genai_prices, litellm_cost_map
from umg_grpc.knowledge.shipped_prices import PriceFile, price_row, shipped_rows
from umg_grpc.knowledge.vendor_addresses import known_vendors

Keys = tuple[str, str]
"""(vendor, model) of a row."""
EXPECTED_SHAPES = "rows of prices, the cost map of LiteLLM, or the JSON file of genai-prices"


def read_price_file(content: bytes) -> PriceFile:
    """Return the rows of a file in our format. Raise ValueError with the reason for any other file."""
    rows = msgspec.json.decode(content, type=list[FilePrice])
    for row in rows:
        _check(row)
    digest = hashlib.sha256(content).hexdigest()
    return PriceFile(digest, {(row.vendor, row.model.lower()): row for row in rows})


def updated_rows(content: bytes, source: str, as_of: str) -> list[FilePrice]:
    """Return the rows of public data that differ from the shipped rows; all rows of a file in our format. `source`,
    `as_of`: URL and date of the data. Raise ValueError for an unknown format, or data without a usable price.
    """
    data = msgspec.json.decode(content)
    match data:
        case dict():
            found = _of_rows(litellm_cost_map.price_rows(_entries(data)), source, as_of)
        case [{"id": _, "models": _}, *_]:
            found = _of_rows(genai_prices.price_rows(data, as_of), source, as_of)
        case [{"model": _}, *_]:
            rows = list(read_price_file(content).rows.values())
            _check_vendors(rows)
            return rows
        case _:  # any other JSON value
            raise ValueError(f"expected {EXPECTED_SHAPES}")
    if not found:
        raise ValueError(f"no prices of known vendors are in it; expected {EXPECTED_SHAPES}")
    shipped = shipped_rows()
    return [
        row
        for (vendor, model), row in sorted(found.items())
        if not _has_prices(shipped.get((vendor, model)) or price_row(model, vendor), row)
    ]


def changes(before: PriceFile, after: Iterable[UnitPrices]) -> list[str]:
    """Return a line for each model whose effective prices differ: the prices before and after."""
    lines = list[str]()
    for row in after:
        known = price_row(row.model, row.vendor, before)
        if not _has_prices(known, row):
            lines.append(f"{named(row)}: {_text(known)} -> {_text(row)}")
    return lines


def named(row: UnitPrices) -> str:
    """Return the name of a row for people: `openai/gpt-6-sol`, with `maker` for a row without a vendor."""
    return f"{row.vendor or 'maker'}/{row.model}"


def _check_vendors(rows: Iterable[UnitPrices]) -> None:
    """Raise ValueError for a row of an unknown vendor, which no model would have."""
    for row in rows:
        if row.vendor and row.vendor not in known_vendors():
            known = ", ".join(sorted(known_vendors()))
            raise ValueError(
                f"{named(row)}: unknown vendor; expected one of {known}, or no vendor for the maker's price"
            )


def _entries(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    entries = {key: entry for key, entry in data.items() if isinstance(entry, dict) and "litellm_provider" in entry}
    if not entries:
        raise ValueError(f"expected {EXPECTED_SHAPES}")
    return entries


def _of_rows(rows: Mapping[Keys, Mapping[str, Any]], source: str, as_of: str) -> dict[Keys, FilePrice]:
    found = dict[Keys, FilePrice]()
    for (vendor, model), row in rows.items():
        members = {"model": model, "vendor": vendor, **row, "source": source, "as_of": as_of}
        if row.keys() - {"retired"}:
            found[vendor, model] = msgspec.convert(json.loads(json.dumps(members)), FilePrice)
            _check(found[vendor, model])
    return found


def _check(row: UnitPrices) -> None:
    """Raise ValueError for a price that is no number, or below 0."""
    try:
        amounts = [price.micro_credits_per_million for price in messages_of(row)]
        amounts += [price for rate in rates_of(row) for price in rate.micro_credits.values()]
    except (ArithmeticError, TypeError, ValueError):
        raise ValueError(f"{named(row)}: a price is no number") from None
    if min(amounts, default=0) < 0:
        raise ValueError(f"{named(row)}: a price is below 0")


def _has_prices(known: UnitPrices | None, row: UnitPrices) -> bool:
    """Return whether the `known` row already has all prices of `row`, with at least the same rates."""
    if known is None:
        return False
    stated = msgspec.to_builtins(known)
    rates = stated.get("rates", [])
    return all(
        all(rate in rates for rate in value) if member == "rates" else stated.get(member) == value
        for member, value in _prices(row).items()
    )


def _prices(row: UnitPrices) -> dict[str, Any]:
    others = ("model", "vendor", "note", "source", "as_of", "package", "retired")
    return {member: value for member, value in msgspec.to_builtins(row).items() if member not in others}


def _text(row: UnitPrices | None) -> str:
    """Return the prices of a row as text; `none` if there is no row."""
    if row is None:
        return "none"
    prices = _prices(row)
    parts = [f"{name} {value}" for name, value in prices.items() if isinstance(value, str)]
    parts += [f"{name} {json.dumps(value)}" for name, value in prices.items() if not isinstance(value, str)]
    return ", ".join(parts)
