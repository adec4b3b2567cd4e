"""Messages with a role that only one format has: kept as raw JSON, and sent only to providers of that format."""

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import json_text
from umg_grpc.wire.dropped_fields_report import Report, omits
from umg_grpc.wire.facts_beside_request import RequestNotes


def append_opaque_turn(request: pb.GenerateRequest, notes: RequestNotes, turn: Raw, role: str, at: str) -> None:
    """Append a message of an unknown role to a request as one part of raw JSON. The part's type is the role, so that
    errors of other formats name it. `notes`: receives `at`, the path of the role in the caller's body.
    """
    message = request.messages.add()
    opaque = message.parts.add().opaque
    opaque.format, opaque.type, opaque.json = request.source.format, role, str(turn, "utf-8")
    notes.opaque_paths[f"messages[{len(request.messages) - 1}].parts[0]"] = at


def opaque_turn(message: pb.Message, wire_format: str, at: str) -> Raw | None:
    """Return the raw JSON of a message with an unknown role of the format `wire_format`; None for any other message.
    Raise UmgError(INVALID_FIELD) for text that is not one JSON value.
    """
    if message.role or len(message.parts) != 1 or message.parts[0].opaque.format != wire_format:
        return None
    return json_text(message.parts[0].opaque.json, f"{at}.parts[0].opaque.json")


def omits_turn(message: pb.Message, wire_format: str, report: Report) -> bool:
    """Return whether a message with an unknown role of another format may be left out of a request. Report it if so."""
    if message.role or len(message.parts) != 1 or not message.parts[0].HasField("opaque"):
        return False
    opaque = message.parts[0].opaque
    return opaque.format != wire_format and omits(opaque, report)


class RawTurns:
    """Raw JSON of a body's messages, by index: decoded again at the first access, since only structs were kept."""

    def __init__(self, source: pb.SourceDocument, field: str) -> None:
        self._source = source
        self._field = field
        self._turns: list[Raw] | None = None

    def __getitem__(self, index: int) -> Raw:
        if self._turns is None:
            turns = msgspec.json.decode(self._source.body, type=dict[str, Raw])[self._field]
            self._turns = msgspec.json.decode(turns, type=list[Raw]) if bytes(turns).startswith(b"[") else [turns]
        return self._turns[index]
