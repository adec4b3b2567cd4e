"""Which of a model's channels comes first: rank by rank, and within a rank by nearness, affinity or turn."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from math import log2
from typing import NamedTuple

from umg_grpc.patterns import matcher
from umg_grpc.routing.target import Target


def _always(target: Target) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Wish:
    """What a call would like of the channels, beside being served."""

    protocol: str = ""
    """The caller's own format: among channels of one priority those that speak it come first, for they need no
    translation.
    """
    pins: tuple[str, ...] = ()
    """Names of channels, `*` standing for anything: the only ones that its key may reach. Empty allows all."""
    maker: str = ""
    """The channel that made what the call goes on from, and may alone be able to read: first of all that are well."""
    near: str = ""
    """The channel that served the beginning of the conversation, and may still have it in its cache."""
    affinity: str = ""
    """Calls of the same text prefer the same channel, each channel having its share of the texts by weight."""
    well: Callable[[Target], bool] = _always
    """Whether a channel is up to it now; one that is not comes after all that are."""


ANY = Wish()
MOST_SETS = 256
"""Sets of channels of a model whose turns are known; what is forgotten begins anew."""


class Rank(NamedTuple):
    """Where a channel stands for a call; the least comes first. Those of one rank are as good as each other."""

    unwell: bool
    stranger: bool
    """Whether another channel made what the call goes on from."""
    priority: int
    spare: bool
    """Whether it has no weight: it is used only after those that have."""
    foreign: bool
    """Whether it takes a translation."""


class Turns:
    """Whose turn it is among channels of one rank, by weight: smooth weighted round-robin, as nginx does it.

    Each turn every channel gains its weight and the one that has most is first, for which it pays what all gained:
    with weights 5, 1 and 1 the first are a a b a c a a. The rest follow by what they have. Each set of channels (for
    some may rest, and a key may reach only some) has turns of its own: with common ones a key that may reach two of
    three could find one of them busy with the others' turns for ever.
    """

    def __init__(self) -> None:
        self._credits: dict[tuple[str, ...], list[int]] = {}

    def take(self, targets: Sequence[Target]) -> list[Target]:
        """The targets in their order, which moves on."""
        channels, credit = [target.channel for target in targets], self._credit(targets)
        for at, channel in enumerate(channels):
            credit[at] += channel.weight
        order = sorted(range(len(credit)), key=lambda at: -credit[at])
        credit[order[0]] -= sum(channel.weight for channel in channels)
        return [targets[at] for at in order]

    def look(self, targets: Sequence[Target]) -> list[Target]:
        """The order that `take` would give now."""
        gained = [has + target.channel.weight for has, target in zip(self._credit(targets), targets, strict=True)]
        return [targets[at] for at in sorted(range(len(gained)), key=lambda at: -gained[at])]

    def _credit(self, targets: Sequence[Target]) -> list[int]:
        """What each has, in their order."""
        names = tuple(target.channel.name for target in targets)
        if (credit := self._credits.get(names)) is None:
            if len(self._credits) >= MOST_SETS:
                del self._credits[next(iter(self._credits))]
            credit = self._credits[names] = [0] * len(names)
        return credit


def ordered(
    targets: Sequence[Target], wish: Wish, turn: Callable[[Sequence[Target]], list[Target]]
) -> Iterator[tuple[Target, Rank]]:
    """The targets, best first, each with its rank. `turn` orders those between which nothing else decides."""
    ranked = sorted([(_rank(target, wish), target) for target in targets], key=_by_rank)
    for rank, group in groupby(ranked, key=_by_rank):
        equals = [target for _, target in group]
        for target in equals if len(equals) == 1 else _among_equals(equals, wish, turn):
            yield target, rank


def allowed(pins: tuple[str, ...], channel: str) -> bool:
    """Whether a key with these pins may reach the channel."""
    return not pins or _pinned(pins)(channel)


def _rank(target: Target, wish: Wish) -> Rank:
    channel = target.channel
    return Rank(
        not wish.well(target),
        channel.name != wish.maker,
        channel.priority,
        channel.weight == 0,
        wish.protocol not in channel.protocols,
    )


def _by_rank(ranked: tuple[Rank, Target]) -> Rank:
    return ranked[0]


def _among_equals(targets: list[Target], wish: Wish, turn: Callable[[Sequence[Target]], list[Target]]) -> list[Target]:
    if wish.affinity:
        targets = sorted(targets, key=lambda target: _distance(target, wish.affinity))
    near = [target for target in targets if target.channel.name == wish.near]
    others = [target for target in targets if target.channel.name != wish.near]
    return near + (others if wish.affinity or len(others) < 2 else turn(others))


def _distance(target: Target, affinity: str) -> float:
    """Weighted rendezvous hashing: the least is the nearest. A channel that comes or goes moves only its own texts."""
    said = f"{target.channel.name}\0{affinity}".encode(errors="surrogatepass")
    even = (int.from_bytes(blake2b(said, digest_size=8).digest()) + 1) / 2**64
    return -log2(even) / (target.channel.weight or 1)


@lru_cache(maxsize=4096)
def _pinned(pins: tuple[str, ...]) -> Callable[[str], bool]:
    pattern = matcher(pins)
    return lambda name: pattern.match(name) is not None
