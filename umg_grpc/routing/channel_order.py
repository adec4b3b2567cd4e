"""Order of a model's channels: by rank, and within a rank by prompt cache affinity, affinity key or round-robin."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from math import log2
from typing import NamedTuple

from umg_grpc.routing.channel_target import Target
from umg_grpc.wildcard_patterns import matcher


def _always_healthy(target: Target) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class RoutePreferences:
    """Preferences and restrictions of a call for the order of channels."""

    protocol: str = ""
    """The caller's own format. Channels of this format come first within a priority: they need no translation."""
    pins: tuple[str, ...] = ()
    """Patterns of the channel names that the key may use, with `*` as wildcard. Empty allows all."""
    state_channel: str = ""
    """Channel that produced the state that the call continues, perhaps the only one that can read it: first of all
    healthy channels.
    """
    prompt_cache_channel: str = ""
    """Channel that served the beginning of the conversation and may still have it in its prompt cache."""
    affinity: str = ""
    """Affinity key: calls with the same key prefer the same channel. Keys are distributed by the channels' weights."""
    is_healthy: Callable[[Target], bool] = _always_healthy
    """Whether a channel is healthy; unhealthy channels come last."""


ANY = RoutePreferences()
MAX_ROUND_ROBINS = 256
"""Maximum number of sets of channels of a model with round-robin state; a dropped set starts anew."""


class Rank(NamedTuple):
    """Sort key of a channel for one call; the channel with the smallest comes first. Channels of one rank are
    equivalent.
    """

    unhealthy: bool
    not_state_channel: bool
    """Whether another channel produced the state that the call continues."""
    priority: int
    has_zero_weight: bool
    """Whether the channel has weight 0: it is used only after the channels with a weight."""
    needs_translation: bool
    """Whether the channel does not have the caller's format."""


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
        """Return the targets in their order and advance the turn."""
        channels, credit = [target.channel for target in targets], self._credit(targets)
        for at, channel in enumerate(channels):
            credit[at] += channel.weight
        order = sorted(range(len(credit)), key=lambda at: -credit[at])
        credit[order[0]] -= sum(channel.weight for channel in channels)
        return [targets[at] for at in order]

    def peek(self, targets: Sequence[Target]) -> list[Target]:
        """Return the order of the next `take`, without advancing the turn."""
        gained = [has + target.channel.weight for has, target in zip(self._credit(targets), targets, strict=True)]
        return [targets[at] for at in sorted(range(len(gained)), key=lambda at: -gained[at])]

    def _credit(self, targets: Sequence[Target]) -> list[int]:
        """Return the credits of the targets, in their order."""
        names = tuple(target.channel.name for target in targets)
        if (credit := self._credits.get(names)) is None:
            if len(self._credits) >= MAX_ROUND_ROBINS:
                del self._credits[next(iter(self._credits))]
            credit = self._credits[names] = [0] * len(names)
        return credit


def ordered(
    targets: Sequence[Target], preferences: RoutePreferences, turn: Callable[[Sequence[Target]], list[Target]]
) -> Iterator[tuple[Target, Rank]]:
    """Yield the targets, best first, each with its rank. `turn` orders targets that are otherwise equivalent."""
    ranked = sorted([(_rank(target, preferences), target) for target in targets], key=_by_rank)
    for rank, group in groupby(ranked, key=_by_rank):
        equals = [target for _, target in group]
        for target in equals if len(equals) == 1 else _order_equals(equals, preferences, turn):
            yield target, rank


def allowed(pins: tuple[str, ...], channel: str) -> bool:
    """Return whether a key may use the channel. `pins`: patterns of the channel names that the key may use; empty for
    all.
    """
    return not pins or _pinned(pins)(channel)


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
    if preferences.affinity:
        targets = sorted(targets, key=lambda target: _distance(target, preferences.affinity))
    known = [target for target in targets if target.channel.name == preferences.prompt_cache_channel]
    others = [target for target in targets if target.channel.name != preferences.prompt_cache_channel]
    return known + (others if preferences.affinity or len(others) < 2 else turn(others))


def _distance(target: Target, affinity: str) -> float:
    """Return the distance by weighted rendezvous hashing; the smallest is preferred. A channel that is added or removed
    moves only its own keys.
    """
    text = f"{target.channel.name}\0{affinity}".encode(errors="surrogatepass")
    fraction = (int.from_bytes(blake2b(text, digest_size=8).digest()) + 1) / 2**64
    return -log2(fraction) / (target.channel.weight or 1)


@lru_cache(maxsize=4096)
def _pinned(pins: tuple[str, ...]) -> Callable[[str], bool]:
    pattern = matcher(pins)
    return lambda name: pattern.match(name) is not None
