"""Failover: the attempts of one call one after the other, with the choice of the next channel after each failure."""

import asyncio
from types import TracebackType
from typing import Generic, Self

import structlog

from umg_grpc.errors import Failure, UmgError
from umg_grpc.routing import PublicModel
from umg_grpc.service.pipeline.attempt import AttemptT, RequestEncoder
from umg_grpc.service.pipeline.attempt_outcomes import AttemptOutcomes
from umg_grpc.service.pipeline.attempt_plan import AttemptPlan
from umg_grpc.service.pipeline.call import Call
from umg_grpc.service.pipeline.failure_policy import FINAL, FailureLog, circuit_open, is_repeatable, no_channel
from umg_grpc.service.resilience.shared import Resilience
from umg_grpc.wire.core.headers import DROPPED

logger = structlog.get_logger()


class FailoverLoop(Generic[AttemptT]):
    """Attempts of one call, one after the other, until one succeeds or none is left.

        while True:
            with await attempts.next() as scope:
                return ...  # a failure after which another attempt may succeed ends here

    The plan gives the order of the channels. Channels with a temporary failure are then retried, within the caller's
    deadline, the config's `retries` and the channel's retry budget.
    """

    def __init__(
        self,
        call: Call,
        model: PublicModel,
        requested_model: str,
        plan: AttemptPlan[AttemptT],
        encoder: RequestEncoder[AttemptT],
        shared: Resilience,
    ) -> None:
        """Create the loop of a call; `requested_model` is the id or alias in the request."""
        self._call = call
        self._model = model
        self._requested_model = requested_model
        self._plan: AttemptPlan[AttemptT] = plan
        self._encoder: RequestEncoder[AttemptT] = encoder
        self._shared = shared
        self._retries = 0
        self._failures = FailureLog()
        self.outcomes = AttemptOutcomes(call, model, requested_model, shared)

    async def next(self) -> "AttemptScope[AttemptT]":
        """Return the context manager of the next attempt, with a slot of its channel taken; the caller enters it
        immediately. Raise the error for the caller after the last attempt.
        """
        while (attempt := await self._plan.next() or await self._next_retry()) is not None:
            if await self._begin(attempt):
                self.select(attempt)
                return AttemptScope(self, attempt)
        if not self._call.facts.attempts and self._call.caller.show_route:
            self._set_route_header("")
        error = self._failures.take_most_important() or self._plan.encoding_error
        raise (error or no_channel(self._requested_model)) from None

    @property
    def has_others(self) -> bool:
        """Whether another channel is left to try."""
        return self._plan.has_untried

    async def next_hedge(self, hedged: AttemptT) -> AttemptT | None:
        """Return the next channel that can hedge the attempt, with a slot taken; None if there is none."""
        while (attempt := await self._plan.next_hedge(hedged)) is not None:
            if await self._begin(attempt):
                self._failures.route.append(f"{self._call.facts.channel}: slow")
                return attempt
        return None

    def select(self, attempt: AttemptT) -> None:
        """Make this attempt the one whose answer the caller gets, and set the headers accordingly."""
        call = self._call
        call.facts.model, call.facts.channel, call.facts.usage = self._model.id, attempt.channel, None
        call.facts.quantities = None
        call.facts.report = attempt.call.report
        call.headers.pop(DROPPED, None)  # of the attempt before
        if call.facts.report.dropped:
            call.headers[DROPPED] = call.facts.report.header()
        if call.caller.show_route:
            self._set_route_header(call.facts.channel)

    def should_retry(self, attempt: AttemptT, error: UmgError) -> bool:
        """Return whether another attempt may succeed after the failure; it is then planned."""
        plan, failure, channel = self._plan, error.failure, attempt.target.channel
        if self._encoder.can_repair(attempt, error):
            plan.encode_again(attempt.target)
            return True
        if failure in FINAL:
            return False
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
            request_id=self._call.arrival.request_id,
            channel=channel.name,
            outcome=error.name,
            failure=failure.value if failure else None,
            cause=error.cause or None,
            **(error.facts.log_fields() if error.facts else {}),
        )
        return True

    async def _next_retry(self) -> AttemptT | None:
        """Wait for the back-off and return a channel to retry; None if no retry is allowed."""
        shared = self._shared
        while self._retries < shared.retries.repeats and (attempt := self._plan.next_retry()) is not None:
            seconds = shared.backoff(self._retries)
            if seconds < self._call.seconds_left() and shared.budgets[attempt.channel].spend():
                self._retries += 1
                await asyncio.sleep(seconds)
                return attempt
        return None

    async def _begin(self, attempt: AttemptT) -> bool:
        """Take a slot of the channel and begin the attempt. Return whether the channel may be called: one without a
        slot may be retried later, one whose circuit breaker is not closed is deferred until no other channel is left.
        """
        channel, model, health = attempt.channel, attempt.target.model, self._shared.health
        limiter = self._plan.limiter_of(attempt)
        if limiter is not None and not limiter.try_take():
            try:
                await limiter.take(self._call.seconds_left())
            except UmgError as error:
                self._failures.add(error)
                if not self._plan.is_single:
                    self._plan.add_retry(attempt, first=True)
                return False
        if not health.is_healthy(channel, model) and (self._plan.has_targets or not health.may_probe(channel, model)):
            if limiter is not None:
                limiter.release()
            if self._plan.has_targets:
                self._plan.defer(attempt)
            else:
                self._failures.add(circuit_open(self._requested_model, health.seconds_to_probe(channel, model)))
            return False
        attempt.limiter = limiter
        self.outcomes.begin(attempt, is_retry=self._retries > 0)
        return True

    def _set_route_header(self, channel: str) -> None:
        reason = ", ".join(self._failures.route) or ("first choice" if channel else "none is free")
        self._call.headers["x-umg-route"] = f"channel={channel}; attempts={self._call.facts.attempts}; reason={reason}"


class AttemptScope(Generic[AttemptT]):
    """Context manager of one attempt: records its outcome, and suppresses a failure that another attempt may avoid."""

    def __init__(self, attempts: FailoverLoop[AttemptT], attempt: AttemptT) -> None:
        self.attempt = attempt
        self.output_sent = False  # whether the caller received a part of the answer: no failover after it
        self._attempts = attempts

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        outcomes = self._attempts.outcomes
        if error is None:
            outcomes.succeeded(self.attempt)
            return False
        if not isinstance(error, UmgError):
            outcomes.cancelled(self.attempt)
            return False
        public_error = outcomes.failed(self.attempt, error)
        try:
            if self.output_sent or not self._attempts.should_retry(self.attempt, public_error):
                raise public_error from None
            public_error.__traceback__ = None  # avoids a reference cycle: the traceback holds this call
            return True
        finally:
            del error, public_error, traceback  # the frame of this method would hold them too
