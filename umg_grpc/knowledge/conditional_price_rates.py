"""Prices of a call if a model has several: by prompt length, service tier, region, hour or date. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from umg_grpc.knowledge.price_calculation import TOKEN_UNITS, Hours, Prices, Rate, Rates, completed

ANY_TIER = "auto"
"""Class of service in a request that leaves the choice to the provider."""
CHOSEN_TIERS = frozenset({"flex", "priority"})
"""Classes of service that a provider may choose."""
FULL_PERCENT = 100
DAY_SECONDS = 86_400
MAXIMUM_RATE = Rate()
"""Marker in the applied rates: the prices are the highest among all combinations of rates."""


class Terms(NamedTuple):
    """Facts about a call on which its prices depend."""

    input_tokens: int = 0
    tier: str = ""
    """Class of service that the response states; "" if there is none."""
    region: str = ""
    seconds: float = 0
    """Unix time of the call."""


def prices_at(prices: Prices, terms: Terms) -> tuple[Prices, Sequence[Rate]]:
    """Return the prices of a call, and the rates that apply."""
    if prices.rates is None:
        return prices, ()
    applied = _applied_rates(prices.rates, terms)
    return (_prices_with(prices.rates, applied) if applied else prices), applied


def _applied_rates(rates: Rates, terms: Terms) -> tuple[Rate, ...]:
    return tuple(
        rate
        for rate in rates.rates
        if (not rate.above_tokens or rate.above_tokens < terms.input_tokens)
        and (not rate.tier or rate.tier == terms.tier)
        and (not rate.region or rate.region == terms.region)
        and rate.from_seconds <= terms.seconds
        and (not (rate.hours or rate.weekdays) or _is_within(rate, terms.seconds))
    )


def highest_prices(prices: Prices, terms: Terms) -> Prices:
    """Return the highest price that each unit of a call may have, before its response is known. `terms`: maximum input
    tokens, and service tier. The region of the call, and the hour at which it ends, are still unknown.
    """
    rates = prices.rates
    if rates is None:
        return prices
    takes_any = terms.tier == ANY_TIER
    possible = tuple(
        rate
        for rate in rates.rates
        if (not rate.above_tokens or rate.above_tokens < terms.input_tokens)
        and (not rate.tier or rate.tier == terms.tier or (takes_any and rate.tier in CHOSEN_TIERS))
        and rate.from_seconds < terms.seconds + DAY_SECONDS
    )
    if not possible:
        return prices
    if (known := rates.found.get((*possible, MAXIMUM_RATE))) is None:
        known = rates.found[*possible, MAXIMUM_RATE] = _highest(rates, possible, prices)
    return known


def _highest(rates: Rates, possible: Sequence[Rate], prices: Prices) -> Prices:
    """Return the highest price of each unit among all combinations of rates that may apply to one call."""
    found = dict(prices.micro_credits)
    groups = product(
        {0, *(rate.above_tokens for rate in possible)},
        {"", *(rate.tier for rate in possible)},
        {"", *(rate.region for rate in possible)},
        {0.0, *(rate.from_seconds for rate in possible)},
        {None, *((rate.hours, rate.weekdays) for rate in possible)},
    )
    for above, tier, region, start, times in groups:
        chosen = tuple(
            rate
            for rate in possible
            if rate.above_tokens <= above
            and rate.tier in ("", tier)
            and rate.region in ("", region)
            and rate.from_seconds <= start
            and (not (rate.hours or rate.weekdays) or (rate.hours, rate.weekdays) == times)
        )
        for item, price in _prices_with(rates, chosen).micro_credits.items():
            found[item] = max(price, found.get(item, 0))
    return Prices(found)


def _prices_with(rates: Rates, chosen: tuple[Rate, ...]) -> Prices:
    if (known := rates.found.get(chosen)) is not None:
        return known
    found = dict(rates.stated)
    for rate in chosen:
        if rate.percent != FULL_PERCENT:
            found |= {item: -(-found[item] * rate.percent // FULL_PERCENT) for item in TOKEN_UNITS & found.keys()}
        found.update(rate.micro_credits)
    return rates.found.setdefault(chosen, Prices(completed(found)))


def _is_within(rate: Rate, seconds: float) -> bool:
    time = datetime.fromtimestamp(seconds, UTC)
    minute = time.hour * 60 + time.minute
    return (not rate.weekdays or time.isoweekday() in rate.weekdays) and (
        not rate.hours or any(hours.start <= minute < hours.end for hours in rate.hours)
    )


@lru_cache(1024)
def describe(rate: Rate) -> str:
    """Return the conditions of a rate as text, e.g. `priority tier, above 272000 input tokens`."""
    parts = (
        f"{rate.tier} tier" if rate.tier else "",
        f"above {rate.above_tokens} input tokens" if rate.above_tokens else "",
        f"region {rate.region}" if rate.region else "",
        f"from {datetime.fromtimestamp(rate.from_seconds, UTC):%Y-%m-%d}" if rate.from_seconds else "",
        f"UTC {' and '.join(map(_hours_text, rate.hours))}" if rate.hours else "",
        f"on ISO weekdays {''.join(map(str, sorted(rate.weekdays)))}" if rate.weekdays else "",
    )
    return ", ".join(part for part in parts if part)


def _hours_text(hours: Hours) -> str:
    return "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in hours)
