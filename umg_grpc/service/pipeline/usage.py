"""Usage record of a call, made when the call ends."""

import time
from collections.abc import Mapping
from types import MappingProxyType

from umg_grpc.access.key_limits import TokenEstimate
from umg_grpc.access.usage import UsageLog
from umg_grpc.errors import UmgError
from umg_grpc.image_families import max_images
from umg_grpc.prices import FREE, Quantities, Variant, estimated_quantities, quantities_of
from umg_grpc.service.pipeline.call import Call, CallFacts
from umg_grpc.service.pipeline.image_costs import estimated_image_quantities
from umg_grpc.service.pipeline.token_estimates import Request, estimate_tokens
from umg_grpc.service.pipeline.usage_fields import FIELDS, PACKAGE
from umg_grpc.status import STATUS
from umg_grpc.store.open_records import NO_SLOT
from umg_grpc.store.usage_records import MAX_DROPPED, CallDetails, UsageRecord, storable
from umg_grpc.v1 import pb

OPERATIONS: Mapping[str, str] = MappingProxyType(
    {
        "/umg.v1.GenerationService/Generate": "generate",
        "/umg.v1.GenerationService/StreamGenerate": "generate",
        "/umg.v1.EmbeddingService/Embed": "embed",
        "/umg.v1.RerankService/Rerank": "rerank",
        "/umg.v1.VideoService/CreateVideoTask": "create_video",
        "/umg.v1.VideoService/RemixVideoTask": "remix_video",
        "/umg.v1.ImageService/GenerateImage": "generate_image",
        "/umg.v1.ImageService/StreamGenerateImage": "generate_image",
    }
)
"""Operations of the methods that call a channel, as in `ModelOperation`."""
NOTHING: Quantities = MappingProxyType({})
GRPC_FACE = "grpc"
MAX_FACE_CHARACTERS = 32  # a gRPC caller may send any
MAX_NAME_CHARACTERS = 64
KILLED = "INTERNAL"  # gRPC status and reason of a call that was in flight when its process was killed
KILLED_DETAILS = CallDetails(
    attempts=[],
    message="the gateway was killed during the call, which is charged at its estimated tokens",
    first_output_micros=None,
    dropped=[],
)


def set_cost(call: Call) -> Quantities:
    """Set the cost of an admitted call. Return its billable quantities; none for an answer without usage, which costs
    nothing: a cached one, or a failure before any output.
    """
    facts, charges = call.facts, call.charges
    if charges.prices is None or facts.usage is None or facts.is_cached:
        return NOTHING
    quantities = quantities_of(facts.usage) if facts.quantities is None else facts.quantities
    charges.micro_credits = charges.prices.cost(quantities)
    return quantities


class UsageInFlight:
    """Usage record of a call for the case that the process is killed while a provider answers: the provider may charge
    for the call, so its estimated cost is charged.
    """

    __slots__ = ("_attempts", "_call", "_log", "_model", "_request", "record", "slot")

    def __init__(self, log: UsageLog, call: Call, request: Request, model: pb.Model) -> None:
        self._log = log
        self._call = call
        self._request = request
        self._model = model
        self._attempts = 0  # that were sent and have not failed
        self.record: UsageRecord | None = None  # set by the first attempt that is sent
        self.slot = NO_SLOT

    def begin(self) -> None:
        """Record that an attempt is about to be sent to a provider."""
        self._attempts += 1
        if self.slot == NO_SLOT:
            if self.record is None:
                self.record = _new_record(self._log, self._call)
            self._set_estimate(self.record)
            self.slot = self._log.open(self.record)

    def fail(self) -> None:
        """Record that an attempt that was sent has failed."""
        self._attempts -= 1
        if not self._attempts:
            self._log.discard(self.slot)
            self.slot = NO_SLOT

    def _set_estimate(self, record: UsageRecord) -> None:
        """Set the estimated tokens and cost, with the names cut to the size of a slot."""
        facts, charges = self._call.facts, self._call.charges
        estimate = estimate_tokens(self._request, self._model, charges.output_limit)
        record.model, record.channel = facts.model[:MAX_NAME_CHARACTERS], facts.channel[:MAX_NAME_CHARACTERS]
        record.attempts, record.micro_credits = facts.attempts, 0
        record.duration_micros = int((time.perf_counter() - facts.began_at) * 1e6)
        record.status, record.reason, record.estimated, record.details = KILLED, KILLED, True, KILLED_DETAILS
        record.input_tokens, record.output_tokens = estimate
        if isinstance(self._request, pb.GenerateImageRequest):
            record.images = max_images(self._request)
        if charges.prices is not None and charges.prices is not FREE:
            record.micro_credits = charges.prices.cost(_estimated_quantities(self._request, estimate))


def add_usage(log: UsageLog, call: Call, quantities: Quantities, seconds: float, failure: UmgError | None) -> None:
    """Add the record of a call that was admitted. Rejected calls, token counts and model lists have none.
    `quantities`: those of `set_cost`.
    """
    facts, charges = call.facts, call.charges
    if charges.prices is None:
        return
    in_flight, charges.usage_in_flight = charges.usage_in_flight, None  # it refers to the call: a cycle would keep both
    record, slot = (None, NO_SLOT) if in_flight is None else (in_flight.record, in_flight.slot)
    record = record or _new_record(log, call)
    record.model, record.channel, record.attempts = facts.model, facts.channel, facts.attempts
    record.duration_micros = int(seconds * 1e6)
    record.status, record.reason = ("OK", "") if failure is None else (STATUS[failure.reason].name, failure.name)
    record.details = _details(facts, failure)
    record.cached, record.estimated = facts.is_cached, False
    record.input_tokens = record.output_tokens = record.images = 0  # in place of the estimates
    record.micro_credits = charges.micro_credits
    if (usage := facts.usage) is not None and not facts.is_cached:
        record.estimated = usage.estimated
        for item, count in quantities.items():
            unit = item.unit if isinstance(item, Variant) else item
            if (field := FIELDS.get(unit)) is not None:  # several variants of a unit have one field
                setattr(record, field, getattr(record, field) + count)
    log.add(record, slot)


def _new_record(log: UsageLog, call: Call) -> UsageRecord:
    """Return a record with the facts of a call that are known at its arrival."""
    arrival, elapsed = call.arrival, time.perf_counter() - call.facts.began_at
    record = UsageRecord(
        record_id=log.new_id(),
        request_id=arrival.request_id,
        key_id=call.caller.key_id,
        operation=OPERATIONS.get(arrival.method, ""),
        method=arrival.method.removeprefix(PACKAGE),
        face=arrival.metadata.get("x-umg-face", GRPC_FACE)[:MAX_FACE_CHARACTERS],
        start_micros=int((time.time() - elapsed) * 1e6),
    )
    if call.charges.reservation is not None:
        record.budget_period, record.budget_holder = call.charges.reservation.lease_id[1:]
    return record


def _details(facts: CallFacts, failure: UmgError | None) -> CallDetails:
    seconds, report, dropped = facts.first_output_seconds, facts.report, list[str]()
    if report is not None and report.dropped:
        dropped = [storable(entry) for entry in report.entries()][:MAX_DROPPED]
    return CallDetails(
        attempts=facts.ended_attempts,
        message="" if failure is None else storable(failure.message),
        first_output_micros=None if seconds is None else int(seconds * 1e6),
        dropped=dropped,
    )


def _estimated_quantities(request: Request, estimate: TokenEstimate) -> Quantities:
    if isinstance(request, pb.GenerateImageRequest):
        return estimated_image_quantities(request, estimate.input_tokens)
    return estimated_quantities(*estimate)
