"""Turns that only their own format knows: kept whole, for a provider of that format."""

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.json import json_text
from umg_grpc.wire.report import Report, leaves_out


def keep_turn(request: pb.GenerateRequest, turn: Raw, role: str, at: str) -> None:
    """Add a turn of an unknown role as a message of one opaque part. `at`: path of the role in the caller's body.

    The role becomes the part's `type`, so that errors of other formats name it.
    """
    message = request.messages.add()
    opaque = message.parts.add().opaque
    opaque.format, opaque.type, opaque.json = request.source.format, role, str(turn, "utf-8")
    request.source.opaque_paths[f"messages[{len(request.messages) - 1}].parts[0]"] = at


def kept_turn(message: pb.Message, wire_format: str, at: str) -> Raw | None:
    """Return the JSON of a turn that `keep_turn` kept for the format; None for any other message."""
    if message.role or len(message.parts) != 1 or message.parts[0].opaque.format != wire_format:
        return None
    return json_text(message.parts[0].opaque.json, f"{at}.parts[0].opaque.json")


def leaves_turn_out(message: pb.Message, wire_format: str, report: Report) -> bool:
    """Return whether an upstream of the format leaves out a message that is one opaque part of another format."""
    if message.role or len(message.parts) != 1 or not message.parts[0].HasField("opaque"):
        return False
    opaque = message.parts[0].opaque
    return opaque.format != wire_format and leaves_out(opaque, report)


def raw_turns(body: bytes, field: str) -> list[Raw]:
    """Return the turns of a body that was decoded already, each as its JSON."""
    turns = msgspec.json.decode(body, type=dict[str, Raw])[field]
    return msgspec.json.decode(turns, type=list[Raw]) if bytes(turns).startswith(b"[") else [turns]
