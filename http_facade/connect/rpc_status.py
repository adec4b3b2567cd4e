"""gRPC status messages (`google.rpc.Status`) of errors, as the Connect protocol and gRPC-Web send them."""

from google.rpc import code_pb2
from google.rpc.status_pb2 import Status

from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import to_status
from umg_grpc.v1 import pb

FACE_CODES = {
    pb.ERROR_REASON_PATH_NOT_FOUND: code_pb2.UNIMPLEMENTED,
    pb.ERROR_REASON_METHOD_NOT_ALLOWED: code_pb2.UNKNOWN,
    pb.ERROR_REASON_UNSUPPORTED_MEDIA_TYPE: code_pb2.UNKNOWN,
    pb.ERROR_REASON_BODY_TOO_LARGE: code_pb2.RESOURCE_EXHAUSTED,
}
"""Codes, as the protocols have them, of the reasons found before the service is called. They keep their HTTP status."""
_NAMES: dict[int, str] = {number: name for name, number in code_pb2.Code.items()}


def status_of(error: UmgError) -> Status:
    """Return the gRPC status of an error, with its details (reason, metadata) and the request id in its metadata."""
    metadata = dict(error.metadata)
    request_id = metadata.pop("request_id", "")
    status = Status.FromString(to_status(UmgError(error.reason, error.message, **metadata), request_id))
    if error.reason in FACE_CODES:
        status.code = FACE_CODES[error.reason]
    return status


def status_name(status: Status) -> str:
    """Return the name of a gRPC status code, for example `NOT_FOUND`; `UNKNOWN` for an unknown number."""
    return _NAMES.get(status.code, _NAMES[code_pb2.UNKNOWN])
