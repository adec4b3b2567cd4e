"""Sentences about the members of bodies in the OpenAPI document, from the rows of `member_sentences.json`.

Each row is the name of a member -> its sentence, or the full name of the element of the schema whose comment is its
sentence. The name may follow that of the object that has it, of the format, or its whole path (`Turn.role`,
`messages.system`, `messages.Error.error.type`): the longest one applies.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from umg_grpc.v1.comments import comments
from umg_grpc.wire.core.json_decoding import JsonObject

_PACKAGE = "umg.v1."


@cache
def sentences() -> Mapping[str, str]:
    """Return the rows. A reference to a comment is resolved; one without a comment becomes empty."""
    text = (files(__package__) / "member_sentences.json").read_text("utf-8")
    found: dict[str, str] = json.loads(text)
    known = comments()
    return {name: known.get(row, "") if row.startswith(_PACKAGE) else row for name, row in found.items()}


def names_of(path: tuple[str, ...]) -> Iterator[str]:
    """Yield the names of rows for a member, the one that applies first. `path`: names of the component and of the
    members that lead to it.
    """
    component, *above, name = path
    package, _, struct = component.rpartition(".")
    yield ".".join(path)
    yield f"{above[-1] if above else struct}.{name}"
    yield f"{package}.{name}"
    yield name


def with_sentences(components: JsonObject) -> JsonObject:
    """Return the components of schemas, in which each member has a description, if there is a row for it."""
    return {name: _described(schema, (name,)) for name, schema in components.items() if isinstance(schema, dict)}


def _described(schema: JsonObject, path: tuple[str, ...]) -> JsonObject:
    found = dict(schema)
    if isinstance(members := schema.get("properties"), dict):
        found["properties"] = {name: _member(member, (*path, name)) for name, member in members.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(key), dict):
            found[key] = _described(inner, path)
    if isinstance(kinds := schema.get("anyOf"), list):
        found["anyOf"] = [_described(kind, path) for kind in kinds]
    return found


def _member(schema: JsonObject, path: tuple[str, ...]) -> JsonObject:
    found = _described(schema, path)
    if "description" not in found:
        rows = sentences()
        if text := next((rows[name] for name in names_of(path) if name in rows), ""):
            found["description"] = text
    return found
