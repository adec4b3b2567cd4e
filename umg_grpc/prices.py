"""Prices of a model, and the cost of a call: integers only, rounded up once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from umg_grpc.v1 import pb

MICRO_CREDITS = 1_000_000
"""Micro-credits of a credit."""
PRICED_UNITS = 1_000_000
"""Number of units for which a price is stated."""

Unit: TypeAlias = pb.BillableUnit.ValueType
Quantities: TypeAlias = Mapping[Unit, int]
"""Number of units by unit, without zeros. Each token has exactly one unit."""

INPUT, OUTPUT = pb.BILLABLE_UNIT_INPUT_TOKEN, pb.BILLABLE_UNIT_OUTPUT_TOKEN
CACHE_READ, CACHE_WRITE = pb.BILLABLE_UNIT_CACHE_READ_TOKEN, pb.BILLABLE_UNIT_CACHE_WRITE_TOKEN
LONG_CACHE_WRITE, REASONING = pb.BILLABLE_UNIT_LONG_CACHE_WRITE_TOKEN, pb.BILLABLE_UNIT_REASONING_TOKEN
AUDIO_INPUT, AUDIO_OUTPUT = pb.BILLABLE_UNIT_AUDIO_INPUT_TOKEN, pb.BILLABLE_UNIT_AUDIO_OUTPUT_TOKEN
REQUEST, SEARCH = pb.BILLABLE_UNIT_REQUEST, pb.BILLABLE_UNIT_SEARCH

FALLBACKS: Mapping[Unit, Unit] = MappingProxyType(
    {
        CACHE_READ: INPUT,
        CACHE_WRITE: INPUT,
        LONG_CACHE_WRITE: CACHE_WRITE,
        AUDIO_INPUT: INPUT,
        REASONING: OUTPUT,
        AUDIO_OUTPUT: OUTPUT,
    }
)
"""Unit whose price applies to a unit without a price of its own; a unit that is not here is free. In an order in which
each fallback is complete before it is needed.
"""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of one model, with the fallbacks of units without a price of their own."""

    micro_credits: Mapping[Unit, int] = field(default_factory=lambda: MappingProxyType({}))
    """Micro-credits per million units; a unit that is not here is free."""

    def cost(self, quantities: Quantities) -> int:
        """Return the micro-credits of all units together, rounded up once."""
        prices = self.micro_credits
        if not prices:
            return 0
        total = 0
        for unit, count in quantities.items():
            total += count * prices.get(unit, 0)
        return -(-total // PRICED_UNITS)

    def dearest(self, *units: Unit) -> int:
        """Return the highest price of the units, in micro-credits for a million of one of them."""
        return max(self.micro_credits.get(unit, 0) for unit in units)


FREE = Prices()


def price_list(prices: Iterable[pb.Price]) -> Prices:
    """Return the prices of a model's description."""
    found = {price.unit: price.micro_credits_per_million for price in prices}
    for unit, general in FALLBACKS.items():
        if unit not in found and general in found:
            found[unit] = found[general]
    return Prices(found) if found else FREE


def quantities_of(usage: pb.Usage) -> Quantities:
    """Return the units of one answered call. A provider that reports more tokens of a kind than tokens in total is
    billed for the total.
    """
    found: dict[Unit, int] = {REQUEST: 1}
    left = usage.input_tokens
    if count := usage.cache_read_tokens:
        left = _take(found, CACHE_READ, count, left)
    if count := usage.cache_write_tokens:
        left = _take(found, CACHE_WRITE, count, left)
    if count := usage.long_cache_write_tokens:
        left = _take(found, LONG_CACHE_WRITE, count, left)
    if count := usage.audio_input_tokens:
        left = _take(found, AUDIO_INPUT, count, left)
    if left > 0:
        found[INPUT] = left
    left = usage.output_tokens
    if count := usage.reasoning_tokens:
        left = _take(found, REASONING, count, left)
    if count := usage.audio_output_tokens:
        left = _take(found, AUDIO_OUTPUT, count, left)
    if left > 0:
        found[OUTPUT] = left
    if (count := usage.web_search_requests) > 0:
        found[SEARCH] = count
    return found


def estimated_quantities(input_tokens: int, output_tokens: int) -> Quantities:
    """Return the units of a call before it is made."""
    return {REQUEST: 1, INPUT: input_tokens, OUTPUT: output_tokens}


def credits_text(micro_credits: int) -> str:
    """Return micro-credits as a decimal number of credits, exactly."""
    whole, micros = divmod(micro_credits, MICRO_CREDITS)
    return f"{whole}.{micros:06d}"


def _take(found: dict[Unit, int], unit: Unit, count: int, left: int) -> int:
    """Add tokens of one kind, at most `left`. Return the number of tokens left after them."""
    if (taken := min(count, left)) > 0:
        found[unit] = taken
        return left - taken
    return left
