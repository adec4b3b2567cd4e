"""Protection of the channels, shared by all calls of a process: circuit breakers, concurrency limits, retry budgets,
and back-off before retries.
"""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from umg_grpc.base.provider_failure import ProviderFailure
from umg_grpc.config import Channel, Config
from umg_grpc.routing import Target
from umg_grpc.service.metrics import Metrics
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
        metrics: Metrics,
        failures: ChannelFailures,
        chance: Callable[[], float] = random.random,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.metrics = metrics
        self._failures = failures
        self.health = CircuitBreakers(config.breaker)
        self._chance = chance
        self.learned = LearnedQuirks(now)
        """Restrictions of providers' models that refusals have shown."""
        self._channels: Sequence[Channel] = ()
        self.limiters: dict[str, ConcurrencyLimiter] = {}
        self.take(config)

    def take(self, config: Config) -> None:
        """Use another config for the calls that begin from now on. Channels whose settings have changed lose the state
        of their circuit breakers, since the change may have repaired them.
        """
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

    def record_failure(self, channel: str, facts: ProviderFailure) -> None:
        """Count a failure of a channel in the metrics, and store it as the channel's last failure, which `umg models`
        prints.
        """
        self.metrics.failure(channel, facts)
        self._failures.record(channel, facts)

    def backoff(self, retries: int) -> float:
        """Return the seconds to wait before the next retry of a call, half of them random, doubled with each earlier
        retry.
        `retries`: number of earlier retries.
        """
        whole = min(self.retries.max_backoff, self.retries.backoff * 2.0 ** min(retries, 32))
        return whole * (0.5 + self._chance() / 2)
