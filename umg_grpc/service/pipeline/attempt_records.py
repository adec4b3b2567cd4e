"""Records of the attempts of a call: facts for the call's log line, metrics and usage record."""

import time
from functools import partial

from umg_grpc.base.errors import UmgError
from umg_grpc.base.http_exchange_progress import ATTEMPT_PROGRESS, AttemptProgress
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.channel_attempt import CALLER_LEFT, Attempt, EncodedRequest
from umg_grpc.service.pipeline.usage_recording import begin_usage, withdraw_usage
from umg_grpc.store.usage_record_table import AttemptRecord, storable
from umg_grpc.wire.core.gateway_headers import STRICT_HEADER

CANCELLED_REASON = "CANCELLED"


def attempt_begun(call: Call, attempt: Attempt[EncodedRequest]) -> None:
    """Count the attempt, and begin its record. The HTTP client adds facts of the provider's response."""
    call.facts.attempts += 1
    attempt.began_at, usage = time.perf_counter(), call.charges.usage_in_flight
    # a retry is the same attempt, with another response
    attempt.progress = progress = AttemptProgress(
        on_send=None if usage is None else partial(begin_usage, call, usage),
        refuses_changes=STRICT_HEADER in call.arrival.metadata and call.strict,
        affinity=call.affinity,
        stream_start=call.stream_start,
    )
    ATTEMPT_PROGRESS.set(progress)


def attempt_selected(call: Call, attempt: Attempt[EncodedRequest]) -> None:
    """Charge the call at the prices of the attempt's channel, since the caller gets the response of this attempt."""
    facts, charges = call.facts, call.charges
    facts.channel, facts.report = attempt.channel, attempt.call.report
    facts.usage = facts.quantities = None
    if charges.prices is not None:  # else the call is charged later, as a video task
        charges.prices = attempt.target.prices


def attempt_ended(call: Call, attempt: Attempt[EncodedRequest], outcome: str, error: UmgError | None) -> None:
    """Add the attempt to the usage record of the call."""
    facts, progress, began_at = call.facts, attempt.progress, attempt.began_at
    record = AttemptRecord(
        channel=attempt.channel,
        model=attempt.target.model,
        start_micros=int((began_at - facts.began_at) * 1e6),
        duration_micros=int((time.perf_counter() - began_at) * 1e6),
        status=progress.status,
        request_id=progress.request_id,
        reason=CANCELLED_REASON if outcome == CALLER_LEFT else "",
        protocol=attempt.call.report.protocol,
    )
    if error is not None:
        record.reason = error.name
        if (failure := error.facts) is not None:
            if failure.status:  # else the provider answered, and the response failed
                record.status, record.request_id = failure.status, failure.request_id
            record.kind = failure.kind.value
            record.code, record.message = storable(failure.code), storable(failure.message)
        if error.usage is not None:
            facts.usage = None  # else it would be charged twice
            call.charges.earlier_answers += ((error.usage, attempt.target.prices),)
        if progress.is_sent and call.charges.usage_in_flight is not None:
            withdraw_usage(call.charges.usage_in_flight)
    if attempt.is_abandoned:
        facts.abandoned += (attempt.channel,)
    if not record.reason or all(earlier.reason for earlier in facts.ended_attempts):
        facts.upstream_status = record.status
    facts.ended_attempts.append(record)
