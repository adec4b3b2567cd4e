"""Costs of explicit prompt caches: a beginning costs a write and storage, but its later reads less than new input."""

from dataclasses import dataclass

from umg_grpc.knowledge.conditional_price_rates import Terms, prices_at
from umg_grpc.knowledge.price_calculation import (
    CACHE_READ,
    CACHE_WRITE,
    INPUT_TOKEN,
    LONG_CACHE_WRITE,
    PRICED_UNITS,
    Prices,
)
from umg_grpc.knowledge.prompt_storage_prices import StorageRow
from umg_grpc.v1 import pb
from umg_grpc.wire.native.stored_prompts import Beginning

HOUR_SECONDS = 3600
TOKEN_BYTES = 4
"""Bytes of a token, by which the size of a beginning is estimated."""
IMPLICIT_SECONDS = 300.0
"""Time in which a provider's implicit cache is expected to have a beginning. Vendors state none."""
MAX_READS = 12
"""Most reads of a stored beginning that are expected, since a conversation may end at any time."""


@dataclass(frozen=True)
class Costs:
    """Prices for the beginning of a prompt, in micro-credits for a million tokens, and its estimated tokens."""

    tokens: int
    input: int
    read: int
    prices: Prices
    """Price of a stored token by its lifetime: with storage for five minutes, and for an hour (`long_cache_write`)."""

    def write(self, *, is_long: bool) -> int:
        """Return the price of a stored token: with storage for an hour if `is_long`, else for five minutes."""
        return self.prices.price_of(LONG_CACHE_WRITE if is_long else CACHE_WRITE)

    def maximum(self, beginning: Beginning) -> int:
        """Return the most micro-credits that the storage of a beginning can cost: each of its bytes may be a token."""
        return -(-beginning.size * self.write(is_long=beginning.is_long) // PRICED_UNITS)

    def pays(self, beginning: Beginning, gap: float, seconds: int, covered: int, *, implicit: bool) -> bool:
        """Return whether the expected reads save more than the storage costs. `gap`: seconds between two calls with the
        beginning; `seconds`: lifetime; `covered`: size of the part that is stored already; `implicit`: whether the
        provider also caches prompts without a call for it, so that calls in quick succession need no storage.
        """
        if implicit and gap < IMPLICIT_SECONDS:
            return False
        reads = min(MAX_READS, int(seconds / max(gap, 1.0)))
        saved = reads * (beginning.size - covered) * (self.input - self.read)
        return saved > beginning.size * self.write(is_long=beginning.is_long)


def costs_of(prices: Prices, row: StorageRow, size: int, now: float) -> Costs:
    """Return the costs of the beginning of a prompt of `size` bytes at `now`, a Unix time. If the prices of cache
    writes exceed that of input, stored tokens cost them. Otherwise they cost the price of input and of the storage in
    `row`.
    """
    tokens = size // TOKEN_BYTES
    usual, _ = prices_at(prices, Terms(tokens, seconds=now))
    paid = usual.price_of(INPUT_TOKEN)
    short, long = usual.price_of(CACHE_WRITE), usual.price_of(LONG_CACHE_WRITE)
    if long <= paid:
        short, long = paid - (-row.micro_credits // 12), paid + row.micro_credits
    stored = Prices({CACHE_WRITE: short, LONG_CACHE_WRITE: long})
    return Costs(tokens, paid, usual.price_of(CACHE_READ) or paid, stored)


def stored_usage(tokens: int, *, is_long: bool) -> pb.Usage:
    """Return the usage of a call that stored a beginning: its tokens as cache writes of five minutes, or of an hour."""
    if is_long:
        return pb.Usage(input_tokens=tokens, long_cache_write_tokens=tokens)
    return pb.Usage(input_tokens=tokens, cache_write_tokens=tokens)
