"""Which channels are well: those that fail at a model are left alone for a while, then looked at by one call."""

import random
import time
from collections.abc import Callable, Collection
from enum import IntEnum
from typing import NamedTuple

import structlog

from umg_grpc.config import Breaker
from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb

logger = structlog.get_logger()

LOOKS = 8
"""Most calls under way at once at a channel that is not well."""
ENOUGH_CALLS = 20
"""Of fewer, no share is taken."""
DOWN_SECONDS, LONGEST_DOWN_SECONDS = 60.0, 900.0
"""Rests of a channel that somebody has to mend: the first, and the longest."""
OVERLOADED_SECONDS, LONGEST_OVERLOADED_SECONDS = 1.0, 60.0
"""Rests of a channel that has too much to do: where it does not say how long, and the longest."""
JITTER = 0.2
"""Random part by which a rest is longer, so that several gateways do not come back together."""
MOST_DOUBLINGS = 32
PARTS = 10
"""Of the window, which moves on by one at a time."""
MOST_PLACES = 4096
"""Pairs of channel and model of which something is known; with patterns the models' names are the callers'."""

NOTHING_LEARNT = frozenset({None, Failure.OTHER_KEY})
ANSWERED = frozenset({Failure.CALLER, Failure.CONTEXT})


class State(IntEnum):
    """How a channel does with a model."""

    WELL = 0
    RESTING = 1
    PROBED = 2
    """Its rest is over; what comes of the next call decides."""


class Standing(NamedTuple):
    """How a channel does with a model, for people and metrics."""

    channel: str
    model: str
    state: State
    rest: float
    """Seconds left of its rest."""
    calls: int
    """Under way."""


class _Place:
    """What is known of a channel with a model. It is well while `until` is 0."""

    __slots__ = ("calls", "faults", "in_a_row", "looks", "part", "probe", "rests", "turn", "under_way", "until")

    def __init__(self, turn: int) -> None:
        self.turn = turn
        """Changes when it becomes well or begins another rest: what began before says nothing of it now."""
        self.under_way = 0
        self.until = 0.0
        self.probe = False  # whether one call is let through first, when the rest is over
        self.looks = 0  # calls under way that began while it was not well
        self.rests = 0  # in a row, without a good answer
        self.in_a_row = 0
        self.part = 0
        self.calls = [0] * PARTS
        self.faults = [0] * PARTS


