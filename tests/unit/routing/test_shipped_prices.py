"""Shipped prices of well-known models, and the models that have them."""

import re
from dataclasses import dataclass

import pytest

from umg_grpc.base.micro_credits import credits_text
from umg_grpc.config import parse
from umg_grpc.knowledge.conditional_price_rates import Terms, describe, prices_at
from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.price_calculation import (
    CACHE_READ,
    CACHE_WRITE,
    FREE_PRICES,
    IMAGE_INPUT,
    IMAGE_OUTPUT,
    IMAGE_UNIT,
    INPUT_TOKEN,
    LONG_CACHE_WRITE,
    OUTPUT_TOKEN,
    SEARCH_UNIT,
    Quantities,
    price_list,
    video_quantities,
)
from umg_grpc.knowledge.public_price_rows import RateRow, UnitPrices, messages_of, rates_of
from umg_grpc.knowledge.shipped_prices import SHIPPED_PRICES, price_row, shipped_price_list, shipped_prices
from umg_grpc.knowledge.vendor_addresses import region_of
from umg_grpc.routing import Router

FILE = """\
channels:
- {name: provider, protocols: [messages], base_url: http://a, models: [claude-opus-4-1-20250805, {id: best, upstream: claude-opus-4-1}, new]}
- {name: simulated, protocols: [sandbox], models: [claude-sonnet-5]}
- {name: other, protocols: [messages], base_url: http://a, models: [claude-haiku-4-5, claude-sonnet-4]}
models:
  claude-haiku-4-5: {price: {input: 7}}
  claude-sonnet-4: {price: {input: 0}}
"""
OPUS = (15_000_000, 75_000_000)


UNUSUAL = {
    ("cloudflare", "llama-guard-3-8b"),
    ("openai", "gpt-5-image-mini"),
    ("openrouter", "deepseek-pro-latest"),
}
"""Models whose output, or cached input, is not in the usual relation to the input, as the vendor's page has it."""


@dataclass(frozen=True)
class Priced:
    id: str
    model: str
    expected: tuple[int, int]
    """Micro-credits of a million input tokens, and output tokens."""


