"""Rates of regions, from keys of the cost map that begin with a region."""

import re
from collections.abc import Iterator, Mapping
from decimal import ROUND_UP, Decimal

from umg_grpc.knowledge.public_price_rows import REGIONAL_TIER, TokenPrices
from umg_grpc.knowledge.public_prices.shortest_rate_rows import SEARCH_RATE, Row, text

AZURE_KEY = re.compile(r"azure/(us|eu|apac|us-gov)/[^/]+")
BEDROCK_KEY = re.compile(r"bedrock(?:_mantle)?/([a-z]{2}(?:-gov)?-[a-z]+-[0-9])/[^/]+")
PROFILE_KEY = re.compile(r"(?:[a-z_]+/)?(us|eu|apac|jp|au|us-gov|in)\.[a-z0-9.]+.*")
TOKEN_MEMBERS = tuple(unit for unit in TokenPrices.__struct_fields__ if unit != SEARCH_RATE)
CONDITION_MEMBERS = ("above", "tier", "hours", "weekdays", "start")
FACTOR_MEMBERS = frozenset({"region", "times"})
MEDIA_MEMBERS = ("image", "video", "video_second")
PRICE_DIGITS = Decimal("1e-6")
QWENCLOUD_PREFIX, SINGAPORE_REGION = "qwencloud/", "ap-southeast-1"
"""Prefix of keys with prices of Alibaba's international platform, and the region of the platform."""
REGIONAL_VENDORS = frozenset({"azure", "bedrock", "bedrock-anthropic"})
"""Vendors whose keys may have a region."""


def key_region(key: str, vendor: str) -> str:
    """Return the region for which a key of the cost map has prices; "" if there is none."""
    patterns = {
        "azure": (AZURE_KEY,),
        "bedrock": (BEDROCK_KEY, PROFILE_KEY),
        "bedrock-anthropic": (BEDROCK_KEY, PROFILE_KEY),
    }
    if key.startswith(QWENCLOUD_PREFIX):
        return SINGAPORE_REGION
    found = (pattern.fullmatch(key) for pattern in patterns.get(vendor, ()))
    return next((match[1] for match in found if match is not None), "")


def dearest(row: Row, other: Row | None) -> Row:
    """Return the row with the higher token prices, of two keys for one model and region."""
    return row if other is None or _token_prices(row) > _token_prices(other) else other


def _token_prices(row: Row) -> tuple[Decimal, Decimal]:
    return Decimal(row.get("input", 0)), Decimal(row.get("output", 0))


def region_rates(base: Row, rows: Mapping[str, Row], usual: Decimal) -> Iterator[Row]:
    """Yield a rate for each region whose prices are not the model's prices times `usual`, the factor for regions
    without rates. `rows`: region -> row. If all prices differ by one factor, the rate is this factor; otherwise it has
    the prices. A price that a region's row lacks is estimated by the highest factor among its others.
    """
    for region, row in sorted(rows.items()):
        changed = [unit for unit in MEDIA_MEMBERS if unit in row and row[unit] != base.get(unit)]
        if changed:
            yield {"region": region} | {unit: _sizes(base.get(unit, {}), row[unit]) for unit in changed}
        ratios = {
            Decimal(row[unit]) / Decimal(base[unit])
            for unit in TOKEN_MEMBERS
            if unit in row and Decimal(base.get(unit, 0))
        }
        factor = max(ratios, default=Decimal(1))
        if len(ratios) <= 1 and factor * 100 == int(factor * 100) and not row.keys() & set(TOKEN_MEMBERS) - base.keys():
            if factor != usual:
                yield {"region": region, "times": text(factor)}
            continue
        prices = _scaled(base, factor) | row
        yield {"region": region} | {unit: prices[unit] for unit in TOKEN_MEMBERS if unit in prices}
        own = _conditional(row)
        terms = {_term(rate) for rate in own}
        lacking = [_scaled(rate, factor) for rate in _conditional(base) if _term(rate) not in terms]
        yield from ({"region": region} | rate for rate in (*own, *lacking))


def _sizes(base: Mapping[str, str], prices: Mapping[str, str]) -> dict[str, str]:
    """Return a region's prices by size; a size without one has that of all regions times the highest common factor."""
    common = base.keys() & prices.keys()
    factor = max((Decimal(prices[size]) / Decimal(base[size]) for size in common), default=Decimal(1))
    lacking = {
        size: text((Decimal(base[size]) * factor).quantize(PRICE_DIGITS, ROUND_UP))
        for size in base.keys() - prices.keys()
    }
    return {**prices, **dict(sorted(lacking.items()))}


def absolute(base: Row) -> Iterator[Row]:
    """Yield the rates of a row's regions with prices in place of factors, so that they can be applied to other prices
    than the row's. Regions without rates have the row's prices.
    """
    regions = [rate for rate in base.get("rates", ()) if "region" in rate]
    if all(rate["region"] != REGIONAL_TIER for rate in regions):
        regions = [{"region": REGIONAL_TIER, "times": "1"}, *regions]
    for found in regions:
        if found.keys() != FACTOR_MEMBERS:
            yield found
            continue
        factor = Decimal(found["times"])
        prices = _scaled(base, factor)
        yield {"region": found["region"]} | {unit: prices[unit] for unit in TOKEN_MEMBERS if unit in prices}
        yield from ({"region": found["region"]} | _scaled(rate, factor) for rate in _conditional(base))


def _conditional(row: Row) -> list[Row]:
    return [rate for rate in row.get("rates", ()) if "region" not in rate]


def _term(rate: Row) -> str:
    return str({member: rate[member] for member in CONDITION_MEMBERS if member in rate})


def _scaled(row: Row, factor: Decimal) -> Row:
    return row | {
        unit: text((Decimal(row[unit]) * factor).quantize(PRICE_DIGITS, ROUND_UP))
        for unit in TOKEN_MEMBERS
        if unit in row
    }
