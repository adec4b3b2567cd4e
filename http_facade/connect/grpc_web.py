"""gRPC-Web protocol: media types, timeout header, and the envelope of trailers that ends a response."""

import base64
import re
from dataclasses import dataclass
from urllib.parse import quote

from google.rpc.status_pb2 import Status

from http_facade.connect.rpc_message_envelopes import Pairs, envelope
from http_facade.connect.rpc_status import status_of
from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import DETAILS_KEY
from umg_grpc.wire.core.json_decoding import echo, invalid

GRPC_WEB = "grpc_web"
"""Name of the format of its errors, for requests whose method is not known."""
PROTO_TYPE = "application/grpc-web+proto"
TRAILERS_FLAG = 128
"""Flag of the envelope of the trailers."""
TIMEOUT_HEADER, ENCODING_HEADER = "grpc-timeout", "grpc-encoding"
_UNIT_SECONDS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_PRINTABLE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
"""Characters of the message of a status that are not encoded."""


@dataclass(frozen=True)
class GrpcWeb:
    """gRPC-Web protocol, whose messages are in envelopes and encoded as protobuf or JSON."""

    in_json: bool
    timeout_header: str = TIMEOUT_HEADER
    encoding_header: str = ENCODING_HEADER

    def timeout_seconds(self, given: str) -> float:
        if not re.fullmatch(r"[0-9]{1,8}[HMSmun]", given):
            raise invalid(TIMEOUT_HEADER, f"send at most eight digits and a unit, as in 500m, not {echo(given)}")
        return int(given[:-1]) * _UNIT_SECONDS[given[-1]]

    def end(self, status: Status, trailers: Pairs) -> bytes:
        lines = [("grpc-status", str(status.code)), *trailers]
        if status.code:
            details = base64.b64encode(status.SerializeToString()).decode().rstrip("=")
            lines += [("grpc-message", quote(status.message, safe=_PRINTABLE)), (DETAILS_KEY, details)]
        return envelope("".join(f"{name.lower()}: {value}\r\n" for name, value in lines).encode(), TRAILERS_FLAG)


GRPC_WEB_TYPES = {
    PROTO_TYPE: GrpcWeb(in_json=False),
    "application/grpc-web": GrpcWeb(in_json=False),
    "application/grpc-web+json": GrpcWeb(in_json=True),
}


def is_grpc_web(content_type: str) -> bool:
    """Return whether a content type is one of gRPC-Web, whether or not its encoding is supported."""
    return content_type.lower().startswith("application/grpc-web")


def encode_error(error: UmgError, _: int) -> bytes:
    """Return the body for a failed request: an envelope of trailers. Encoders of other formats need the status."""
    return GrpcWeb(in_json=False).end(status_of(error), ())
