"""Token usage in chat responses, encoded for a caller and decoded from a provider's response."""

from msgspec import Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json import JsonObject
from umg_grpc.wire.core.lenient_numbers import Count, count
from umg_grpc.wire.core.service_tiers import charged_tier


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
    """Member `usage` of a response."""

    prompt_tokens: Count = None
    completion_tokens: Count = None
    total_tokens: Count = None
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None
    prompt_cache_hit_tokens: Count = None  # the field for cached tokens at some providers


# --- canonical -> caller


def encode_usage(usage: pb.Usage) -> JsonObject:
    """Return the member `usage`. The totals are exact sums; counts that only some providers report are included unless
    they are 0.
    """
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
    """Set the token counts of `target`; details that the provider leaves out are 0.

    Return False, and set none, for a usage without the totals of both prompt and completion tokens: the gateway then
    counts the tokens itself. `tier`: class of service beside the usage.
    """
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return False
    input_tokens, output_tokens = count(usage.prompt_tokens), count(usage.completion_tokens)
    uncounted = 0
    if usage.total_tokens != input_tokens + output_tokens:  # some providers count the reasoning in the total only
        uncounted = max(0, count(usage.total_tokens) - input_tokens - output_tokens)
    target.input_tokens = input_tokens
    target.output_tokens = count(output_tokens + uncounted) if uncounted else output_tokens
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    if cached := (prompt is not None and prompt.cached_tokens) or usage.prompt_cache_hit_tokens:
        target.cache_read_tokens = count(cached)
    if prompt is not None:
        target.cache_write_tokens = count(prompt.cache_write_tokens)
        target.audio_input_tokens, target.image_input_tokens = count(prompt.audio_tokens), count(prompt.image_tokens)
    if completion is not None:
        target.reasoning_tokens = count(completion.reasoning_tokens)
        target.audio_output_tokens = count(completion.audio_tokens)
        target.image_output_tokens = count(completion.image_tokens)
        target.accepted_prediction_tokens = count(completion.accepted_prediction_tokens)
        target.rejected_prediction_tokens = count(completion.rejected_prediction_tokens)
    if uncounted and not target.reasoning_tokens:
        target.reasoning_tokens = uncounted
    if charged := charged_tier(tier):
        target.service_tier = charged
    return True
