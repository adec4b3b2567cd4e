"""Edits of single values in raw JSON: only their containers are encoded again, all else stays byte for byte."""

from collections.abc import Callable, Iterable

import msgspec
from msgspec import Raw

from umg_grpc.wire.core.json_decoding import ELEMENTS_DECODER, MEMBERS_DECODER

Path = tuple[str, ...]
"""Names of members from the top level down to a value. `EACH_ELEMENT` stands for every element of a list."""

EACH_ELEMENT = "*"


def edit_values(raw: Raw, path: Path, change: Callable[[Raw], Raw]) -> Raw:
    """Return `raw` with each value at `path` replaced by `change(value)`; `raw` itself if no value changes. Absent
    values, and values of another type than the path expects, are skipped.
    """
    if not path:
        return change(raw)
    first, rest = bytes(raw).lstrip()[:1], path[1:]
    if path[0] == EACH_ELEMENT:
        if first != b"[":
            return raw
        elements = ELEMENTS_DECODER.decode(raw)
        edited = [edit_values(element, rest, change) for element in elements]
        changes = any(new is not old for new, old in zip(edited, elements, strict=True))
        return Raw(msgspec.json.encode(edited)) if changes else raw
    if first != b"{":
        return raw
    members = MEMBERS_DECODER.decode(raw)
    if (old := members.get(path[0])) is None or (new := edit_values(old, rest, change)) is old:
        return raw
    members[path[0]] = new
    return Raw(msgspec.json.encode(members))


def edit_texts(raw: Raw, paths: Iterable[Path], change: Callable[[str], str]) -> Raw:
    """Return `raw` with each string at one of `paths` replaced by `change(string)`; `raw` itself if none changes."""

    def changed(value: Raw) -> Raw:
        if bytes(value)[:1] != b'"':
            return value
        text = msgspec.json.decode(value, type=str)
        new = change(text)
        return value if new == text else Raw(msgspec.json.encode(new))

    for path in paths:
        raw = edit_values(raw, path, changed)
    return raw
