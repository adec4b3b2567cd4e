"""Usage record of a call, made when the call ends."""

import time
from collections.abc import Mapping
from types import MappingProxyType

from umg_grpc import prices
from umg_grpc.access.usage import UsageLog
from umg_grpc.errors import UmgError
from umg_grpc.prices import Quantities, Unit, quantities_of
from umg_grpc.service.pipeline.call import Call
from umg_grpc.status import STATUS
from umg_grpc.store.usage_records import MAX_DROPPED, CallDetails, UsageRecord, storable

OPERATIONS: Mapping[str, str] = MappingProxyType(
    {
        "/umg.v1.GenerationService/Generate": "generate",
        "/umg.v1.GenerationService/StreamGenerate": "generate",
        "/umg.v1.EmbeddingService/Embed": "embed",
        "/umg.v1.RerankService/Rerank": "rerank",
    }
)
"""Operations of the methods that call a channel, as in `ModelOperation`."""
FIELDS: Mapping[Unit, str] = {
    prices.INPUT: "input_tokens",
    prices.CACHE_READ: "cache_read_tokens",
    prices.CACHE_WRITE: "cache_write_tokens",
    prices.LONG_CACHE_WRITE: "long_cache_write_tokens",
    prices.AUDIO_INPUT: "audio_input_tokens",
    prices.OUTPUT: "output_tokens",
    prices.REASONING: "reasoning_tokens",
    prices.AUDIO_OUTPUT: "audio_output_tokens",
    prices.SEARCH: "searches",
}
"""Fields of a record by their units; a request has none, since each record with usage is one."""
NOTHING: Quantities = MappingProxyType({})
PACKAGE = "/umg.v1."
GRPC_FACE = "grpc"
MAX_FACE_CHARACTERS = 32  # a gRPC caller may send any


def set_cost(call: Call) -> Quantities:
    """Set the cost of an admitted call. Return its billable quantities; none for an answer without usage, which costs
    nothing: a cached one, or a failure before any output.
    """
    if call.prices is None or call.usage is None or call.is_cached:
        return NOTHING
    quantities = quantities_of(call.usage)
    call.micro_credits = call.prices.cost(quantities)
    return quantities


def add_usage(log: UsageLog, call: Call, quantities: Quantities, seconds: float, failure: UmgError | None) -> None:
    """Add the record of a call that was admitted. Rejected calls, token counts and model lists have none.
    `quantities`: those of `set_cost`.
    """
    if call.prices is None:
        return
    record = UsageRecord(
        record_id=log.new_id(),
        request_id=call.request_id,
        key_id=call.caller.key_id,
        operation=OPERATIONS.get(call.method, ""),
        method=call.method.removeprefix(PACKAGE),
        face=call.metadata.get("x-umg-face", GRPC_FACE)[:MAX_FACE_CHARACTERS],
        model=call.model,
        channel=call.channel,
        start_micros=int((time.time() - seconds) * 1e6),
        duration_micros=int(seconds * 1e6),
        status="OK" if failure is None else STATUS[failure.reason].name,
        reason="" if failure is None else failure.name,
        attempts=call.attempts,
        cached=call.is_cached,
        estimated=False,
        details=_details(call, failure),
    )
    if (usage := call.usage) is not None and not call.is_cached:
        record.estimated = usage.estimated
        record.micro_credits = call.micro_credits
        if call.reservation is not None:
            record.budget_period, record.budget_holder = call.reservation.lease_id[1:]
        for unit, count in quantities.items():
            if (field := FIELDS.get(unit)) is not None:
                setattr(record, field, count)
    log.add(record)


def _details(call: Call, failure: UmgError | None) -> CallDetails:
    seconds, report = call.first_output_seconds, call.report
    return CallDetails(
        attempts=call.ended_attempts,
        message="" if failure is None else storable(failure.message),
        first_output_micros=None if seconds is None else int(seconds * 1e6),
        dropped=[storable(entry) for entry in report.entries()][:MAX_DROPPED] if report is not None else [],
    )
