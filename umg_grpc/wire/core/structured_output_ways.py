"""Format that a response must have (JSON, or by a schema), enforced by the vendor or by instructions to the model."""

from typing import Literal, NamedTuple

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import Quirks, SchemaDialect
from umg_grpc.v1 import pb
from umg_grpc.wire.core.agent_prompt_lines import INSTRUCTION_ROLES
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.native_schema_conversion import json_schema
from umg_grpc.wire.core.schema_dialects import fit_schema
from umg_grpc.wire.dropped_fields_report import Report

JSON_SCHEMA_FIELD = "response_format.json_schema"
SCHEMA_FIELD = f"{JSON_SCHEMA_FIELD}.schema_json"
REWRITTEN_SCHEMA = "rewritten"

ANY_JSON = "Answer with one JSON value and nothing else: no words around it, no code fence."
_BY_SCHEMA = "Answer with JSON that is valid for this JSON schema, and nothing else: no words around it, no code fence."


class FittedFormat(NamedTuple):
    """Required format of the response in the form that a provider accepts."""

    form: Literal["json_schema", "json_object", ""]
    schema: object = None
    strict: bool | None = None
    instruction: str = ""
    """Text to add to the prompt for the part of the format that the provider does not enforce."""


def requires_json(chosen: pb.ResponseFormat) -> bool:
    """Return whether the response must be JSON, with or without a schema."""
    return chosen.WhichOneof("kind") in {"json", "json_schema"}


def fit_format(chosen: pb.ResponseFormat, dialect: SchemaDialect | None, report: Report) -> FittedFormat:
    """Return the format of a response that must be JSON in the form that the vendor accepts. Report constraints that it
    ignores. Raise UmgError(INVALID_FIELD) for a schema that is not JSON.
    """
    if chosen.WhichOneof("kind") == "json":
        if dialect == "none":
            report.drop("response_format", "instructions")
            return FittedFormat("", instruction=ANY_JSON)
        return FittedFormat("json_object")
    described = chosen.json_schema
    strict = described.strict if described.HasField("strict") else None
    if dialect not in {"json_object", "none"}:
        if not described.schema_json:
            return FittedFormat("json_schema", strict=strict)
        schema = fit_schema(
            described.schema_json,
            dialect,
            report,
            SCHEMA_FIELD,
            native=described.native_schema,
            strict=strict is True or dialect == "claude",
        )
        if schema is not None:
            return FittedFormat("json_schema", schema, strict)
        if dialect == "openai":
            report.drop(f"{JSON_SCHEMA_FIELD}.strict", "false")
            return FittedFormat(
                "json_schema", json_schema(described.schema_json, described.native_schema, SCHEMA_FIELD), False
            )
    enforced: Literal["json_object", ""] = "json_object" if dialect in {"json_object", "moonshot"} else ""
    report.drop(JSON_SCHEMA_FIELD, enforced or "instructions")
    return FittedFormat(enforced, instruction=_instruction(described))


def _instruction(described: pb.JsonSchemaFormat) -> str:
    if not described.schema_json:
        return ANY_JSON
    schema = json_schema(described.schema_json, described.native_schema, SCHEMA_FIELD)
    text = str(schema, "utf-8") if isinstance(schema, Raw) else msgspec.json.encode(schema).decode()
    return "\n".join(filter(None, (_BY_SCHEMA, described.description, text)))


def fit_own_response(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> FittedFormat | None:
    """Return the changed response format for a body in the provider's own format; None if no change is needed."""
    chosen, dialect = request.response_format, quirks.schema_dialect
    if dialect is None or not requires_json(chosen):
        return None
    before = report.lost
    fitted = fit_format(chosen, dialect, report)
    if fitted.form == "json_object" and chosen.HasField("json"):
        return None
    stays_strict = fitted.strict is not False or not chosen.json_schema.strict
    if fitted.form == "json_schema" and isinstance(fitted.schema, Raw | None) and stays_strict:
        return None
    if report.lost == before:
        report.drop(SCHEMA_FIELD, REWRITTEN_SCHEMA)
    return fitted


def own_schema(raw: Raw, fitted: FittedFormat) -> Raw:
    """Return `raw`, an object of a caller's own body, with `schema` and `strict` replaced by those of `fitted`."""
    members = msgspec.json.decode(raw, type=dict[str, Raw])
    if fitted.schema is not None:
        members["schema"] = Raw(msgspec.json.encode(fitted.schema))
    if fitted.strict is False:
        members["strict"] = Raw(b"false")
    return Raw(msgspec.json.encode(members))


def mentions_json(messages: object) -> bool:
    """Return whether messages contain the word JSON, which some vendors require beside the format `json_object`."""
    return b"json" in msgspec.json.encode(messages).lower()


def with_instruction(messages: list[object], part: JsonObject, alone: JsonObject) -> list[object]:
    """Return messages with an instruction added: at the end of the first one if it is a system message, else in a new
    first one. `part`: the instruction as a content part with `text`; `alone`: as a message. Bodies of callers have raw
    members.
    """
    first = messages[0] if messages else None
    if isinstance(first, dict) and _decoded(first.get("role")) in INSTRUCTION_ROLES:
        content = _decoded(first.get("content"))
        if isinstance(content, str):
            return [{**first, "content": f"{content}\n\n{part['text']}"}, *messages[1:]]
        if isinstance(content, list):
            return [{**first, "content": [*content, part]}, *messages[1:]]
    return [alone, *messages]


def _decoded(member: object) -> object:
    return msgspec.json.decode(member) if isinstance(member, Raw) else member