class Health:
    """How each channel does with each model (as its upstream names it), from how the calls end that go there.

    `begin` gives a turn, which is told to `end` or `left`: a call that began before the channel was left alone says
    nothing of how it does since. For one thread; a call with a good answer costs less than a microsecond.
    """

    def __init__(
        self,
        breaker: Breaker,
        now: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.take(breaker)
        self._now = now
        self._chance = chance
        self._places: dict[tuple[str, str], _Place] = {}
        self._turns = 0

    def take(self, breaker: Breaker) -> None:
        """Other rules from now on. What is known of the channels stays."""
        self._breaker = breaker
        self._part_seconds = breaker.window / PARTS

    def is_well(self, channel: str, model: str) -> bool:
        """Whether it may be called like any other: also when its rest is over and nobody looks there yet."""
        place = self._places.get((channel, model))
        if place is None or not place.until:
            return True
        return self._now() >= place.until and (place.looks == 0 or not place.probe)

    def may_look(self, channel: str, model: str) -> bool:
        """Whether it may be called though it is not well, by a call that has no other channel."""
        place = self._places.get((channel, model))
        return place is None or not place.until or place.looks < LOOKS

    def seconds_to_probe(self, channel: str, model: str) -> float:
        """Until its rest is over; 0 where it does not rest."""
        place = self._places.get((channel, model))
        return 0.0 if place is None or not place.until else max(0.0, place.until - self._now())

    def begin(self, channel: str, model: str) -> int:
        """A call goes there. Its turn, for `end` or `left`, one of which has to follow."""
        place = self._places.get((channel, model)) or self._new_place(channel, model)
        place.under_way += 1
        if place.until:
            if place.probe or self._now() < place.until:
                place.looks += 1
            else:
                self._new_turn(place)
                place.until = 0.0
        return place.turn

    def end(self, channel: str, model: str, error: UmgError | None, turn: int) -> None:
        """The call was answered whole (None), or failed."""
        place = self._over(channel, model, turn)
        if place is None:
            return
        if error is None:
            self._good(place, channel, model)
            return
        failure = error.failure
        if failure in NOTHING_LEARNT or (failure is Failure.NOT_SENT and error.reason == pb.ERROR_REASON_UNAVAILABLE):
            self._looked(place)  # nobody was asked: a slot of our own was not free, or the caller's time is over
        elif failure in ANSWERED:
            self._good(place, channel, model)
        elif failure is Failure.OVERLOADED:
            self._overloaded(place, error.retry_after)
        elif failure is Failure.DOWN:
            self._down(place, channel, model)
        else:
            self._failed(place, channel, model, error)

    def left(self, channel: str, model: str, turn: int) -> None:
        """Nobody waits for the call any more; it says nothing of the channel."""
        if place := self._over(channel, model, turn):
            self._looked(place)

    def forget(self, known: Collection[tuple[str, str]]) -> None:
        """Forgets all but these pairs; a model with a `*` stands for all of its channel."""
        whole = {channel for channel, model in known if "*" in model}
        self._places = {key: place for key, place in self._places.items() if key in known or key[0] in whole}

    def standings(self) -> list[Standing]:
        """All that is known, in no order."""
        now = self._now()
        return [
            Standing(channel, model, _state(place, now), max(0.0, place.until - now), place.under_way)
            for (channel, model), place in self._places.items()
        ]

    def _over(self, channel: str, model: str, turn: int) -> _Place | None:
        """The place where a call ended; None where it says nothing of it."""
        place = self._places.get((channel, model))
        if place is None:
            return None
        place.under_way = max(0, place.under_way - 1)  # it may have begun before the place was forgotten
        return place if turn == place.turn else None

    def _good(self, place: _Place, channel: str, model: str) -> None:
        if place.until:
            self._close(place)
            logger.info("channel is well again", channel=channel, upstream_model=model)
        else:
            place.in_a_row = 0
            place.calls[self._index(place)] += 1

    def _failed(self, place: _Place, channel: str, model: str, error: UmgError) -> None:
        breaker = self._breaker
        if place.until:
            self._looked(place)
            failing = place.probe and self._now() >= place.until
        else:
            place.in_a_row += 1
            index = self._index(place)
            place.calls[index] += 1
            place.faults[index] += 1
            calls = sum(place.calls)
            many = calls >= ENOUGH_CALLS and sum(place.faults) >= breaker.share * calls
            failing = many or place.in_a_row >= breaker.failures
        if failing:
            seconds = self._eject(place, breaker.rest, breaker.max_rest)
            why = error.failure.value if error.failure else None
            logger.warning("channel is left alone", channel=channel, upstream_model=model, seconds=seconds, failure=why)

    def _down(self, place: _Place, channel: str, model: str) -> None:
        if place.until:
            self._looked(place)
            if place.probe and self._now() < place.until:
                return
        seconds = self._eject(place, DOWN_SECONDS, LONGEST_DOWN_SECONDS)
        why = Failure.DOWN.value
        logger.warning("channel is left alone", channel=channel, upstream_model=model, seconds=seconds, failure=why)

    def _overloaded(self, place: _Place, retry_after: float | None) -> None:
        """It gets nothing for as long as it asks for. Then all calls go there again: this was no fault of its."""
        seconds = min(retry_after or OVERLOADED_SECONDS, LONGEST_OVERLOADED_SECONDS)
        if place.until:
            self._looked(place)
        else:
            self._new_turn(place)
        place.until = max(place.until, self._now() + seconds)

    def _eject(self, place: _Place, first: float, longest: float) -> float:
        """Seconds of the rest that begins: longer than the one before, while no good answer comes."""
        seconds = min(first * 2.0 ** min(place.rests, MOST_DOUBLINGS), longest) * (1 + JITTER * self._chance())
        self._new_turn(place)
        place.until = self._now() + seconds
        place.probe = True
        place.rests += 1
        return round(seconds, 1)

    def _new_turn(self, place: _Place) -> None:
        """What began until now says nothing any more."""
        self._turns += 1
        place.turn = self._turns
        place.looks = 0

    def _close(self, place: _Place) -> None:
        self._new_turn(place)
        place.until, place.probe, place.rests, place.in_a_row = 0.0, False, 0, 0
        place.calls, place.faults = [0] * PARTS, [0] * PARTS

    def _looked(self, place: _Place) -> None:
        """One look less is under way."""
        if place.looks:
            place.looks -= 1

    def _index(self, place: _Place) -> int:
        """Of the window's part that it is now; parts that are over are emptied."""
        part = int(self._now() / self._part_seconds)
        if part != place.part:
            for passed in range(max(place.part, part - PARTS) + 1, part + 1):
                place.calls[passed % PARTS] = place.faults[passed % PARTS] = 0
            place.part = part
        return part % PARTS

    def _new_place(self, channel: str, model: str) -> _Place:
        places = self._places
        if len(places) >= MOST_PLACES:
            idle = [key for key, place in places.items() if not place.until and not place.under_way]
            for key in idle or list(places):
                del places[key]
        self._turns += 1
        place = places[channel, model] = _Place(self._turns)
        return place


def _state(place: _Place, now: float) -> State:
    if not place.until or (now >= place.until and not place.probe):
        return State.WELL
    return State.RESTING if now < place.until else State.PROBED
