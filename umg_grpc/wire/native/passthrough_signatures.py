"""Signatures in a passed-through body. Providers reject the gateway's marks of other providers' states, which are
removed, and calls without a signature, which get a placeholder, in earlier turns for prompt caches.
"""

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, is_present, parse
from umg_grpc.wire.core.reasoning_state_conversion import NO_SIGNATURE, read
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.native.encode_messages import generation

GATEWAY_MARK = b'"dW1nL'
"""First base64 characters, after the JSON quote, of every state that the gateway wrapped (`umg.`)."""
SIGNATURE_KEYS = ("thoughtSignature", "thought_signature")
CALL_KEYS = ("functionCall", "function_call")
SIGNED_SINCE = 3  # generation of the models that reject calls without a signature


def edit_signatures(fields: dict[str, Raw], request: pb.GenerateRequest, model: str, report: Report) -> None:
    """Edit the signatures in `contents`, in place. `report`: collects removed states, and placeholders."""
    raw, parts = fields.get("contents", ABSENT_MEMBER), [part for message in request.messages for part in message.parts]
    has_marks = any(part.HasField("state") for part in parts) and GATEWAY_MARK in bytes(raw)
    if not has_marks and not any(part.HasField("tool_call") for part in parts):
        return
    known = generation(model) or generation(request.model)
    if not has_marks and known < SIGNED_SINCE:
        return
    contents, unmarked = parse(list[dict[str, Raw]], raw, "contents"), list[dict[str, Raw]]()
    if has_marks:
        contents, unmarked = _without_marks(contents, report)
    signed = False
    if known >= SIGNED_SINCE or not known:
        # a model of unknown rules gets placeholders only where the calls had signatures, which were other providers'
        signed = _with_placeholders(contents if known else unmarked)
        if signed and not unmarked:
            report.drop("state", "placeholder")
    if unmarked or signed:
        fields["contents"] = Raw(msgspec.json.encode(contents))


def _without_marks(contents: list[dict[str, Raw]], report: Report) -> tuple[list[dict[str, Raw]], list[dict[str, Raw]]]:
    """Return (contents without the gateway's marks, those contents that had a mark)."""
    kept, unmarked = list[dict[str, Raw]](), list[dict[str, Raw]]()
    for content in contents:
        if GATEWAY_MARK not in bytes(content.get("parts", ABSENT_MEMBER)):
            kept.append(content)
            continue
        parts = [edited for part in _parts(content) if (edited := _without_mark(part, report)) is not None]
        unmarked.append(content | {"parts": Raw(msgspec.json.encode(parts))})
        if parts:
            kept.append(unmarked[-1])
    return kept, unmarked


def _without_mark(part: dict[str, Raw], report: Report) -> dict[str, Raw] | None:
    for name in SIGNATURE_KEYS:
        if not bytes(part.get(name, ABSENT_MEMBER)).startswith(GATEWAY_MARK):
            continue
        text = msgspec.json.decode(part[name], type=str)
        state = read(text, "native")
        if state.format == "native":
            return part | {name: Raw(msgspec.json.encode(state.data))}
        report.drop("state")
        rest = {member: value for member, value in part.items() if member != name}
        is_empty = not rest.keys() - {"text", "thought"} and bytes(rest.get("text", ABSENT_MEMBER)) in (b"", b'""')
        return None if is_empty else rest
    return part


def _with_placeholders(contents: list[dict[str, Raw]]) -> bool:
    """Add a placeholder to the first call in each turn of the model that has no signature, in place."""
    added = False
    for content in contents:
        if bytes(content.get("role", ABSENT_MEMBER)) != b'"model"':
            continue
        parts = _parts(content)
        call = next((part for part in parts if not part.keys().isdisjoint(CALL_KEYS)), None)
        if call is not None and call.keys().isdisjoint(SIGNATURE_KEYS):
            call[SIGNATURE_KEYS[0]] = Raw(msgspec.json.encode(NO_SIGNATURE))
            content["parts"] = Raw(msgspec.json.encode(parts))
            added = True
    return added


def _parts(content: dict[str, Raw]) -> list[dict[str, Raw]]:
    raw = content.get("parts", ABSENT_MEMBER)
    if not is_present(raw):
        return []
    if bytes(raw).startswith(b"{"):
        return [parse(dict[str, Raw], raw, "contents.parts")]
    return parse(list[dict[str, Raw]], raw, "contents.parts")
