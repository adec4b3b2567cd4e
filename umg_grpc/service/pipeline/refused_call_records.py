"""Records of calls that failed before their admission, at the HTTP server or in the service."""

import msgspec

from umg_grpc.access.refused_call_log import RefusedCallLog
from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import HTTP_STATUSES
from umg_grpc.base.refused_request import PEER_HEADER, RefusedRequest
from umg_grpc.knowledge.agent_detection import UNKNOWN_AGENT
from umg_grpc.operations import ADMINISTRATIVE_SERVICES, CALLED_OPERATIONS
from umg_grpc.service.pipeline.call_state import FACE_HEADER, Call
from umg_grpc.service.pipeline.usage_record_fields import SCHEMA_PACKAGE
from umg_grpc.service.pipeline.usage_recording import GRPC_FACE, MAX_FACE_CHARACTERS, MAX_NAME_CHARACTERS
from umg_grpc.store.usage_record_table import CallDetails, UsageRecord, storable
from umg_grpc.v1 import pb

ADMIN_METHODS = tuple(f"{SCHEMA_PACKAGE}{name}/" for name in ADMINISTRATIVE_SERVICES)
"""Beginnings of the paths of methods whose refused calls get no record: the person at the console reads the error."""


def record_refusal(log: RefusedCallLog, call: Call, seconds: float, failure: UmgError) -> None:
    """Record a call that failed before its admission, within the limits of the log."""
    arrival, facts, caller = call.arrival, call.facts, call.known_caller
    address = arrival.metadata.get(PEER_HEADER, "") if arrival.trusted else ""
    is_accepted = address and failure.reason == pb.ERROR_REASON_PERMISSION_DENIED  # the key is valid
    if arrival.method.startswith(ADMIN_METHODS) or failure.reason == pb.ERROR_REASON_CANCELLED or is_accepted:
        return
    rejected = call.rejected_key
    key_id = caller.key_id if caller is not None else rejected.key_id if rejected is not None else ""

    def make(record_id: str, start_micros: int) -> UsageRecord:
        method = "" if address else arrival.method  # of the check, and not of the call
        row = CALLED_OPERATIONS.get(method)
        return _record(
            UsageRecord(
                record_id=record_id,
                request_id=arrival.request_id,
                key_id=key_id,
                operation="" if row is None else row.name,
                method=method.removeprefix(SCHEMA_PACKAGE),
                face=arrival.metadata.get(FACE_HEADER, GRPC_FACE)[:MAX_FACE_CHARACTERS],
                agent=call.agent,
                model=facts.model,
                start_micros=start_micros,
                duration_micros=int(seconds * 1e6),
            ),
            failure,
        )

    log.add(key_id or address, failure.name, seconds, make)


def record_http_refusal(log: RefusedCallLog, request: RefusedRequest, key_id: str) -> None:
    """Record a call that the HTTP server refused, within the limits of the log."""

    def make(record_id: str, start_micros: int) -> UsageRecord:
        return _record(
            UsageRecord(
                record_id=record_id,
                request_id=request.request_id,
                key_id=key_id,
                operation="",
                method="",
                face=request.face,
                agent=UNKNOWN_AGENT,
                model=request.model or _model_in(request.body),
                start_micros=start_micros,
                duration_micros=int(request.seconds * 1e6),
            ),
            request.error,
        )

    log.add(key_id or request.address, request.error.name, request.seconds, make)


class _NamedModel(msgspec.Struct):
    model: str = ""


def _model_in(body: bytes) -> str:
    """Return the model id in a JSON body; "" if there is none, or the body is not JSON."""
    try:
        return msgspec.json.decode(body, type=_NamedModel).model
    except (ValueError, RecursionError):
        return ""


def _record(record: UsageRecord, failure: UmgError) -> UsageRecord:
    """Return the record with the facts of the failure. Names that the caller chose are cut."""
    record.model = storable(record.model or failure.metadata.get("model", ""))[:MAX_NAME_CHARACTERS]
    record.status, record.reason = HTTP_STATUSES[failure.reason].name, failure.name
    record.details = CallDetails(attempts=[], message=storable(failure.message), first_output_micros=None, dropped=[])
    return record
