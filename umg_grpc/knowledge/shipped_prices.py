"""Built-in public prices of well-known models, by the provider's model ids. The config's `price` overrides them.

One credit is one US dollar here. Each row names the provider's page and the date of the price. Prices are those of the
standard tier and, if they differ by prompt length, of short prompts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple

from umg_grpc.knowledge.prices import PRICED_UNITS, Unit, Variant
from umg_grpc.v1 import pb

ALIBABA = "https://www.alibabacloud.com/help/en/model-studio/model-pricing"
ANTHROPIC = "https://platform.claude.com/docs/en/about-claude/pricing"
COHERE = "https://cohere.com/pricing"
DEEPSEEK = "https://api-docs.deepseek.com/quick_start/pricing"
GOOGLE = "https://ai.google.dev/gemini-api/docs/pricing"
MISTRAL = "https://mistral.ai/pricing"
OPENAI = "https://developers.openai.com/api/docs/pricing"
VOYAGE = "https://docs.voyageai.com/docs/pricing"
XAI = "https://docs.x.ai/docs/models"

DATED = re.compile(r"-(?:20[0-9]{6}|20[0-9]{2}-[0-9]{2}-[0-9]{2})$")
"""Date of a version at the end of a model's id, for example `-20250805`."""
NO_SIZES: Mapping[str, str] = MappingProxyType({})


