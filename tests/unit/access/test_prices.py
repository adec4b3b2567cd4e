"""Prices of models: the units of a call, and their cost."""

from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.knowledge.price_calculation import (
    FALLBACK_UNITS,
    FREE_PRICES,
    Item,
    Unit,
    image_quantities,
    price_list,
    quantities_of,
    variant_of,
    video_quantities,
)
from umg_grpc.v1 import pb

UNITS = [unit for unit in pb.BillableUnit.values() if unit]
INPUT, OUTPUT = pb.BILLABLE_UNIT_INPUT_TOKEN, pb.BILLABLE_UNIT_OUTPUT_TOKEN
INPUTS = {
    INPUT,
    *(
        unit
        for unit in FALLBACK_UNITS
        if "INPUT" in pb.BillableUnit.Name(unit) or "CACHE" in pb.BillableUnit.Name(unit)
    ),
}
OUTPUTS = {OUTPUT, *(FALLBACK_UNITS.keys() - INPUTS)}

counts = st.integers(0, 2**31 - 1)
amounts = st.integers(0, 10**15)
price_tables = st.dictionaries(st.sampled_from(UNITS), amounts)
quantities = st.dictionaries(st.sampled_from(UNITS), counts)
COUNTED = [
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "long_cache_write_tokens"),
    *("reasoning_tokens", "audio_input_tokens", "audio_output_tokens", "image_input_tokens", "image_output_tokens"),
    "web_search_requests",
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
    assert price_list([]) is FREE_PRICES
    assert FREE_PRICES.cost(units) == 0


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
        "reasoning within the response",
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
    Bill(
        "tokens of an image",
        {INPUT: 1_000_000, pb.BILLABLE_UNIT_IMAGE_OUTPUT_TOKEN: 7_000_000},
        pb.Usage(input_tokens=5, image_input_tokens=3, output_tokens=4, image_output_tokens=2),
        19,
    ),
    Bill("a request and a search", {pb.BILLABLE_UNIT_REQUEST: 1_000_000, pb.BILLABLE_UNIT_SEARCH: 10_000_000}, pb.Usage(web_search_requests=2), 21),
]  # fmt: skip


@pytest.mark.parametrize("bill", BILLS, ids=lambda bill: bill.id)
def test_a_call_costs(bill: Bill) -> None:
    assert price_list(prices(bill.table)).cost(quantities_of(bill.usage)) == bill.cost


IMAGE, SECOND = pb.BILLABLE_UNIT_IMAGE, pb.BILLABLE_UNIT_VIDEO_SECOND


def media_price(unit: Unit, micro_credits: int, size: str = "", quality: str = "") -> pb.Price:
    return pb.Price(unit=unit, micro_credits_per_million=micro_credits * 1_000_000, size=size, quality=quality)


BY_SIZE = [media_price(IMAGE, 40, "1024x1024"), media_price(IMAGE, 10, "1024x1024", "low")]
BY_QUALITY = [media_price(IMAGE, 7, quality="low")]
OTHERS = [media_price(IMAGE, 3)]
WITH_SOUND = [
    *(media_price(SECOND, 4, quality="std"), media_price(SECOND, 6, quality="pro")),
    *(
        media_price(SECOND, 9, quality="pro+audio"),
        media_price(SECOND, 7, "1080p"),
        media_price(SECOND, 8, "1080p", "audio"),
    ),
]


@dataclass(frozen=True)
class Found:
    id: str
    table: list[pb.Price]
    item: Item
    price: int
    """Micro-credits of one."""


FOUND = [
    Found("size and quality", BY_SIZE + BY_QUALITY, variant_of(IMAGE, "1024x1024", "low"), 10),
    Found("another spelling", BY_SIZE, variant_of(IMAGE, "1024*1024", "LOW"), 10),
    Found("the size with another quality", BY_SIZE + BY_QUALITY, variant_of(IMAGE, "1024x1024", "high"), 40),
    Found("the size without a quality", BY_SIZE, variant_of(IMAGE, "1024x1024"), 40),
    Found("the quality of another size", BY_SIZE + BY_QUALITY, variant_of(IMAGE, "512x512", "low"), 7),
    Found("neither", BY_SIZE + BY_QUALITY + OTHERS, variant_of(IMAGE, "512x512", "high"), 3),
    Found("neither, where all prices are of a size: the highest", BY_SIZE + BY_QUALITY, variant_of(IMAGE, "512x512", "high"), 40),
    Found("an unknown size: the highest", BY_SIZE, IMAGE, 40),
    Found("one price for all", OTHERS, variant_of(IMAGE, "512x512", "high"), 3),
    Found("a mode with sound", WITH_SOUND, variant_of(SECOND, "", "pro+audio"), 9),
    Found("a mode with sound, of which the mode has a price", WITH_SOUND, variant_of(SECOND, "", "std+audio"), 4),
    Found("a mode with sound, of which the size has a price with sound", WITH_SOUND, variant_of(SECOND, "1080p", "pro+audio"), 8),
    Found("another unit", BY_SIZE, variant_of(SECOND, "720p"), 0),
]  # fmt: skip


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case.id)
def test_an_image_has_the_price_of_its_size_and_quality(case: Found) -> None:
    listed = price_list(case.table)
    assert listed.price_of(case.item) == case.price * 1_000_000
    assert listed.cost({case.item: 3}) == 3 * case.price
    assert listed.price_of(case.item) <= listed.highest(IMAGE, SECOND)


def test_images_and_tokens_of_the_provider_become_units() -> None:
    usage = pb.ImageUsage(image_count=2, input_tokens=50, input_image_tokens=40, output_tokens=300)
    expected = {variant_of(IMAGE, "1024x1024", "high"): 2, INPUT: 10, pb.BILLABLE_UNIT_IMAGE_INPUT_TOKEN: 40}
    expected |= {pb.BILLABLE_UNIT_IMAGE_OUTPUT_TOKEN: 300, pb.BILLABLE_UNIT_REQUEST: 1}
    assert image_quantities(usage, "1024X1024", "High") == expected
    assert image_quantities(pb.ImageUsage(image_count=1)) == {IMAGE: 1, pb.BILLABLE_UNIT_REQUEST: 1}


def test_videos_and_their_seconds_become_units() -> None:
    listed = price_list([media_price(SECOND, 100, "720p"), media_price(SECOND, 400, "720p", "audio")])
    assert listed.cost(video_quantities(2, 16, "720P")) == 1600
    assert listed.cost(video_quantities(1, 8, "720p", "audio")) == 3200
    assert video_quantities(0, 0) == {pb.BILLABLE_UNIT_REQUEST: 1}
