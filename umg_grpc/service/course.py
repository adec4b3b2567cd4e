"""The attempts of one call, one after the other: which channel is next, what a failure means for it, and when there is
none.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

import structlog

from umg_grpc.config import Channel
from umg_grpc.errors import Failure, UmgError
from umg_grpc.routing import Target, model_not_found
from umg_grpc.service.call import Call
from umg_grpc.service.resilience import Resilience
from umg_grpc.service.slots import Slots
from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report

logger = structlog.get_logger()

# After which the same channel may be asked again: the next time it may do better.
PASSING = frozenset({Failure.NOT_SENT, Failure.TRANSIENT, Failure.AMBIGUOUS})
# After which no channel is asked: the request itself is wrong, or its caller's time is over.
FINAL = frozenset({None, Failure.CALLER})
# Of several failures the caller is told that which says best what to do; of equals the last.
TELLING = (Failure.DOWN, Failure.NOT_SENT, Failure.AMBIGUOUS, Failure.TRANSIENT, Failure.OVERLOADED, Failure.CONTEXT)

FULL = TELLING.index(Failure.TRANSIENT) + 0.5
"""Where a channel stands that is well and had no room: it may have in a moment."""


class Prepared(Protocol):
    """A request as it would go to a channel."""

    @property
    def report(self) -> Report: ...


class Attemptable(Protocol):
    """A channel to try, with the request as it would go there."""

    @property
    def target(self) -> Target: ...
    @property
    def call(self) -> Prepared: ...


Tried = TypeVar("Tried", bound=Attemptable)


class Course(ABC, Generic[Tried]):
    """Iterates over the attempts; when none is left, raises what the caller is told.

        async for attempt in course:
            with course.trying(attempt) as tried:
                ...  # a failure that the next attempt may mend ends here

    Every channel is asked once, in the order of the targets: those that have no room now, or rest, after those that
    are free, and those that cannot be told all of the request last of all, the one that is told most first. Those that
    may do better are then asked again, while the caller's time, the config's `retries` and the channel's budget allow
    it.
    """

    def __init__(
        self,
        call: Call,
        model: str,
        targets: Iterable[Target],
        wire_path: Callable[[str], str] | None,
        shared: Resilience,
        named: str,
    ) -> None:
        """`model`: the public id, for the log; `named`: as the caller wrote it. `wire_path`: a canonical path in the
        words of the caller's format, where the request came in one. `shared`: with all other calls.
        """
        self._call = call
        self._model = model
        self._named = named
        self._wire_path = wire_path
        self._shared = shared
        self._slots = shared.slots  # which a reload may replace meanwhile
        self._targets = deque(targets)
        self._only = len(self._targets) == 1
        self._waiting: deque[Tried] = deque()  # prepared, and not asked while others were free
        self._lossy: list[Tried] = []
        self._same: Tried | None = None  # to be asked again at once, by another key
        self._keys: Counter[str] | None = None  # refused ones, by channel
        self._repeatable: deque[Tried] = deque()
        self._repeats = 0
        self._turns: dict[str, int] = {}  # at each channel: see `Health`
        self._refusal: UmgError | None = None  # why a channel cannot be told the request
        self._failures: list[UmgError] = []
        self._route: list[str] = []  # channels that were asked in vain, and why

    @abstractmethod
    async def _attempt(self, target: Target) -> Tried:
        """The request as it goes to the channel. Raises UmgError, also where the caller wants all of it said."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Tried:
        """The next attempt, for which a place at its channel is held. Raises the failure to tell."""
        while (attempt := self._same or await self._next() or await self._repeated()) is not None:
            self._same = None
            slots = self._slots.get(attempt.target.channel.name)
            if (slots is None or await self._has_room(attempt, slots)) and self._begins(attempt, slots):
                self.speaks(attempt)
                return attempt
        if not self._call.attempts:
            self._show_route("")
        raise self._told() from None

    def trying(self, attempt: Tried) -> "Try[Tried]":
        """The context of an attempt; to be entered at once."""
        return Try(self, attempt)

    @property
    def has_others(self) -> bool:
        """Whether another channel can still be asked."""
        return bool(self._targets or self._waiting or self._lossy)

    async def spare(self, beside: Tried) -> Tried | None:
        """Another channel that was not asked yet and is free, with a place held; None without one. It is told no less
        than the one beside which it is asked.
        """
        passed, found = deque[Tried](), None
        while found is None and (self._targets or self._waiting) and (attempt := await self._next()) is not None:
            target = attempt.target
            slots = self._slots.get(target.channel.name)
            if attempt.call.report.lost > beside.call.report.lost:
                self._lossy.append(attempt)
                break
            if not self._shared.is_well(target) or (slots is not None and not slots.has_room):
                passed.append(attempt)  # nobody waits for it now, but it may be asked when both have failed
            elif (slots is None or await self._has_room(attempt, slots)) and self._begins(attempt, slots):
                found = attempt
        self._waiting.extend(passed)
        if found is not None:
            self._route.append(f"{self._call.channel}: slow")
        return found

    def speaks(self, attempt: Tried) -> None:
        """It is the one whose answer the caller gets."""
        call = self._call
        call.model, call.channel, call.usage = self._model, attempt.target.channel.name, None
        if dropped := attempt.call.report.header():
            call.headers["x-umg-dropped"] = dropped
        else:
            call.headers.pop("x-umg-dropped", None)
        self._show_route(call.channel)

    def _show_route(self, channel: str) -> None:
        call = self._call
        if call.caller.show_route:
            reason = ", ".join(self._route) or ("first choice" if channel else "none is free")
            call.headers["x-umg-route"] = f"channel={channel}; attempts={call.attempts}; reason={reason}"

    async def _next(self) -> Tried | None:
        """The next channel that was not asked yet."""
        while self._targets:
            target = self._targets.popleft()
            try:
                attempt = await self._attempt(target)
            except UmgError as error:
                self._refusal = self._refusal or error  # of this channel: another may be told
                continue
            if self._only:
                return attempt
            if attempt.call.report.lost:
                self._lossy.append(attempt)
            elif (slots := self._slots.get(target.channel.name)) is None or slots.has_room:
                return attempt
            else:
                self._waiting.append(attempt)
        if self._waiting:
            soonest = min(self._waiting, key=self._expected_wait)
            self._waiting.remove(soonest)
            return soonest
        if not self._lossy:
            return None
        best = min(self._lossy, key=lambda attempt: attempt.call.report.lost)
        self._lossy.remove(best)
        return best

    async def _repeated(self) -> Tried | None:
        """A channel that failed, after a while."""
        shared = self._shared
        while self._repeatable and self._repeats < shared.retries.repeats:
            attempt = self._repeatable.popleft()
            seconds = shared.backoff(self._repeats)
            if seconds >= self._call.seconds_left() or not shared.budget(attempt.target.channel.name).spend():
                continue
            self._repeats += 1
            await asyncio.sleep(seconds)
            return attempt
        return None

    def _expected_wait(self, attempt: Tried) -> float:
        slots = self._slots.get(attempt.target.channel.name)
        return 0.0 if slots is None else slots.expected_wait

    async def _has_room(self, attempt: Tried, slots: Slots) -> bool:
        """Whether a slot could be had, which is then taken; else there may be one after a while."""
        try:
            await slots.take(self._call.seconds_left())
        except UmgError as error:
            self._failures.append(error)
            if not self._only:
                self._repeatable.appendleft(attempt)
            return False
        return True

    def _begins(self, attempt: Tried, slots: Slots | None) -> bool:
        """Whether the channel may be asked now; there is then one more call under way there. One that rests is asked
        when no other is left.
        """
        channel, model = attempt.target.channel.name, attempt.target.model
        health = self._shared.health
        if not health.is_well(channel, model) and (self._targets or not health.may_look(channel, model)):
            if slots is not None:
                slots.give_back()
            if self._targets:
                self._waiting.append(attempt)
            else:
                self._failures.append(_resting(self._named, health.seconds_to_probe(channel, model)))
            return False
        if not self._repeats:
            self._shared.budget(channel).earn()
        self._turns[channel] = health.begin(channel, model)
        self._call.attempts += 1
        return True

    # what `Try` calls

    def went_well(self, attempt: Tried) -> None:
        """Its answer is whole."""
        channel = self._over(attempt, "ok")
        self._shared.health.end(channel, attempt.target.model, None, self._turns[channel])

    def was_left(self, attempt: Tried) -> None:
        """Nobody waits for it any more."""
        channel = self._over(attempt, "left")
        self._shared.health.left(channel, attempt.target.model, self._turns[channel])

    def abandoned(self, attempt: Tried, *, slow: bool) -> None:
        """Another is heard in its place: what it was asked may have to be paid for all the same. `slow`: it was asked
        first, and another answered before it: one that never begins is left alone as one that fails.
        """
        self._call.abandoned.append(attempt.target.channel.name)
        if slow:
            self.failed(attempt, _slow())
        else:
            self.was_left(attempt)

    def hedged(self, *, won: bool) -> None:
        """Counts a channel that was asked beside a slow one; `won`: whether its answer is heard."""
        self._shared.metrics.hedged(self._model, won=won)

    def failed(self, attempt: Tried, error: UmgError) -> UmgError:
        """The error as its caller is told it. It is noted."""
        missing = error.failure is Failure.DOWN and error.metadata.get("upstream_status") == "404"
        if missing and self._is_of_a_pattern(attempt.target.channel):
            error = model_not_found(self._named).of(Failure.CONTEXT)  # whose names the callers choose
        channel = self._over(attempt, error.failure.value if error.failure else "refused")
        if "sandbox" in attempt.target.channel.protocols:  # it fails where its caller asks it to, and nowhere else
            self._shared.health.left(channel, attempt.target.model, self._turns[channel])
        else:
            self._shared.health.end(channel, attempt.target.model, error, self._turns[channel])
        return under_public_name(error, attempt.target, self._named)

    def _is_of_a_pattern(self, channel: Channel) -> bool:
        return all(model.id != self._model for model in channel.models)

    def goes_on(self, attempt: Tried, told: UmgError) -> bool:
        """Whether another attempt may mend it: then that is next."""
        failure, channel = told.failure, attempt.target.channel
        if self._mended(attempt, told):
            return True
        if failure in FINAL:
            return False
        if failure is Failure.OTHER_KEY:
            self._keys = self._keys or Counter()
            self._keys[channel.name] += 1
            if self._keys[channel.name] < len(channel.api_keys):  # else those that rested are free again
                self._same = attempt
        elif failure is Failure.CONTEXT:
            self._leave_out(attempt.target.model)
        elif failure in PASSING and told.reason != pb.ERROR_REASON_UPSTREAM_TIMEOUT:  # nobody waits twice as long
            self._repeatable.append(attempt)
        self._failures.append(told)
        self._route.append(f"{channel.name}: {failure.value if failure else told.name.lower()}")
        logger.warning(
            "channel failed",
            request_id=self._call.request_id,
            channel=channel.name,
            outcome=told.name,
            failure=failure.value if failure else None,
            cause=told.cause or None,
        )
        return True

    def _leave_out(self, model: str) -> None:
        """Asks no other channel that has this model at its provider."""
        self._targets = deque(target for target in self._targets if target.model != model)
        self._waiting = deque(attempt for attempt in self._waiting if attempt.target.model != model)
        self._repeatable = deque(attempt for attempt in self._repeatable if attempt.target.model != model)
        self._lossy = [attempt for attempt in self._lossy if attempt.target.model != model]

    def _mended(self, attempt: Tried, error: UmgError) -> bool:
        """Whether the channel is asked again, with what was wrong put right."""
        return False

    def _tell(self, report: Report) -> None:
        """Puts into the caller's words what a channel is not told; to be called once for each that is prepared. Raises
        UmgError(UNTRANSLATABLE) where the caller wants all of it said.
        """
        if report.dropped and self._wire_path is not None:
            report.rename(self._wire_path)
        if self._call.strict:
            report.refuse()

    def _over(self, attempt: Tried, outcome: str) -> str:
        """Its place is free again. The name of its channel."""
        channel = attempt.target.channel.name
        self._shared.metrics.attempt(channel, attempt.target.model, outcome)
        if (slots := self._slots.get(channel)) is not None:
            slots.give_back()
        return channel

    def _told(self) -> UmgError:
        """Of all that went wrong, what tells the caller most."""
        if self._failures:
            return max(reversed(self._failures), key=_weight)
        if self._refusal is not None:
            return self._refusal
        message = f"no channel of the model {self._named} can serve now; try again"
        return UmgError(pb.ERROR_REASON_UNAVAILABLE, message)


