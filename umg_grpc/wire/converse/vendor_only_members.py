"""Members of Converse bodies that have no canonical form, and that callers of other formats may set in their bodies."""

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, is_present
from umg_grpc.wire.decoded_request_notes import RequestNotes

PASSED_MEMBERS = ("guardrailConfig", "performanceConfig", "requestMetadata", "serviceTier", "promptVariables")


def passed_members(request: pb.GenerateRequest, notes: RequestNotes) -> dict[str, Raw]:
    """Return members of the caller's body that are sent to the provider unchanged. `notes`: names those members."""
    stated = [name for name in PASSED_MEMBERS if name in notes.indispensable]
    body = msgspec.json.decode(request.source.body, type=dict[str, Raw]) if stated else {}
    return {name: raw for name in stated if is_present(raw := body.get(name, ABSENT_MEMBER))}


def without_passed(notes: RequestNotes, passed: dict[str, Raw]) -> RequestNotes:
    """Return the notes without the members in `passed`, which the provider receives."""
    if not passed:
        return notes
    return msgspec.structs.replace(notes, indispensable=[name for name in notes.indispensable if name not in passed])
