"""Values that a JSON schema lists (`enum`, `const`), and alternatives that exclude each other."""

from collections.abc import Callable, Collection, Iterable
from itertools import islice

from umg_grpc.wire.core.json_decoding import JsonObject

MAX_TYPES = 16
MAX_COMPARED, MAX_PROPERTIES = 64, 8
"""Maximum listed values, and required and first properties, of an alternative that are compared with the others'.
Without it, a definition that recurs as an alternative would make the time grow with the square of the schema.
"""

Literal = str | int | float | bool | None

_TYPES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
    list: "array",
    dict: "object",
}


def type_of(value: object) -> str:
    """Return the JSON type of a value; whole numbers are `integer`."""
    if isinstance(value, float) and value.is_integer():
        return "integer"
    return _TYPES[type(value)]


def literals_of(schema: JsonObject) -> list[Literal] | None:
    """Return the values that a schema lists and its type allows; None without a list, or if it has objects or lists."""
    listed = schema.get("enum")
    if "const" in schema:
        const = schema["const"]
        listed = [const] if not isinstance(listed, list) or _key(const) in map(_key, listed) else []
    if not isinstance(listed, list):
        return None
    types = types_of(schema)
    found = list[Literal]()
    for value in listed:
        if not isinstance(value, (str, int, float, bool, type(None))):
            return None
        if types is None or type_of(value) in types or (type_of(value) == "integer" and "number" in types):
            found.append(value)
    return found or None


def types_of(schema: JsonObject) -> list[str] | None:
    """Return the types that a schema states, in lower case, each once; None if it states none or no valid ones."""
    stated = schema.get("type")
    names = [stated] if isinstance(stated, str) else stated
    if not isinstance(names, list) or not 0 < len(names) <= MAX_TYPES:
        return None
    types = list(dict.fromkeys(name.lower() for name in names if isinstance(name, str)))
    return types if types and set(types) <= set(_TYPES.values()) else None


def _key(value: object) -> tuple[str, object]:
    kind = type_of(value)
    return kind, value if kind not in {"array", "object"} else id(value)


def are_disjoint(branches: Iterable[object], resolve: Callable[[object], object]) -> bool:
    """Return whether no value can be valid for two of the schemas, judged by types, listed values, or the values of one
    required property. False if this is not certain. `resolve`: replaces a reference by its definition.
    """
    by_type = dict[str, list[JsonObject]]()
    for branch in map(resolve, branches):
        if not isinstance(branch, dict) or _lists_many(branch):
            return False
        literals = literals_of(branch)
        types = types_of(branch) or ["object" if "properties" in branch else ""]
        for kind in {type_of(value) for value in literals} if literals else types:
            by_type.setdefault("number" if kind == "integer" else kind, []).append(branch)
    if "" in by_type:
        return len(by_type[""]) == 1 == len(by_type)
    return all(len(group) == 1 or _differ(group) for group in by_type.values())


def _differ(group: list[JsonObject]) -> bool:
    listed = [literals_of(schema) for schema in group]
    if all(listed):
        return _are_distinct(listed)
    candidates = _required_properties(group[0])
    return any(_are_distinct([_property_literals(schema, name) for schema in group]) for name in candidates)


def _required_properties(schema: JsonObject) -> list[str]:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return []
    names = [name for name in islice(properties, MAX_PROPERTIES) if name in required[:MAX_COMPARED]]
    return [name for name in names if _property_literals(schema, name)]


def _property_literals(schema: JsonObject, name: str) -> list[Literal] | None:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list) or name not in required[:MAX_COMPARED]:
        return None
    described = properties.get(name)
    return literals_of(described) if isinstance(described, dict) and not _lists_many(described) else None


def _lists_many(schema: JsonObject) -> bool:
    listed = schema.get("enum")
    return isinstance(listed, list) and len(listed) > MAX_COMPARED


def _are_distinct(listed: Collection[list[Literal] | None]) -> bool:
    values = [_key(value) for literals in listed for value in literals or ()]
    return all(listed) and len(set(values)) == len(values)
