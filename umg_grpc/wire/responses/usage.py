"""Token usage in responses of the responses format: encoded for a caller, and decoded from a provider's response."""

from msgspec import Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json import JsonObject
from umg_grpc.wire.core.lenient_numbers import Count, count


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

    @property
    def is_whole(self) -> bool:
        """Whether the totals of both input and output tokens are present. If one is missing the usage is ignored, and
        the gateway counts the tokens itself.
        """
        return self.input_tokens is not None and self.output_tokens is not None


def encode_usage(usage: pb.Usage) -> JsonObject:
    """Return the member `usage`. The totals are the sums of all input and output tokens, cached and reasoning tokens
    included.
    """
    written = usage.cache_write_tokens + usage.long_cache_write_tokens
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": written},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def decode_usage(usage: ProviderUsage, searches: int, target: pb.Usage) -> None:
    """Set the token counts of `target`. `usage`: with the totals of both input and output tokens; details that the
    provider leaves out are 0.

    `searches`: number of web searches (`web_search_call` items) in the response.
    """
    details = usage.input_tokens_details or InputDetails()
    target.input_tokens, target.output_tokens = count(usage.input_tokens), count(usage.output_tokens)
    target.cache_read_tokens = count(details.cached_tokens)
    target.cache_write_tokens = count(details.cache_write_tokens)
    target.reasoning_tokens = count((usage.output_tokens_details or OutputDetails()).reasoning_tokens)
    target.web_search_requests = searches
