"""Rate limits of a caller as the response headers that SDKs read."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class LimitStatus:
    """A caller's rate limit after a call: maximum and remainder (requests or tokens), and seconds until it is full."""

    limit: int
    """Maximum in any 60 seconds."""
    remaining: int
    reset_seconds: float
    """Seconds until the whole limit is available again if no further call is made."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """State of a caller's limits of requests and of tokens; None for a limit that the caller does not have."""

    requests: LimitStatus | None = None
    tokens: LimitStatus | None = None

    @property
    def named(self) -> list[tuple[str, LimitStatus]]:
        """The limits that the caller has, as (name in headers, state): `requests`, `tokens`."""
        pairs = (("requests", self.requests), ("tokens", self.tokens))
        return [(name, status) for name, status in pairs if status is not None]


def tightest(states: Sequence[RateLimits]) -> RateLimits:
    """Return, of several subjects that a call counts for, the limit of requests and that of tokens with least left."""
    if len(states) == 1:
        return states[0]
    requests = [state.requests for state in states if state.requests is not None]
    tokens = [state.tokens for state in states if state.tokens is not None]
    return RateLimits(min(requests, key=_remaining, default=None), min(tokens, key=_remaining, default=None))


def _remaining(status: LimitStatus) -> int:
    return status.remaining


RATE_LIMIT_PREFIX = "x-ratelimit-"

RateLimitHeaders: TypeAlias = Callable[[RateLimits, datetime], dict[str, str]]
"""(limits, current time) -> response headers."""


def rate_limit_headers(limits: RateLimits, now: datetime) -> dict[str, str]:
    """Return the headers `x-ratelimit-*`; {} without limits. `now` is unused, since the reset is a duration (`12s`)."""
    headers = {}
    for name, status in limits.named:
        headers[f"{RATE_LIMIT_PREFIX}limit-{name}"] = str(status.limit)
        headers[f"{RATE_LIMIT_PREFIX}remaining-{name}"] = str(status.remaining)
        headers[f"{RATE_LIMIT_PREFIX}reset-{name}"] = f"{math.ceil(status.reset_seconds)}s"
    return headers
