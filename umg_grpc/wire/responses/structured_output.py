"""Format that a response must have (`text.format`), and instructions for it, in requests to a provider."""

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, is_present, parse
from umg_grpc.wire.core.structured_output_ways import (
    fit_format,
    fit_own_response,
    mentions_json,
    own_schema,
    requires_json,
    with_instruction,
)
from umg_grpc.wire.dropped_fields_report import Report

JSON_INSTRUCTION = "Answer in JSON."  # providers reject `json_object` unless the input mentions JSON


def encode_json_format(chosen: pb.ResponseFormat, report: Report, quirks: Quirks) -> JsonObject:
    """Return `text.format` for a JSON response; {} if instructions replace it. Report unenforced constraints."""
    fitted = fit_format(chosen, quirks.schema_dialect, report)
    if fitted.form != "json_schema":
        return {"type": fitted.form} if fitted.form else {}
    described = chosen.json_schema
    fields: JsonObject = {"type": "json_schema", "name": described.name or "answer"}  # required here
    if described.description:
        fields["description"] = described.description
    fields["schema"] = {} if fitted.schema is None else fitted.schema
    if fitted.strict is not None:
        fields["strict"] = fitted.strict
    return fields


def add_instructions(fields: JsonObject, request: pb.GenerateRequest, quirks: Quirks) -> None:
    """Add the instructions for JSON output, in place. The word JSON is added only for callers of another format, since
    they need not know that providers require it.
    """
    items = fields["input"]
    if not isinstance(items, list) or not requires_json(request.response_format):
        return
    fitted = fit_format(request.response_format, quirks.schema_dialect, Report())
    if fitted.instruction:
        fields["input"] = _instructed(items, fitted.instruction)
    elif fitted.form == "json_object" and request.HasField("source") and not mentions_json(items):
        fields["input"] = _instructed(items, JSON_INSTRUCTION)


def fit_own_format(fields: dict[str, Raw], request: pb.GenerateRequest, quirks: Quirks, report: Report) -> None:
    """Replace a response format that the provider rejects in a caller's own body; all else stays byte for byte."""
    if not requires_json(request.response_format):
        return
    instruction, items = "", fields.get("input", ABSENT_MEMBER)
    if (fitted := fit_own_response(request, quirks, report)) is not None:
        instruction = fitted.instruction
        text = parse(dict[str, Raw], fields["text"], "text")
        if fitted.form == "json_schema":
            text["format"] = own_schema(text["format"], fitted)
        elif fitted.form:
            text["format"] = Raw(msgspec.json.encode({"type": fitted.form}))
        else:
            text.pop("format", None)
        fields["text"] = Raw(msgspec.json.encode(text))
    elif quirks.json_word and request.response_format.HasField("json") and not mentions_json(items or None):
        instruction = JSON_INSTRUCTION
        report.drop("response_format", "with an instruction")
    if instruction:
        fields["input"] = Raw(msgspec.json.encode(_instructed(_own_items(items), instruction)))


def _own_items(raw: Raw) -> list[object]:
    """Return a caller's input as items. The first one is decoded to its members; a text is a user message."""
    if not is_present(raw):
        return []
    if bytes(raw).startswith(b'"'):
        return [{"type": "message", "role": "user", "content": raw}]
    items = parse(list[Raw], raw, "input")
    first: list[object] = [parse(dict[str, Raw], items[0], "input[0]")] if items else []
    return [*first, *items[1:]]


def _instructed(messages: list[object], instruction: str) -> list[object]:
    part: JsonObject = {"type": "input_text", "text": instruction}
    return with_instruction(messages, part, {"type": "message", "role": "system", "content": [part]})
