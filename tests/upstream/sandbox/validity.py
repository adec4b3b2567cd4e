"""JSON schema validation, written apart from the sandbox's own: the law that its instances are held to.

Plain and slow: no `$dynamicRef`, no `unevaluated*`, formats by simple expressions.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any
from urllib.parse import unquote

FORMATS = {
    "date": r"\d{4}-\d\d-\d\d",
    "time": r"\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)",
    "date-time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)",
    "duration": r"P(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?",
    "email": r"[^@\s]+@[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+",
    "hostname": r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*",
    "ipv4": r"(\d{1,3}\.){3}\d{1,3}",
    "ipv6": r"[0-9a-f:]+",
    "uri": r"https?://[^\s]+",
    "uuid": r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}",
}
TYPES = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value == int(value),
}


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(equal(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    return one == other and type(one) is type(other)


def problems(value: Any, schema: Any, root: Any = None, at: str = "$") -> Iterator[str]:
    """All that is wrong, as `path: keyword` lines; none for a valid value."""
    root = schema if root is None else root
    if schema is True or schema == {}:
        return
    if schema is False:
        yield f"{at}: nothing is allowed"
        return

    def ok(inner: Any) -> bool:
        return not list(problems(value, inner, root, at))

    if "$ref" in schema:
        yield from problems(value, lookup(root, schema["$ref"]), root, at)
    for inner in schema.get("allOf", []):
        yield from problems(value, inner, root, at)
    if "anyOf" in schema and not any(ok(inner) for inner in schema["anyOf"]):
        yield f"{at}: anyOf"
    if "oneOf" in schema and sum(ok(inner) for inner in schema["oneOf"]) != 1:
        yield f"{at}: oneOf"
    if "not" in schema and ok(schema["not"]):
        yield f"{at}: not"
    if "if" in schema:
        yield from problems(value, schema.get("then" if ok(schema["if"]) else "else", True), root, at)
    kinds = schema.get("type", [])
    if kinds and not any(TYPES[kind](value) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        yield f"{at}: type {kinds}, got {value!r}"
    if "enum" in schema and not any(equal(value, each) for each in schema["enum"]):
        yield f"{at}: enum, got {value!r}"
    if "const" in schema and not equal(value, schema["const"]):
        yield f"{at}: const, got {value!r}"
    if isinstance(value, str):
        yield from _text(value, schema, at)
    elif isinstance(value, list):
        yield from _array(value, schema, root, at)
    elif isinstance(value, dict):
        yield from _object(value, schema, root, at)
    elif TYPES["number"](value):
        yield from _number(Fraction(repr(value)), schema, at)


def _text(value: Any, schema: Any, at: str) -> Iterator[str]:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 10**9):
        yield f"{at}: length {len(value)}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{at}: pattern {schema['pattern']}, got {value!r}"
    if schema.get("format") in FORMATS and not re.fullmatch(FORMATS[schema["format"]], value):
        yield f"{at}: format {schema['format']}, got {value!r}"


def _number(value: Any, schema: Any, at: str) -> Iterator[str]:
    bounds = {name: Fraction(repr(schema[name])) for name in schema if "imum" in name and schema[name] is not True}
    if value < bounds.get("minimum", value) or value > bounds.get("maximum", value):
        yield f"{at}: range, got {float(value)}"
    if value <= bounds.get("exclusiveMinimum", value - 1) or value >= bounds.get("exclusiveMaximum", value + 1):
        yield f"{at}: exclusive range, got {float(value)}"
    if "multipleOf" in schema and (value / Fraction(repr(schema["multipleOf"]))).denominator != 1:
        yield f"{at}: multipleOf, got {float(value)}"


def _array(value: Any, schema: Any, root: Any, at: str) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 10**9):
        yield f"{at}: {len(value)} items"
    first = schema.get("prefixItems", [])
    for index, item in enumerate(value):
        inner = first[index] if index < len(first) else schema.get("items", True)
        yield from problems(item, inner, root, f"{at}[{index}]")
    if schema.get("uniqueItems") and any(equal(a, b) for n, a in enumerate(value) for b in value[:n]):
        yield f"{at}: uniqueItems"
    if "contains" in schema and all(list(problems(item, schema["contains"], root, at)) for item in value):
        yield f"{at}: contains"


def _object(value: Any, schema: Any, root: Any, at: str) -> Iterator[str]:
    for name in schema.get("required", []):
        if name not in value:
            yield f"{at}: {name} is required"
    if not schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", 10**9):
        yield f"{at}: {len(value)} properties"
    for name, needs in schema.get("dependentRequired", {}).items():
        if name in value and not set(needs) <= value.keys():
            yield f"{at}: {name} requires {needs}"
    for name, item in value.items():
        inner = [schema["properties"][name]] if name in schema.get("properties", {}) else []
        inner += [part for pattern, part in schema.get("patternProperties", {}).items() if re.search(pattern, name)]
        for part in inner or [schema.get("additionalProperties", True)]:
            yield from problems(item, part, root, f"{at}.{name}")
        if "propertyNames" in schema:
            yield from problems(name, schema["propertyNames"], root, f"{at}.{name} (name)")


def lookup(root: Any, reference: str) -> Any:
    for step in reference.removeprefix("#").split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        root = root[int(name)] if isinstance(root, list) else root[name]
    return root
