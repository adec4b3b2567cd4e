"""Usage record of a call (tokens, cost, outcome). It is provisional while a provider answers, and final at the end."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import MappingProxyType

from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import HTTP_STATUSES
from umg_grpc.knowledge.conditional_price_rates import Terms, describe, prices_at
from umg_grpc.knowledge.families.image_model_rules import max_images
from umg_grpc.knowledge.price_calculation import (
    FREE_PRICES,
    INPUT_TOKEN,
    OUTPUT_TOKEN,
    REQUEST_UNIT,
    Prices,
    Quantities,
    Rate,
    Variant,
    quantities_of,
    unit_of,
)
from umg_grpc.operations import CALLED_OPERATIONS, UNARY_BY_REQUEST
from umg_grpc.service.pipeline.call_state import FACE_HEADER, Call
from umg_grpc.service.pipeline.image_call_costs import estimated_image_quantities
from umg_grpc.service.pipeline.in_flight_usage_record import UsageInFlight
from umg_grpc.service.pipeline.rate_limit_token_estimates import estimate_tokens
from umg_grpc.service.pipeline.usage_record_fields import SCHEMA_PACKAGE, UNIT_FIELDS
from umg_grpc.store.in_flight_record_file import NO_SLOT
from umg_grpc.store.usage_record_table import MAX_DROPPED, CallDetails, UsageRecord, encode_record, storable
from umg_grpc.v1 import pb
from umg_grpc.wire.core.request_usage_sums import add_usage

NO_RATES: Sequence[Rate] = ()
NO_QUANTITIES: Quantities = MappingProxyType({})
GRPC_FACE = "grpc"
MAX_FACE_CHARACTERS = 32  # a gRPC caller may send any
MAX_NAME_CHARACTERS = 64
NO_FIELDS: Sequence[str] = ()
TOKEN_FIELDS = ("input_tokens", "output_tokens")
"""Fields of the provisional record of a text generation that have estimates."""
ESTIMATED_FIELDS = (
    *(*TOKEN_FIELDS, "images", "audio_input_tokens", "audio_output_tokens"),
    *("characters", "audio_seconds", "searches"),
)
"""Fields of a provisional record that may have estimates, which the final one has not."""
KILLED_STATUS = "INTERNAL"  # gRPC status and reason of a call that was in flight when its process was killed
KILLED_DETAILS = CallDetails(
    attempts=[],
    message="the gateway was killed during the call, which is charged at its estimated tokens",
    first_output_micros=None,
    dropped=[],
)


def begin_usage(call: Call, usage: UsageInFlight) -> None:
    """Write the provisional record with estimated tokens and cost, before an attempt calls a provider."""
    usage.attempts += 1
    if usage.slot != NO_SLOT:
        return
    log, request, charges, record = usage.log, usage.request, call.charges, _new_record(usage.log, call)
    estimate = estimate_tokens(request, usage.model, charges.output_limit)
    record.input_tokens, record.output_tokens = estimate.input_tokens, estimate.output_tokens
    usage.estimated = TOKEN_FIELDS if isinstance(request, pb.GenerateRequest) else ESTIMATED_FIELDS
    if isinstance(request, pb.GenerateImageRequest):
        record.images = max_images(request)
    if (prices := charges.prices) is not None and prices is not FREE_PRICES:
        quantities: Quantities = {
            REQUEST_UNIT: 1,
            INPUT_TOKEN: estimate.input_tokens,
            OUTPUT_TOKEN: estimate.output_tokens,
        }
        if isinstance(request, pb.GenerateImageRequest):
            quantities = estimated_image_quantities(request, estimate.input_tokens)
        elif (row := UNARY_BY_REQUEST.get(type(request))) is not None:
            expected = row.expected_usage(request)
            expected.input_tokens += estimate.input_tokens
            # of tokens, characters and seconds only those with a price are known to be of this model
            quantities = {unit: count for unit, count in quantities_of(expected).items() if prices.price_of(unit)}
            _count(record, quantities)
        tokens = pb.Usage(input_tokens=estimate.input_tokens)
        record.micro_credits = prices_of_call(prices, tokens, log.clock.now)[0].cost(quantities)
    usage.record, usage.slot = record, log.open_records.add(encode_record(record))


def withdraw_usage(usage: UsageInFlight) -> None:
    """Note that an attempt failed without charge. If no other attempt runs, delete the provisional record."""
    usage.attempts -= 1
    if not usage.attempts:
        usage.log.open_records.delete(usage.slot)
        usage.slot = NO_SLOT


def prices_of_call(prices: Prices, usage: pb.Usage, now: Callable[[], float]) -> tuple[Prices, Sequence[Rate]]:
    """Return the prices of a call that ends at `now`, a Unix time, and the rates that its usage selects."""
    rates = prices.rates
    if rates is None or (
        usage.input_tokens <= rates.usual_tokens and not usage.service_tier and not usage.region and not rates.is_timed
    ):
        return prices, NO_RATES
    return prices_at(prices, Terms(usage.input_tokens, usage.service_tier, usage.region, now()))


def _unit_prices(prices: Prices, quantities: Quantities) -> list[tuple[int, int]]:
    return [(unit_of(item), price) for item in quantities if (price := prices.price_of(item))]


def settle_usage(log: UsageLog | None, call: Call, seconds: float, failure: UmgError | None) -> None:
    """Compute the cost of a call that has ended, and store its usage record. `log`: None without usage records.
    `seconds`: duration of the call. `failure`: None after a success. A response without usage (a cached one, or a
    failure before any output) costs nothing. Rejected calls, token counts and model lists have no record.
    """
    facts, charges = call.facts, call.charges
    if charges.prices is None:
        return
    quantities, estimated, prices, rates = NO_QUANTITIES, False, FREE_PRICES, NO_RATES
    if (usage := facts.usage) is not None and not facts.is_cached:
        quantities, estimated = quantities_of(usage) if facts.quantities is None else facts.quantities, usage.estimated
        if charges.prices is not FREE_PRICES:
            now = log.clock.now if log is not None else time.time
            prices, rates = prices_of_call(charges.prices, usage, now)
            charges.micro_credits = prices.cost(quantities)
        # a provider that compacts within a call reports its tokens apart; the gateway's summary is charged on its own
        if usage.HasField("compaction") and not charges.has_summary:
            charges.earlier_answers += ((usage.compaction, charges.prices),)
    if charges.earlier_answers:
        prices = charges.earlier_answers[-1][1] if usage is None else prices
        quantities = _charge_earlier_answers(call, quantities, time.time if log is None else log.clock.now)
        estimated = facts.usage is not None and facts.usage.estimated
    if log is None:
        return
    record, slot, estimates = None, NO_SLOT, NO_FIELDS
    if (in_flight := charges.usage_in_flight) is not None:
        record, slot, estimates = in_flight.record, in_flight.slot, in_flight.estimated
        charges.usage_in_flight = None  # an attempt that ends later must not free the slot
    if record is None:
        record = _new_record(log, call)
    record.model, record.channel, record.attempts = facts.model, facts.channel, facts.attempts
    record.end_user = facts.end_user
    record.duration_micros = int(seconds * 1e6)
    record.status, record.reason, message = "OK", "", ""
    if failure is not None:
        record.status, record.reason, message = (
            HTTP_STATUSES[failure.reason].name,
            failure.name,
            storable(failure.message),
        )
        record.failure_kind = next((each.kind for each in reversed(facts.ended_attempts) if each.kind), "")
    record.details = details = details_of(call, message)
    record.first_byte_micros = details.first_output_micros
    details.prices = [] if prices is FREE_PRICES else _unit_prices(prices, quantities)
    details.price_conditions = [describe(rate) for rate in rates]
    record.cached, record.estimated, record.micro_credits = facts.is_cached, estimated, charges.micro_credits
    for field in estimates:
        setattr(record, field, 0)
    _count(record, quantities)
    log.add(record, slot)


def _count(record: UsageRecord, quantities: Quantities) -> None:
    for item, count in quantities.items():
        if isinstance(item, Variant):  # several variants of a unit have one field
            setattr(record, UNIT_FIELDS[item.unit], getattr(record, UNIT_FIELDS[item.unit]) + count)
        elif (field := UNIT_FIELDS.get(item)) is not None:
            setattr(record, field, count)


def details_of(call: Call, message: str = "") -> CallDetails:
    """Return the details of a call so far, without prices. `message`: error message for the caller; "" if there is
    none.
    """
    facts, report = call.facts, call.facts.report
    return CallDetails(
        attempts=facts.ended_attempts,
        message=message,
        first_output_micros=None if facts.first_output_seconds is None else int(facts.first_output_seconds * 1e6),
        dropped=[storable(entry) for entry in report.entries()][:MAX_DROPPED] if report and report.dropped else [],
        requested_model=facts.requested_model,
        fallback_cause=facts.fallback_cause,
        guards=facts.guards.described if facts.guards is not None else [],
        guard_notes={storable(name): storable(note) for name, note in facts.guards.notes.items()}
        if facts.guards
        else {},
    )


def cost_of_earlier_answers(call: Call, now: Callable[[], float]) -> int:
    """Return the cost, in micro-credits, of the answers of earlier attempts, which the caller did not get."""
    answers = call.charges.earlier_answers
    return sum(prices_of_call(prices, used, now)[0].cost(quantities_of(used)) for used, prices in answers)


def _charge_earlier_answers(call: Call, quantities: Quantities, now: Callable[[], float]) -> Quantities:
    """Add the answers of earlier attempts to the cost and the usage of the call, each at the prices of its channel."""
    facts, charges, total = call.facts, call.charges, Counter(quantities)
    usage = pb.Usage()
    if facts.usage is not None:
        usage.CopyFrom(facts.usage)
    for earlier, prices in charges.earlier_answers:
        counts = quantities_of(earlier)
        total.update(counts)
        if prices is not FREE_PRICES:
            charges.micro_credits += prices_of_call(prices, earlier, now)[0].cost(counts)
        add_usage(usage, earlier)
    facts.usage = usage
    return total


def _new_record(log: UsageLog, call: Call) -> UsageRecord:
    """Return a provisional record, in case this process is killed. Long names are cut, so that it fits into a slot."""
    arrival, facts, caller = call.arrival, call.facts, call.known_caller
    elapsed = time.perf_counter() - facts.began_at
    operation, method = _names_of(arrival.method)
    record = UsageRecord(
        record_id=next(log.new_ids),
        request_id=arrival.request_id,
        key_id=caller.key_id if caller is not None else "",
        operation=operation,
        method=method,
        face=arrival.metadata.get(FACE_HEADER, GRPC_FACE)[:MAX_FACE_CHARACTERS],
        agent=call.agent,
        model=facts.model[:MAX_NAME_CHARACTERS],
        channel=facts.channel[:MAX_NAME_CHARACTERS],
        end_user=facts.end_user[:MAX_NAME_CHARACTERS],
        start_micros=int((log.clock.now() - elapsed) * 1e6),
        duration_micros=int(elapsed * 1e6),
        status=KILLED_STATUS,
        reason=KILLED_STATUS,
        attempts=facts.attempts,
        estimated=True,
        details=KILLED_DETAILS,
    )
    if (reservation := call.charges.reservation) is not None:
        record.budget_holder = reservation.accounts[0].holder
        for account, period, _ in reservation.accounts:
            if account == record.key_id:
                record.budget_period = period
            else:
                record.budgets = [*record.budgets, (account, period)]
    return record


@lru_cache
def _names_of(method: str) -> tuple[str, str]:
    """Return the operation and the method in the record of a call. `method`: path of the method."""
    row = CALLED_OPERATIONS.get(method)
    return "" if row is None else row.name, method.removeprefix(SCHEMA_PACKAGE)
