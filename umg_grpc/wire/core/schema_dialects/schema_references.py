"""References of a JSON schema to its definitions (`$ref`, `$defs`)."""

import re
from collections import Counter, deque
from collections.abc import Mapping

from umg_grpc.wire.core.json_decoding import JsonObject

ROOT_POINTER = ""
"""Name of the whole schema among its definitions."""
_REFERENCE = re.compile(r"#/(?:\$defs|definitions)/([^/]+)")


def definition_name(reference: object) -> str | None:
    """Return the name of the definition in a `$ref`, `ROOT_POINTER` for the whole schema; None for other references."""
    if reference == "#":
        return ROOT_POINTER
    found = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
    return found[1].replace("~1", "/").replace("~0", "~") if found else None


def reference_to(name: str) -> str:
    """Return the `$ref` of a definition in `$defs`."""
    return "#/$defs/" + name.replace("~", "~0").replace("/", "~1") if name else "#"


def definitions_of(schema: JsonObject) -> JsonObject:
    """Return the definitions of a schema by name, those of older drafts (`definitions`) included."""
    found = JsonObject()
    for keyword in ("definitions", "$defs"):
        if isinstance(named := schema.get(keyword), dict):
            found |= named
    return found


def uses_by_definition(references: Mapping[str, Counter[str]], maximum: int) -> dict[str, int] | None:
    """Return definition -> number of its uses in the expanded schema, at most `maximum`; None if one contains itself.
    `references`: definition, or ROOT_POINTER for the schema -> number of its references to each other definition.
    """
    waiting = Counter(name for named in references.values() for name in named)
    free = deque(name for name in references if not waiting[name])
    uses = dict.fromkeys(references, 0)
    uses[ROOT_POINTER] = 1
    ordered = 0
    while free:
        name = free.popleft()
        ordered += 1
        for other, count in references[name].items():
            uses[other] = min(uses[other] + uses[name] * count, maximum)
            waiting[other] -= 1
            if not waiting[other]:
                free.append(other)
    return uses if ordered == len(references) else None
