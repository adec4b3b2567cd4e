"""Changes of single keywords of a JSON schema for vendors that accept nearly all of them: Gemini and Moonshot."""

from collections.abc import Callable

from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.schema_dialects.schema_keywords import LISTED_SCHEMAS, NAMED_SCHEMAS, SINGLE_SCHEMAS
from umg_grpc.wire.core.schema_dialects.schema_literals import types_of
from umg_grpc.wire.core.schema_dialects.schema_references import definition_name, definitions_of

MAX_LEVELS = 100
"""Depth down to which nested schemas are changed; deeper ones are sent unchanged."""
MAX_REFERENCES = 64


class TooDeepError(Exception):
    """Error of a schema that is nested too deeply to be changed."""


def for_gemini(schema: JsonObject) -> JsonObject:
    """Return a schema in which each `const` is an `enum` with one value (@ai-sdk/google 4.0.121,
    `sanitize-response-json-schema.ts`). Raise TooDeepError.
    """
    return _changed(schema, _const_as_enum, 0)


def for_moonshot(schema: JsonObject) -> JsonObject | None:
    """Return a schema that follows Moonshot's rules (MFJS; @ai-sdk/moonshotai 3.0.60): items of tuples in
    `prefixItems`, no `type` beside `anyOf`, no `$schema`. None for a schema of anything but an object. Raise
    TooDeepError.
    """
    root, definitions = schema, definitions_of(schema)
    for _ in range(MAX_REFERENCES):
        target = definitions.get(definition_name(root.get("$ref")) or "")
        if not isinstance(target, dict):
            break
        root = target
    if root is not schema:
        root = {**{name: schema[name] for name in ("$defs", "definitions") if name in schema}, **root}
    if "type" not in root and "properties" in root:
        root = {"type": "object", **root}
    return _changed(root, _moonshot_keywords, 0) if types_of(root) == ["object"] else None


def _changed(schema: JsonObject, change: Callable[[JsonObject], JsonObject], level: int) -> JsonObject:
    """Return a copy of a schema after `change` was applied to it and all schemas inside it. Raise TooDeepError."""
    if level > MAX_LEVELS:
        raise TooDeepError
    changed = JsonObject()
    for name, value in change(schema).items():
        if name in NAMED_SCHEMAS and isinstance(value, dict):
            changed[name] = {key: _inner(inner, change, level) for key, inner in value.items()}
        elif name in LISTED_SCHEMAS and isinstance(value, list):
            changed[name] = [_inner(inner, change, level) for inner in value]
        else:
            changed[name] = _inner(value, change, level) if name in SINGLE_SCHEMAS else value
    return changed


def _inner(value: object, change: Callable[[JsonObject], JsonObject], level: int) -> object:
    return _changed(value, change, level + 1) if isinstance(value, dict) else value


def _const_as_enum(schema: JsonObject) -> JsonObject:
    if "const" not in schema:
        return schema
    rest = {name: value for name, value in schema.items() if name != "enum"}
    return {"enum" if name == "const" else name: [value] if name == "const" else value for name, value in rest.items()}


def _moonshot_keywords(schema: JsonObject) -> JsonObject:
    changed = {name: value for name, value in schema.items() if name != "$schema"}
    if isinstance(items := changed.get("items"), list):
        del changed["items"]
        first = changed.get("prefixItems")
        changed["prefixItems"] = [*first, *items] if isinstance(first, list) else items
        if "additionalItems" in changed:
            changed["items"] = changed.pop("additionalItems")
    branches = changed.get("anyOf")
    if isinstance(branches, list) and "type" in changed:
        kind = changed.pop("type")
        changed["anyOf"] = [_with_type(branch, kind) for branch in branches]
    return changed


def _with_type(branch: object, kind: object) -> object:
    has_own = isinstance(branch, dict) and not branch.keys().isdisjoint({"type", "$ref"})
    return {"type": kind, **branch} if isinstance(branch, dict) and not has_own else branch
