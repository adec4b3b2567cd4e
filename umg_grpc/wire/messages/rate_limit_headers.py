"""Rate limits of a caller as the response headers that SDKs of the messages format read."""

from datetime import UTC, datetime, timedelta

from umg_grpc.wire.core.rate_limit_headers import RateLimits

RATE_LIMIT_PREFIX = "anthropic-ratelimit-"


def rate_limit_headers(limits: RateLimits, now: datetime) -> dict[str, str]:
    """Return `anthropic-ratelimit-*` for requests and tokens. Resets are RFC 3339 times in full seconds after `now`."""
    headers = {}
    for name, status in limits.named:
        reset = now.astimezone(UTC) + timedelta(seconds=status.reset_seconds, microseconds=999_999)
        headers[f"{RATE_LIMIT_PREFIX}{name}-limit"] = str(status.limit)
        headers[f"{RATE_LIMIT_PREFIX}{name}-remaining"] = str(status.remaining)
        headers[f"{RATE_LIMIT_PREFIX}{name}-reset"] = f"{reset:%Y-%m-%dT%H:%M:%SZ}"
    return headers
