"""Requests as agents send them, and their bodies for providers."""

import json
from typing import Any

from tests.pairs.table import LEAST
from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

# As the agent of the messages format writes it: JSON of 150 characters.
CLAUDE_USER = json.dumps(
    {
        "device_id": "0f" * 32,
        "account_uuid": "",
        "session_id": "0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",
    },
    separators=(",", ":"),
)


def decoded_request(face: str, **fields: Any) -> pb.GenerateRequest:
    """Return the request of a caller of the format, with these fields beside the required ones."""
    return TEXT_FORMATS[face].decode_request(json.dumps(LEAST[face] | fields).encode(), {}).canonical


def encoded(face: str, upstream: str, quirks: Quirks, **fields: Any) -> tuple[dict[str, Any], str]:
    """Return the body for the provider and the report for the caller, of a request of a caller of `face`."""
    request, _, notes = TEXT_FORMATS[face].decode_request(json.dumps(LEAST[face] | fields).encode(), {})
    upstream_request = TEXT_FORMATS[upstream].encode_request(request, "m", False, quirks, notes)
    upstream_request.report.rename(TEXT_FORMATS[face].wire_path)
    return json.loads(upstream_request.body), upstream_request.report.header()
