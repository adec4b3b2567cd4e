"""Usage of streams that broke off: the tokens of prompt caches that the provider reported before are kept."""

from dataclasses import dataclass

import pytest

from umg_grpc.knowledge.price_calculation import (
    CACHE_READ,
    CACHE_WRITE,
    INPUT_TOKEN,
    LONG_CACHE_WRITE,
    OUTPUT_TOKEN,
    Quantities,
    quantities_of,
)
from umg_grpc.service.operations.generate.text_response_finishing import with_reported
from umg_grpc.v1 import pb

UNITS = {INPUT_TOKEN, CACHE_READ, CACHE_WRITE, LONG_CACHE_WRITE, OUTPUT_TOKEN}
ESTIMATE = pb.Usage(input_tokens=1200, output_tokens=30, estimated=True)


@dataclass(frozen=True)
class Case:
    """Usage that a provider reported before its stream broke off, and the billed quantities."""

    id: str
    reported: pb.Usage | None
    quantities: Quantities


CASES = [
    Case("nothing reported, as in chat and responses", None, {INPUT_TOKEN: 1200, OUTPUT_TOKEN: 30}),
    Case(
        "the beginning of a stream of messages",
        pb.Usage(input_tokens=1000, cache_read_tokens=900, cache_write_tokens=50, output_tokens=1),
        {INPUT_TOKEN: 50, CACHE_READ: 900, CACHE_WRITE: 50, OUTPUT_TOKEN: 30},
    ),
    Case(
        "a prompt that is written for an hour",
        pb.Usage(input_tokens=1000, long_cache_write_tokens=1000, output_tokens=1),
        {LONG_CACHE_WRITE: 1000, OUTPUT_TOKEN: 30},
    ),
    Case(
        "a piece of a stream of native",
        pb.Usage(input_tokens=1000, cache_read_tokens=600, output_tokens=40),
        {INPUT_TOKEN: 400, CACHE_READ: 600, OUTPUT_TOKEN: 40},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_reported_tokens_of_prompt_caches_are_billed_at_their_price(case: Case) -> None:
    usage = with_reported(pb.Usage.FromString(ESTIMATE.SerializeToString()), case.reported)
    billed = {unit: count for unit, count in quantities_of(usage).items() if count and unit in UNITS}
    assert (billed, usage.estimated) == (case.quantities, True)
