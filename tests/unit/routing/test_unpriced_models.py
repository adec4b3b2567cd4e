"""Prices of a model at each of its channels, and models without a price for an operation."""

from dataclasses import dataclass

import pytest

from umg_grpc.config import ConfigError, parse
from umg_grpc.knowledge.conditional_price_rates import Terms
from umg_grpc.knowledge.conditional_price_rates import prices_at as rated
from umg_grpc.knowledge.price_calculation import (
    FREE_PRICES,
    IMAGE_UNIT,
    INPUT_TOKEN,
    OUTPUT_TOKEN,
    REQUEST_UNIT,
    VIDEO_SECOND,
    Prices,
    Unit,
)
from umg_grpc.routing import GENERATE_VALUE, ModelOperation, Router, has_costs, is_priced
from umg_grpc.v1 import pb

EMBED, RERANK = pb.MODEL_OPERATION_EMBED, pb.MODEL_OPERATION_RERANK
MAKE_IMAGE, CREATE_VIDEO = pb.MODEL_OPERATION_GENERATE_IMAGE, pb.MODEL_OPERATION_CREATE_VIDEO
CHANNELS = """\
channels:
- {name: plain, protocols: [chat], base_url: "http://a", models: [m, gpt-4o]}
- {name: other, protocols: [chat], base_url: "http://a", models: [m, n, gpt-4o]%s}
- {name: inside, protocols: [sandbox], models: [m, gpt-4o]}
"""
NOTHING = {REQUEST_UNIT: 0}


@dataclass(frozen=True)
class Stated:
    id: str
    channel: str
    """Further keys of the channel `other`."""
    rest: str
    model: str
    expected: list[dict[Unit, int]]
    """Prices of requests and tokens at each channel."""


CASES = [
    Stated("no price", "", "", "n", [{}]),
    Stated("the simulated provider alone costs nothing", "", "", "m", [{}, {}, NOTHING]),
    Stated("free at the top", "", "unpriced: free\n", "m", [NOTHING, NOTHING, NOTHING]),
    Stated(
        "a default price at the top",
        "",
        "unpriced: {request: 2}\n",
        "m",
        [{REQUEST_UNIT: 2}, {REQUEST_UNIT: 2}, NOTHING],
    ),
    Stated("free at a channel", ", unpriced: free", "", "m", [{}, NOTHING, NOTHING]),
    Stated(
        "a price at a channel", ", unpriced: {request: 3}", "unpriced: free", "m", [NOTHING, {REQUEST_UNIT: 3}, NOTHING]
    ),
    Stated("refused at a channel", ", unpriced: refuse", "unpriced: free", "m", [NOTHING, {}, NOTHING]),
    Stated(
        "a default price of the model",
        ", unpriced: free",
        "models: {m: {unpriced: {request: 4}}}",
        "m",
        [{REQUEST_UNIT: 4}, {REQUEST_UNIT: 4}, NOTHING],
    ),
    Stated("refused of the model", ", unpriced: free", "models: {n: {unpriced: refuse}}", "n", [{}]),
    Stated("a price", ", unpriced: free", "models: {m: {price: {request: 1}}}", "m", [{REQUEST_UNIT: 1}] * 3),
    Stated("a price of 0", "", "models: {n: {price: {request: 0}}}", "n", [NOTHING]),
    Stated("public prices precede the default", ", unpriced: free", "unpriced: free", "gpt-4o", [{}, {}, NOTHING]),
]


def prices_at(config: str, model: str) -> list[Prices]:
    return [target.prices for target in Router(parse(config, "umg.yaml", {})).targets(model)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_most_specific_statement_about_models_without_a_price_applies(case: Stated) -> None:
    found = prices_at(CHANNELS % case.channel + case.rest, case.model)
    whole = [
        {unit: price // 10**12 for unit, price in each.micro_credits.items() if unit == REQUEST_UNIT} for each in found
    ]
    assert whole == case.expected


def test_a_channel_charges_the_price_that_it_has_itself() -> None:
    public, other, inside = prices_at(CHANNELS % ", unpriced: free", "gpt-4o")
    assert public == other
    assert has_costs(public)
    assert not has_costs(inside)
    [plain, _, _] = prices_at(CHANNELS % "", "m")
    assert plain is FREE_PRICES


@pytest.mark.parametrize("preset", ["ollama", "vllm", "llama.cpp", "lmstudio"])
def test_servers_of_the_operator_cost_nothing_unless_stated(preset: str) -> None:
    model = f"{preset}/my-model"
    assert prices_at(f"channels: [{{provider: {preset}}}]\n", model) == [Prices(NOTHING)]
    priced = f"channels: [{{provider: {preset}, unpriced: {{request: 1}}}}]\n"
    assert prices_at(priced, model) == [Prices({REQUEST_UNIT: 10**12})]


@dataclass(frozen=True)
class Enough:
    id: str
    units: tuple[Unit, ...]
    priced: frozenset[ModelOperation]


ALL = frozenset({GENERATE_VALUE, EMBED, RERANK, MAKE_IMAGE, CREATE_VIDEO})
ENOUGH = [
    Enough("nothing", (), frozenset()),
    Enough("a call", (REQUEST_UNIT,), ALL),
    Enough("input", (INPUT_TOKEN,), frozenset({GENERATE_VALUE, EMBED, RERANK})),
    Enough("output", (OUTPUT_TOKEN,), frozenset({GENERATE_VALUE, CREATE_VIDEO})),
    Enough("an image", (IMAGE_UNIT,), frozenset({MAKE_IMAGE})),
    Enough("a second of video", (VIDEO_SECOND,), frozenset({CREATE_VIDEO})),
]


@pytest.mark.parametrize("case", ENOUGH, ids=lambda case: case.id)
def test_a_price_is_enough_for_the_operations_whose_units_it_has(case: Enough) -> None:
    prices = Prices(dict.fromkeys(case.units, 0))
    assert {operation for operation in ALL if is_priced(prices, operation)} == case.priced


@pytest.mark.parametrize("written", ["cheap", "{}", "{tokens: 1}", "[1]"])
def test_a_malformed_statement_is_named(written: str) -> None:
    with pytest.raises(ConfigError, match=r"unpriced"):
        parse(CHANNELS % "" + f"unpriced: {written}\n", "umg.yaml", {})


ZONES = """\
channels:
- {name: worldwide, protocols: [chat], base_url: "https://r.openai.azure.com/openai/v1", models: [gpt-4.1]}
- {name: zone, protocols: [chat], base_url: "https://r.openai.azure.com/openai/v1", price_region: %s, models: [gpt-4.1]}
"""


def test_a_channel_that_states_its_region_has_the_prices_of_the_region() -> None:
    worldwide, zone = prices_at(ZONES % "eu", "gpt-4.1")
    assert [rated(each, Terms())[0].price_of(INPUT_TOKEN) for each in (worldwide, zone)] == [2_000_000, 2_200_000]


def test_a_region_that_no_public_price_names_is_a_problem() -> None:
    with pytest.raises(ConfigError, match=r"price_region: expected one of .*eu.*, which public prices name"):
        parse(ZONES % "EU", "umg.yaml", {})
