"""Rows of prices, merged from those of two packages."""

from collections.abc import Mapping
from decimal import Decimal

from umg_grpc.knowledge.public_prices.region_price_rates import REGIONAL_VENDORS, absolute
from umg_grpc.knowledge.public_prices.shortest_rate_rows import Row
from umg_grpc.knowledge.shipped_prices import price_ids
from umg_grpc.knowledge.vendor_addresses import CLOSED_MAKERS, OPEN_MAKERS

MODEL_MAKERS = (*CLOSED_MAKERS, *OPEN_MAKERS)
LOOSE_MEMBERS = frozenset({"package", "rates"})
"""Members that rows of dated model ids often lack."""
Rows = Mapping[tuple[str, str], Row]


def merged(prices: Rows, cost_map: Rows) -> list[Row]:
    """Return the rows of both packages, sorted by vendor and model; a row from one package names it. If both agree on
    input and output prices, each completes the other: genai-prices has prices of later days, the cost map has service
    tiers, regions and weekdays. If they differ, genai-prices decides. A row equal to its maker's is left out, and so is
    the row of a dated id that equals the undated id's.
    """
    rows = dict[tuple[str, str], Row]()
    for found in sorted({*prices, *cost_map}):
        row, other = prices.get(found), cost_map.get(found)
        if row is not None and other is not None and is_equal(row, other):
            rows[found] = _completed(row, other)
        elif row is not None:
            retired = {"retired": other["retired"]} if other is not None and "retired" in other else {}
            regions = absolute(other) if other is not None and found[0] in REGIONAL_VENDORS else ()
            rates = {"rates": all_rates} if (all_rates := [*row.get("rates", ()), *regions]) else {}
            rows[found] = row | rates | retired | {"package": "genai-prices"}
        elif other is not None and other.keys() - {"retired"}:
            rows[found] = other | {"package": "litellm"}
    return [
        {"model": model, "vendor": vendor} | row
        for (vendor, model), row in rows.items()
        if not any(_has_prices(rows.get((vendor, each)), row) for each in price_ids(model)[1:])
        and (vendor in MODEL_MAKERS or not any(_is_same(rows.get((maker, model)), row) for maker in MODEL_MAKERS))
    ]


def is_equal(row: Row, other: Row) -> bool:
    """Return whether two rows have the same prices for input and output."""
    return _common(row) == _common(other)


def _common(row: Row) -> tuple[Decimal, Decimal]:
    """Return the (input, output) prices by which rows are compared, since other prices are often missing in one row."""
    return Decimal(row.get("input", 0)), Decimal(row.get("output") or row.get("image_output") or 0)


def _completed(row: Row, other: Row) -> Row:
    later = [rate for rate in row.get("rates", ()) if "start" in rate]
    rates = [*(other.get("rates") or [rate for rate in row.get("rates", ()) if "start" not in rate]), *later]
    return {**other, **row} | ({"rates": rates} if rates else {})


def _has_prices(row: Row | None, dated: Row) -> bool:
    if row is None or any(row.get(member) != value for member, value in dated.items() if member not in LOOSE_MEMBERS):
        return False
    return all(rate in row.get("rates", ()) for rate in dated.get("rates", ()) if "region" in rate)


def _is_same(row: Row | None, other: Row) -> bool:
    return row is not None and {**row, "package": ""} == {**other, "package": ""}
