"""What all calls of a process share that have to survive their providers."""

import random
import time
from collections.abc import Callable, Sequence

from umg_grpc.config import Channel, Config
from umg_grpc.routing import Target
from umg_grpc.service.health import Health
from umg_grpc.service.metrics import Metrics
from umg_grpc.service.slots import Slots

MOST_SAVED = 50.0
SECONDS_FOR_ONE = 10.0
"""In which a channel that is rarely called may be asked again once."""


class Budget:
    """How often a channel may be asked again: a share of the calls that go there, so that trying again does not make
    much more of them.
    """

    def __init__(self, share: float, now: Callable[[], float] = time.monotonic) -> None:
        self._share = share
        self._now = now
        self._saved = 1.0 if share else 0.0
        self._seen = now()

    def earn(self) -> None:
        """A call goes to the channel."""
        self._saved = min(MOST_SAVED, self._saved + self._share)

    def spend(self) -> bool:
        """Whether it may be asked once more."""
        if not self._share:
            return False
        now = self._now()
        self._saved = min(MOST_SAVED, self._saved + (now - self._seen) / SECONDS_FOR_ONE)
        self._seen = now
        if self._saved < 1:
            return False
        self._saved -= 1
        return True


class Resilience:
    """How the channels do, how much goes to each at once, and how often one may be asked again."""

    def __init__(self, config: Config, metrics: Metrics, chance: Callable[[], float] = random.random) -> None:
        self.metrics = metrics
        self.health = Health(config.breaker)
        self._chance = chance
        self._channels: Sequence[Channel] = ()
        self.slots: dict[str, Slots] = {}
        self.take(config)

    def take(self, config: Config) -> None:
        """Those of another config, for the calls that begin from now on. What is known stays of channels that stay as
        they are: one that was changed was perhaps mended.
        """
        self.retries = config.retries
        self._budgets: dict[str, Budget] = {}
        self.health.take(config.breaker)
        same = [channel for channel in config.channels if channel in self._channels]
        self.health.forget({(channel.name, model.upstream) for channel in same for model in channel.models})
        self._channels = config.channels
        bound, known = config.overload, self.slots
        self.slots = {
            channel.name: Slots(channel.concurrency, bound.queue, bound.wait, "the provider of this model")
            for channel in config.channels
            if channel.concurrency is not None
        }
        for name, slots in self.slots.items():
            if name in known and known[name].bounds == slots.bounds:  # which knows the calls under way
                self.slots[name] = known[name]

    def is_well(self, target: Target) -> bool:
        """Whether its channel may be asked for the model, as far as is known of it."""
        return self.health.is_well(target.channel.name, target.model)

    def budget(self, channel: str) -> Budget:
        """That of a channel."""
        if (known := self._budgets.get(channel)) is None:
            known = self._budgets[channel] = Budget(self.retries.budget)
        return known

    def backoff(self, repeated: int) -> float:
        """Seconds before a channel is asked again, for the second time and so on: half of them at random."""
        whole = min(self.retries.max_backoff, self.retries.backoff * 2.0 ** min(repeated, 32))
        return whole * (0.5 + self._chance() / 2)
