"""The attempts of one call, one after the other: what a failure means for the next, and when there is none."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Generic, Self

import structlog

from umg_grpc.errors import Failure, UmgError
from umg_grpc.routing import Target
from umg_grpc.service.call import Call
from umg_grpc.service.choice import Choice, Tried, under_public_name
from umg_grpc.service.resilience import Resilience
from umg_grpc.service.slots import Slots
from umg_grpc.v1 import pb

logger = structlog.get_logger()

# After which the same channel may be asked again: the next time it may do better.
PASSING = frozenset({Failure.NOT_SENT, Failure.TRANSIENT, Failure.AMBIGUOUS})
# After which no channel is asked: the request itself is wrong, or its caller's time is over.
FINAL = frozenset({None, Failure.CALLER})
# Of several failures the caller is told that which says best what to do; of equals the last.
TELLING = (Failure.DOWN, Failure.NOT_SENT, Failure.AMBIGUOUS, Failure.TRANSIENT, Failure.OVERLOADED, Failure.CONTEXT)


class Course(Choice[Tried]):
    """Iterates over the attempts; when none is left, raises what the caller is told.

        async for attempt in course:
            with course.trying(attempt) as tried:
                ...  # a failure that the next attempt may mend ends here

    Every channel is asked once, and those that may do better are asked again, while the caller's time, the config's
    `retries` and the channel's budget allow it.
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
        """As `Choice`; `shared`: with all other calls; `named`: the model as the caller wrote it."""
        super().__init__(call, model, targets, wire_path)
        self._shared = shared
        self._slots = shared.slots  # which a reload may replace meanwhile
        self._named = named
        self._same: Tried | None = None  # to be asked again, by another key
        self._repeatable: deque[Tried] = deque()
        self._repeats = 0
        self._turns: dict[str, int] = {}  # at each channel: see `Health`
        self._failures: list[UmgError] = []
        self._route: list[str] = []  # channels that were asked in vain, and why

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Tried:
        """The next attempt, for which a place at its channel is held. Raises the failure to tell, or UmgError for a
        request that no channel can be told.
        """
        while (attempt := self._same or await self.next() or await self._repeated()) is not None:
            self._same = None
            slots = self._slots.get(attempt.target.channel.name)
            if (slots is None or await self._has_room(slots)) and self._begins(attempt, slots):
                self.speaks(attempt)
                return attempt
        raise self._told() from None

    def trying(self, attempt: Tried) -> "Try[Tried]":
        """The context of an attempt; to be entered at once."""
        return Try(self, attempt)

    async def spare(self) -> Tried | None:
        """Another channel that was not asked yet and could be now, with a place held; None without one."""
        full = deque[Tried]()
        found = None
        while found is None and (attempt := await self.next()) is not None:
            slots = self._slots.get(attempt.target.channel.name)
            if slots is not None and not slots.has_room:
                full.append(attempt)  # nobody waits for it now, but it may be asked when both have failed
            elif (slots is None or await self._has_room(slots)) and self._begins(attempt, slots):
                found = attempt
        self._full.extend(full)
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
        if call.caller.show_route:
            reason = ", ".join(self._route) or "first choice"
            call.headers["x-umg-route"] = f"channel={call.channel}; attempts={call.attempts}; reason={reason}"

    @property
    def has_others(self) -> bool:
        """Whether another channel can still be asked."""
        return bool(self._targets or self._full or self._lossy)

    def _is_free(self, target: Target) -> bool:
        slots = self._slots.get(target.channel.name)
        return slots is None or slots.has_room

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

    async def _has_room(self, slots: Slots) -> bool:
        """Whether a slot could be had, which is then taken."""
        try:
            await slots.take(self._call.seconds_left())
        except UmgError as error:
            self._failures.append(error)
            return False
        return True

    def _begins(self, attempt: Tried, slots: Slots | None) -> bool:
        """Whether the channel may be asked now; there is then one more call under way there."""
        channel, model = attempt.target.channel.name, attempt.target.model
        health = self._shared.health
        if not (health.is_well(channel, model) or health.may_look(channel, model)):
            if slots is not None:
                slots.give_back()
            self._failures.append(_resting(self._named, health.seconds_to_probe(channel, model)))
            return False
        self._turns[channel] = health.begin(channel, model)
        self._shared.budget(channel).earn()
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
        """Another answered before it: what it was asked may have to be paid for all the same. `slow`: it was asked
        first, and did not begin in time: one that never does is left alone as one that fails.
        """
        self._call.abandoned.append(attempt.target.channel.name)
        if slow:
            self.failed(attempt, _slow())
        else:
            self.was_left(attempt)
        self._shared.metrics.hedged(attempt.target.model, won=slow)

    def failed(self, attempt: Tried, error: UmgError) -> UmgError:
        """The error as its caller is told it. It is noted."""
        channel = self._over(attempt, error.failure.value if error.failure else "refused")
        if "sandbox" in attempt.target.channel.protocols:  # it fails where its caller asks it to, and nowhere else
            self._shared.health.left(channel, attempt.target.model, self._turns[channel])
        else:
            self._shared.health.end(channel, attempt.target.model, error, self._turns[channel])
        return under_public_name(error, attempt.target, self._named)

    def goes_on(self, attempt: Tried, told: UmgError) -> bool:
        """Whether another attempt may mend it: then that is next."""
        failure = told.failure
        if self._mended(attempt, told):
            return True
        if failure in FINAL:
            return False
        if failure is Failure.OTHER_KEY:
            self._same = attempt
        elif failure is Failure.CONTEXT:
            self._targets = deque(target for target in self._targets if target.model != attempt.target.model)
        elif failure in PASSING:
            self._repeatable.append(attempt)
        self._failures.append(told)
        channel = attempt.target.channel.name
        self._route.append(f"{channel}: {failure.value if failure else told.name.lower()}")
        logger.warning(
            "channel failed",
            request_id=self._call.request_id,
            channel=channel,
            outcome=told.name,
            failure=failure.value if failure else None,
            cause=told.cause or None,
        )
        return True

    def _mended(self, attempt: Tried, error: UmgError) -> bool:
        """Whether the channel is asked again, with what was wrong put right."""
        return False

    def _over(self, attempt: Tried, outcome: str) -> str:
        """Its place is free again. The name of its channel."""
        channel = attempt.target.channel.name
        self._shared.metrics.attempt(channel, attempt.target.model, outcome)
        if (slots := self._slots.get(channel)) is not None:
            slots.give_back()
        return channel

    def _told(self) -> UmgError:
        """Of all that went wrong, what tells the caller most."""
        if not self._failures:
            message = f"no channel of the model {self._named} can serve now; try again"
            return UmgError(pb.ERROR_REASON_UNAVAILABLE, message)
        return max(reversed(self._failures), key=_weight)


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
        if isinstance(error, UmgError):
            told = self._course.failed(self.attempt, error)
            if self.begun or not self._course.goes_on(self.attempt, told):
                raise told from None
            return True
        if error is None:
            self._course.went_well(self.attempt)
        else:
            self._course.was_left(self.attempt)
        return False


def _weight(error: UmgError) -> tuple[int, float]:
    known = TELLING.index(error.failure) if error.failure in TELLING else -1
    return known, -(error.retry_after or 0.0)


def _slow() -> UmgError:
    message = "the provider was too slow to begin; another answered"
    return UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline="first_byte").of(Failure.AMBIGUOUS)


def _resting(model: str, seconds: float) -> UmgError:
    """For a channel that is left alone."""
    wait = max(1, round(seconds))
    message = f"the providers of the model {model} do not answer now; try again in {wait} s"
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds=str(wait)).of(Failure.DOWN)
