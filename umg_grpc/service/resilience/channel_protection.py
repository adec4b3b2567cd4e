"""Protection of channels in all calls of a process: circuit breakers, concurrency limits, retry budgets, back-off."""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Channel, Config
from umg_grpc.routing import Target
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.channel_attempt import ATTEMPT_SUCCEEDED, CALLER_LEFT, Attempt, EncodedRequest
from umg_grpc.service.resilience.circuit_breaker import CircuitBreakers
from umg_grpc.service.resilience.concurrency_limiter import ConcurrencyLimiter
from umg_grpc.service.resilience.learned_quirks import LearnedQuirks
from umg_grpc.service.resilience.retry_budget import RetryBudget
from umg_grpc.store.channel_failure_file import ChannelFailures


class Resilience:
    """Circuit breakers, concurrency limiters and retry budgets of all channels of the current config."""

    def __init__(
        self,
        config: Config,
        failures: ChannelFailures,
        chance: Callable[[], float] = random.random,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._failures = failures
        self.health = CircuitBreakers(config.breaker)
        self._chance = chance
        self.learned = LearnedQuirks(now)
        """Restrictions of providers' models that refusals have shown."""
        self._channels: Sequence[Channel] = ()
        self.limiters: dict[str, ConcurrencyLimiter] = {}
        self.take(config)

    def take(self, config: Config) -> None:
        """Use another config for later calls. Channels whose settings have changed lose the state of their breakers."""
        self.retries = config.retries
        self.budgets = defaultdict[str, RetryBudget](lambda: RetryBudget(config.retries.budget))
        """Retry budgets by channel."""
        self.health.take(config.breaker)
        same = [channel for channel in config.channels if channel in self._channels]
        self.health.forget({(channel.name, model.upstream) for channel in same for model in channel.models})
        self._channels = config.channels
        bound, known = config.overload, self.limiters
        self.limiters = {
            channel.name: ConcurrencyLimiter(channel.concurrency, bound.queue, bound.wait, "the provider of this model")
            for channel in config.channels
            if channel.concurrency is not None
        }
        for name, limiter in self.limiters.items():
            if name in known and known[name].bounds == limiter.bounds:  # it has the calls in flight
                self.limiters[name] = known[name]

    def is_healthy(self, target: Target) -> bool:
        """Return whether the circuit breaker lets a call go to the target's channel and model."""
        return self.health.is_healthy(target.channel.name, target.model)

    def seconds_to_probe(self, target: Target) -> float:
        """Return the seconds until the circuit breaker of the target admits a test call; 0 if it is not open."""
        return self.health.seconds_to_probe(target.channel.name, target.model)

    def is_unpaid(self, target: Target) -> bool:
        """Return whether the circuit breaker of the target is open because the provider's account has no credit."""
        return self.health.is_unpaid(target.channel.name, target.model)

    def admit(self, attempt: Attempt[EncodedRequest], *, is_last: bool, is_retry: bool) -> bool:
        """Begin an attempt, which has a slot, if the circuit breaker admits it; otherwise release the slot. Return
        whether it is admitted; `attempt_ended` must follow then. `is_last`: no other channel is left for the call.
        `is_retry`: the call was retried, so that its attempts earn no further retry.
        """
        attempt.generation = self.health.begin(attempt.channel, attempt.target.model, is_last=is_last)
        if not attempt.generation:
            if attempt.limiter is not None:
                attempt.limiter.release()
            return False
        if not is_retry:
            self.budgets[attempt.channel].calls += 1
        return True

    def may_retry(self, attempt: Attempt[EncodedRequest], credit: float = 0.0) -> bool:
        """Take a retry from the channel's budget. Return False if none is left. `credit`: retries taken in advance."""
        return self.budgets[attempt.channel].spend(credit)

    def attempt_ended(
        self, _call: Call, attempt: Attempt[EncodedRequest], outcome: str, error: UmgError | None
    ) -> None:
        """Release the attempt's slot, and report the outcome to the breaker. `umg models` prints the last failure."""
        if attempt.limiter is not None:
            attempt.limiter.release()
        if error is not None and error.failure is not None and error.facts is not None:
            self._failures.record(attempt.channel, error.facts)
        target = attempt.target
        if outcome == ATTEMPT_SUCCEEDED and (attempt.channel, target.model) in self._failures.unknown_models:
            self._failures.forget_unknown(attempt.channel, target.model)
        if outcome == CALLER_LEFT or (error is not None and target.channel.is_simulated):
            self.health.cancelled(attempt.channel, target.model, attempt.generation)
        else:
            self.health.end(attempt.channel, target.model, error, attempt.generation)

    def check_succeeded(self, channel: str, model: str) -> None:
        """Take note that a check of a channel has succeeded. `model`: the provider's id of the called one, or ""."""
        self.health.succeeded(channel, model)
        if (channel, model) in self._failures.unknown_models:
            self._failures.forget_unknown(channel, model)

    def backoff(self, retries: int) -> float:
        """Return the seconds before the next retry, doubled with each earlier one (`retries`), half of them random."""
        whole = min(self.retries.max_backoff, self.retries.backoff * 2.0 ** min(retries, 32))
        return whole * (0.5 + self._chance() / 2)
