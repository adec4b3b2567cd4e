"""Limits and budget of a call: acquired before the first attempt, and held until the call ends."""

import time
from datetime import UTC, datetime

from umg_grpc.access.key_limits import KeyLimits, TokenEstimate
from umg_grpc.access.limit_subjects import LimitedModel
from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.base.errors import UmgError
from umg_grpc.routing import PublicModel
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.usage_recording import cost_of_earlier_answers
from umg_grpc.v1 import pb
from umg_grpc.wire import headers_of_limits
from umg_grpc.wire.core.rate_limit_headers import tightest


async def acquire_limits(
    call: Call, limits: KeyLimits, model: PublicModel, estimate: TokenEstimate, source_format: str = ""
) -> None:
    """Count a call against the limits of its key, of the accounts above it and of its model until it ends. Set the
    headers that report the limits of the key and the accounts, of each kind the one with least left. `estimate`: tokens
    that count until the actual number is known. `source_format`: format of the caller's body, which determines the
    names of the headers; "" if there is none. Raise UmgError(RATE_LIMITED).
    """
    counted = call.charges.admissions  # by the key, if another model was called before
    own = [] if counted else [limits.open(limited) for limited in call.caller.limited]
    shared = [] if model.limits is None else [limits.open(LimitedModel(model.id, model.limits))]
    call.charges.admissions = (*counted, *own, *shared)
    try:
        for admission in (*own, *shared):
            await admission.acquire(estimate)
    finally:
        if own:
            status = tightest([admission.status for admission in own])
            call.headers.update(headers_of_limits(source_format)(status, datetime.now(UTC)))


async def reserve_budget(call: Call, usage: UsageLog | None, least: int, most: int | None = None) -> int | None:
    """Reserve cost from the budgets of the key and of the accounts above it until the call ends. Reserve `most`
    micro-credits (None: `least`) or, if less is left, the rest of the smallest budget, if it is at least `least`.
    Return the reserved micro-credits; None without a budget that refuses calls. Raise UmgError: QUOTA_EXHAUSTED, or
    UNAVAILABLE if usage records, by which budgets are charged, are disabled or cannot be stored.
    """
    if usage is None:
        message = "this API key has a budget, and the gateway keeps no usage records; set `usage: {enabled: true}`"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message)
    if not usage.can_charge:
        message = "this API key has a budget, and neither the disk nor the database takes usage records now; try again"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds="1")
    earlier, reservation = call.charges.reservation, await usage.budgets.reserve(call.caller, least, most)
    micro_credits = None if reservation is None or not reservation.is_bound else reservation.micro_credits
    if earlier is not None and reservation is not None:
        reservation.absorb(earlier)
    call.charges.reservation = reservation or earlier
    return micro_credits


def release_model(call: Call, usage: UsageLog | None) -> None:
    """Release the resources that a call holds for a failed model: place under its limits, provisional usage record,
    reserved cost. The cost of answers that are charged stays reserved.
    """
    charges, tokens = call.charges, 0
    for answer, _ in charges.earlier_answers:
        tokens += answer.input_tokens + answer.output_tokens
    for admission in charges.admissions:
        if isinstance(admission.limited, LimitedModel):
            admission.release(tokens)
    charges.admissions = [each for each in charges.admissions if not isinstance(each.limited, LimitedModel)]
    if (in_flight := charges.usage_in_flight) is not None:
        in_flight.log.open_records.delete(in_flight.slot)
        charges.usage_in_flight = None
    if charges.reservation is not None:
        charges.reservation.reduce(cost_of_earlier_answers(call, time.time if usage is None else usage.clock.now))
    charges.prices, charges.output_limit, charges.has_summary = None, None, False
