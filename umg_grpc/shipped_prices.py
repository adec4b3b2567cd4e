"""Public prices of well-known models by the provider's ids, which `price` of a model in the config overrides.

A credit stands for a US dollar here. Each row has the page of its provider and the date as of which the price is
reported there. Prices are those of the standard tier; a model with a higher price for long prompts has that of short
ones.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple

from umg_grpc.v1 import pb

ANTHROPIC = "https://platform.claude.com/docs/en/about-claude/pricing"
GOOGLE = "https://ai.google.dev/gemini-api/docs/pricing"
OPENAI = "https://developers.openai.com/api/docs/pricing"

DATED = re.compile(r"-(?:20[0-9]{6}|20[0-9]{2}-[0-9]{2}-[0-9]{2})$")
"""Date of a version at the end of a model's id, for example `-20250805`."""


class ShippedPrice(NamedTuple):
    """Row of the table, in credits for a million tokens; "" for a kind of token without a price of its own."""

    model: str
    source: str
    as_of: str
    """Date of the report, or its month."""
    input: str
    output: str
    cache_read: str = ""
    cache_write: str = ""
    long_cache_write: str = ""
    audio_input: str = ""


TABLE: Sequence[ShippedPrice] = (
    ShippedPrice("claude-fable-5-1", ANTHROPIC, "2026-10-24", "10", "50", "0.25", "12.5", "20"),
    ShippedPrice("claude-fable-5", ANTHROPIC, "2026-10-24", "10", "50", "1", "12.5", "20"),
    ShippedPrice("claude-opus-5-5", ANTHROPIC, "2026-10-24", "4", "20", "0.2", "5", "8"),
    ShippedPrice("claude-opus-5", ANTHROPIC, "2026-10-24", "5", "25", "0.5", "6.25", "10"),
    ShippedPrice("claude-opus-4-8", ANTHROPIC, "2026-10-24", "5", "25", "0.5", "6.25", "10"),
    ShippedPrice("claude-opus-4-7", ANTHROPIC, "2026-10-24", "5", "25", "0.5", "6.25", "10"),
    ShippedPrice("claude-opus-4-6", ANTHROPIC, "2026-10-24", "5", "25", "0.5", "6.25", "10"),
    ShippedPrice("claude-opus-4-5", ANTHROPIC, "2026-10-24", "5", "25", "0.5", "6.25", "10"),
    ShippedPrice("claude-opus-4-1", ANTHROPIC, "2026-10-24", "15", "75", "1.5", "18.75", "30"),
    ShippedPrice("claude-opus-4", ANTHROPIC, "2026-10-24", "15", "75", "1.5", "18.75", "30"),
    ShippedPrice("claude-sonnet-5-5", ANTHROPIC, "2026-10-24", "2", "10", "0.1", "2.5", "4"),
    ShippedPrice("claude-sonnet-5", ANTHROPIC, "2026-10-24", "2", "10", "0.2", "2.5", "4"),
    ShippedPrice("claude-sonnet-4-6", ANTHROPIC, "2026-10-24", "3", "15", "0.3", "3.75", "6"),
    ShippedPrice("claude-sonnet-4-5", ANTHROPIC, "2026-10-24", "3", "15", "0.3", "3.75", "6"),
    ShippedPrice("claude-sonnet-4", ANTHROPIC, "2026-10-24", "3", "15", "0.3", "3.75", "6"),
    ShippedPrice("claude-haiku-5-5", ANTHROPIC, "2026-10-24", "0.1", "0.5", "0.01", "0.125", "0.2"),
    ShippedPrice("claude-haiku-4-5", ANTHROPIC, "2026-10-24", "1", "5", "0.1", "1.25", "2"),
    ShippedPrice("claude-3-5-haiku", ANTHROPIC, "2026-10", "0.8", "4", "0.08", "1", "1.6"),
    ShippedPrice("gpt-6.1-sol", OPENAI, "2026-10-16", "2", "10", "0.1", "2.5"),
    ShippedPrice("gpt-6-sol", OPENAI, "2026-10-16", "2", "10", "0.2", "2.5"),
    ShippedPrice("gpt-6-luna", OPENAI, "2026-10-16", "0.1", "0.5", "0.01", "0.125"),
    ShippedPrice("gpt-5.5", OPENAI, "2026-06", "5", "30", "0.5"),
    ShippedPrice("gpt-5.5-pro", OPENAI, "2026-06", "30", "180"),
    ShippedPrice("gpt-5.4", OPENAI, "2026-06", "2.5", "15", "0.25"),
    ShippedPrice("gpt-5.4-mini", OPENAI, "2026-06", "0.75", "4.5", "0.075"),
    ShippedPrice("gpt-5.4-nano", OPENAI, "2026-06", "0.2", "1.25", "0.02"),
    ShippedPrice("gpt-5.4-pro", OPENAI, "2026-06", "30", "180"),
    ShippedPrice("gpt-5.2", OPENAI, "2026-04-13", "1.75", "14", "0.175"),
    ShippedPrice("gpt-5.2-pro", OPENAI, "2026-04-13", "21", "168"),
    ShippedPrice("gpt-5.1", OPENAI, "2026-04-13", "1.25", "10", "0.125"),
    ShippedPrice("gpt-5-pro", OPENAI, "2026-04-13", "15", "120"),
    ShippedPrice("gpt-5", OPENAI, "2026-03", "1.25", "10"),
    ShippedPrice("gpt-5-mini", OPENAI, "2026-03", "0.25", "2"),
    ShippedPrice("gpt-5-nano", OPENAI, "2026-03", "0.05", "0.4"),
    ShippedPrice("gpt-4.1", OPENAI, "2026-03", "2", "8"),
    ShippedPrice("gpt-4.1-mini", OPENAI, "2026-03", "0.4", "1.6"),
    ShippedPrice("gpt-4.1-nano", OPENAI, "2026-03", "0.1", "0.4"),
    ShippedPrice("gpt-4o", OPENAI, "2026-05", "2.5", "10"),
    ShippedPrice("gpt-4o-mini", OPENAI, "2026-05", "0.15", "0.6"),
    ShippedPrice("gpt-3.5-turbo", OPENAI, "2026-05", "0.5", "1.5"),
    ShippedPrice("o1", OPENAI, "2026-05", "15", "60"),
    ShippedPrice("o3", OPENAI, "2026-03", "2", "8"),
    ShippedPrice("o3-mini", OPENAI, "2026-05", "1.1", "4.4"),
    ShippedPrice("o4-mini", OPENAI, "2026-03", "1.1", "4.4"),
    ShippedPrice("gemini-3.5-flash", GOOGLE, "2026-09-20", "1.5", "9"),
    ShippedPrice("gemini-3.1-pro-preview", GOOGLE, "2026-09-20", "2", "12"),
    ShippedPrice("gemini-2.5-pro", GOOGLE, "2026-03", "1.25", "10"),
    ShippedPrice("gemini-2.5-flash", GOOGLE, "2026-03", "0.3", "2.5", audio_input="1"),
)


