"""Connect protocol: media types, timeout header, end of a stream, and error bodies. It carries RPCs over plain HTTP,
for browsers and HTTP/1.1 clients. The body of a unary call is the bare message; a stream has envelopes.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from google.rpc.status_pb2 import Status

from http_facade.connect.rpc_message_envelopes import Pairs, envelope
from http_facade.connect.rpc_status import FACE_CODES, status_name, status_of
from umg_grpc.base.errors import UmgError
from umg_grpc.wire.core.json_decoding import JsonObject, echo, invalid
from umg_grpc.wire.errors.http_status import HTTP_STATUS

CONNECT_PROTOCOL = "connect"
"""Name of the face, and of the format of its errors."""
PROTO_TYPE, JSON_TYPE = "application/proto", "application/json"
UNARY_TYPES = (JSON_TYPE, PROTO_TYPE)
VERSION_HEADER, TIMEOUT_HEADER, ENCODING_HEADER = (
    "connect-protocol-version",
    "connect-timeout-ms",
    "connect-content-encoding",
)
TRAILER_PREFIX = "trailer-"
"""Prefix of the headers that are the trailers of a unary call."""
END_FLAG = 2
"""Flag of the envelope that ends a stream."""

_CODE_STATUS = {
    "CANCELLED": 499,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "UNAUTHENTICATED": 401,
}
"""HTTP status of each code, as the protocol defines it; 500 for any other."""


@dataclass(frozen=True)
class ConnectStream:
    """Streaming form of the Connect protocol, whose messages are in envelopes and encoded as JSON or protobuf."""

    in_json: bool
    timeout_header: str = TIMEOUT_HEADER
    encoding_header: str = ENCODING_HEADER

    def timeout_seconds(self, given: str) -> float:
        return timeout_seconds(given)

    def end(self, status: Status, trailers: Pairs) -> bytes:
        """Return the last envelope of a stream: JSON with the trailers and, unless the status is OK, the error."""
        members: JsonObject = {"error": error_members(status)} if status.code else {}
        if trailers:
            metadata: dict[str, list[str]] = {}
            for name, value in trailers:
                metadata.setdefault(name, []).append(value)
            members["metadata"] = metadata
        return envelope(msgspec.json.encode(members), END_FLAG)


CONNECT_STREAMS = {
    "application/connect+json": ConnectStream(in_json=True),
    "application/connect+proto": ConnectStream(False),
}


def http_status(error: UmgError) -> int:
    """Return the HTTP status of the response to a failed unary call of the Connect protocol."""
    return HTTP_STATUS[error.reason] if error.reason in FACE_CODES else code_status(status_of(error))


def code_status(status: Status) -> int:
    """Return the HTTP status that the Connect protocol assigns to the code of a gRPC status."""
    return _CODE_STATUS.get(status_name(status), 500)


def encode_error(error: UmgError, _: int) -> bytes:
    """Return the JSON body for a failed unary call. Encoders of other formats need the status."""
    return encode_status(status_of(error))


def encode_status(status: Status) -> bytes:
    """Return the JSON body of the response to a unary call that failed with the given gRPC status."""
    return msgspec.json.encode(error_members(status))


def error_members(status: Status) -> JsonObject:
    """Return the JSON members of an error (`code`, `message`, `details`) in unary responses and ends of streams."""
    code = status_name(status).lower().replace("cancelled", "canceled")
    details = [
        {"type": detail.type_url.rpartition("/")[2], "value": _base64(detail.value)} for detail in status.details
    ]
    return {"code": code, "message": status.message, "details": details}


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode().rstrip("=")


def check_version(headers: Mapping[str, str]) -> None:
    """Raise UmgError if the header `connect-protocol-version` has another value than 1. It may be absent."""
    if (version := headers.get(VERSION_HEADER, "1")) != "1":
        raise invalid(VERSION_HEADER, f"version 1 is served here, not {echo(version)}")


def timeout_seconds(given: str) -> float:
    """Convert the header `connect-timeout-ms` to seconds. Raise UmgError(INVALID_FIELD) for an invalid value."""
    if not re.fullmatch(r"[0-9]{1,10}", given):
        raise invalid(TIMEOUT_HEADER, f"send whole milliseconds in at most ten digits, not {echo(given)}")
    return int(given) / 1000
