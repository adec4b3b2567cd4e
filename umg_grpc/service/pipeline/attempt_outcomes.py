"""Outcomes of the attempts of a call: their effect on circuit breakers, concurrency limits and metrics."""

import time
from typing import Any

from umg_grpc.config import Channel
from umg_grpc.errors import Failure, UmgError
from umg_grpc.provider_failure import MAX_MESSAGE_CHARACTERS, FailureKind, ProviderFailure
from umg_grpc.routing import PublicModel, model_not_found
from umg_grpc.service.pipeline.attempt import Attempt
from umg_grpc.service.pipeline.call import Call
from umg_grpc.service.pipeline.failure_policy import too_slow, under_public_name
from umg_grpc.service.resilience.shared import Resilience
from umg_grpc.store.usage_records import AttemptRecord, storable
from umg_grpc.upstream_answer import ANSWER, UpstreamAnswer
from umg_grpc.wire.errors.failure_kinds import Evidence, kind_of
from umg_grpc.wire.errors.redact import clean

CALLER_LEFT = "left"
CANCELLED = "CANCELLED"


class AttemptOutcomes:
    """Recorder of the outcomes of one call's attempts. Each attempt that begins ends with exactly one of them, which
    releases the slot of its channel.
    """

    def __init__(self, call: Call, model: PublicModel, requested_model: str, shared: Resilience) -> None:
        """Create the record of a call; `requested_model` is the id or alias in the request."""
        self._call = call
        self._model = model.id
        self._requested_model = requested_model
        self._shared = shared

    def begin(self, attempt: Attempt[Any], *, is_retry: bool) -> None:
        """Record the start of an attempt, which holds the slot that it needs."""
        call, usage = self._call, self._call.charges.usage_in_flight
        if not is_retry:
            self._shared.budgets[attempt.channel].earn()
        attempt.generation = self._shared.health.begin(attempt.channel, attempt.target.model)
        call.facts.attempts += 1
        attempt.began_at = time.perf_counter()
        # a retry is the same attempt, with another answer
        attempt.answer = UpstreamAnswer(usage.begin if usage is not None else None)
        ANSWER.set(attempt.answer)
        if call.span is not None:
            attempt.span = call.span.begin_attempt(attempt.target)

    def succeeded(self, attempt: Attempt[Any]) -> None:
        """Record that the answer is complete."""
        self._finish(attempt, "ok")
        self._shared.health.end(attempt.channel, attempt.target.model, None, attempt.generation)

    def cancelled(self, attempt: Attempt[Any]) -> None:
        """Record that the attempt was cancelled."""
        self._finish(attempt, CALLER_LEFT)
        self._shared.health.cancelled(attempt.channel, attempt.target.model, attempt.generation)

    def abandoned(self, attempt: Attempt[Any], *, slow: bool) -> None:
        """Record that another attempt won the hedge; the provider may charge for this one too. `slow`: this attempt
        began first and counts as a failure, so that the circuit breaker opens for a channel that never answers.
        """
        self._call.facts.abandoned.append(attempt.channel)
        if slow:
            self.failed(attempt, too_slow())
        else:
            self.cancelled(attempt)

    def failed(self, attempt: Attempt[Any], error: UmgError) -> UmgError:
        """Record the failure. Return the error for the caller."""
        channel, model = attempt.target.channel, attempt.target.model
        missing = error.failure is Failure.DOWN and error.metadata.get("upstream_status") == "404"
        unknown = missing and _serves_by_pattern(channel, self._model)
        if error.failure is not None:
            facts = error.facts or _facts_of(error)  # errors of the sandbox and of local models have none
            is_callers = unknown and facts.kind is FailureKind.WRONG_MODEL
            error.facts = facts._replace(model=model, kind=FailureKind.REQUEST if is_callers else facts.kind)
            self._shared.record_failure(channel.name, error.facts)
        if unknown:  # callers choose the names of a pattern's models
            error = model_not_found(self._requested_model).with_failure(Failure.CONTEXT).with_facts(error.facts)
        self._finish(attempt, error.failure.value if error.failure else "refused", error)
        if "sandbox" in channel.protocols:  # it fails only on the caller's demand
            self._shared.health.cancelled(channel.name, model, attempt.generation)
        else:
            self._shared.health.end(channel.name, model, error, attempt.generation)
        return under_public_name(error, attempt.target, self._requested_model)

    def count_hedge(self, *, won: bool) -> None:
        """Count a hedge. `won`: whether the caller gets the answer of the hedge."""
        self._shared.metrics.hedged(self._model, won=won)

    def _finish(self, attempt: Attempt[Any], outcome: str, error: UmgError | None = None) -> None:
        """Count the attempt, add it to the record of the call, and release its slot."""
        call, answer, now = self._call, attempt.answer, time.perf_counter()
        if attempt.span is not None:
            attempt.span.end(outcome, error)
        self._shared.metrics.attempt(attempt.channel, attempt.target.model, outcome)
        record = AttemptRecord(
            channel=attempt.channel,
            model=attempt.target.model,
            start_micros=int((attempt.began_at - call.facts.began_at) * 1e6),
            duration_micros=int((now - attempt.began_at) * 1e6),
            status=answer.status,
            request_id=answer.request_id,
            reason=CANCELLED if outcome == CALLER_LEFT else "",
        )
        if error is not None:
            record.reason = error.name
            if (facts := error.facts) is not None:
                record.status, record.request_id, record.kind = facts.status, facts.request_id, facts.kind.value
                record.code, record.message = storable(facts.code), storable(facts.message)
            if answer.is_sent and call.charges.usage_in_flight is not None:
                call.charges.usage_in_flight.fail()
        call.facts.ended_attempts.append(record)
        if attempt.limiter is not None:
            attempt.limiter.release()


def _facts_of(error: UmgError) -> ProviderFailure:
    """Return the facts that follow from the error alone."""
    status = int(error.metadata.get("upstream_status", "0"))
    kind = kind_of(Evidence(error.reason, status))
    return ProviderFailure(kind, status, message=clean(error.message, MAX_MESSAGE_CHARACTERS))


def _serves_by_pattern(channel: Channel, model: str) -> bool:
    """Return whether the channel serves the model by a pattern, not by its id."""
    return all(served.id != model for served in channel.models)
