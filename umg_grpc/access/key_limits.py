"""Limits of API keys and models: requests per minute, tokens per minute, and concurrent requests."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from umg_grpc.access.limit_errors import concurrency_exceeded, request_exceeds_minute
from umg_grpc.access.limit_subjects import Limited
from umg_grpc.access.per_process_limit_shares import Processes, one_process, share_alone
from umg_grpc.access.redis_concurrency_limits import SharedConcurrencyLimits
from umg_grpc.access.redis_token_limits import SharedTokenLimits
from umg_grpc.access.token_limits import TokenReservation, TokenWindows
from umg_grpc.store.redis_client import Redis
from umg_grpc.wire.core.rate_limit_headers import LimitStatus, RateLimits

if TYPE_CHECKING:
    from umg_grpc.access.request_rate_limits import RequestLimits


class TokenEstimate(msgspec.Struct, frozen=True):
    """Input and output tokens of a call, estimated before the call is made."""

    input_tokens: int
    output_tokens: int


class KeyLimits:
    """Enforcer of the limits of all API keys and models; in this process or, with Redis, in all processes that share
    it. The counts of this process are checked first. While Redis does not answer, they are compared with this process's
    equal share of each limit.
    """

    def __init__(
        self, now: Callable[[], float] = time.monotonic, redis: Redis | None = None, processes: Processes = one_process
    ) -> None:
        self._now = now
        self._processes = processes
        self._redis = redis
        self._tokens = TokenWindows(now)
        self._running: dict[str, int] = {}
        self._shared_tokens = None if redis is None else SharedTokenLimits(redis, now, self._tokens.used)
        self._shared_running = None if redis is None else SharedConcurrencyLimits(redis, now, processes)

    def open(self, limited: Limited) -> "Admission":
        """Return the record of a call under the limits of a key or model, which counts from `acquire` on."""
        return Admission(self, limited)

    async def acquire(self, admission: "Admission", estimate: TokenEstimate) -> None:
        """Count a call against its limits, for `Admission.acquire`. Raise UmgError(RATE_LIMITED) at a limit."""
        limited = admission.limited
        if limited.concurrent_requests is not None:
            await self._start(admission, limited.concurrent_requests)
        if limited.tokens_per_minute is not None:
            await self._reserve(admission, limited.tokens_per_minute, estimate)
        if limited.requests_per_minute is not None:
            await self._requests.admit(limited)

    async def _start(self, admission: "Admission", maximum: int) -> None:
        key_id = admission.limited.limit_id
        running = self._running.get(key_id, 0)
        if running >= maximum:
            raise concurrency_exceeded(key_id, maximum)
        self._running[key_id] = running + 1
        admission.is_running = True
        if self._shared_running is not None:
            admission.has_permit = await self._shared_running.acquire(key_id, maximum)
            if not admission.has_permit:
                raise concurrency_exceeded(key_id, maximum)

    async def _reserve(self, admission: "Admission", limit: int, estimate: TokenEstimate) -> None:
        if estimate.input_tokens > limit:
            raise request_exceeds_minute(admission.limited.limit_id, limit, estimate.input_tokens)
        key_id, admission.input_tokens = admission.limited.limit_id, estimate.input_tokens
        # a call with a long response is possible with an unused minute
        tokens = min(limit, estimate.input_tokens + estimate.output_tokens)
        admission.reservation = self._tokens.reserve(key_id, limit, tokens)
        if self._shared_tokens is not None:
            admission.leased_second = await self._shared_tokens.take(key_id, limit, tokens)
            if admission.leased_second is None:
                remaining = self._shared_tokens.last_remaining(key_id)
                share = share_alone(limit, self._processes(), remaining, self._now())
                self._tokens.check_share(key_id, limit, share, admission.reservation)
                self._shared_tokens.count_alone(key_id, tokens)

    def release(self, admission: "Admission", tokens: int) -> None:
        """End a call, for `Admission.release`: free its slot, and replace its estimate by the used `tokens`."""
        key_id = admission.limited.limit_id
        if admission.is_running:
            admission.is_running = False
            self._running[key_id] -= 1
            if not self._running[key_id]:
                del self._running[key_id]
        if self._shared_running is not None and admission.has_permit:
            self._shared_running.release(key_id)
            admission.has_permit = False
        if (reservation := admission.reservation) is not None:
            if self._shared_tokens is not None and admission.leased_second is not None:
                self._shared_tokens.correct(key_id, admission.leased_second, tokens - reservation.tokens)
            self._tokens.correct(key_id, reservation, tokens)
            admission.reservation = None

    def status(self, limited: Limited) -> RateLimits:
        """Return the limits, remaining requests and remaining tokens per minute; None for an absent limit."""
        requests = self._requests.status(limited) if limited.requests_per_minute is not None else None
        return RateLimits(requests, self._tokens_status(limited))

    async def aclose(self) -> None:
        """Return the requests, tokens and permits that this process has leased in Redis, within a bounded time."""
        if "_requests" in vars(self):
            await self._requests.aclose()
        if self._shared_tokens is not None:
            await self._shared_tokens.aclose()
        if self._shared_running is not None:
            await self._shared_running.aclose()

    @cached_property
    def _requests(self) -> "RequestLimits":
        from umg_grpc.access.request_rate_limits import RequestLimits  # here: its library takes 2 MB

        return RequestLimits(self._now, self._redis, self._processes)

    def _tokens_status(self, limited: Limited) -> LimitStatus | None:
        limit = limited.tokens_per_minute
        if limit is None:
            return None
        status = self._tokens.status(limited.limit_id, limit)
        if self._shared_tokens is None:
            return status
        return replace(status, remaining=min(status.remaining, self._shared_tokens.remaining(limited.limit_id, limit)))


class Admission:
    """One call under the limits of its key or model, counted from `acquire` to `release`."""

    __slots__ = ("_limits", "has_permit", "input_tokens", "is_running", "leased_second", "limited", "reservation")

    def __init__(self, limits: KeyLimits, limited: Limited) -> None:
        self._limits = limits
        self.limited = limited
        self.is_running = False
        self.has_permit = False  # of a concurrent request, from Redis
        self.leased_second: int | None = None  # of the tokens, in Redis
        self.reservation: TokenReservation | None = None
        self.input_tokens = 0
        """Estimated tokens of the request."""

    async def acquire(self, estimate: TokenEstimate) -> None:
        """Count the call. Raise UmgError(RATE_LIMITED) if a limit is reached. `release` must follow in any case."""
        await self._limits.acquire(self, estimate)

    def release(self, tokens: int) -> None:
        """End the call, and replace its estimated tokens by `tokens`, the number used. Further calls have no effect."""
        self._limits.release(self, tokens)

    @property
    def status(self) -> RateLimits:
        """Remaining requests and tokens per minute of the key or model."""
        return self._limits.status(self.limited)
