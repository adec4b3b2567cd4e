"""Keywords of JSON schema: where schemas contain schemas, and sentences for constraints that a dialect lacks."""

from collections.abc import Mapping

import msgspec

from umg_grpc.wire.core.json import JsonObject

SINGLE = frozenset(
    {
        "items",
        "additionalItems",
        "unevaluatedItems",
        "contains",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
    }
)
"""Keywords whose value is a schema; `items` may also be a list of schemas."""
LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items"})
"""Keywords whose value is a list of schemas."""
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose value has schemas by names that the caller chose."""

NUMBERS, STRINGS = ("integer", "number"), ("string",)
ARRAYS, OBJECTS = ("array",), ("object",)
TYPES = (*NUMBERS, *STRINGS, *ARRAYS, *OBJECTS, "boolean", "null")

CONSTRAINTS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "minimum": (NUMBERS, "at least {}"),
    "maximum": (NUMBERS, "at most {}"),
    "exclusiveMinimum": (NUMBERS, "more than {}"),
    "exclusiveMaximum": (NUMBERS, "less than {}"),
    "multipleOf": (NUMBERS, "a multiple of {}"),
    "minLength": (STRINGS, "at least {} characters"),
    "maxLength": (STRINGS, "at most {} characters"),
    "pattern": (STRINGS, "matching the regular expression {}"),
    "format": (TYPES, "of the format {}"),
    "contentEncoding": (STRINGS, "in the encoding {}"),
    "minItems": (ARRAYS, "at least {} items"),
    "maxItems": (ARRAYS, "at most {} items"),
    "uniqueItems": (ARRAYS, "no item twice"),
    "prefixItems": (ARRAYS, "the first items in order: {}"),
    "contains": (ARRAYS, "with an item that is {}"),
    "minContains": (ARRAYS, "with at least {} of them"),
    "maxContains": (ARRAYS, "with at most {} of them"),
    "minProperties": (OBJECTS, "at least {} properties"),
    "maxProperties": (OBJECTS, "at most {} properties"),
    "propertyNames": (OBJECTS, "with property names that are {}"),
    "dependentRequired": (OBJECTS, "with the properties that others require: {}"),
    "dependentSchemas": (OBJECTS, "with what its properties require: {}"),
    "dependencies": (OBJECTS, "with what its properties require: {}"),
    "not": (TYPES, "not {}"),
    "if": (TYPES, "if it is {}"),
    "then": (TYPES, "then also {}"),
    "else": (TYPES, "else {}"),
    "oneOf": (TYPES, "exactly one of the alternatives"),
    "anyOf": (TYPES, "one of {} at least"),
    "allOf": (TYPES, "all of {}"),
    "unevaluatedItems": (ARRAYS, "further items: {}"),
}
"""Keyword -> the types of values that it constrains, and the constraint in words."""


def sentence(constraints: Mapping[str, object]) -> str:
    """Return constraints (keyword -> value) as one sentence of a description."""
    return f"Constraints: {', '.join(_phrase(name, value) for name, value in constraints.items())}."


def _phrase(name: str, value: object) -> str:
    words = CONSTRAINTS[name][1]
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
