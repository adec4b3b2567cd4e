"""JSON schemas of tools and responses: conversion of the dialect of the native format to JSON schema."""

import re

import msgspec

from umg_grpc.wire.core.json_decoding import JsonObject, invalid, json_text

VALUE_MEMBERS = ("default", "example", "enum")  # members of a schema that hold values, not schemas
NAMED_SCHEMAS = ("properties", "defs", "$defs")  # members whose keys are names chosen by the caller
MAX_LEVELS = 200  # depth of nested JSON values
_INT64 = re.compile(r"[0-9]{1,19}")
# 64-bit numbers: written as text in native
COUNT_KEYWORDS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_SNAKE_CASE = re.compile(r"([a-z])([A-Z])")
CAMEL_CASE_NAMES = {
    **{_SNAKE_CASE.sub(r"\1_\2", name).lower(): name for name in (*COUNT_KEYWORDS, "anyOf", "propertyOrdering")},
    "additional_properties": "additionalProperties",
    "defs": "$defs",
    "ref": "$ref",
}


def json_schema(schema_json: str, native: bool, field: str) -> object:
    """Return a schema as JSON schema. A value that is not a schema is returned unchanged.

    `native`: whether the schema is in the native format's dialect. Then it is converted: type names in lower case,
    `nullable` as a union with null, counts as numbers, definitions under `$defs`. Raise UmgError(INVALID_FIELD) for a
    text that is not one JSON value, and for a native schema nested deeper than MAX_LEVELS.
    """
    if not native:
        return json_text(schema_json, field)
    try:
        return _converted(msgspec.json.decode(schema_json), 0)
    except _TooDeepError:
        raise invalid(field, "the schema is nested too deeply; simplify it") from None
    except (ValueError, RecursionError):
        raise invalid(field, "it is not one JSON value; correct it") from None


class _TooDeepError(Exception):
    pass


def _converted(value: object, level: int) -> object:
    """Return a value within a native schema, converted to JSON schema. `level`: its depth."""
    if level > MAX_LEVELS:
        raise _TooDeepError
    if isinstance(value, list):
        return [_converted(item, level + 1) for item in value]
    if not isinstance(value, dict):
        return value
    converted = JsonObject()
    for key, item in value.items():
        name = CAMEL_CASE_NAMES.get(str(key), str(key))
        if key in VALUE_MEMBERS:
            converted[name] = item
        elif key in NAMED_SCHEMAS and isinstance(item, dict):
            converted[name] = {own: _converted(inner, level + 2) for own, inner in item.items()}
        elif name == "$ref" and isinstance(item, str):
            converted[name] = item.replace("#/defs/", "#/$defs/")
        elif name in COUNT_KEYWORDS and isinstance(item, str) and _INT64.fullmatch(item):
            converted[name] = int(item)
        else:
            converted[name] = _converted(item, level + 1)
    _name_types(converted)
    _order(converted)
    if converted.pop("nullable", False) is True:
        _allow_null(converted)
    return converted


def _name_types(schema: JsonObject) -> None:
    kinds = schema.get("type")
    if isinstance(kinds, str) and kinds.upper() == "TYPE_UNSPECIFIED":
        del schema["type"]
    elif isinstance(kinds, str):
        schema["type"] = kinds.lower()
    elif isinstance(kinds, list):
        schema["type"] = [kind.lower() if isinstance(kind, str) else kind for kind in kinds]


def _order(schema: JsonObject) -> None:
    names, properties = schema.pop("propertyOrdering", None), schema.get("properties")
    if isinstance(names, list) and isinstance(properties, dict):
        first = {name: properties[name] for name in names if isinstance(name, str) and name in properties}
        schema["properties"] = first | properties


def _allow_null(schema: JsonObject) -> None:
    kinds, choices, values = schema.get("type"), schema.get("anyOf"), schema.get("enum")
    if isinstance(kinds, str) and kinds != "null":
        schema["type"] = [kinds, "null"]
    elif isinstance(kinds, list) and "null" not in kinds:
        schema["type"] = [*kinds, "null"]
    if isinstance(choices, list):
        schema["anyOf"] = [*choices, {"type": "null"}]
    if isinstance(values, list) and None not in values:
        schema["enum"] = [*values, None]
