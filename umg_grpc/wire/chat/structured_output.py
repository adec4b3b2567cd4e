"""`response_format` (text, JSON, or a JSON schema) in chat requests to a provider, with the instructions for it."""

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, parse
from umg_grpc.wire.core.structured_output_ways import (
    fit_format,
    fit_own_response,
    mentions_json,
    own_schema,
    requires_json,
    with_instruction,
)
from umg_grpc.wire.dropped_fields_report import Report

JSON_INSTRUCTION = "Answer in JSON."  # providers reject `json_object` unless a message mentions JSON


def encode_json_format(chosen: pb.ResponseFormat, report: Report, quirks: Quirks) -> JsonObject:
    """Return `response_format` for JSON; {} if instructions require it instead. Report constraints not enforced."""
    fitted = fit_format(chosen, quirks.schema_dialect, report)
    if fitted.form != "json_schema":
        return {"response_format": {"type": fitted.form}} if fitted.form else {}
    described = chosen.json_schema
    fields: JsonObject = {"name": described.name or "answer"}  # required here, absent in messages and native
    if described.description:
        fields["description"] = described.description
    if fitted.schema is not None:
        fields["schema"] = fitted.schema
    if fitted.strict is not None:
        fields["strict"] = fitted.strict
    return {"response_format": {"type": "json_schema", "json_schema": fields}}


def add_instructions(fields: JsonObject, request: pb.GenerateRequest, quirks: Quirks) -> None:
    """Add the instructions for JSON output, in place. The word JSON is added only for callers of another format, since
    they need not know that providers require it.
    """
    messages = fields["messages"]
    if not isinstance(messages, list) or not requires_json(request.response_format):
        return
    if instruction := fit_format(request.response_format, quirks.schema_dialect, Report()).instruction:
        fields["messages"] = _instructed(messages, instruction)
    elif (
        request.HasField("source")
        and fields.get("response_format") == {"type": "json_object"}
        and not mentions_json(messages)
    ):
        fields["messages"] = _instructed(messages, JSON_INSTRUCTION)


def fit_own_format(fields: dict[str, Raw], request: pb.GenerateRequest, quirks: Quirks, report: Report) -> None:
    """Replace, in a caller's own body, a `response_format` that the provider rejects; all else stays byte for byte."""
    if not requires_json(request.response_format):
        return
    instruction = ""
    if (fitted := fit_own_response(request, quirks, report)) is not None:
        instruction = fitted.instruction
        if fitted.form == "json_schema":
            members = parse(dict[str, Raw], fields["response_format"], "response_format")
            members["json_schema"] = own_schema(members["json_schema"], fitted)
            fields["response_format"] = Raw(msgspec.json.encode(members))
        elif fitted.form:
            fields["response_format"] = Raw(msgspec.json.encode({"type": fitted.form}))
        else:
            fields.pop("response_format", None)
    elif quirks.json_word and request.response_format.HasField("json") and not mentions_json(fields["messages"]):
        instruction = JSON_INSTRUCTION
        report.drop("response_format", "with an instruction")
    if instruction:
        messages = parse(list[Raw], fields["messages"], "messages")
        first: list[object] = [parse(dict[str, Raw], messages[0], "messages[0]")] if messages else []
        fields["messages"] = Raw(msgspec.json.encode(_instructed([*first, *messages[1:]], instruction)))


def _instructed(messages: list[object], instruction: str) -> list[object]:
    part: JsonObject = {"type": "text", "text": instruction}
    return with_instruction(messages, part, {"role": "system", "content": instruction})