CASES = [
    Priced("a dated version", "claude-opus-4-1-20250805", OPUS),
    Priced("another public id", "best", OPUS),
    Priced("an unknown model", "new", (0, 0)),
    Priced("a simulated model", "claude-sonnet-5", (0, 0)),
    Priced("a configured price replaces all", "claude-haiku-4-5", (7_000_000, 0)),
    Priced("a configured price of zero", "claude-sonnet-4", (0, 0)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_model_has_the_public_price_of_its_provider_unless_configured(case: Priced) -> None:
    model = Router(parse(FILE, "test.yaml", {})).resolve(case.model).model
    assert tuple(model.prices.cost({unit: 1_000_000}) for unit in (INPUT_TOKEN, OUTPUT_TOKEN)) == case.expected
    described = {price.unit: price.micro_credits_per_million for price in model.described.prices}
    assert (described.get(INPUT_TOKEN, 0), described.get(OUTPUT_TOKEN, 0)) == case.expected


def test_the_shipped_prices_can_be_left_unused() -> None:
    model = Router(parse(FILE + "shipped_prices: false\n", "test.yaml", {})).resolve("best").model
    assert (model.prices, [*model.described.prices]) == (FREE_PRICES, [])


def test_each_row_has_one_model_a_reason_a_source_a_date_and_prices() -> None:
    assert len({(row.vendor, row.model) for row in SHIPPED_PRICES}) == len(SHIPPED_PRICES)
    for row in SHIPPED_PRICES:
        assert row.note, row
        assert re.fullmatch(r"https://[a-zA-Z0-9./_-]+", row.source), row
        assert re.fullmatch(r"20[0-9]{2}-[01][0-9](-[0-3][0-9])?", row.as_of), row
        assert shipped_prices(row.model, row.vendor), row


def test_prices_of_a_row_have_the_usual_order() -> None:
    for row in (*SHIPPED_PRICES, *read_rows("generated_prices", UnitPrices)):
        listed = price_list(messages_of(row))
        if (row.vendor, row.model) not in UNUSUAL:
            assert not row.output or listed.price_of(INPUT_TOKEN) <= listed.price_of(OUTPUT_TOKEN), row
            assert listed.price_of(CACHE_READ) <= listed.price_of(INPUT_TOKEN) or not row.input, row
            assert listed.price_of(CACHE_WRITE) <= listed.price_of(LONG_CACHE_WRITE), row


@dataclass(frozen=True)
class Cost:
    id: str
    model: str
    quantities: Quantities
    credits: str


COSTS = [
    Cost("cached tokens", "gpt-4.1-mini-2025-04-14", {INPUT_TOKEN: 10**6, CACHE_READ: 10**6}, "0.500000"),
    Cost("embeddings", "text-embedding-3-large", {INPUT_TOKEN: 10**6}, "0.130000"),
    Cost("searches of reranking", "rerank-v3.5", {SEARCH_UNIT: 3, INPUT_TOKEN: 500}, "0.006000"),
    Cost("tokens of images", "gpt-image-1", {IMAGE_UNIT: 1, INPUT_TOKEN: 10**5, IMAGE_INPUT: 10**5, IMAGE_OUTPUT: 10**5}, "5.500000"),
    Cost("seconds of a video", "sora-2-pro", video_quantities(1, 8, "1280x720"), "2.400000"),
    Cost("seconds of a video of another size", "sora-2-pro", video_quantities(1, 8, "1920x1080"), "5.600000"),
]  # fmt: skip


@pytest.mark.parametrize("case", COSTS, ids=lambda case: case.id)
def test_units_of_a_shipped_model_cost(case: Cost) -> None:
    assert credits_text(price_list(shipped_prices(case.model)).cost(case.quantities)) == case.credits


@dataclass(frozen=True)
class Sold:
    id: str
    vendor: str
    price: str
    """Credits of a million input tokens; "" without a price."""


SOLD = [
    Sold("gpt-6-astra", "openai", "10"),
    Sold("GPT-5.6-SOL-2026-08-21", "", "4"),
    Sold("openai/gpt-5.6-sol", "openrouter", "4"),
    Sold("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock-anthropic", "3"),
    Sold("claude-opus-5@default", "vertex", "5"),
    Sold("ft:gpt-4o:acme::abc", "openai", "3.75"),
    Sold("GLM-5.3", "zai", "1.4"),
    Sold("deepseek-v4-flash", "deepseek", "0.3"),
    Sold("accounts/fireworks/models/deepseek-v4-pro", "fireworks", "1.74"),
    Sold("openai/gpt-oss-120b", "groq", "0.15"),
    Sold("gpt-oss-120b", "", ""),
    Sold("zai-org/GLM-5.3", "", ""),
    Sold("my-model", "openai", ""),
]


@pytest.mark.parametrize("case", SOLD, ids=lambda case: f"{case.id} at {case.vendor or 'an unknown vendor'}")
def test_a_model_has_the_price_of_its_vendor_or_else_of_its_maker(case: Sold) -> None:
    row = price_row(case.id, case.vendor)
    assert (row.input if row is not None else "") == case.price


RATED = UnitPrices(
    vendor="anthropic",
    model="m",
    input="2",
    rates=(
        RateRow(above=100, input="4"),
        RateRow(tier="flex", times="0.5"),
        RateRow(region="us", times="1.1"),
        RateRow(start="2027-01-01", times="2"),
        RateRow(hours=("22:00-00:00",), weekdays=(6, 7), times="0.5"),
    ),
)


def test_the_rates_of_a_row_have_its_conditions() -> None:
    assert [describe(rate) for rate in rates_of(RATED)] == [
        "above 100 input tokens",
        "flex tier",
        "region us",
        "from 2027-01-01",
        "UTC 22:00-24:00, on ISO weekdays 67",
    ]
    assert [rate.percent for rate in rates_of(RATED)] == [100, 50, 110, 200, 50]
    assert rates_of(RATED)[0].micro_credits == {INPUT_TOKEN: 4_000_000}


def test_the_rate_of_the_region_of_a_channel_always_applies() -> None:
    assert [describe(rate) for rate in rates_of(RATED, "us")][2] == ""
    assert [describe(rate) for rate in rates_of(RATED, "eu")][2] == "region us"


def test_a_region_without_own_rates_has_those_of_all_regions() -> None:
    rates = (RateRow(region="regional", times="1.101"), RateRow(region="eu", times="1.2"))
    row = UnitPrices(vendor="bedrock", model="m", input="2", rates=rates)
    found = {region: [rate.percent for rate in rates_of(row, region)] for region in ("", "eu", "us-east-1")}
    assert found == {"": [], "eu": [120], "us-east-1": [111]}


@dataclass(frozen=True)
class Regional:
    id: str
    base_url: str
    model: str
    expected: str


REGIONS = [
    Regional("a host of a region", "https://eu.api.openai.com/v1", "gpt-6-sol", "eu"),
    Regional("the usual host", "https://api.openai.com/v1", "gpt-6-sol", ""),
    Regional("an id of a region", "https://bedrock-runtime.us-east-1.amazonaws.com/anthropic/v1", "us.anthropic.x", "us"),
    Regional("an id without a region", "https://bedrock-runtime.us-east-1.amazonaws.com/anthropic/v1", "anthropic.x", "us-east-1"),
    Regional("an ARN of a profile", "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1", "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.a.x", "eu"),
    Regional("a profile of the government", "https://bedrock-runtime.us-gov-west-1.amazonaws.com/openai/v1", "us-gov.a.x", "us-gov-west-1"),
    Regional("a host of the government", "https://r.openai.azure.us/openai/v1", "o3-mini", "us-gov"),
    Regional("a worldwide id", "https://bedrock-runtime.us-east-1.amazonaws.com/anthropic/v1", "global.anthropic.x", ""),
]  # fmt: skip


@pytest.mark.parametrize("case", REGIONS, ids=lambda case: case.id)
def test_the_region_of_a_channel_is_that_of_its_host_or_of_its_model(case: Regional) -> None:
    assert region_of(case.base_url, case.model) == case.expected


def test_a_channel_of_a_region_has_the_surcharge_of_the_region() -> None:
    found = [shipped_price_list("gpt-6-sol", "openai", region) for region in ("", "eu")]
    assert [prices_at(prices, Terms())[0].price_of(INPUT_TOKEN) for prices in found] == [2_000_000, 2_200_000]
    assert [prices_at(prices, Terms(region="us"))[0].price_of(INPUT_TOKEN) for prices in found] == [
        2_000_000,
        2_200_000,
    ]
