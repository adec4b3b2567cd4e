"""Keywords of JSON schema that contain schemas, and sentences for constraints that a dialect does not have."""

from collections.abc import Mapping

import msgspec

from umg_grpc.wire.core.json_decoding import JsonObject

SINGLE_SCHEMAS = frozenset(
    {"items", "additionalItems", "unevaluatedItems", "contains", "additionalProperties", "unevaluatedProperties"}
    | {"propertyNames", "not", "if", "then", "else"}
)
"""Keywords whose value is a schema; `items` may also be a list of schemas."""
LISTED_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items"})
NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose value is an object of schemas, with names that the caller chose."""

NUMBER_TYPES, STRING_TYPES = ("integer", "number"), ("string",)
ARRAY_TYPES, OBJECT_TYPES = ("array",), ("object",)
ALL_TYPES = (*NUMBER_TYPES, *STRING_TYPES, *ARRAY_TYPES, *OBJECT_TYPES, "boolean", "null")

KEYWORD_CONSTRAINTS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "minimum": (NUMBER_TYPES, "at least {}"),
    "maximum": (NUMBER_TYPES, "at most {}"),
    "exclusiveMinimum": (NUMBER_TYPES, "more than {}"),
    "exclusiveMaximum": (NUMBER_TYPES, "less than {}"),
    "multipleOf": (NUMBER_TYPES, "a multiple of {}"),
    "minLength": (STRING_TYPES, "at least {} characters"),
    "maxLength": (STRING_TYPES, "at most {} characters"),
    "pattern": (STRING_TYPES, "matching the regular expression {}"),
    "format": (ALL_TYPES, "of the format {}"),
    "contentEncoding": (STRING_TYPES, "in the encoding {}"),
    "minItems": (ARRAY_TYPES, "at least {} items"),
    "maxItems": (ARRAY_TYPES, "at most {} items"),
    "uniqueItems": (ARRAY_TYPES, "no item twice"),
    "prefixItems": (ARRAY_TYPES, "the first items in order: {}"),
    "contains": (ARRAY_TYPES, "with an item that is {}"),
    "minContains": (ARRAY_TYPES, "with at least {} of them"),
    "maxContains": (ARRAY_TYPES, "with at most {} of them"),
    "minProperties": (OBJECT_TYPES, "at least {} properties"),
    "maxProperties": (OBJECT_TYPES, "at most {} properties"),
    "propertyNames": (OBJECT_TYPES, "with property names that are {}"),
    "dependentRequired": (OBJECT_TYPES, "with the properties that others require: {}"),
    "dependentSchemas": (OBJECT_TYPES, "with what its properties require: {}"),
    "dependencies": (OBJECT_TYPES, "with what its properties require: {}"),
    "not": (ALL_TYPES, "not {}"),
    "if": (ALL_TYPES, "if it is {}"),
    "then": (ALL_TYPES, "then also {}"),
    "else": (ALL_TYPES, "else {}"),
    "oneOf": (ALL_TYPES, "exactly one of the alternatives"),
    "anyOf": (ALL_TYPES, "one of {} at least"),
    "allOf": (ALL_TYPES, "all of {}"),
    "unevaluatedItems": (ARRAY_TYPES, "further items: {}"),
}
"""Keyword -> (types of values that it constrains, the constraint in words)."""


def sentence(constraints: Mapping[str, object]) -> str:
    """Return constraints (keyword -> value) as one sentence of a description."""
    return f"Constraints: {', '.join(_phrase(name, value) for name, value in constraints.items())}."


def _phrase(name: str, value: object) -> str:
    words = KEYWORD_CONSTRAINTS[name][1]
    if value is True and "{}" in words:  # `exclusiveMinimum` of older drafts
        return name
    return words.replace("{}", value if isinstance(value, str) else json_of(value))


def json_of(value: object) -> str:
    """Return a JSON value as text."""
    return msgspec.json.encode(value).decode()


def described(schema: JsonObject, text: str) -> JsonObject:
    """Return a schema whose description ends with the text."""
    own = schema.get("description")
    return {**schema, "description": f"{own}\n\n{text}" if isinstance(own, str) and own else text}
