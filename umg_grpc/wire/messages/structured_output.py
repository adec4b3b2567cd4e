"""Format that a response must have (`output_config.format`) in requests to a provider, or instructions for it."""

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import Quirks, SchemaDialect
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, is_present, parse
from umg_grpc.wire.core.structured_output_ways import (
    ANY_JSON,
    JSON_SCHEMA_FIELD,
    FittedFormat,
    fit_format,
    fit_own_response,
    own_schema,
)
from umg_grpc.wire.dropped_fields_report import Report

VENDOR_DIALECT: SchemaDialect = "claude"
"""Schema dialect for unknown providers. Only this vendor defines response schemas here; others accept its subset."""


def dialect_of(request: pb.GenerateRequest, quirks: Quirks) -> SchemaDialect | None:
    """Return the schema dialect for a provider: the known one, else the vendor's; None if callers use this format."""
    return quirks.schema_dialect or (None if request.source.format == "messages" else VENDOR_DIALECT)


def encode_json_format(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> tuple[JsonObject, str]:
    """Return (`output_config`, {} if there is none; instruction that requires JSON, "" if there is none). Report left
    out settings.
    """
    described = request.response_format.json_schema
    if not described.schema_json:
        report.drop("response_format", "a line of the system prompt")
        return {}, ANY_JSON
    if described.name:
        report.drop(f"{JSON_SCHEMA_FIELD}.name")
    fitted = fit_format(request.response_format, dialect_of(request, quirks), report)
    if fitted.form != "json_schema":
        return {}, fitted.instruction
    if described.description:
        report.drop(f"{JSON_SCHEMA_FIELD}.description")
    if described.HasField("strict") and not described.strict:
        report.drop(f"{JSON_SCHEMA_FIELD}.strict")  # it is always strict
    return {"format": {"type": "json_schema", "schema": fitted.schema}}, ""


def fit_own_format(fields: dict[str, Raw], request: pb.GenerateRequest, quirks: Quirks, report: Report) -> None:
    """Replace, in a caller's own body, a response format that the provider rejects; all else stays byte for byte."""
    if (fitted := fit_own_response(request, quirks, report)) is None:
        return
    raw = fields.get("output_config", ABSENT_MEMBER)
    config = parse(dict[str, Raw], raw, "output_config") if is_present(raw) else {}
    members, name = (config, "format") if is_present(config.get("format", ABSENT_MEMBER)) else (fields, "output_format")
    _replace(members, name, fitted)
    if config:
        fields["output_config"] = Raw(msgspec.json.encode(config))
    else:
        fields.pop("output_config", None)
    if fitted.instruction:
        fields["system"] = _instructed(fields.get("system", ABSENT_MEMBER), fitted.instruction)


def _replace(members: dict[str, Raw], name: str, fitted: FittedFormat) -> None:
    if fitted.form != "json_schema":
        members.pop(name, None)
    elif name in members:
        members[name] = own_schema(members[name], fitted)


def _instructed(system: Raw, instruction: str) -> Raw:
    """Return the system prompt of a caller's own body with an instruction added at its end."""
    if not is_present(system):
        return Raw(msgspec.json.encode(instruction))
    if bytes(system).startswith(b'"'):
        return Raw(msgspec.json.encode(f"{msgspec.json.decode(system, type=str)}\n\n{instruction}"))
    blocks = parse(list[Raw], system, "system")
    return Raw(msgspec.json.encode([*blocks, {"type": "text", "text": instruction}]))
