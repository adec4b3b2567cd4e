"""Required format of a native response: `responseMimeType` and `responseJsonSchema`, or instructions instead."""

from typing import assert_never

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, is_present, json_text, parse
from umg_grpc.wire.core.structured_output_ways import JSON_SCHEMA_FIELD, fit_format, fit_own_response, requires_json
from umg_grpc.wire.dropped_fields_report import Report

JSON_TYPE, ENUM_TYPE, TEXT_TYPE = "application/json", "text/x.enum", "text/plain"


def encode_format(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> JsonObject:
    """Return the response's format as members of `generationConfig`; report settings left out or changed."""
    chosen = request.response_format
    match chosen.WhichOneof("kind"):
        case "text":
            return {"responseMimeType": TEXT_TYPE}
        case "json" | "json_schema":
            return _encode_json(request, report, quirks)
        case "enum_text":
            schema = _encode_schema(chosen.enum_text, "response_format.enum_text", report)
            return {"responseMimeType": ENUM_TYPE, **schema}
        case None:
            return {}
        case unhandled:
            assert_never(unhandled)


def _encode_json(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> JsonObject:
    described, dialect = request.response_format.json_schema, quirks.schema_dialect
    if dialect not in {"json_object", "none"} and (described.native_schema or not described.schema_json):
        return {"responseMimeType": JSON_TYPE, **_encode_schema(described, JSON_SCHEMA_FIELD, report)}
    _report_names(described, JSON_SCHEMA_FIELD, report)
    fitted = fit_format(request.response_format, dialect, report)
    schema: JsonObject = {} if fitted.schema is None else {"responseJsonSchema": fitted.schema}
    return {"responseMimeType": JSON_TYPE, **schema} if fitted.form else {}


def _encode_schema(described: pb.JsonSchemaFormat, at: str, report: Report) -> JsonObject:
    _report_names(described, at, report)
    if not described.schema_json:
        return {}
    member = "responseSchema" if described.native_schema else "responseJsonSchema"
    return {member: json_text(described.schema_json, f"{at}.schema_json")}


def _report_names(described: pb.JsonSchemaFormat, at: str, report: Report) -> None:
    for name in ("name", "description", "strict"):
        if getattr(described, name):
            report.drop(f"{at}.{name}")


def add_instructions(fields: JsonObject, request: pb.GenerateRequest, quirks: Quirks) -> None:
    """Add the instructions for the format of the response to the system instruction of an encoded body, in place."""
    if not requires_json(request.response_format):
        return
    if instruction := fit_format(request.response_format, quirks.schema_dialect, Report()).instruction:
        system = fields.get("systemInstruction")
        parts = system.get("parts") if isinstance(system, dict) else None
        own = parts if isinstance(parts, list) else []
        fields["systemInstruction"] = {"parts": [*own, {"text": instruction}]}


def fit_own_format(fields: dict[str, Raw], request: pb.GenerateRequest, quirks: Quirks, report: Report) -> None:
    """Replace a response format that the provider rejects in a caller's native body; all else stays byte for byte."""
    native = request.response_format.json_schema.native_schema
    if native and quirks.schema_dialect not in {"json_object", "none"}:
        return
    if (fitted := fit_own_response(request, quirks, report)) is None:
        return
    name = next((name for name in ("generationConfig", "generation_config") if name in fields), "generationConfig")
    raw = fields.get(name, ABSENT_MEMBER)
    config = parse(dict[str, Raw], raw, name) if is_present(raw) else {}
    for member in ("responseSchema", "response_schema", "responseJsonSchema", "response_json_schema"):
        config.pop(member, None)
    if fitted.schema is not None:
        config["responseJsonSchema"] = Raw(msgspec.json.encode(fitted.schema))
    if not fitted.form:
        config.pop("responseMimeType", None)
        config.pop("response_mime_type", None)
    fields[name] = Raw(msgspec.json.encode(config))
    if fitted.instruction:
        _instruct(fields, fitted.instruction)


def _instruct(fields: dict[str, Raw], instruction: str) -> None:
    """Add an instruction at the end of the system instruction of a caller's own body, in place."""
    names = ("systemInstruction", "system_instruction")
    name = next((name for name in names if is_present(fields.get(name, ABSENT_MEMBER))), names[0])
    raw = fields.get(name, ABSENT_MEMBER)
    members = parse(dict[str, Raw], raw, name) if is_present(raw) else {}
    parts = members.get("parts", ABSENT_MEMBER)
    listed = parse(list[Raw], parts, name) if bytes(parts).startswith(b"[") else [parts] if is_present(parts) else []
    members["parts"] = Raw(msgspec.json.encode([*listed, {"text": instruction}]))
    fields[name] = Raw(msgspec.json.encode(members))
