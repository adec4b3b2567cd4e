"""Prices under conditions: those of a call, and the highest before its response is known."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from umg_grpc.knowledge.conditional_price_rates import Terms, describe, highest_prices, prices_at
from umg_grpc.knowledge.price_calculation import (
    CACHE_READ,
    INPUT_TOKEN,
    OUTPUT_TOKEN,
    REASONING_TOKEN,
    Hours,
    Item,
    Prices,
    Rate,
    price_list,
)
from umg_grpc.v1 import pb

MONDAY = datetime(2026, 11, 30, tzinfo=UTC).timestamp()
SATURDAY = MONDAY - 2 * 86_400
HOUR = 3600
NEXT_YEAR = datetime(2027, 1, 1, tzinfo=UTC).timestamp()
WORKDAYS = frozenset({1, 2, 3, 4, 5})
LONG = Rate({INPUT_TOKEN: 4, OUTPUT_TOKEN: 15}, above_tokens=100)
PRIORITY = Rate(percent=200, tier="priority")
FLEX = Rate({CACHE_READ: 1}, percent=50, tier="flex")
US = Rate(percent=110, region="us")
NIGHT = Rate(percent=50, hours=(Hours(0, 60), Hours(240, 360)), weekdays=WORKDAYS)
WEEKEND = Rate(percent=50, weekdays=frozenset({6, 7}))
DEARER = Rate(percent=200, from_seconds=NEXT_YEAR)


def prices_with(*rates: Rate, **units: int) -> Prices:
    found = [
        pb.Price(unit=pb.BillableUnit.Value(f"BILLABLE_UNIT_{name.upper()}_TOKEN"), micro_credits_per_million=price)
        for name, price in units.items()
    ]
    return price_list(found, rates)


PRICES = prices_with(LONG, PRIORITY, FLEX, US, NIGHT, WEEKEND, DEARER, input=2, output=10, cache_read=1)


@dataclass(frozen=True)
class Called:
    id: str
    terms: Terms
    expected: tuple[int, int]
    """Prices of input and output."""


CALLS = [
    Called("a plain call", Terms(100, seconds=MONDAY + 2 * HOUR), (2, 10)),
    Called("a long prompt", Terms(101, seconds=MONDAY + 2 * HOUR), (4, 15)),
    Called("the priority tier", Terms(1, "priority", seconds=MONDAY + 2 * HOUR), (4, 20)),
    Called("a long prompt of the priority tier", Terms(101, "priority", seconds=MONDAY + 2 * HOUR), (8, 30)),
    Called("the flex tier", Terms(1, "flex", seconds=MONDAY + 2 * HOUR), (1, 5)),
    Called("the default tier", Terms(1, "default", seconds=MONDAY + 2 * HOUR), (2, 10)),
    Called("an unknown tier", Terms(1, "scale", seconds=MONDAY + 2 * HOUR), (2, 10)),
    Called("a region, rounded up", Terms(1, region="us", seconds=MONDAY + 2 * HOUR), (3, 11)),
    Called("a cheap hour of a workday", Terms(1, seconds=MONDAY + 5 * HOUR), (1, 5)),
    Called("the end of a cheap hour", Terms(1, seconds=MONDAY + HOUR), (2, 10)),
    Called("the same hour of a Saturday", Terms(1, seconds=SATURDAY + 2 * HOUR), (1, 5)),
    Called("a later price", Terms(1, seconds=NEXT_YEAR + 2 * HOUR), (4, 20)),
]


@pytest.mark.parametrize("case", CALLS, ids=lambda case: case.id)
def test_a_call_has_the_prices_of_the_rates_whose_conditions_hold(case: Called) -> None:
    found, _ = prices_at(PRICES, case.terms)
    assert (found.price_of(INPUT_TOKEN), found.price_of(OUTPUT_TOKEN), found.price_of(REASONING_TOKEN)) == (
        *case.expected,
        case.expected[1],
    )


@dataclass(frozen=True)
class Bounded:
    id: str
    terms: Terms
    rates: tuple[Rate, ...]
    expected: dict[Item, int] = field(default_factory=dict)


BOUNDS = [
    Bounded("a short prompt", Terms(99, seconds=MONDAY), (LONG, PRIORITY), {INPUT_TOKEN: 2, OUTPUT_TOKEN: 10}),
    Bounded(
        "a prompt that may be long", Terms(101, seconds=MONDAY), (LONG, PRIORITY), {INPUT_TOKEN: 4, OUTPUT_TOKEN: 15}
    ),
    Bounded("a tier", Terms(101, "priority", seconds=MONDAY), (LONG, PRIORITY), {INPUT_TOKEN: 8, OUTPUT_TOKEN: 30}),
    Bounded(
        "a tier that the provider chooses",
        Terms(1, "auto", seconds=MONDAY),
        (PRIORITY,),
        {INPUT_TOKEN: 4, OUTPUT_TOKEN: 20},
    ),
    Bounded(
        "a cheaper tier, which the provider may not have", Terms(1, "flex", seconds=MONDAY), (FLEX,), {INPUT_TOKEN: 2}
    ),
    Bounded("a region", Terms(1, seconds=MONDAY), (US,), {INPUT_TOKEN: 3, OUTPUT_TOKEN: 11}),
    Bounded("cheaper hours", Terms(1, seconds=MONDAY), (NIGHT, WEEKEND), {INPUT_TOKEN: 2, OUTPUT_TOKEN: 10}),
    Bounded("a later price", Terms(1, seconds=MONDAY), (DEARER,), {INPUT_TOKEN: 2}),
    Bounded("a price of the next hours", Terms(1, seconds=NEXT_YEAR - HOUR), (DEARER,), {INPUT_TOKEN: 4}),
]


@pytest.mark.parametrize("case", BOUNDS, ids=lambda case: case.id)
def test_the_bound_of_a_call_has_the_highest_prices_that_it_may_have(case: Bounded) -> None:
    found = highest_prices(prices_with(*case.rates, input=2, output=10), case.terms)
    assert {item: found.price_of(item) for item in case.expected} == case.expected


def test_prices_without_rates_are_used_as_they_are() -> None:
    plain = prices_with(input=2)
    assert prices_at(plain, Terms(10**6, "priority", "us")) == (plain, ())
    assert highest_prices(plain, Terms(10**6, "priority", "us")) is plain


def test_a_rate_is_described_by_its_conditions() -> None:
    assert describe(Rate(tier="priority", above_tokens=272_000)) == "priority tier, above 272000 input tokens"
    assert describe(NIGHT) == "UTC 00:00-01:00 and 04:00-06:00, on ISO weekdays 12345"
    assert describe(DEARER) == "from 2027-01-01"
