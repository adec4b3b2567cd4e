"""Failover: makes the attempts of a call one after the other, and selects the next one after a failure."""

import asyncio
from math import inf
from types import TracebackType
from typing import Generic

import msgspec
import structlog

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.routing import PublicModel
from umg_grpc.service.pipeline.attempt_observers import AttemptObservers
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.channel_attempt import ATTEMPT_SUCCEEDED, CALLER_LEFT, REQUEST_REFUSED, AttemptT
from umg_grpc.service.pipeline.channel_attempt_order import AttemptPlan
from umg_grpc.service.pipeline.failure_policy import (
    FINAL_FAILURES,
    FailureLog,
    circuit_open,
    is_repeatable,
    no_channel,
    too_slow,
    under_public_name,
    with_channel,
)
from umg_grpc.service.resilience.retry_budget import MEND_CREDIT
from umg_grpc.wire.core.gateway_headers import ROUTE_HEADER

logger = structlog.get_logger()


class FailoverLoop(msgspec.Struct, Generic[AttemptT], eq=False):
    """Attempts of one call, one after the other, until one succeeds or none is left.

        while True:
            async with attempts:  # begins the next attempt
                return ...  # of `attempts.attempt`; a failure after which another one may succeed ends here

    The plan gives the order of the channels. Channels with a temporary failure are then retried, within the caller's
    deadline, the config's `retries` and the channel's retry budget. Each attempt that begins ends with exactly one
    outcome, which releases the slot of its channel.
    """

    call: Call
    _model: PublicModel
    _requested_model: str  # the id or alias in the request
    _plan: AttemptPlan[AttemptT]
    _observers: AttemptObservers
    _shows_route: bool  # whether the caller gets the header `x-umg-route`
    attempt: AttemptT = None  # type: ignore[assignment]  # set by the first attempt that begins
    """The current attempt; of a hedged call, the attempt whose response the caller gets."""
    output_sent: bool = False
    """Whether the caller received a part of the response, after which no other channel is tried."""
    has_fallback: bool = False
    """Whether another model may be called if no channel can be tried, so that none with an open circuit breaker is."""
    _again: AttemptT | None = None  # failed attempt whose request is encoded again for its channel
    _retries: int = 0
    _failures: FailureLog = msgspec.field(default_factory=FailureLog)

    async def __aenter__(self) -> None:
        """Begin the next attempt. Raise UmgError, the most important failure of the call, if none is left."""
        while (attempt := await self._plan.next() or await self._next_retry()) is not None:
            if (self._take_slot(attempt) or await self._wait_for_slot(attempt)) and self._begin(attempt):
                self.select(attempt)
                return
        if not self.call.facts.attempts and self._shows_route:
            refusals = (*self.call.facts.failed_before, *self._plan.refusals, *self._failures.route)
            reason = ", ".join(refusals) or "none is free"
            self.call.headers[ROUTE_HEADER] = f"channel=; attempts=0; reason={reason}"
        self.call.facts.failed_before += (*self._plan.refusals, *self._failures.route)
        error = self._failures.take_most_important() or self._plan.encoding_error
        raise (error or no_channel(self._requested_model)) from None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Record the attempt's outcome. If another attempt may succeed, return True, which suppresses the exception."""
        attempt = self.attempt
        if error is None:
            for record in self._observers.ended:
                record(self.call, attempt, ATTEMPT_SUCCEEDED, None)
            self._plan.encoder.note_success(attempt)
            if attempt.is_followed:
                self._follow(attempt)
            return False
        if not isinstance(error, UmgError):
            self._end(attempt, CALLER_LEFT)
            return False
        public_error = self.fail(attempt, error)
        if self.call.stream_start is not None:
            self.call.stream_start.answered_at = inf  # the status of the next channel is not known
        try:
            if self.output_sent or not self.should_retry(attempt, public_error):
                failed = f"{attempt.channel}: {public_error.name.lower()}"
                self.call.facts.failed_before += (*self._failures.route, failed)
                raise public_error from None
            public_error.__traceback__ = None  # avoids a reference cycle: the traceback holds this call
            return True
        finally:
            del error, public_error, traceback  # the frame of this method would hold them too

    @property
    def has_others(self) -> bool:
        """Whether a channel that was not tried yet is left."""
        return self._plan.has_untried

    async def next_hedge(self, hedged: AttemptT) -> AttemptT | None:
        """Begin the next attempt that can run beside the attempt `hedged`, and return it; None if there is none."""
        while (attempt := await self._plan.next_hedge(hedged)) is not None:
            if (self._take_slot(attempt) or await self._wait_for_slot(attempt)) and self._begin(attempt):
                self._failures.route += (f"{self.call.facts.channel}: slow",)
                return attempt
        return None

    def select(self, attempt: AttemptT) -> None:
        """Select the attempt whose response the caller gets, and set the headers that depend on it."""
        self.attempt, call = attempt, self.call
        for record in self._observers.selected:
            record(call, attempt)
        if self._shows_route:
            reason = ", ".join((*call.facts.failed_before, *self._failures.route)) or "first choice"
            protocol = f"; protocol={used}" if (used := attempt.call.report.protocol) else ""
            route = f"channel={attempt.channel}; attempts={call.facts.attempts}; reason={reason}{protocol}"
            call.headers[ROUTE_HEADER] = f"{call.facts.fallback_route}{route}"

    def should_retry(self, attempt: AttemptT, error: UmgError) -> bool:
        """Return whether another attempt may succeed after a failure. If so, plan it and log the failure."""
        plan, failure, channel = self._plan, error.failure, attempt.target.channel
        if attempt is self._again:
            plan.encode_again(attempt.target)
            return True
        if failure in FINAL_FAILURES:  # unless the same refusal is being mended for the attempt beside it
            return error.refusal is not None and plan.encodes_again
        if failure is Failure.OTHER_KEY:
            keys = max(len(channel.api_keys), 2)  # a token that is rejected is replaced once
            if self._failures.count_refused_key(channel.name) < keys:  # else every key was tried
                plan.try_immediately(attempt)
        elif failure is Failure.CONTEXT:
            plan.skip_model(attempt.target.model)
        elif is_repeatable(error):
            plan.add_retry(attempt)
        self._failures.add(error, channel.name)
        logger.warning(
            "channel failed",
            request_id=self.call.arrival.request_id,
            channel=channel.name,
            outcome=error.name,
            failure=failure.value if failure else None,
            cause=error.cause or None,
            **(error.facts.log_fields() if error.facts else {}),
        )
        return True

    def fail(self, attempt: AttemptT, error: UmgError) -> UmgError:
        """End the attempt with a failure. Return the error for the caller, with the model id that the caller sent."""
        error = with_channel(error, attempt.target, self._model, self._requested_model)
        public_error = under_public_name(error, attempt.target, self._requested_model)
        self._again = attempt if not self.output_sent and self._can_encode_again(attempt, public_error) else None
        if self._again is not None and error.failure is Failure.DOWN:
            # only this form of the request has no place at the channel, which is not down for others
            error.with_failure(Failure.CALLER)
            public_error.with_failure(Failure.CALLER)
        self._end(attempt, error.failure.value if error.failure else REQUEST_REFUSED, error)
        return public_error

    def _follow(self, attempt: AttemptT) -> None:
        """Record the cost of a response that the caller does not get; plan the next request to its channel."""
        call = self.call
        if (usage := call.facts.usage) is not None:
            call.facts.usage = None
            call.charges.earlier_answers += ((usage, attempt.target.prices),)
            call.charges.has_summary = True
        if call.stream_start is not None:
            call.stream_start.answered_at = inf
        self._plan.encode_again(attempt.target)

    def _can_encode_again(self, attempt: AttemptT, error: UmgError) -> bool:
        """Return whether the channel may accept another encoding of the request: with the whole conversation, without
        the refused members, or in another protocol.
        """
        encoder = self._plan.encoder
        if encoder.can_repair(attempt, error):
            return True
        if not encoder.can_mend(attempt, error) or not self._plan.shared.may_retry(attempt, MEND_CREDIT):
            return False
        self._failures.route += (f"{attempt.channel}: mended",)
        return True

    def abandon(self, attempt: AttemptT, *, slow: bool) -> None:
        """End an attempt that was cancelled because another one was faster (hedging); the provider may charge for it.
        `slow`: this attempt began first. It then counts as a failure, so that the circuit breaker opens for a channel
        that never answers.
        """
        attempt.is_abandoned = True
        if slow:
            self.fail(attempt, too_slow())
        else:
            self._end(attempt, CALLER_LEFT)

    def count_hedge(self, *, won: bool) -> None:
        """Count a hedge: a second attempt beside a slow one. `won`: its response was faster."""
        self._observers.hedged(self._model.id, won)

    async def _next_retry(self) -> AttemptT | None:
        """Wait for the back-off, and return the next failed attempt to repeat; None if none may be repeated."""
        shared = self._plan.shared
        while self._retries < shared.retries.repeats and (attempt := self._plan.next_retry()) is not None:
            seconds = shared.backoff(self._retries)
            if seconds < self.call.seconds_left() and shared.may_retry(attempt):
                self._retries += 1
                await asyncio.sleep(seconds)
                return attempt
        return None

    def _take_slot(self, attempt: AttemptT) -> bool:
        attempt.limiter = limiter = self._plan.limiters.get(attempt.channel)
        return limiter is None or limiter.try_take()

    async def _wait_for_slot(self, attempt: AttemptT) -> bool:
        """Wait for a free slot of the attempt's channel. Return whether the attempt got one."""
        try:
            await self._plan.limiters[attempt.channel].take(self.call.seconds_left())
        except UmgError as error:
            self._failures.add(error)
            if not self._plan.is_single:
                self._plan.add_retry(attempt, first=True)
            return False
        return True

    def _begin(self, attempt: AttemptT) -> bool:
        """Begin the attempt, which already has a slot of its channel. Return whether the circuit breaker admits it."""
        plan, shared = self._plan, self._plan.shared
        is_last = not plan.targets and not self.has_fallback
        if not shared.admit(attempt, is_last=is_last, is_retry=self._retries > 0):
            if plan.targets:
                plan.defer(attempt)
            else:
                target, seconds = attempt.target, shared.seconds_to_probe(attempt.target)
                error = circuit_open(self._requested_model, seconds, is_unpaid=shared.is_unpaid(target))
                self._failures.add(error, target.channel.name if self.has_fallback else "")
            return False
        for record in self._observers.begun:
            record(self.call, attempt)
        return True

    def _end(self, attempt: AttemptT, outcome: str, error: UmgError | None = None) -> None:
        for record in self._observers.ended:
            record(self.call, attempt, outcome, error)
