"""Limits and budget of a call: acquired before the first attempt, held until the end of the call."""

from datetime import UTC, datetime

from umg_grpc.access.key_limits import KeyLimits, TokenEstimate
from umg_grpc.access.limit_subjects import LimitedModel
from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.base.errors import UmgError
from umg_grpc.routing import PublicModel
from umg_grpc.service.pipeline.call import Call
from umg_grpc.v1 import pb
from umg_grpc.wire import headers_of_limits


async def acquire_limits(
    call: Call, limits: KeyLimits, model: PublicModel, estimate: TokenEstimate, source_format: str = ""
) -> None:
    """Count a call against the limits of its key, then against those of its model, until it ends, and set the headers
    that report the key's limits. `estimate`: tokens that the call counts for. `source_format`: format of the caller's
    body, which determines the names of the headers; "" for none. Raise UmgError(RATE_LIMITED).
    """
    own = [limits.open(call.caller)] if call.caller.has_limits else []
    shared = [] if model.limits is None else [limits.open(LimitedModel(model.id, model.limits))]
    call.charges.admissions = (*own, *shared)
    try:
        for admission in call.charges.admissions:
            await admission.acquire(estimate)
    finally:
        for admission in own:
            call.headers.update(headers_of_limits(source_format)(admission.status, datetime.now(UTC)))


async def reserve_budget(call: Call, usage: UsageLog | None, least: int, most: int | None = None) -> None:
    """Reserve cost from the budget of the caller's key until the call ends: `most` micro-credits or, if less is left,
    at least `least`; None for `most` reserves exactly `least`. Raise UmgError: QUOTA_EXHAUSTED, or UNAVAILABLE if usage
    records, by which budgets are charged, are disabled or cannot be stored.
    """
    if usage is None:
        message = "this API key has a budget, and the gateway keeps no usage records; set `usage: {enabled: true}`"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message)
    if not usage.can_charge:
        message = "this API key has a budget, and neither the disk nor the database takes usage records now; try again"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds="1")
    call.charges.reservation = await usage.budgets.reserve(call.caller, least, most)
