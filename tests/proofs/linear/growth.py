"""Documents that grow in one place: each list and object of a sample, and each event of a stream."""

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from tests.proofs.linear.cost import SHORTER

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Step = str | int
Path = tuple[Step, ...]

IDS = frozenset({
    "call_id", "callId", "custom_id", "file_id", "id", "item_id", "name", "skill_id", "title", "tool_call_id",
    "tool_use_id", "uri", "url",
})  # fmt: skip
"""Members whose values identify elements."""
INDEXES = frozenset({"index", "output_index", "content_index", "summary_index", "annotation_index", "sequence_number"})
"""Members that contain the position of an event in the response."""
DEEPEST = 400
SMALLEST = 16


@dataclass(frozen=True)
class Growth:
    id: str
    document: Callable[[int], bytes]
    """Size -> the document. The size is the number of elements, members, events or characters, or the depth."""
    smallest: int = SMALLEST
    """Size at which lines are counted, and its double and its quadruple; first at a `SHORTER` part of them."""


def growths(sample: bytes) -> Iterator[Growth]:
    """Yield the dimensions in which a JSON document grows; the id of one is the same in all samples that have the
    place.
    """
    document: Json = msgspec.json.decode(sample)
    for path, value in places(document, ()):
        name = _name(path)
        if isinstance(value, list) and value:
            yield from _of_list(document, path, value)
        elif isinstance(value, dict):
            yield Growth(f"{name}{{}}", _grown(document, path, _with_members))
            yield Growth(f"{name} nested", _grown(document, path, _nested))


def event_growths(frames: bytes) -> Iterator[Growth]:
    """Yield the dimensions in which a stream grows: each kind of event is repeated, at one position or at many."""
    events = [event + b"\n\n" for event in re.split(rb"\r?\n\r?\n", frames) if event.strip()]
    seen = set[str]()
    for place, event in enumerate(events):
        kinds = _shape(event)
        if kinds in seen:
            continue
        seen.add(kinds)
        before, after = b"".join(events[: place + 1]), b"".join(events[place + 1 :])
        yield Growth(f"event {kinds}", lambda size, one=event, b=before, a=after: b + one * size + a)
        yield Growth(f"events {kinds}", lambda size, one=event, b=before, a=after: b + _numbered_events(one, size) + a)


def _numbered_events(event: bytes, size: int) -> bytes:
    head, _, data = event.rpartition(b"data: ")
    try:
        value = msgspec.json.decode(data)
    except ValueError:
        return event * size
    return b"".join(
        b"%bdata: %b\n\n" % (head, msgspec.json.encode(_numbered(value, number, INDEXES | IDS)))
        for number in range(1, size)
    )


def _shape(event: bytes) -> str:
    """Return a key of the kind of an event: the names of its members."""
    data = event.rpartition(b"data: ")[2]
    try:
        value: Json = msgspec.json.decode(data)
    except ValueError:
        return data.decode("utf-8", "replace").strip()[:20]
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        kinds = [str(part) for path, part in places(value, ()) if path and path[-1] == "type"]
        return " ".join(dict.fromkeys(kinds))
    names = [
        _name(path)
        for path, part in places(value, ())
        if part and len(path) > 1 and path[0] in ("choices", "candidates")
    ]
    return " ".join(dict.fromkeys(names))[-120:]


def places(value: Json, path: Path) -> Iterator[tuple[Path, Json]]:
    yield path, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))


def _name(path: Path) -> str:
    steps = (
        "[]" if isinstance(step, int) else ".*" if before == "properties" else f".{step}"
        for before, step in list(zip(("", *path), path, strict=False))[-5:]
    )
    return "".join(steps).removeprefix(".") or "$"


def _of_list(document: Json, path: Path, elements: Sequence[Json]) -> Iterator[Growth]:
    name = _name(path)
    kinds = {_kind(element): element for element in elements}
    if len(kinds) > 1:
        size = len(elements)
        smallest = size * -(-SMALLEST // SHORTER // size) * SHORTER  # the sizes are whole numbers of copies
        yield Growth(f"{name}[*]", _grown(document, path, lambda _, n: list(elements) * (n // size)), smallest)
        yield Growth(f"{name}[*] numbered", _grown(document, path, lambda _, n: _copies(elements, n // size)), smallest)
    for kind, element in kinds.items():
        yield Growth(f"{name}[{kind}]", _grown(document, path, lambda _, n, one=element: [one] * n))
        yield Growth(f"{name}[{kind}] numbered", _grown(document, path, lambda _, n, one=element: _copies([one], n)))


def _kind(element: Json) -> str:
    if not isinstance(element, dict):
        return type(element).__name__
    named = [f"{element[name]}" for name in ("role", "type") if isinstance(element.get(name), str)]
    return " ".join(named) or " ".join(element)


def _copies(elements: Sequence[Json], times: int) -> list[Json]:
    return [_numbered(element, number, IDS) for number in range(times) for element in elements]


def _numbered(value: Json, number: int, names: frozenset[str]) -> Json:
    """Return a copy of the value whose ids differ from those of other copies."""
    if isinstance(value, list):
        return [_numbered(inner, number, names) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        name: f"{inner}_{number}"
        if name in names and isinstance(inner, str)
        else inner + number
        if name in INDEXES & names and isinstance(inner, int)
        else _numbered(inner, number, names)
        for name, inner in value.items()
    }


def _with_members(value: Json, size: int) -> Json:
    assert isinstance(value, dict)
    return value | {f"x_{number}": number for number in range(size)}


def _nested(value: Json, size: int) -> Json:
    inner: Json = {"type": "string"}
    for _ in range(min(size, DEEPEST) // 2):
        inner = {"type": "object", "properties": {"a": inner}}
    return inner


def _grown(document: Json, path: Path, grow: Callable[[Json, int], Json]) -> Callable[[int], bytes]:
    return lambda size: msgspec.json.encode(replaced(document, path, lambda value: grow(value, size)))


def replaced(value: Json, path: Path, change: Callable[[Json], Json]) -> Json:
    if not path:
        return change(copy.copy(value))
    step, *rest = path
    if isinstance(value, list) and isinstance(step, int):
        return [replaced(inner, tuple(rest), change) if at == step else inner for at, inner in enumerate(value)]
    assert isinstance(value, dict)
    return {name: replaced(inner, tuple(rest), change) if name == step else inner for name, inner in value.items()}
