"""Conversion of `UmgError` to and from gRPC errors: status code, and `google.rpc.Status` with `ErrorInfo`."""

import math

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

ERROR_DOMAIN = "umg"
DETAILS_KEY = "grpc-status-details-bin"

HTTP_STATUSES = {
    pb.ERROR_REASON_UNSPECIFIED: grpc.StatusCode.UNKNOWN,
    pb.ERROR_REASON_MALFORMED_BODY: grpc.StatusCode.INVALID_ARGUMENT,
    pb.ERROR_REASON_INVALID_FIELD: grpc.StatusCode.INVALID_ARGUMENT,
    pb.ERROR_REASON_MISSING_FIELD: grpc.StatusCode.INVALID_ARGUMENT,
    pb.ERROR_REASON_UNSUPPORTED_FIELD: grpc.StatusCode.INVALID_ARGUMENT,
    pb.ERROR_REASON_UNTRANSLATABLE: grpc.StatusCode.INVALID_ARGUMENT,
    pb.ERROR_REASON_CONTEXT_TOO_LONG: grpc.StatusCode.INVALID_ARGUMENT,
    pb.ERROR_REASON_UPSTREAM_REJECTED: grpc.StatusCode.INVALID_ARGUMENT,
    pb.ERROR_REASON_CONTENT_BLOCKED: grpc.StatusCode.INVALID_ARGUMENT,
    pb.ERROR_REASON_GUARD_REFUSED: grpc.StatusCode.INVALID_ARGUMENT,
    pb.ERROR_REASON_UPSTREAM_TOO_LARGE: grpc.StatusCode.OUT_OF_RANGE,
    pb.ERROR_REASON_MISSING_KEY: grpc.StatusCode.UNAUTHENTICATED,
    pb.ERROR_REASON_INVALID_KEY: grpc.StatusCode.UNAUTHENTICATED,
    pb.ERROR_REASON_KEY_EXPIRED: grpc.StatusCode.UNAUTHENTICATED,
    pb.ERROR_REASON_PERMISSION_DENIED: grpc.StatusCode.PERMISSION_DENIED,
    pb.ERROR_REASON_MODEL_UNPRICED: grpc.StatusCode.PERMISSION_DENIED,
    pb.ERROR_REASON_MODEL_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    pb.ERROR_REASON_PATH_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    pb.ERROR_REASON_API_NOT_SERVED: grpc.StatusCode.NOT_FOUND,
    pb.ERROR_REASON_OBJECT_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    pb.ERROR_REASON_METHOD_NOT_ALLOWED: grpc.StatusCode.UNIMPLEMENTED,
    pb.ERROR_REASON_UNSUPPORTED_MEDIA_TYPE: grpc.StatusCode.INVALID_ARGUMENT,
    pb.ERROR_REASON_BODY_TOO_LARGE: grpc.StatusCode.OUT_OF_RANGE,
    pb.ERROR_REASON_WRONG_STATE: grpc.StatusCode.FAILED_PRECONDITION,
    pb.ERROR_REASON_RANGE_NOT_SATISFIABLE: grpc.StatusCode.OUT_OF_RANGE,
    pb.ERROR_REASON_ALREADY_EXISTS: grpc.StatusCode.ALREADY_EXISTS,
    pb.ERROR_REASON_THREAD_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    pb.ERROR_REASON_THREAD_ALREADY_CONTINUED: grpc.StatusCode.FAILED_PRECONDITION,
    pb.ERROR_REASON_THREAD_CONTINUE_IN_FLIGHT: grpc.StatusCode.FAILED_PRECONDITION,
    pb.ERROR_REASON_THREAD_UNSUPPORTED_REQUEST: grpc.StatusCode.FAILED_PRECONDITION,
    pb.ERROR_REASON_THREAD_FINGERPRINT_MISMATCH: grpc.StatusCode.FAILED_PRECONDITION,
    pb.ERROR_REASON_RATE_LIMITED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    pb.ERROR_REASON_UPSTREAM_RATE_LIMITED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    pb.ERROR_REASON_QUOTA_EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    pb.ERROR_REASON_UPSTREAM_UNPAID: grpc.StatusCode.FAILED_PRECONDITION,
    pb.ERROR_REASON_UPSTREAM_QUOTA_EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    pb.ERROR_REASON_INTERNAL: grpc.StatusCode.INTERNAL,
    pb.ERROR_REASON_NOT_IMPLEMENTED: grpc.StatusCode.UNIMPLEMENTED,
    pb.ERROR_REASON_UPSTREAM_FAILED: grpc.StatusCode.UNAVAILABLE,
    pb.ERROR_REASON_UPSTREAM_UNREACHABLE: grpc.StatusCode.UNAVAILABLE,
    pb.ERROR_REASON_UPSTREAM_CUT: grpc.StatusCode.UNAVAILABLE,
    pb.ERROR_REASON_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    pb.ERROR_REASON_UPSTREAM_TIMEOUT: grpc.StatusCode.DEADLINE_EXCEEDED,
    pb.ERROR_REASON_CANCELLED: grpc.StatusCode.CANCELLED,
    pb.ERROR_REASON_DEADLINE_EXCEEDED: grpc.StatusCode.DEADLINE_EXCEEDED,
    pb.ERROR_REASON_UPSTREAM_OVERLOADED: grpc.StatusCode.UNAVAILABLE,
}

