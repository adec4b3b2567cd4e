"""Edits of a caller's responses body for a provider of that format, e.g. of fields that only our document defines."""

from collections.abc import Collection

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.client_added_members import CLIENT_MEMBERS, members_for_others
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core import reasoning_state_conversion
from umg_grpc.wire.core.agent_prompt_lines import edit_client_lines, edit_first_turn
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, is_present, parse
from umg_grpc.wire.core.provider_member_changes import fit_members
from umg_grpc.wire.core.tool_schema_dialects import fit_own_tools
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.responses import schema
from umg_grpc.wire.responses.decode_messages import BARE_PARTS, OWN_PREFIX, read_state
from umg_grpc.wire.responses.encode_options import WIRE_NAMES
from umg_grpc.wire.responses.structured_output import fit_own_format

KNOWN_FIELDS = frozenset(schema.ResponsesRequest.__struct_encode_fields__)

# Bytes that a body with reasoning of other formats contains.
MARK_OF_ID, MARK_OF_STATE = f'"rs_{OWN_PREFIX}'.encode(), f'"{reasoning_state_conversion.STATE_PREFIX}'.encode()

CLIENT_MARKS = tuple(f'"{row.member}"'.encode() for row in CLIENT_MEMBERS if row.face == "responses")
"""Byte strings of which a body contains at least one if it has members for a client's vendor."""

# Members of objects that have a canonical field; the others are kept when the object is encoded anew.
NESTED_MEMBERS = {"reasoning": ("effort", "summary", "generate_summary"), "text": ("format", "verbosity")}


def wire_names(edited: str) -> tuple[str, ...]:
    """Return the names of the members of a body that contain the canonical field `edited`."""
    return WIRE_NAMES.get(edited, (edited,))


def rebuild(
    request: pb.GenerateRequest,
    model: str,
    stream: bool,
    new_values: JsonObject,
    report: Report,
    edited: Collection[str],
    quirks: Quirks,
) -> bytes:
    """Return the caller's body for a provider of the same format, changed only where necessary, else byte for byte.

    Changes are the model id, `stream`, forms that only the gateway's specification has, members that the provider
    rejects, and the canonical fields in `edited`, whose members of the body are `new_values`.
    """
    fields = parse(dict[str, Raw], request.source.body)
    for field in edited:
        for name in wire_names(field):
            _replace_field(fields, name, new_values)
    if "messages" not in edited and is_present(fields.get("input", ABSENT_MEMBER)):
        _remove_client_members(fields, quirks, report)
        _edit_input(fields, report)
    edit_client_lines(fields, "instructions", quirks, report)
    edit_first_turn(fields, "input", quirks, report)
    if is_present(fields.get("reasoning", ABSENT_MEMBER)):
        _edit_reasoning(fields)
    if is_present(fields.get("tools", ABSENT_MEMBER)):
        _flatten_tools(fields)
    if is_present(fields.get("tool_choice", ABSENT_MEMBER)):
        _flatten_choice(fields)
    if quirks is not NO_QUIRKS:
        fit_own_format(fields, request, quirks, report)
        fit_own_tools(fields, quirks, report)
    fields["model"] = Raw(msgspec.json.encode(model))
    if stream:
        fields["stream"] = Raw(b"true")
    else:
        fields.pop("stream_options", None)  # rejected without a stream
        if "stream" in fields:
            fields["stream"] = Raw(b"false")
    fit_members(fields, quirks, "responses", report)
    return msgspec.json.encode(fields)


def _replace_field(fields: dict[str, Raw], name: str, new_values: JsonObject) -> None:
    if name not in NESTED_MEMBERS:
        fields.pop(name, None)
        if name in new_values:
            fields[name] = Raw(msgspec.json.encode(new_values[name]))
        return
    raw = fields.pop(name, ABSENT_MEMBER)
    members: dict[str, object] = {}
    if is_present(raw):
        members |= {
            key: value for key, value in parse(dict[str, Raw], raw, name).items() if key not in NESTED_MEMBERS[name]
        }
    if isinstance(value := new_values.get(name), dict):
        members |= value
    if members:
        fields[name] = Raw(msgspec.json.encode(members))


