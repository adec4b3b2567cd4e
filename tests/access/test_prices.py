"""Prices of models: the units of a call, and their cost."""

from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.prices import FALLBACKS, FREE, Unit, price_list, quantities_of
from umg_grpc.v1 import pb

UNITS = [unit for unit in pb.BillableUnit.values() if unit]
INPUT, OUTPUT = pb.BILLABLE_UNIT_INPUT_TOKEN, pb.BILLABLE_UNIT_OUTPUT_TOKEN
INPUTS = {
    INPUT,
    *(unit for unit in FALLBACKS if "INPUT" in pb.BillableUnit.Name(unit) or "CACHE" in pb.BillableUnit.Name(unit)),
}
OUTPUTS = {OUTPUT, *(FALLBACKS.keys() - INPUTS)}

counts = st.integers(0, 2**31 - 1)
amounts = st.integers(0, 10**15)
price_tables = st.dictionaries(st.sampled_from(UNITS), amounts)
quantities = st.dictionaries(st.sampled_from(UNITS), counts)
COUNTED = [
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "long_cache_write_tokens"),
    *("reasoning_tokens", "audio_input_tokens", "audio_output_tokens", "web_search_requests"),
]
usages = st.builds(pb.Usage, **dict.fromkeys(COUNTED, counts))


def prices(table: dict[Unit, int]) -> list[pb.Price]:
    return [pb.Price(unit=unit, micro_credits_per_million=amount) for unit, amount in table.items()]


@given(price_tables, quantities)
def test_the_cost_is_the_exact_sum_rounded_up_once(table: dict[Unit, int], units: dict[Unit, int]) -> None:
    listed = price_list(prices(table))
    exact = sum(Fraction(listed.micro_credits.get(unit, 0) * count, 1_000_000) for unit, count in units.items())
    cost = listed.cost(units)
    assert isinstance(cost, int)
    assert 0 <= cost - exact < 1


@given(price_tables, quantities, st.sampled_from(UNITS), counts)
def test_more_units_never_cost_less(table: dict[Unit, int], units: dict[Unit, int], unit: Unit, more: int) -> None:
    listed = price_list(prices(table))
    assert listed.cost(units | {unit: units.get(unit, 0) + more}) >= listed.cost(units)


@given(price_tables, quantities, st.sampled_from(UNITS), amounts)
def test_a_higher_price_never_costs_less(table: dict[Unit, int], units: dict[Unit, int], unit: Unit, more: int) -> None:
    dearer = {**table, unit: table[unit] + more} if unit in table else table
    assert price_list(prices(dearer)).cost(units) >= price_list(prices(table)).cost(units)


@given(price_tables)
def test_no_units_cost_nothing(table: dict[Unit, int]) -> None:
    assert price_list(prices(table)).cost({}) == 0


@given(quantities)
def test_a_model_without_prices_costs_nothing(units: dict[Unit, int]) -> None:
    assert price_list([]) is FREE
    assert FREE.cost(units) == 0


@given(usages)
def test_each_token_of_a_call_is_billed_once(usage: pb.Usage) -> None:
    units = quantities_of(usage)
    assert sum(units.get(unit, 0) for unit in INPUTS) == usage.input_tokens
    assert sum(units.get(unit, 0) for unit in OUTPUTS) == usage.output_tokens
    assert 0 not in units.values()


@dataclass(frozen=True)
class Bill:
    id: str
    table: dict[Unit, int]
    usage: pb.Usage
    cost: int


BILLS = [
    Bill("one token of a price below one micro-credit", {INPUT: 1}, pb.Usage(input_tokens=1), 1),
    Bill("no token", {INPUT: 1_000_000}, pb.Usage(), 0),
    Bill("cached tokens without a price", {INPUT: 3_000_000}, pb.Usage(input_tokens=10, cache_read_tokens=4), 30),
    Bill(
        "cached tokens with a price",
        {INPUT: 3_000_000, pb.BILLABLE_UNIT_CACHE_READ_TOKEN: 0},
        pb.Usage(input_tokens=10, cache_read_tokens=4),
        18,
    ),
    Bill(
        "a write for an hour, priced as a write",
        {INPUT: 1_000_000, pb.BILLABLE_UNIT_CACHE_WRITE_TOKEN: 2_000_000},
        pb.Usage(input_tokens=3, cache_write_tokens=1, long_cache_write_tokens=1),
        5,
    ),
    Bill(
        "reasoning within the answer",
        {OUTPUT: 1_000_000, pb.BILLABLE_UNIT_REASONING_TOKEN: 5_000_000},
        pb.Usage(output_tokens=10, reasoning_tokens=4),
        26,
    ),
    Bill(
        "more cached tokens than tokens",
        {INPUT: 9_000_000, pb.BILLABLE_UNIT_CACHE_READ_TOKEN: 1_000_000},
        pb.Usage(input_tokens=5, cache_read_tokens=50),
        5,
    ),
    Bill("a request and a search", {pb.BILLABLE_UNIT_REQUEST: 1_000_000, pb.BILLABLE_UNIT_SEARCH: 10_000_000}, pb.Usage(web_search_requests=2), 21),
]  # fmt: skip


@pytest.mark.parametrize("bill", BILLS, ids=lambda bill: bill.id)
def test_a_call_costs(bill: Bill) -> None:
    assert price_list(prices(bill.table)).cost(quantities_of(bill.usage)) == bill.cost
