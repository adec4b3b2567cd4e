"""Rows of prices from the cost map in the package `litellm`."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from umg_grpc.knowledge.public_price_rows import REGIONAL_TIER
from umg_grpc.knowledge.public_prices.region_price_rates import dearest, key_region, region_rates
from umg_grpc.knowledge.public_prices.shortest_rate_rows import Credits, Row, Term, rate_rows, text, texts
from umg_grpc.knowledge.shipped_prices import price_ids

MODEL_VENDORS = {
    **{name: name for name in ("openai", "azure", "anthropic", "gemini", "bedrock", "groq", "cerebras", "mistral")},
    **{name: name for name in ("deepseek", "xai", "moonshot", "zai", "dashscope", "minimax")},
    **dict.fromkeys(("vertex_ai-language-models", "vertex_ai-anthropic_models"), "vertex"),
    **dict.fromkeys(("bedrock_converse", "bedrock_mantle"), "bedrock"),
    "azure_ai": "azure",
    "together_ai": "together",
    "fireworks_ai": "fireworks",
    "bigmodel": "zai",
    "cohere_chat": "cohere",
    "volcengine": "ark",
}
"""Provider of text models in the cost map -> vendor in our rows."""
PROVIDER_VENDORS = {
    **MODEL_VENDORS,
    **{name: name for name in ("cohere", "voyage", "openrouter", "ai21", "baseten", "cloudflare", "databricks")},
    **{name: name for name in ("deepinfra", "hyperbolic", "inception", "meta", "nebius", "novita", "perplexity")},
    **{name: name for name in ("sambanova", "scaleway", "tencent", "wandb", "watsonx")},
    **dict.fromkeys(("vertex_ai", "vertex_ai-image-models", "vertex_ai-video-models"), "vertex"),
    **dict.fromkeys(("vertex_ai-embedding-models", "vertex_ai-mistral_models"), "vertex"),
    "jina_ai": "jina",
    "featherless_ai": "featherless",
    "nvidia_nim": "nvidia",
    "qwencloud": "dashscope",
    "vercel_ai_gateway": "vercel",
}
UNIT_MEMBERS = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "output_cost_per_reasoning_token": "reasoning",
    "cache_read_input_token_cost": "cache_read",
    "cache_creation_input_token_cost": "cache_write",
    "cache_creation_input_token_cost_above_12hr": "long_cache_write",
    "cache_creation_input_token_cost_above_1hr": "long_cache_write",
    "input_cost_per_audio_token": "audio_input",
    "output_cost_per_audio_token": "audio_output",
    "input_cost_per_image_token": "image_input",
    "output_cost_per_image_token": "image_output",
}
"""Key of the cost map -> member of our rows, whose price is for a million tokens."""
UNIT_KEY = re.compile(f"({'|'.join(UNIT_MEMBERS)})(?:_above_([0-9]+)k_tokens)?(?:_(batches|flex|priority|ultrafast))?")
TIER_NAMES = {None: "", "batches": "batch"}
ONE_THOUSAND = 1000
ONE_MILLION = 1_000_000
PRICED_MODES = frozenset(
    {
        *("chat", "completion", "responses", "embedding", "rerank", "image_generation", "image_edit"),
        *("video_generation", "audio_speech", "audio_transcription"),
    }
)
AUDIO_MODES = frozenset({"audio_speech", "audio_transcription"})
AUDIO_UNITS = {"input_cost_per_character": "character", "input_cost_per_second": "audio_second"}
IMAGE_MODES = frozenset({"image_generation", "image_edit"})
VIDEO_SECOND = re.compile(r"output_cost_per_(?:video_per_)?second(?:_([0-9]+[pk]))?")
IMAGE_KEY = re.compile(r"output_cost_per_image(?:_(0\.5K|[124]K))?")
REGION_KEY = re.compile(r"regional_processing_uplift_multiplier_([a-z]+)")
ANY_REGION = "regional_endpoint_uplift_multiplier"
"""Key of the cost map with the factor of every address but the global one."""


def price_rows(listed: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], Row]:
    """Return the prices by vendor and model. A worldwide key decides, else the shortest. Regions' prices are rates."""
    rows = dict[tuple[str, str], Row]()
    surcharges = dict[tuple[str, str], Decimal]()
    regions = defaultdict[tuple[str, str], dict[str, Row]](dict)
    for key in sorted(listed, key=lambda key: (not key.startswith("global."), len(key), key)):
        entry = listed[key]
        vendor, model = PROVIDER_VENDORS.get(entry.get("litellm_provider", "")), price_ids(key)[0]
        if vendor is None or entry.get("mode") not in PRICED_MODES:
            continue
        if vendor == "bedrock" and model.startswith("claude"):
            vendor = "bedrock-anthropic"
        if not (row := _row(entry)):
            continue
        known = rows.setdefault((vendor, model), row)
        if region := key_region(key, vendor):
            regions[vendor, model][region] = dearest(row, regions[vendor, model].get(region))
        factor = _times(row, known) if vendor.startswith("bedrock") and known is not row else None
        if ANY_REGION in entry:
            factor = _decimal(entry[ANY_REGION])
        if factor is not None and factor != 1:
            surcharges.setdefault((vendor, model), factor)
    for found, row in rows.items():
        usual = surcharges.get(found, Decimal(1))
        rates = [{"region": REGIONAL_TIER, "times": text(usual)}] if usual != 1 else []
        rates += region_rates(row, regions[found], usual)
        if rates:
            row["rates"] = [*row.get("rates", ()), *rates]
    return rows


