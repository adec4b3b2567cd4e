"""Prices of a model, and the cost of a call: integers only, rounded up once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from umg_grpc.v1 import pb

PRICED_UNITS = 1_000_000
"""Number of units for which a price is stated."""

Unit: TypeAlias = pb.BillableUnit.ValueType
Quantities: TypeAlias = Mapping[Unit, int]
"""Number of units by unit, without zeros. Each token has exactly one unit."""

FALLBACKS: Mapping[Unit, Unit] = MappingProxyType(
    {
        pb.BILLABLE_UNIT_CACHE_READ_TOKEN: pb.BILLABLE_UNIT_INPUT_TOKEN,
        pb.BILLABLE_UNIT_CACHE_WRITE_TOKEN: pb.BILLABLE_UNIT_INPUT_TOKEN,
        pb.BILLABLE_UNIT_LONG_CACHE_WRITE_TOKEN: pb.BILLABLE_UNIT_CACHE_WRITE_TOKEN,
        pb.BILLABLE_UNIT_AUDIO_INPUT_TOKEN: pb.BILLABLE_UNIT_INPUT_TOKEN,
        pb.BILLABLE_UNIT_REASONING_TOKEN: pb.BILLABLE_UNIT_OUTPUT_TOKEN,
        pb.BILLABLE_UNIT_AUDIO_OUTPUT_TOKEN: pb.BILLABLE_UNIT_OUTPUT_TOKEN,
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
        total = sum(count * prices.get(unit, 0) for unit, count in quantities.items())
        return -(-total // PRICED_UNITS)


FREE = Prices()


def price_list(prices: Iterable[pb.Price]) -> Prices:
    """Return the prices of a model's description."""
    found = {price.unit: price.micro_credits_per_million for price in prices}
    for unit, general in FALLBACKS.items():
        if unit not in found and general in found:
            found[unit] = found[general]
    return Prices(MappingProxyType(found)) if found else FREE


def quantities_of(usage: pb.Usage) -> Quantities:
    """Return the units of one answered call. A provider that reports more tokens of a kind than tokens in total is
    billed for the total.
    """
    found: dict[Unit, int] = {pb.BILLABLE_UNIT_REQUEST: 1}
    left = max(usage.input_tokens, 0)
    for unit, count in (
        (pb.BILLABLE_UNIT_CACHE_READ_TOKEN, usage.cache_read_tokens),
        (pb.BILLABLE_UNIT_CACHE_WRITE_TOKEN, usage.cache_write_tokens),
        (pb.BILLABLE_UNIT_LONG_CACHE_WRITE_TOKEN, usage.long_cache_write_tokens),
        (pb.BILLABLE_UNIT_AUDIO_INPUT_TOKEN, usage.audio_input_tokens),
    ):
        if count > 0 and left:
            found[unit] = taken = min(count, left)
            left -= taken
    if left:
        found[pb.BILLABLE_UNIT_INPUT_TOKEN] = left
    left = max(usage.output_tokens, 0)
    for unit, count in (
        (pb.BILLABLE_UNIT_REASONING_TOKEN, usage.reasoning_tokens),
        (pb.BILLABLE_UNIT_AUDIO_OUTPUT_TOKEN, usage.audio_output_tokens),
    ):
        if count > 0 and left:
            found[unit] = taken = min(count, left)
            left -= taken
    if left:
        found[pb.BILLABLE_UNIT_OUTPUT_TOKEN] = left
    if usage.web_search_requests > 0:
        found[pb.BILLABLE_UNIT_SEARCH] = usage.web_search_requests
    return found
