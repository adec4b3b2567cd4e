"""Token usage in responses of the responses format: encoded for a caller, and decoded from a provider's response."""

from msgspec import Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.lenient_number_reading import Count, completed, count
from umg_grpc.wire.core.request_usage_sums import add_usage


class InputDetails(Struct):
    """Member `input_tokens_details`."""

    cached_tokens: Count = None
    cache_write_tokens: Count = None


class OutputDetails(Struct):
    """Member `output_tokens_details`."""

    reasoning_tokens: Count = None


class ProviderUsage(Struct):
    """Member `usage` of a response."""

    input_tokens: Count = None
    output_tokens: Count = None
    total_tokens: Count = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None

    prompt_tokens: Count = None  # relays that write the names of chat
    completion_tokens: Count = None


def encode_usage(usage: pb.Usage) -> JsonObject:
    """Return `usage`. Totals include cached tokens, reasoning tokens, and the tokens of a preceding summary."""
    if usage.HasField("compaction"):
        both = pb.Usage()
        for each in (usage, usage.compaction):
            add_usage(both, each)
        usage = both
    written = usage.cache_write_tokens + usage.long_cache_write_tokens
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": written},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def decode_usage(usage: ProviderUsage, searches: int, target: pb.GenerateResponse | pb.GenerateEvent) -> bool:
    """Set the token counts of `target.usage`. Without both totals return False and set nothing; without one, mark the
    usage as estimated: the gateway counts the missing tokens. `searches`: number of `web_search_call` items.
    """
    input_tokens, output_tokens = usage.input_tokens, usage.output_tokens
    if input_tokens is None or output_tokens is None:
        input_tokens, output_tokens = completed(
            usage.prompt_tokens if input_tokens is None else input_tokens,
            usage.completion_tokens if output_tokens is None else output_tokens,
            usage.total_tokens,
        )
        if input_tokens is None and output_tokens is None:
            return False
    counted, details = target.usage, usage.input_tokens_details or InputDetails()
    counted.estimated = input_tokens is None or output_tokens is None
    counted.input_tokens, counted.output_tokens = count(input_tokens), count(output_tokens)
    counted.cache_read_tokens = count(details.cached_tokens)
    counted.cache_write_tokens = count(details.cache_write_tokens)
    counted.reasoning_tokens = count((usage.output_tokens_details or OutputDetails()).reasoning_tokens)
    counted.web_search_requests = searches
    return True