def _prices_of(row: ShippedPrice) -> tuple[pb.Price, ...]:
    units = {
        pb.BILLABLE_UNIT_INPUT_TOKEN: row.input,
        pb.BILLABLE_UNIT_OUTPUT_TOKEN: row.output,
        pb.BILLABLE_UNIT_CACHE_READ_TOKEN: row.cache_read,
        pb.BILLABLE_UNIT_CACHE_WRITE_TOKEN: row.cache_write,
        pb.BILLABLE_UNIT_LONG_CACHE_WRITE_TOKEN: row.long_cache_write,
        pb.BILLABLE_UNIT_AUDIO_INPUT_TOKEN: row.audio_input,
    }
    return tuple(
        pb.Price(unit=unit, micro_credits_per_million=int(Decimal(credits_).scaleb(6)))
        for unit, credits_ in units.items()
        if credits_
    )


PRICES: Mapping[str, Sequence[pb.Price]] = MappingProxyType({row.model: _prices_of(row) for row in TABLE})
"""Provider's model id, without the date of a version -> prices."""


def shipped_prices(model: str) -> Sequence[pb.Price]:
    """Return the prices of the provider's model, also of a dated version; none for an unknown model."""
    return PRICES.get(model) or PRICES.get(DATED.sub("", model), ())
