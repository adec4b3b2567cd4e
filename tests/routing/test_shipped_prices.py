"""Shipped prices of well-known models, and the models that have them."""

import re
from dataclasses import dataclass

import pytest

from umg_grpc.config import parse
from umg_grpc.prices import FREE, INPUT, OUTPUT
from umg_grpc.routing import Router
from umg_grpc.shipped_prices import PRICES, TABLE

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
    assert tuple(model.prices.cost({unit: 1_000_000}) for unit in (INPUT, OUTPUT)) == case.expected
    described = {price.unit: price.micro_credits_per_million for price in model.described.prices}
    assert (described.get(INPUT, 0), described.get(OUTPUT, 0)) == case.expected


def test_the_shipped_prices_can_be_left_unused() -> None:
    model = Router(parse(FILE + "shipped_prices: false\n", "test.yaml", {})).resolve("best").model
    assert (model.prices, [*model.described.prices]) == (FREE, [])


def test_each_row_has_one_model_a_source_a_date_and_prices() -> None:
    assert len(PRICES) == len(TABLE)
    for row in TABLE:
        assert re.fullmatch(r"https://[a-z./-]+", row.source), row
        assert re.fullmatch(r"20[0-9]{2}-[01][0-9](-[0-3][0-9])?", row.as_of), row
        amounts = {price.unit: price.micro_credits_per_million for price in PRICES[row.model]}
        assert 0 < amounts[INPUT] < amounts[OUTPUT], row