REASON_NAMES = frozenset(pb.ErrorReason.keys())

# Reason and message of a failure without our details, which gRPC itself raised (unreachable server, message too large).
BARE_STATUS = {
    grpc.StatusCode.UNAVAILABLE: (pb.ERROR_REASON_UNAVAILABLE, "the gateway's service cannot be reached; try again"),
    grpc.StatusCode.DEADLINE_EXCEEDED: (
        pb.ERROR_REASON_DEADLINE_EXCEEDED,
        "the call took longer than its own deadline",
    ),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (
        pb.ERROR_REASON_BODY_TOO_LARGE,
        "the message is larger than the gateway's service takes",
    ),
    grpc.StatusCode.CANCELLED: (pb.ERROR_REASON_CANCELLED, "the call was cancelled"),
    grpc.StatusCode.UNIMPLEMENTED: (
        pb.ERROR_REASON_NOT_IMPLEMENTED,
        "the gateway's service does not have this operation",
    ),
}


def to_status(error: UmgError, request_id: str = "") -> bytes:
    """Return an error as a serialised `google.rpc.Status`, for the trailing metadata `grpc-status-details-bin`. It has
    `ErrorInfo`; `RetryInfo`, if the time until a retry is known; and `RequestInfo`, unless `request_id` is "".
    """
    status = status_pb2.Status(code=HTTP_STATUSES[error.reason].value[0], message=error.message)
    status.details.add().Pack(
        error_details_pb2.ErrorInfo(reason=error.name, domain=ERROR_DOMAIN, metadata=error.metadata)
    )
    if "retry_after_seconds" in error.metadata:
        delay = Duration(seconds=math.ceil(float(error.metadata["retry_after_seconds"])))
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    if request_id:
        status.details.add().Pack(error_details_pb2.RequestInfo(request_id=request_id))
    serialized: bytes = status.SerializeToString()
    return serialized


def from_rpc(error: grpc.aio.AioRpcError) -> UmgError:
    """Convert the error of a failed RPC of the gateway back to the `UmgError` that was raised. An error without these
    details, for example of a broken connection, is converted by its status code.
    """
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            for detail in status_pb2.Status.FromString(value).details:
                info = error_details_pb2.ErrorInfo()
                if detail.Unpack(info) and info.domain == ERROR_DOMAIN:
                    return UmgError(_reason(info.reason), error.details() or "", **info.metadata)
    reason, message = BARE_STATUS.get(error.code(), (pb.ERROR_REASON_INTERNAL, "the gateway's service failed"))
    return UmgError(reason, message)


def has_status_of(error: grpc.aio.AioRpcError, reason: "pb.ErrorReason.ValueType") -> bool:
    """Return whether a failed RPC has the gRPC status code of a reason, which other reasons may have too."""
    return error.code() == HTTP_STATUSES[reason]


def _reason(name: str) -> "pb.ErrorReason.ValueType":
    known = f"ERROR_REASON_{name}"
    return pb.ErrorReason.Value(known) if known in REASON_NAMES else pb.ERROR_REASON_INTERNAL
