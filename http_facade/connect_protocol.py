"""Connect protocol: its media types, the envelopes of a stream, its timeout, and the bodies of its errors.

The protocol carries the methods of the schema over plain HTTP, for browsers and HTTP/1.1 clients. A unary method has
the bare message as its body; a stream has envelopes: a byte of flags, the length in four bytes, and the message.
"""

import base64
import re
import struct
from collections.abc import Mapping

import grpc
import msgspec
from google.rpc import status_pb2

from umg_grpc.errors import UmgError
from umg_grpc.status import STATUS, to_status
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json import JsonObject, echo, invalid
from umg_grpc.wire.errors.http_status import HTTP_STATUS

CONNECT = "connect"
"""Name of the face, and of the format of its errors."""
PROTO, JSON = "application/proto", "application/json"
UNARY_TYPES = (JSON, PROTO)
STREAM_PROTO, STREAM_JSON = "application/connect+proto", "application/connect+json"
STREAM_TYPES = (STREAM_JSON, STREAM_PROTO)
VERSION_HEADER, TIMEOUT_HEADER, ENCODING_HEADER = (
    "connect-protocol-version",
    "connect-timeout-ms",
    "connect-content-encoding",
)
ENVELOPE = struct.Struct(">BI")
COMPRESSED, END = 1, 2  # flags of an envelope
MIN_TIMEOUT_SECONDS = 0.001

_CODE_STATUS = {
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.UNAUTHENTICATED: 401,
}
"""HTTP status of each code, as the protocol defines it; 500 for any other."""
_OWN_STATUS = (pb.ERROR_REASON_UNSUPPORTED_MEDIA_TYPE, pb.ERROR_REASON_PATH_NOT_FOUND)
"""Reasons found before the protocol applies, which keep their HTTP status."""


def http_status(error: UmgError) -> int:
    """Return the HTTP status of a failed unary call."""
    if error.reason in _OWN_STATUS:
        return HTTP_STATUS[error.reason]
    return _CODE_STATUS.get(STATUS[error.reason], 500)


def encode_error(error: UmgError, _: int) -> bytes:
    """Return the body of a failed unary call."""
    return msgspec.json.encode(error_members(error))


def error_members(error: UmgError) -> JsonObject:
    """Return the code, message and details of an error, as both a body and the end of a stream have them."""
    code = STATUS[error.reason].name.lower().replace("cancelled", "canceled")
    if error.reason == pb.ERROR_REASON_PATH_NOT_FOUND:
        code = "unimplemented"  # as gRPC calls an unknown method
    metadata = dict(error.metadata)
    request_id = metadata.pop("request_id", "")
    status = status_pb2.Status.FromString(to_status(UmgError(error.reason, error.message, **metadata), request_id))
    details = [
        {"type": detail.type_url.rpartition("/")[2], "value": _base64(detail.value)} for detail in status.details
    ]
    return {"code": code, "message": error.message, "details": details}


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode().rstrip("=")


def envelope(message: bytes) -> bytes:
    """Return a message of a stream in its envelope."""
    return ENVELOPE.pack(0, len(message)) + message


def end_of_stream(error: UmgError | None = None) -> bytes:
    """Return the envelope that ends a stream, with the error of a failed one."""
    body = msgspec.json.encode({} if error is None else {"error": error_members(error)})
    return ENVELOPE.pack(END, len(body)) + body


def opened_envelope(body: bytes) -> bytes:
    """Return the only message in the body of a stream. Raise UmgError(MALFORMED_BODY) for any other body."""
    if len(body) >= ENVELOPE.size:
        flags, length = ENVELOPE.unpack_from(body)
        if flags == 0 and length == len(body) - ENVELOPE.size:
            return body[ENVELOPE.size :]
    message = "the body is not one uncompressed envelope: a zero byte, the length in four bytes, and the message"
    raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, message)


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise UmgError for another version of the protocol, and for compressed envelopes."""
    if (version := headers.get(VERSION_HEADER, "1")) != "1":
        raise invalid(VERSION_HEADER, f"version 1 is served here, not {echo(version)}")
    if (encoding := headers.get(ENCODING_HEADER, "identity")) != "identity":
        message = f"envelopes are not compressed here; leave out {ENCODING_HEADER}: {echo(encoding)}"
        raise UmgError(pb.ERROR_REASON_NOT_IMPLEMENTED, message)


def timeout_seconds(headers: Mapping[str, str], elapsed: float) -> float | None:
    """Return the seconds left of the caller's timeout; None without one. Raise UmgError(INVALID_FIELD)."""
    if (given := headers.get(TIMEOUT_HEADER)) is None:
        return None
    if not re.fullmatch(r"[0-9]{1,10}", given):
        raise invalid(TIMEOUT_HEADER, f"send whole milliseconds in at most ten digits, not {echo(given)}")
    return max(MIN_TIMEOUT_SECONDS, int(given) / 1000 - elapsed)
