"""Rate limits of a caller as the response headers that SDKs of the messages format read."""

from datetime import UTC, datetime, timedelta

from umg_grpc.wire.core.rate_limit_headers import RateLimits

RATE_LIMIT_PREFIX = "anthropic-ratelimit-"


def rate_limit_headers(limits: RateLimits, now: datetime) -> dict[str, str]:
    """Return the headers `anthropic-ratelimit-*` for the caller's limits of requests and tokens. The reset is a time in
    RFC 3339, rounded up to seconds, that is calculated from `now`, which has a time zone.
    """
    headers = {}
    for name, status in limits.named:
        reset = now.astimezone(UTC) + timedelta(seconds=status.reset_seconds, microseconds=999_999)
        headers[f"{RATE_LIMIT_PREFIX}{name}-limit"] = str(status.limit)
        headers[f"{RATE_LIMIT_PREFIX}{name}-remaining"] = str(status.remaining)
        headers[f"{RATE_LIMIT_PREFIX}{name}-reset"] = f"{reset:%Y-%m-%dT%H:%M:%SZ}"
    return headers