def _times(row: Row, other: Row) -> Decimal | None:
    """Return the constant factor between the prices of two rows; None if they have no constant factor."""
    factors = {
        Decimal(row[unit]) / Decimal(other[unit])
        for unit in ("input", "output")
        if unit in row and Decimal(other.get(unit, 0))
    }
    return factors.pop() if len(factors) == 1 else None


def _row(entry: Mapping[str, Any]) -> Row:
    stated = _stated(entry)
    base = stated.setdefault(Term(), {})
    if base.get("reasoning") == base.get("output"):
        stated = {
            term: {unit: price for unit, price in prices.items() if unit != "reasoning"}
            for term, prices in stated.items()
        }
    others = _other_units(entry, has_image_tokens="image_output" in base, has_tokens=bool(base))
    prices = texts(stated[Term()]) | dict(others)
    if not prices:
        return {}
    rates = [*rate_rows(stated), *_off_peak(entry, base), *_regions(entry)]
    retired = {"retired": entry["deprecation_date"]} if "deprecation_date" in entry else {}
    return prices | ({"rates": rates} if rates else {}) | retired


def _other_units(entry: Mapping[str, Any], *, has_image_tokens: bool, has_tokens: bool) -> Iterator[tuple[str, Any]]:
    """Yield the prices of searches, images, seconds of video, characters and seconds of audio."""
    search = entry.get("search_context_cost_per_query", {}).get("search_context_size_medium")
    if search := search or entry.get("input_cost_per_query"):
        yield "search", text(_decimal(search))
    if entry.get("mode") not in AUDIO_MODES and (seconds := _by_size(entry, VIDEO_SECOND)):
        yield "video_second", seconds
    if entry.get("mode") in AUDIO_MODES and not has_tokens:  # a second is their average price
        for key, unit in AUDIO_UNITS.items():
            if price := entry.get(key):
                yield unit, text(_decimal(price))
    if (
        entry.get("mode") in IMAGE_MODES
        and not has_image_tokens
        and (images := _by_size(entry, IMAGE_KEY) or _images(entry))
    ):
        yield "image", images


def _stated(entry: Mapping[str, Any]) -> dict[Term, dict[str, Decimal]]:
    """Return the prices for a million tokens by condition, without prices of 0, which mean unknown in the cost map."""
    stated = dict[Term, dict[str, Decimal]]()
    ranges = entry.get("tiered_pricing") or ()
    parts = [(0, entry), *((int(each["range"][0]), each) for each in ranges if "range" in each)]
    for above, part in parts:
        for key, value in part.items():
            if (match := UNIT_KEY.fullmatch(key)) and isinstance(value, int | float):
                term = Term(above or int(match[2] or 0) * ONE_THOUSAND, TIER_NAMES.get(match[3], match[3] or ""))
                stated.setdefault(term, {})[UNIT_MEMBERS[match[1]]] = _decimal(value) * ONE_MILLION
    if ranges and Term() not in stated:
        stated[Term()] = dict(stated[min(stated)])
    return {term: {unit: price for unit, price in prices.items() if price} for term, prices in stated.items()}


def _off_peak(entry: Mapping[str, Any], base: Credits) -> Iterator[Row]:
    if (found := entry.get("off_peak_pricing")) is None:
        return
    prices = {UNIT_MEMBERS[key]: _decimal(value) * ONE_MILLION for key, value in found.items() if key in UNIT_MEMBERS}
    (rate,) = rate_rows({Term(): base, Term(0, "off-peak"): prices})
    del rate["tier"]
    for window in found["windows"]:
        hours = window["hours_utc"]
        whole_day = hours == "00:00-00:00"
        times = {} if whole_day else {"hours": [hours] if isinstance(hours, str) else hours}
        yield times | {"weekdays": window["weekdays"]} | rate


def _regions(entry: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the rates of calls that stay in a region, and of the fast service tier."""
    for key, value in entry.items():
        if match := REGION_KEY.fullmatch(key):
            yield {"region": match[1], "times": text(_decimal(value))}
    special = entry.get("provider_specific_entry") or {}
    if "us" in special:
        yield {"region": "us", "times": text(_decimal(special["us"]))}
    if "fast" in special:
        yield {"tier": "fast", "times": text(_decimal(special["fast"]))}


def _by_size(entry: Mapping[str, Any], pattern: re.Pattern[str]) -> dict[str, str]:
    """Return the prices of one unit by size, "" for any other size."""
    found = {
        (match[1] or "").lower(): text(_decimal(value))
        for key, value in entry.items()
        if (match := pattern.fullmatch(key))
    }
    return {size: price for size, price in sorted(found.items(), reverse=True) if size == "" or price != found.get("")}


def _images(entry: Mapping[str, Any]) -> dict[str, str]:
    price = None if any(key.startswith("output_cost") for key in entry) else entry.get("input_cost_per_image")
    return {"": text(_decimal(price))} if price else {}


def _decimal(value: float) -> Decimal:
    return Decimal(repr(value)).quantize(Decimal("1e-15"))
