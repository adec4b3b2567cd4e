"""Limits of keys: requests per minute, tokens per minute, and concurrent requests."""

import time
from collections.abc import Callable
from typing import NamedTuple

from umg_grpc.access.caller import Caller
from umg_grpc.access.limit_errors import concurrency_exceeded, request_exceeds_minute
from umg_grpc.access.rate_limits import RequestLimits
from umg_grpc.access.token_limits import TokenReservation, TokenWindows
from umg_grpc.store.redis import Redis
from umg_grpc.wire.core.rate_limit_headers import RateLimits


class TokenEstimate(NamedTuple):
    """Tokens that a call is expected to use."""

    input_tokens: int
    output_tokens: int


class KeyLimits:
    """Limits of all keys, for the calls of this process."""

    def __init__(self, now: Callable[[], float] = time.monotonic, redis: Redis | None = None) -> None:
        self._requests = RequestLimits(now, redis)
        self._tokens = TokenWindows(now)
        self._running: dict[str, int] = {}

    def open(self, caller: Caller) -> "Admission | None":
        """Return the admission of a call, still to be acquired; None for a key without limits."""
        return Admission(self, caller) if caller.has_limits else None

    async def acquire(self, admission: "Admission", estimate: TokenEstimate) -> None:
        """Count a call against the limits of its key, see `Admission.acquire`."""
        caller = admission.caller
        if (most := caller.concurrent_requests) is not None:
            running = self._running.get(caller.key_id, 0)
            if running >= most:
                raise concurrency_exceeded(most)
            self._running[caller.key_id] = running + 1
            admission.is_running = True
        if (limit := caller.tokens_per_minute) is not None:
            if estimate.input_tokens > limit:
                raise request_exceeds_minute(limit, estimate.input_tokens)
            admission.input_tokens = estimate.input_tokens
            # a call with a long answer is possible with an unused minute
            tokens = min(limit, estimate.input_tokens + estimate.output_tokens)
            admission.reservation = self._tokens.reserve(caller.key_id, limit, tokens)
        await self._requests.admit(caller)

    def release(self, admission: "Admission", tokens: int) -> None:
        """End a call that used these tokens."""
        key_id = admission.caller.key_id
        if admission.is_running:
            admission.is_running = False
            self._running[key_id] -= 1
            if not self._running[key_id]:
                del self._running[key_id]
        if admission.reservation is not None:
            self._tokens.correct(key_id, admission.reservation, tokens)
            admission.reservation = None

    def status(self, caller: Caller) -> RateLimits:
        """Return the state of the limits per minute."""
        limit = caller.tokens_per_minute
        tokens = None if limit is None else self._tokens.status(caller.key_id, limit)
        return RateLimits(self._requests.status(caller), tokens)


class Admission:
    """One call within the limits of its key, from `acquire` to `release`."""

    __slots__ = ("_limits", "caller", "input_tokens", "is_running", "reservation")

    def __init__(self, limits: KeyLimits, caller: Caller) -> None:
        self._limits = limits
        self.caller = caller
        self.is_running = False
        self.reservation: TokenReservation | None = None
        self.input_tokens = 0
        """Estimated tokens of the request."""

    async def acquire(self, estimate: TokenEstimate) -> None:
        """Count the call, with the tokens that it is expected to use. Raise UmgError(RATE_LIMITED).

        `release` has to follow, also after an error.
        """
        await self._limits.acquire(self, estimate)

    def release(self, tokens: int) -> None:
        """End the call, which used these tokens. Further calls have no effect."""
        self._limits.release(self, tokens)

    @property
    def status(self) -> RateLimits:
        """State of the limits per minute of the key."""
        return self._limits.status(self.caller)
