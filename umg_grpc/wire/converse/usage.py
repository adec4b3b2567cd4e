"""Token usage in Converse responses, decoded."""

from umg_grpc.v1 import pb
from umg_grpc.wire.converse.schema import ServiceTier, TokenUsage
from umg_grpc.wire.core.charged_service_tiers import charged_tier
from umg_grpc.wire.core.lenient_number_reading import completed, count

HOUR_TTL = "1h"


def decode_usage(usage: TokenUsage | None, tier: ServiceTier | None) -> pb.Usage | None:
    """Return the token counts; None without any. Canonical input tokens include those of the prompt cache, unlike the
    provider's. A usage without one of the totals is estimated: the gateway counts it itself.
    """
    if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
        return None
    target = pb.Usage()
    read, wrote = count(usage.cache_read_input_tokens), count(usage.cache_write_input_tokens)
    long = sum(count(detail.input_tokens) for detail in usage.cache_details or () if detail.ttl == HOUR_TTL)
    target.cache_read_tokens = read
    target.long_cache_write_tokens = min(long, wrote)
    target.cache_write_tokens = wrote - target.long_cache_write_tokens
    total = None if usage.total_tokens is None else count(usage.total_tokens) - read - wrote
    given, generated = completed(usage.input_tokens, usage.output_tokens, total)
    target.input_tokens, target.output_tokens = count(count(given) + read + wrote), count(generated)
    target.estimated = given is None or generated is None
    if tier is not None and (charged := charged_tier(tier.type)):
        target.service_tier = charged
    return target
