"""Failover: the attempts of one call one after the other, and the choice of the next one after a failure."""

import asyncio
import time
from math import inf
from types import TracebackType
from typing import Generic

import msgspec
import structlog

from umg_grpc.base.attempt_progress import ANSWER, UpstreamAnswer
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.provider_failure import FailureKind
from umg_grpc.routing import PublicModel, model_not_found
from umg_grpc.service.pipeline.attempt import AttemptT
from umg_grpc.service.pipeline.attempt_plan import AttemptPlan
from umg_grpc.service.pipeline.call import Call
from umg_grpc.service.pipeline.failure_policy import (
    FINAL,
    FailureLog,
    circuit_open,
    facts_of,
    is_repeatable,
    no_channel,
    too_slow,
    under_public_name,
)
from umg_grpc.service.resilience.retry_budget import MEND_CREDIT
from umg_grpc.store.usage_record_table import AttemptRecord, storable
from umg_grpc.wire.core.gateway_headers import ROUTE, STRICT

CALLER_LEFT = "left"
CANCELLED = "CANCELLED"

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
    _shows_route: bool  # whether the caller gets the header `x-umg-route`
    attempt: AttemptT = None  # type: ignore[assignment]  # set by the first attempt that begins
    """The current attempt; of a hedged call, the attempt whose response the caller gets."""
    output_sent: bool = False
    """Whether the caller received a part of the response, after which no other channel is tried."""
    _retries: int = 0
    _failures: FailureLog = msgspec.field(default_factory=FailureLog)

    async def __aenter__(self) -> None:
        """Begin the next attempt. Raise UmgError, the most important failure of the call, if none is left."""
        while (attempt := await self._plan.next() or await self._next_retry()) is not None:
            if await self._begin(attempt):
                self.select(attempt)
                return
        if not self.call.facts.attempts and self._shows_route:
            reason = ", ".join((*self._plan.refusals, *self._failures.route)) or "none is free"
            self.call.headers[ROUTE] = f"channel=; attempts=0; reason={reason}"
        error = self._failures.take_most_important() or self._plan.encoding_error
        raise (error or no_channel(self._requested_model)) from None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Record the outcome of the attempt. Return True, which suppresses the failure, if another attempt may
        succeed.
        """
        attempt = self.attempt
        if error is None:
            self._end(attempt, "ok")
            self._plan.shared.health.end(attempt.channel, attempt.target.model, None, attempt.generation)
            self._plan.encoder.note_success(attempt)
            return False
        if not isinstance(error, UmgError):
            self._cancel(attempt)
            return False
        public_error = self.fail(attempt, error)
        if self.call.stream_start is not None:
            self.call.stream_start.answered_at = inf  # the status of the next channel is not known
        try:
            if self.output_sent or not self.should_retry(attempt, public_error):
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
        """Begin the next attempt that can run beside `hedged`, and return it; None if there is none."""
        while (attempt := await self._plan.next_hedge(hedged)) is not None:
            if await self._begin(attempt):
                self._failures.route += (f"{self.call.facts.channel}: slow",)
                return attempt
        return None

    def select(self, attempt: AttemptT) -> None:
        """Make an attempt the one whose response the caller gets, and set the headers accordingly."""
        self.attempt, call = attempt, self.call
        facts, headers, report = call.facts, call.headers, attempt.call.report
        facts.channel, facts.report = attempt.channel, report
        facts.usage = facts.quantities = None
        if call.charges.prices is not None:  # else the call is charged later, as a video task
            call.charges.prices = attempt.target.prices
        if self._shows_route:
            reason = ", ".join(self._failures.route) or "first choice"
            protocol = f"; protocol={report.protocol}" if report.protocol else ""
            headers[ROUTE] = f"channel={attempt.channel}; attempts={facts.attempts}; reason={reason}{protocol}"

    def should_retry(self, attempt: AttemptT, error: UmgError) -> bool:
        """Return whether another attempt may succeed after the failure of `attempt`. If so, plan it and log the
        failure.
        """
        plan, failure, channel = self._plan, error.failure, attempt.target.channel
        if plan.encoder.can_repair(attempt, error):
            plan.encode_again(attempt.target)
            return True
        if plan.encoder.can_mend(attempt, error) and plan.shared.budgets[attempt.channel].spend(MEND_CREDIT):
            self._failures.route += (f"{attempt.channel}: mended",)
            plan.encode_again(attempt.target)
            return True
        if failure in FINAL:  # unless the same refusal is being mended for the attempt beside it
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
        """Record that the attempt failed. Return the error for the caller, with the model id that the caller sent."""
        channel, model, shared = attempt.target.channel, attempt.target.model, self._plan.shared
        if error.usage is not None:
            self.call.facts.usage = error.usage  # charged if no other attempt follows
        missing = error.failure is Failure.DOWN and error.metadata.get("upstream_status") == "404"
        unknown = missing and all(served.id != self._model.id for served in channel.models)
        if error.failure is not None:
            facts = error.facts or facts_of(error)  # errors of the sandbox and of local models have none
            is_callers = unknown and facts.kind is FailureKind.WRONG_MODEL
            error.facts = facts._replace(model=model, kind=FailureKind.REQUEST if is_callers else facts.kind)
            shared.record_failure(channel.name, error.facts)
        if unknown:  # the channel serves the model by a pattern, whose names callers choose
            error = model_not_found(self._requested_model).with_failure(Failure.CONTEXT).with_facts(error.facts)
        self._end(attempt, error.failure.value if error.failure else "refused", error)
        if channel.is_simulated:  # it fails only on the caller's demand
            shared.health.cancelled(channel.name, model, attempt.generation)
        else:
            shared.health.end(channel.name, model, error, attempt.generation)
        return under_public_name(error, attempt.target, self._requested_model)

    def abandon(self, attempt: AttemptT, *, slow: bool) -> None:
        """Record that an attempt was cancelled because the attempt beside it was faster (hedging); the provider may
        charge for it.
        `slow`: whether it began first. It then counts as a failure, so that the circuit breaker opens for a channel
        that never answers.
        """
        self.call.facts.abandoned += (attempt.channel,)
        if slow:
            self.fail(attempt, too_slow())
        else:
            self._cancel(attempt)

    def count_hedge(self, *, won: bool) -> None:
        """Count a hedge: a second attempt beside a slow one. `won`: whether the caller gets the response of the second
        attempt.
        """
        self._plan.shared.metrics.hedged(self._model.id, won=won)

    async def _next_retry(self) -> AttemptT | None:
        """Wait for the back-off, and return the next failed attempt to repeat; None if none is left or no retry is
        allowed.
        """
        shared = self._plan.shared
        while self._retries < shared.retries.repeats and (attempt := self._plan.next_retry()) is not None:
            seconds = shared.backoff(self._retries)
            if seconds < self.call.seconds_left() and shared.budgets[attempt.channel].spend():
                self._retries += 1
                await asyncio.sleep(seconds)
                return attempt
        return None

    async def _begin(self, attempt: AttemptT) -> bool:
        """Begin the attempt with a slot of its channel. Return False if that is not possible: without a free slot the
        channel may be tried again later; with an open circuit breaker it is deferred until no other channel is left.
        """
        call, plan, channel, model = self.call, self._plan, attempt.channel, attempt.target.model
        shared, limiter, usage_in_flight = plan.shared, plan.limiters.get(channel), call.charges.usage_in_flight
        if limiter is not None and not limiter.try_take():
            try:
                await limiter.take(call.seconds_left())
            except UmgError as error:
                self._failures.add(error)
                if not plan.is_single:
                    plan.add_retry(attempt, first=True)
                return False
        generation = shared.health.begin(channel, model, is_last=not plan.targets)
        if not generation:
            if limiter is not None:
                limiter.release()
            if plan.targets:
                plan.defer(attempt)
            else:
                self._failures.add(circuit_open(self._requested_model, shared.health.seconds_to_probe(channel, model)))
            return False
        if not self._retries:
            shared.budgets[channel].calls += 1
        call.facts.attempts += 1
        attempt.limiter, attempt.generation, attempt.began_at = limiter, generation, time.perf_counter()
        # a retry is the same attempt, with another answer
        attempt.answer = answer = UpstreamAnswer(None if usage_in_flight is None else usage_in_flight.begin)
        answer.stream_start = call.stream_start
        answer.refuses_changes = STRICT in call.arrival.metadata and call.strict
        ANSWER.set(answer)
        if call.span is not None:
            attempt.span = call.span.begin_attempt(attempt.target)
        return True

    def _cancel(self, attempt: AttemptT) -> None:
        """Record that the attempt was cancelled, which is no failure of the channel."""
        self._end(attempt, CALLER_LEFT)
        self._plan.shared.health.cancelled(attempt.channel, attempt.target.model, attempt.generation)

    def _end(self, attempt: AttemptT, outcome: str, error: UmgError | None = None) -> None:
        """Count the attempt, add it to the record of the call, and release its slot.
        `outcome`: `ok`, `left` (cancelled), `refused`, or the kind of the failure `error`.
        """
        facts, answer, began_at = self.call.facts, attempt.answer, attempt.began_at
        channel, model = attempt.channel, attempt.target.model
        if attempt.span is not None:
            attempt.span.end(outcome, error)
        self._plan.shared.metrics.attempt(channel, model, outcome)
        record = AttemptRecord(
            channel=channel,
            model=model,
            start_micros=int((began_at - facts.began_at) * 1e6),
            duration_micros=int((time.perf_counter() - began_at) * 1e6),
            status=answer.status,
            request_id=answer.request_id,
            reason=CANCELLED if outcome == CALLER_LEFT else "",
            protocol=attempt.call.report.protocol,
        )
        if error is not None:
            record.reason = error.name
            if (failure := error.facts) is not None:
                record.status, record.request_id, record.kind = failure.status, failure.request_id, failure.kind.value
                record.code, record.message = storable(failure.code), storable(failure.message)
            if answer.is_sent and self.call.charges.usage_in_flight is not None:
                self.call.charges.usage_in_flight.fail()
        if not record.reason or all(earlier.reason for earlier in facts.ended_attempts):
            facts.upstream_status = record.status
        facts.ended_attempts.append(record)
        if attempt.limiter is not None:
            attempt.limiter.release()