class ShippedPrice(NamedTuple):
    """Row of the table: the prices of one model, in credits for a million tokens unless the field states another unit.

    "" is for kinds of tokens without an own price.
    """

    model: str
    source: str
    as_of: str
    """Date of the report, or its month."""
    input: str = ""
    output: str = ""
    cache_read: str = ""
    cache_write: str = ""
    long_cache_write: str = ""
    audio_input: str = ""
    image_input: str = ""
    image_output: str = ""
    search: str = ""
    """Credits of one unit of search."""
    video_second: Mapping[str, str] = NO_SIZES
    """Credits of one second by size; "" for any other size."""


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
    ShippedPrice("gpt-5", OPENAI, "2026-07", "1.25", "10", "0.125"),
    ShippedPrice("gpt-5-mini", OPENAI, "2026-07", "0.25", "2", "0.025"),
    ShippedPrice("gpt-5-nano", OPENAI, "2026-07", "0.05", "0.4", "0.005"),
    ShippedPrice("gpt-4.1", OPENAI, "2026-07", "2", "8", "0.5"),
    ShippedPrice("gpt-4.1-mini", OPENAI, "2026-07", "0.4", "1.6", "0.1"),
    ShippedPrice("gpt-4.1-nano", OPENAI, "2026-07", "0.1", "0.4", "0.025"),
    ShippedPrice("gpt-4o", OPENAI, "2026-07", "2.5", "10", "1.25"),
    ShippedPrice("gpt-4o-mini", OPENAI, "2026-07", "0.15", "0.6", "0.075"),
    ShippedPrice("gpt-3.5-turbo", OPENAI, "2026-05", "0.5", "1.5"),
    ShippedPrice("o1", OPENAI, "2025-07-04", "15", "60", "7.5"),
    ShippedPrice("o3", OPENAI, "2025-07-12", "2", "8", "0.5"),
    ShippedPrice("o3-mini", OPENAI, "2025-07-04", "1.1", "4.4", "0.55"),
    ShippedPrice("o4-mini", OPENAI, "2026-07", "1.1", "4.4", "0.275"),
    ShippedPrice("gemini-3.5-flash", GOOGLE, "2026-08-01", "1.5", "9", "0.15"),
    ShippedPrice("gemini-3.1-pro-preview", GOOGLE, "2026-07", "2", "12", "0.2"),
    ShippedPrice("gemini-2.5-pro", GOOGLE, "2026-07", "1.25", "10", "0.125"),
    ShippedPrice("gemini-2.5-flash", GOOGLE, "2026-07", "0.3", "2.5", "0.03", audio_input="1"),
    ShippedPrice("gemini-3.5-flash-lite", GOOGLE, "2026-08-01", "0.3", "2.5", "0.03"),
    ShippedPrice("gemini-3.1-flash-lite", GOOGLE, "2026-08-14", "0.25", "1.5"),
    ShippedPrice("gemini-3-flash-preview", GOOGLE, "2026-08-01", "0.5", "3"),
    ShippedPrice("gemini-2.5-flash-lite", GOOGLE, "2026-07", "0.1", "0.4", "0.01"),
    ShippedPrice("grok-4.7", XAI, "2026-09-23", "2", "6", "0.5"),
    ShippedPrice("grok-4.5", XAI, "2026-07-08", "2", "6", "0.5"),
    ShippedPrice("grok-4.3", XAI, "2026-05-12", "1.25", "2.5", "0.2"),
    ShippedPrice("grok-4.20", XAI, "2026-06-09", "1.25", "2.5", "0.2"),
    ShippedPrice("grok-4", XAI, "2026-09-23", "1.25", "2.5"),  # served as grok-4.3
    ShippedPrice("grok-3", XAI, "2026-09-23", "1.25", "2.5"),  # served as grok-4.3
    ShippedPrice("grok-build-0.1", XAI, "2026-06-09", "1", "2", "0.2"),
    ShippedPrice("deepseek-v4-pro", DEEPSEEK, "2026-08-01", "0.435", "0.87", "0.003625"),
    ShippedPrice("qwen-max", ALIBABA, "2026-09-23", "1.6", "6.4"),
    ShippedPrice("qwen-plus", ALIBABA, "2026-09-23", "0.4", "1.2"),
    ShippedPrice("mistral-large-2512", MISTRAL, "2026-06-09", "0.5", "1.5", "0.05"),
    ShippedPrice("mistral-large-latest", MISTRAL, "2026-08-01", "0.5", "1.5"),
    ShippedPrice("mistral-medium-3-5", MISTRAL, "2026-08-24", "1.5", "7.5", "0.15"),
    ShippedPrice("mistral-medium-latest", MISTRAL, "2026-08-24", "1.5", "7.5", "0.15"),
    ShippedPrice("mistral-medium-2508", MISTRAL, "2026-08-24", "0.4", "2", "0.04"),
    ShippedPrice("mistral-small-2603", MISTRAL, "2026-06-09", "0.15", "0.6", "0.015"),
    ShippedPrice("mistral-small-latest", MISTRAL, "2026-08-01", "0.15", "0.6"),
    ShippedPrice("ministral-14b-2512", MISTRAL, "2026-06-09", "0.2", "0.2", "0.02"),
    ShippedPrice("ministral-8b-2512", MISTRAL, "2026-08-24", "0.15", "0.15", "0.015"),
    ShippedPrice("ministral-3b-2512", MISTRAL, "2026-06-09", "0.1", "0.1", "0.01"),
    ShippedPrice("magistral-medium-latest", MISTRAL, "2026-08-01", "2", "5"),
    ShippedPrice("magistral-small-latest", MISTRAL, "2026-08-01", "0.5", "1.5"),
    ShippedPrice("codestral-2508", MISTRAL, "2026-06-09", "0.3", "0.9", "0.03"),
    ShippedPrice("codestral-latest", MISTRAL, "2026-08-01", "0.3", "0.9"),
    ShippedPrice("devstral-2512", MISTRAL, "2026-06-09", "0.4", "2", "0.04"),
    ShippedPrice("command-r-plus-08-2024", COHERE, "2026-09-23", "2.5", "10"),
    ShippedPrice("command-r-08-2024", COHERE, "2026-09-23", "0.15", "0.6"),
    # --- embeddings
    ShippedPrice("text-embedding-3-large", OPENAI, "2026-07", "0.13"),
    ShippedPrice("text-embedding-3-small", OPENAI, "2026-07", "0.02"),
    ShippedPrice("text-embedding-ada-002", OPENAI, "2026-07", "0.1"),
    ShippedPrice("gemini-embedding-001", GOOGLE, "2026-07", "0.15"),
    ShippedPrice("embed-v4.0", COHERE, "2025-12-10", "0.12"),
    ShippedPrice("voyage-4-large", VOYAGE, "2026-06-18", "0.12"),
    ShippedPrice("voyage-4", VOYAGE, "2026-06-18", "0.06"),
    ShippedPrice("voyage-4-lite", VOYAGE, "2026-06-18", "0.02"),
    ShippedPrice("voyage-3-large", VOYAGE, "2026-06-18", "0.18"),
    ShippedPrice("voyage-3.5", VOYAGE, "2026-06-18", "0.06"),
    ShippedPrice("voyage-3.5-lite", VOYAGE, "2026-06-18", "0.02"),
    ShippedPrice("voyage-code-3", VOYAGE, "2026-06-18", "0.18"),
    ShippedPrice("voyage-context-3", VOYAGE, "2026-06-18", "0.18"),
    ShippedPrice("voyage-finance-2", VOYAGE, "2026-06-18", "0.12"),
    ShippedPrice("voyage-law-2", VOYAGE, "2026-06-18", "0.12"),
    # --- reranking
    ShippedPrice("rerank-2.5", VOYAGE, "2026-01", "0.05"),
    ShippedPrice("rerank-2.5-lite", VOYAGE, "2026-01", "0.02"),
    ShippedPrice("rerank-v3.5", COHERE, "2026-08-18", search="0.002"),
    # --- images and videos
    ShippedPrice("gpt-image-1", OPENAI, "2026-07", "5", image_input="10", image_output="40"),
    ShippedPrice("gemini-3.1-flash-image", GOOGLE, "2026-08-24", "0.5", "3", image_output="60"),
    ShippedPrice("gemini-2.5-flash-image", GOOGLE, "2026-08-24", "0.3", "2.5", image_output="30"),
    ShippedPrice("sora-2", OPENAI, "2026-07", video_second={"": "0.1"}),
    ShippedPrice(
        "sora-2-pro",
        OPENAI,
        "2026-07",
        video_second={"1280x720": "0.3", "720x1280": "0.3", "1792x1024": "0.5", "1024x1792": "0.5", "": "0.7"},
    ),
    ShippedPrice("veo-3.1-generate-preview", GOOGLE, "2026-07", video_second={"4k": "0.6", "": "0.4"}),
)


