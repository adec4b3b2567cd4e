"""JSON schemas of bodies that a codec encodes. They are derived from encoded samples, so no type repeats the codec."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from umg_grpc.wire.core.json_decoding import JsonObject

SAMPLE_TEXT = "text"
"""Text that samples contain where any text is valid."""
WORD_MEMBERS = frozenset({"object", "type", "status"})
"""Members whose text is one of the format's fixed values; the samples contain all of these values."""


@dataclass(frozen=True)
class EncodedBody:
    """Body whose schema is derived from samples, for formats that have no type for their responses."""

    name: str
    description: str
    encode: Callable[[], Iterable[bytes]]
    """Function that encodes samples; together they have all members and fixed values, and lack each optional member."""


def schema_of(body: EncodedBody) -> JsonObject:
    """Return the JSON schema of a body."""
    samples = [msgspec.json.decode(sample) for sample in body.encode()]
    return {**_common(samples), "description": body.description}


def _common(values: Sequence[object], name: str = "") -> JsonObject:
    """Return the JSON schema of sample values of a member. A member of objects is required if all samples have it."""
    found = list[JsonObject]()
    if objects := [value for value in values if isinstance(value, dict)]:
        names = dict.fromkeys(name for value in objects for name in value)
        members = {name: [value[name] for value in objects if name in value] for name in names}
        required = [name for name, those in members.items() if len(those) == len(objects)]
        properties = {name: _common(those, name) for name, those in members.items()}
        found.append({"type": "object", "properties": properties, **({"required": required} if required else {})})
    if arrays := [value for value in values if isinstance(value, list)]:
        found.append({"type": "array", "items": _common([item for value in arrays for item in value])})
    if texts := {value for value in values if isinstance(value, str)}:
        found.append({"type": "string", **({"enum": sorted(texts)} if name in WORD_MEMBERS else {})})
    if numbers := {type(value) for value in values} & {int, float}:
        found.append({"type": "number" if float in numbers else "integer"})
    if any(isinstance(value, bool) for value in values):
        found.append({"type": "boolean"})
    if None in values:
        return nullable(*found) if found else {"type": "null"}
    if not found:
        return {}  # items of empty lists
    return found[0] if len(found) == 1 else {"anyOf": found}


def nullable(*kinds: JsonObject) -> JsonObject:
    """Return the JSON schema of values that match one of `kinds`, at least one schema, or are null."""
    [kind, *others] = kinds
    if not others and isinstance(kind.get("type"), str):
        values = kind.get("enum")
        enum = {"enum": [*values, None]} if isinstance(values, list) else {}
        return {**kind, "type": [kind["type"], "null"], **enum}
    return {"anyOf": [*kinds, {"type": "null"}]}