class Try(Generic[Tried]):
    """One attempt under way, in a `with`: notes how it ends, and swallows a failure that another attempt may mend."""

    def __init__(self, course: Course[Tried], attempt: Tried) -> None:
        self.attempt = attempt
        self.begun = False  # whether its caller was given something of the answer: it cannot be taken back
        self._course = course

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if error is None:
            self._course.went_well(self.attempt)
            return False
        if not isinstance(error, UmgError):
            self._course.was_left(self.attempt)
            return False
        told = self._course.failed(self.attempt, error)
        if self.begun or not self._course.goes_on(self.attempt, told):
            raise told from None
        return True


def under_public_name(error: UmgError, target: Target, model: str) -> UmgError:
    """A provider's error with the model as the caller named it: what the operator calls it upstream is his own."""
    if target.model in (model, "") or target.model not in error.message:
        return error
    named = re.compile(rf"(?<![\w.-]){re.escape(target.model)}(?![\w-]|\.\w)")
    return error.saying(named.sub(lambda _: model, error.message))


def _weight(error: UmgError) -> tuple[float, float]:
    failure = error.failure
    if failure is Failure.NOT_SENT and error.reason == pb.ERROR_REASON_UNAVAILABLE:
        return FULL, 0.0
    if failure is Failure.OTHER_KEY:  # of a key: what it would have been of the channel
        failure = Failure.DOWN if error.retry_after is None else Failure.OVERLOADED
    return TELLING.index(failure) if failure in TELLING else -1, -(error.retry_after or 0.0)


def _slow() -> UmgError:
    message = "the provider was too slow to begin; another answered"
    return UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline="first_byte").of(Failure.AMBIGUOUS)


def _resting(model: str, seconds: float) -> UmgError:
    """For a channel that is left alone."""
    wait = max(1, round(seconds))
    message = f"the providers of the model {model} do not answer now; try again in {wait} s"
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds=str(wait)).of(Failure.DOWN)