def _remove_client_members(fields: dict[str, Raw], quirks: Quirks, report: Report) -> None:
    raw = bytes(fields["input"])
    if not any(mark in raw for mark in CLIENT_MARKS) or not raw.startswith(b"["):
        return
    others, items = members_for_others("responses", quirks.client_headers or ()), list[object]()
    for item in parse(list[dict[str, Raw]], raw, "input"):
        if found := others & item.keys():
            items.append({name: value for name, value in item.items() if name not in found})
            for name in found:
                report.omit(name)
        else:
            items.append(item)
    fields["input"] = Raw(msgspec.json.encode(items))


def _edit_input(fields: dict[str, Raw], report: Report) -> None:
    """Group content parts of `input` without an item into user messages; remove other formats' reasoning, in place."""
    raw = bytes(fields["input"])
    if not raw.startswith(b"["):
        return
    kinds = [item.type for item in parse(list[schema.Kind], raw, "input")]
    shown = "reasoning" in kinds and (MARK_OF_ID in raw or MARK_OF_STATE in raw)
    if not shown and not any(kind in BARE_PARTS for kind in kinds):
        return
    items, edited, turn = list[object](), False, list[Raw]()
    for kind, item in zip(kinds, parse(list[Raw], raw, "input"), strict=True):
        if kind in BARE_PARTS:
            if not turn:
                items.append({"role": "user", "content": turn})
            turn.append(item)
            edited = True
            continue
        turn = []
        kept = _reasoning(item, report) if kind == "reasoning" and shown else item
        edited = edited or kept is not item
        if kept is not None:
            items.append(kept)
    if edited:
        fields["input"] = Raw(msgspec.json.encode(items))


def _reasoning(raw: Raw, report: Report) -> Raw | None:
    """Return a caller's `reasoning` item without the gateway's wrapping of its state; None if the state is not of this
    format's providers.
    """
    item = parse(schema.ReasoningItem, raw)
    if not item.encrypted_content:
        if (item.id or "").startswith(f"rs_{OWN_PREFIX}"):
            report.drop("reasoning")
            return None
        return raw
    if not item.encrypted_content.startswith(reasoning_state_conversion.STATE_PREFIX):
        return raw
    made = read_state(item.encrypted_content)
    if item.encrypted_content == made.data:
        return raw  # it only looks like a wrapped state
    if made.format != "responses":
        report.drop("state")
        return None
    members = parse(dict[str, Raw], raw)
    members["encrypted_content"] = Raw(msgspec.json.encode(made.data))
    return Raw(msgspec.json.encode(members))


def _edit_reasoning(fields: dict[str, Raw]) -> None:
    """Remove the summary `none`; replace empty `reasoning` by effort `medium`: only the gateway's document has both."""
    members = parse(dict[str, Raw], fields["reasoning"], "reasoning")
    if bytes(members.get("summary", ABSENT_MEMBER)) == b'"none"':
        del members["summary"]
        fields["reasoning"] = Raw(msgspec.json.encode(members))
    if not members:
        fields["reasoning"] = Raw(b'{"effort":"medium"}')


def _flatten_tools(fields: dict[str, Raw]) -> None:
    if not any(is_present(tool.function) for tool in parse(list[schema.NestedFunction], fields["tools"], "tools")):
        return
    tools = parse(list[Raw], fields["tools"], "tools")
    flat = [_flat(tool) for tool in tools]
    if flat != tools:
        fields["tools"] = Raw(msgspec.json.encode(flat))


def _flatten_choice(fields: dict[str, Raw]) -> None:
    raw = fields["tool_choice"]
    if not bytes(raw).startswith(b"{"):
        return
    members = parse(dict[str, Raw], raw, "tool_choice")
    if is_present(members.get("allowed_tools", ABSENT_MEMBER)):  # as in chat
        members |= parse(dict[str, Raw], members.pop("allowed_tools"), "tool_choice.allowed_tools")
        raw = Raw(msgspec.json.encode(members))
    if bytes(members.get("type", ABSENT_MEMBER)) == b'"allowed_tools"' and is_present(
        members.get("tools", ABSENT_MEMBER)
    ):
        tools = parse(list[Raw], members["tools"], "tool_choice.tools")
        flat = [_flat(tool) for tool in tools]
        if flat != tools:
            raw = Raw(msgspec.json.encode(members | {"tools": flat}))
    fields["tool_choice"] = _flat(raw)


def _flat(tool: Raw) -> Raw:
    head = parse(schema.NestedFunction, tool)
    if not is_present(head.function) or parse(schema.Kind, tool).type != "function":
        return tool
    members = parse(dict[str, Raw], tool)
    return Raw(msgspec.json.encode(members | parse(dict[str, Raw], members.pop("function"))))
