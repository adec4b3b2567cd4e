"""Parameters of functions in the JSON schema dialects of vendors."""

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import Quirks, SchemaDialect
from umg_grpc.v1 import pb
from umg_grpc.wire.core.native_schema_conversion import json_schema
from umg_grpc.wire.core.schema_dialects import fit_schema
from umg_grpc.wire.dropped_fields_report import Report

STRICT_DIALECTS = ("claude", "openai")
"""Dialects of vendors that enforce a function's schema only with `strict`."""
SCHEMA_MEMBERS = ("parameters", "input_schema")
"""Members of a function in the caller's own body that contain the schema of its parameters."""


def fit_parameters(
    function: pb.FunctionTool, dialect: SchemaDialect | None, report: Report, at: str
) -> tuple[object, bool | None]:
    """Return (schema of a function's parameters, `strict`) as the vendor accepts them. `strict` is None if the caller
    did not state it, and False, which is reported, if the vendor cannot enforce it. Raise UmgError(INVALID_FIELD) for
    invalid JSON.
    """
    strict = function.strict if function.HasField("strict") else None
    field = f"{at}.parameters_json"
    if dialect is None or (dialect in STRICT_DIALECTS and not strict):
        return json_schema(function.parameters_json, function.native_schema, field), strict
    fitted = fit_schema(
        function.parameters_json, dialect, report, field, native=function.native_schema, strict=strict is True
    )
    if fitted is not None:
        return fitted, strict
    if strict and dialect in STRICT_DIALECTS:
        report.drop(f"{at}.strict", "false")
        strict = False
    return json_schema(function.parameters_json, function.native_schema, field), strict


def fit_own_tools(fields: dict[str, Raw], quirks: Quirks, report: Report) -> None:
    """Replace, in a body of the provider's own format, functions' schemas that it rejects; all else is unchanged."""
    dialect = quirks.schema_dialect
    if dialect in (None, "json_object", "none", "gemini"):
        return
    for name in ("tools", "functions"):
        if (raw := fields.get(name)) is not None and bytes(raw).startswith(b"["):
            fields[name] = _fit_list(raw, dialect, report, name)


def _fit_list(raw: Raw, dialect: SchemaDialect, report: Report, at: str) -> Raw:
    tools = msgspec.json.decode(raw, type=list[Raw])
    fitted = [_fit_own(tool, dialect, report, f"{at}[{index}]") for index, tool in enumerate(tools)]
    changed = any(new is not old for new, old in zip(fitted, tools, strict=True))
    return Raw(msgspec.json.encode(fitted)) if changed else raw


def _fit_own(tool: Raw, dialect: SchemaDialect, report: Report, at: str) -> Raw:
    """Return a tool with a schema that the vendor accepts; `tool` itself if nothing changes. `at`: the tool's path."""
    if not bytes(tool).startswith(b"{"):
        return tool
    members = msgspec.json.decode(tool, type=dict[str, Raw])
    if (nested := members.get("function")) is not None:
        fitted = _fit_own(nested, dialect, report, f"{at}.function")
        return tool if fitted is nested else Raw(msgspec.json.encode(members | {"function": fitted}))
    if (grouped := members.get("tools")) is not None and bytes(grouped).startswith(b"["):
        fitted = _fit_list(grouped, dialect, report, f"{at}.tools")
        return tool if fitted is grouped else Raw(msgspec.json.encode(members | {"tools": fitted}))
    name = next((name for name in SCHEMA_MEMBERS if bytes(members.get(name, Raw())).startswith(b"{")), None)
    strict = bytes(members.get("strict", Raw())) == b"true"
    if name is None or (dialect in STRICT_DIALECTS and not strict):
        return tool
    before, path = report.lost, f"{at}.{name}"
    schema = fit_schema(str(members[name], "utf-8"), dialect, report, path, native=False, strict=strict)
    if isinstance(schema, Raw) or (schema is None and not strict):
        return tool
    if schema is None:
        report.drop(f"{at}.strict", "false")
        return Raw(msgspec.json.encode(members | {"strict": Raw(b"false")}))
    if report.lost == before:
        report.drop(path, "rewritten")
    return Raw(msgspec.json.encode(members | {name: Raw(msgspec.json.encode(schema))}))
