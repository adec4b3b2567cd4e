"""Token usage in chat responses, encoded for a caller and decoded from a provider's response."""

from collections.abc import Iterable
from typing import Protocol

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.charged_service_tiers import charged_tier
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, decode_or_none
from umg_grpc.wire.core.lenient_number_reading import Count, completed, count


class TokenDetails(Struct):
    """Members `prompt_tokens_details` and `completion_tokens_details`."""

    cached_tokens: Count = None
    cache_write_tokens: Count = None
    audio_tokens: Count = None
    image_tokens: Count = None
    reasoning_tokens: Count = None
    accepted_prediction_tokens: Count = None
    rejected_prediction_tokens: Count = None


class ProviderUsage(Struct):
    """Member `usage`. Some providers send the members of the second group instead of, or beside, those of the first."""

    prompt_tokens: Count = None
    completion_tokens: Count = None
    total_tokens: Count = None
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None

    input_tokens: Count = None  # relays that write the names of other formats
    output_tokens: Count = None
    prompt_cache_hit_tokens: Count = None  # DeepSeek
    cached_tokens: Count = None  # Moonshot
    cache_read_input_tokens: Count = None  # relays of Claude
    cache_creation_input_tokens: Count = None  # relays of Claude
    reasoning_tokens: Count = None  # Perplexity


class Timings(Struct):
    """Member `timings` of llama.cpp's server: the tokens that were processed, reused and generated."""

    prompt_n: Count = None
    cache_n: Count = None
    predicted_n: Count = None


class Carrier(Struct):
    """Object with a member `usage`."""

    usage: ProviderUsage | None = None


class UsagePlaces(Struct, kw_only=True):
    """Members that may hold the usage. Those of single vendors stay raw: others may use the names for other content."""

    usage: ProviderUsage | None = None
    x_groq: Raw = ABSENT_MEMBER
    usage_metadata: Raw = ABSENT_MEMBER
    timings: Raw = ABSENT_MEMBER


class Choice(Protocol):
    """Choice of a response or chunk, in which some providers (Moonshot) send the usage."""

    usage: Raw


_USAGE = msgspec.json.Decoder(ProviderUsage)
_CARRIER = msgspec.json.Decoder(Carrier)
_TIMINGS = msgspec.json.Decoder(Timings)


def find_usage(places: UsagePlaces, choices: Iterable[Choice]) -> ProviderUsage | None:
    """Return the usage of a response or chunk from the first member that has one; None if there is none."""
    if places.usage is not None:
        return places.usage
    for choice in choices:
        if choice.usage is not ABSENT_MEMBER and (usage := decode_or_none(_USAGE, choice.usage)) is not None:
            return usage
    if places.x_groq is not ABSENT_MEMBER and (carrier := decode_or_none(_CARRIER, places.x_groq)) is not None:
        return carrier.usage
    if places.usage_metadata is not ABSENT_MEMBER:
        return decode_or_none(_USAGE, places.usage_metadata)
    if places.timings is ABSENT_MEMBER or (timings := decode_or_none(_TIMINGS, places.timings)) is None:
        return None
    if timings.prompt_n is None:
        return None
    prompt = count(timings.prompt_n) + count(timings.cache_n)
    return ProviderUsage(prompt, timings.predicted_n, cached_tokens=timings.cache_n)


# --- canonical -> caller


def missing_totals(usage: ProviderUsage, counted: pb.Usage) -> JsonObject:
    """Return the totals that typed clients need and `usage` lacks; {} if unknown. `counted`: the decoded usage."""
    if (usage.prompt_tokens is not None and usage.completion_tokens is not None) or counted.estimated:
        return {}
    return {
        "prompt_tokens": counted.input_tokens,
        "completion_tokens": counted.output_tokens,
        "total_tokens": counted.input_tokens + counted.output_tokens,
    }


def encode_usage(usage: pb.Usage) -> JsonObject:
    """Return `usage` with totals that are exact sums. Counts that only some providers report are left out if 0."""
    prompt: JsonObject = {"cached_tokens": usage.cache_read_tokens, "audio_tokens": usage.audio_input_tokens}
    completion: JsonObject = {
        "reasoning_tokens": usage.reasoning_tokens,
        "audio_tokens": usage.audio_output_tokens,
        "accepted_prediction_tokens": usage.accepted_prediction_tokens,
        "rejected_prediction_tokens": usage.rejected_prediction_tokens,
    }
    if written := usage.cache_write_tokens + usage.long_cache_write_tokens:
        prompt["cache_write_tokens"] = written
    if usage.image_input_tokens:
        prompt["image_tokens"] = usage.image_input_tokens
    if usage.image_output_tokens:
        completion["image_tokens"] = usage.image_output_tokens
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": prompt,
        "completion_tokens_details": completion,
    }


# --- provider -> canonical


def decode_usage(usage: ProviderUsage, target: pb.Usage, tier: str | None = None) -> bool:
    """Set the token counts of `target`. With only one of prompt and completion tokens, the usage is marked as
    estimated: the gateway counts the other. Without both, return False and set nothing. `tier`: stated beside the
    usage.
    """
    prompt_tokens, completion_tokens = usage.prompt_tokens, usage.completion_tokens
    if prompt_tokens is None or completion_tokens is None:
        prompt_tokens, completion_tokens = completed(
            usage.input_tokens if prompt_tokens is None else prompt_tokens,
            usage.output_tokens if completion_tokens is None else completion_tokens,
            usage.total_tokens,
        )
        if prompt_tokens is None and completion_tokens is None:
            return False
        target.estimated = prompt_tokens is None or completion_tokens is None
    input_tokens, output_tokens = count(prompt_tokens), count(completion_tokens)
    uncounted = 0
    if usage.total_tokens != input_tokens + output_tokens and not target.estimated:
        uncounted = max(0, count(usage.total_tokens) - input_tokens - output_tokens)  # reasoning, at some providers
    target.input_tokens = input_tokens
    target.output_tokens = count(output_tokens + uncounted) if uncounted else output_tokens
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    if cached := (
        (prompt is not None and prompt.cached_tokens)
        or usage.prompt_cache_hit_tokens
        or usage.cached_tokens
        or usage.cache_read_input_tokens
    ):
        target.cache_read_tokens = count(cached)
    if usage.cache_creation_input_tokens:
        target.cache_write_tokens = count(usage.cache_creation_input_tokens)
    if prompt is not None:
        if prompt.cache_write_tokens:
            target.cache_write_tokens = count(prompt.cache_write_tokens)
        target.audio_input_tokens, target.image_input_tokens = count(prompt.audio_tokens), count(prompt.image_tokens)
    if completion is not None:
        target.reasoning_tokens = count(completion.reasoning_tokens)
        target.audio_output_tokens = count(completion.audio_tokens)
        target.image_output_tokens = count(completion.image_tokens)
        target.accepted_prediction_tokens = count(completion.accepted_prediction_tokens)
        target.rejected_prediction_tokens = count(completion.rejected_prediction_tokens)
    if (uncounted or usage.reasoning_tokens) and not target.reasoning_tokens:
        target.reasoning_tokens = uncounted or count(usage.reasoning_tokens)
    if tier and (charged := charged_tier(tier)):
        target.service_tier = charged
    return True
