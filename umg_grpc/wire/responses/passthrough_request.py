"""Spellings that only our document has, and what a provider of the format gets instead of them: the caller's body with
the edits that must be made.
"""

from collections.abc import Collection

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire import state
from umg_grpc.wire.json import ABSENT, JsonObject, given, parse
from umg_grpc.wire.report import Report
from umg_grpc.wire.responses import schema
from umg_grpc.wire.responses.items import BARE_PARTS, OURS, read_state
from umg_grpc.wire.responses.options import WIRE_NAMES

KNOWN = frozenset(schema.ResponsesRequest.__struct_encode_fields__)

# What stands in a body with reasoning that we showed of other formats.
MARK_OF_ID, MARK_OF_STATE = f'"rs_{OURS}'.encode(), f'"{state.PREFIX}'.encode()

# Members of objects that a canonical field says; the others stay when it is written anew.
MEMBERS = {"reasoning": ("effort", "summary", "generate_summary"), "text": ("format", "verbosity")}


def wire_names(edited: str) -> tuple[str, ...]:
    """The fields of a body that say a canonical field."""
    return WIRE_NAMES.get(edited, (edited,))


def rebuild(
    request: pb.GenerateRequest, model: str, stream: bool, anew: JsonObject, report: Report, edited: Collection[str]
) -> bytes:
    """The caller's body with the edits that must be made, all else byte for byte: one `model`, our dialect, and the
    canonical fields that are `edited`, for which `anew` has what they are now.
    """
    fields = parse(dict[str, Raw], request.source.body)
    for field in edited:
        for name in wire_names(field):
            _write_anew(fields, name, anew)
    if "messages" not in edited and given(fields.get("input", ABSENT)):
        _edit_input(fields, report)
    if given(fields.get("reasoning", ABSENT)):
        _edit_reasoning(fields)
    if given(fields.get("tools", ABSENT)):
        _flatten_tools(fields)
    if given(fields.get("tool_choice", ABSENT)):
        _flatten_choice(fields)
    fields["model"] = Raw(msgspec.json.encode(model))
    if stream:
        fields["stream"] = Raw(b"true")
    else:
        fields.pop("stream_options", None)  # refused without a stream
        if "stream" in fields:
            fields["stream"] = Raw(b"false")
    return msgspec.json.encode(fields)


def _write_anew(fields: dict[str, Raw], name: str, anew: JsonObject) -> None:
    if name not in MEMBERS:
        fields.pop(name, None)
        if name in anew:
            fields[name] = Raw(msgspec.json.encode(anew[name]))
        return
    raw = fields.pop(name, ABSENT)
    members: dict[str, object] = {}
    if given(raw):
        members |= {key: value for key, value in parse(dict[str, Raw], raw, name).items() if key not in MEMBERS[name]}
    if isinstance(said := anew.get(name), dict):
        members |= said
    if members:
        fields[name] = Raw(msgspec.json.encode(members))


def _edit_input(fields: dict[str, Raw], report: Report) -> None:
    """Bare parts as the user's turns, and the reasoning that we showed of other formats taken out: a provider looks for
    its ids and cannot read its state.
    """
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
    """The item with its state as the provider made it; None for one that is not a provider's of this format."""
    item = parse(schema.ReasoningItem, raw)
    if not item.encrypted_content:
        if (item.id or "").startswith(f"rs_{OURS}"):
            report.drop("reasoning")
            return None
        return raw
    if not item.encrypted_content.startswith(state.PREFIX):
        return raw
    made = read_state(item.encrypted_content)
    if item.encrypted_content == made.data:
        return raw  # it only looks like ours
    if made.format != "responses":
        report.drop("state")
        return None
    members = parse(dict[str, Raw], raw)
    members["encrypted_content"] = Raw(msgspec.json.encode(made.data))
    return Raw(msgspec.json.encode(members))


def _edit_reasoning(fields: dict[str, Raw]) -> None:
    """No summary where none is wanted, and the effort that an empty object means."""
    members = parse(dict[str, Raw], fields["reasoning"], "reasoning")
    if bytes(members.get("summary", ABSENT)) == b'"none"':
        del members["summary"]
        fields["reasoning"] = Raw(msgspec.json.encode(members))
    if not members:
        fields["reasoning"] = Raw(b'{"effort":"medium"}')


def _flatten_tools(fields: dict[str, Raw]) -> None:
    if not any(given(tool.function) for tool in parse(list[schema.NestedFunction], fields["tools"], "tools")):
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
    if given(members.get("allowed_tools", ABSENT)):  # as chat has it
        members |= parse(dict[str, Raw], members.pop("allowed_tools"), "tool_choice.allowed_tools")
        raw = Raw(msgspec.json.encode(members))
    if bytes(members.get("type", ABSENT)) == b'"allowed_tools"' and given(members.get("tools", ABSENT)):
        tools = parse(list[Raw], members["tools"], "tool_choice.tools")
        flat = [_flat(tool) for tool in tools]
        if flat != tools:
            raw = Raw(msgspec.json.encode(members | {"tools": flat}))
    fields["tool_choice"] = _flat(raw)


def _flat(tool: Raw) -> Raw:
    """A function in the document's nested form, flat; anything else as it stands."""
    head = parse(schema.NestedFunction, tool)
    if not given(head.function) or parse(schema.Kind, tool).type != "function":
        return tool
    members = parse(dict[str, Raw], tool)
    return Raw(msgspec.json.encode(members | parse(dict[str, Raw], members.pop("function"))))