def _prices_of(row: ShippedPrice) -> Iterator[pb.Price]:
    tokens = {
        pb.BILLABLE_UNIT_INPUT_TOKEN: row.input,
        pb.BILLABLE_UNIT_OUTPUT_TOKEN: row.output,
        pb.BILLABLE_UNIT_CACHE_READ_TOKEN: row.cache_read,
        pb.BILLABLE_UNIT_CACHE_WRITE_TOKEN: row.cache_write,
        pb.BILLABLE_UNIT_LONG_CACHE_WRITE_TOKEN: row.long_cache_write,
        pb.BILLABLE_UNIT_AUDIO_INPUT_TOKEN: row.audio_input,
        pb.BILLABLE_UNIT_IMAGE_INPUT_TOKEN: row.image_input,
        pb.BILLABLE_UNIT_IMAGE_OUTPUT_TOKEN: row.image_output,
    }
    for unit, credits_ in tokens.items():
        if credits_:
            yield pb.Price(unit=unit, micro_credits_per_million=_micro_credits(credits_))
    if row.search:
        yield _price_of_one(pb.BILLABLE_UNIT_SEARCH, row.search)
    for size, credits_ in row.video_second.items():
        yield _price_of_one(pb.BILLABLE_UNIT_VIDEO_SECOND, credits_, size)


def _price_of_one(unit: Unit, credits_: str, size: str = "") -> pb.Price:
    """Return the price message for a unit, given `credits_` for one unit (not a million), with the size "" for any
    size.
    """
    return pb.Price(
        **Variant(unit, size, "")._asdict(), micro_credits_per_million=_micro_credits(credits_) * PRICED_UNITS
    )


def _micro_credits(credits_: str) -> int:
    return int(Decimal(credits_).scaleb(6))


PRICES: Mapping[str, Sequence[pb.Price]] = MappingProxyType({row.model: tuple(_prices_of(row)) for row in TABLE})
"""Provider's model id, without the date of a version -> prices."""


def shipped_prices(model: str) -> Sequence[pb.Price]:
    """Return the public prices of a provider's model; empty for an unknown model.

    The id may end in the date of a version (`-20250805`), which is ignored.
    """
    return PRICES.get(model) or PRICES.get(DATED.sub("", model), ())
