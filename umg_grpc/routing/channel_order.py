"""Order of a model's channels for one call: by `Rank`, and among equal ranks by affinity key or round-robin."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple, TypeAlias

from umg_grpc.base.rendezvous_hashing import distance
from umg_grpc.base.wildcard_patterns import matcher
from umg_grpc.routing.channel_target import Target

Pins: TypeAlias = tuple[tuple[str, ...], ...]
"""Channels that an API key may use: patterns of names, with `*` as wildcard, of the key and of each account above it. A
channel must match one pattern of each; empty allows all channels.
"""


def _always_healthy(target: Target) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class RoutePreferences:
    """Preferences and restrictions of one call, by which the channels of its model are ordered; none by default."""

    protocol: str = ""
    """Format of the caller's body, "" if there is none. Among equal priorities, channels with this format come first.
    """
    pins: Pins = ()
    state_channel: str = ""
    """Channel that produced provider data (reasoning state or stored response) to which the request refers; "" for
    none. It comes first if it is healthy, since other channels may be unable to read this data.
    """
    affinity: bytes = b""
    """Affinity key, whose calls prefer one channel in every process, distributed by weights; empty for round-robin."""
    is_healthy: Callable[[Target], bool] = _always_healthy
    """Function that returns whether the circuit breaker of a channel lets calls pass; unhealthy channels come last."""


ANY_ROUTE = RoutePreferences()
MAX_ROUND_ROBINS = 256
"""Maximum sets of channels whose credits a `RoundRobin` keeps. The oldest is dropped, and starts at zero again."""


class Rank(NamedTuple):
    """Sort key of a channel for one call: the smallest comes first. Channels with equal keys are equivalent."""

    unhealthy: bool
    not_state_channel: bool
    """Whether the channel is not the one that produced the provider's data that the request refers to."""
    priority: int
    has_zero_weight: bool
    """Whether the channel has weight 0: it is used only after the channels with a weight."""
    needs_translation: bool


class RoundRobin:
    """Smooth weighted round-robin among channels of one rank, as in nginx.

    At each turn every channel gains its weight as credit; the one with most credit is first and pays the sum of all
    weights. With weights 5, 1 and 1 the first channels are a a b a c a a. The others follow by credit. Each set of
    channels (some may be unhealthy or out of reach of a key) has its own credits: with shared credits, a key with two
    of three channels might never be served by one of them.
    """

    def __init__(self) -> None:
        self._credits: dict[tuple[str, ...], list[int]] = {}

    def take(self, targets: Sequence[Target]) -> list[Target]:
        """Return the targets in this call's order, and update the credits: the next call begins with another one."""
        channels, credit = [target.channel for target in targets], self._credit(targets)
        for at, channel in enumerate(channels):
            credit[at] += channel.weight
        order = sorted(range(len(credit)), key=lambda at: -credit[at])
        credit[order[0]] -= sum(channel.weight for channel in channels)
        return [targets[at] for at in order]

    def peek(self, targets: Sequence[Target]) -> list[Target]:
        """Return the order that the next `take` would return, without changing the credits."""
        gained = [has + target.channel.weight for has, target in zip(self._credit(targets), targets, strict=True)]
        return [targets[at] for at in sorted(range(len(gained)), key=lambda at: -gained[at])]

    def _credit(self, targets: Sequence[Target]) -> list[int]:
        """Return the credits of the targets, in the same order; zeros for a new set of channels."""
        names = tuple(target.channel.name for target in targets)
        if (credit := self._credits.get(names)) is None:
            if len(self._credits) >= MAX_ROUND_ROBINS:
                del self._credits[next(iter(self._credits))]
            credit = self._credits[names] = [0] * len(names)
        return credit


def ordered(
    targets: Sequence[Target], preferences: RoutePreferences, turn: Callable[[Sequence[Target]], list[Target]]
) -> Iterator[tuple[Target, Rank]]:
    """Yield each target with its rank, best first. `turn`: orders targets of equal rank without an affinity key."""
    ranked = sorted([(_rank(target, preferences), target) for target in targets], key=_by_rank)
    for rank, group in groupby(ranked, key=_by_rank):
        equals = [target for _, target in group]
        for target in equals if len(equals) == 1 else _order_equals(equals, preferences, turn):
            yield target, rank


def allowed(pins: Pins, channel: str) -> bool:
    """Return whether a key may use the channel."""
    return all(_pinned(rule)(channel) for rule in pins)


def _rank(target: Target, preferences: RoutePreferences) -> Rank:
    channel = target.channel
    return Rank(
        not preferences.is_healthy(target),
        channel.name != preferences.state_channel,
        channel.priority,
        channel.weight == 0,
        preferences.protocol not in channel.protocols,
    )


def _by_rank(ranked: tuple[Rank, Target]) -> Rank:
    return ranked[0]


def _order_equals(
    targets: list[Target], preferences: RoutePreferences, turn: Callable[[Sequence[Target]], list[Target]]
) -> list[Target]:
    affinity = preferences.affinity
    if not affinity:
        return turn(targets)
    return sorted(targets, key=lambda target: distance(target.channel.name, affinity, target.channel.weight or 1))


@lru_cache(maxsize=4096)
def _pinned(rule: tuple[str, ...]) -> Callable[[str], bool]:
    pattern = matcher(rule)
    return lambda name: pattern.match(name) is not None
