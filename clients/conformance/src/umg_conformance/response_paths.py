"""Paths into the document of a response: `body.choices[0].message.content`, `events[*].data.type`.

| segment | selects |
|---|---|
| `name` | the member of an object |
| `[2]`, `[-1]` | one item of an array |
| `[*]` | every item; each of them has the rest of the path, else the path is absent |
| `[?]` | the items that have the rest of the path |
| `[?name=value]` | the items with this member; `[?delta.type=text_delta]` with a member of a member |

`a | b` is the path `b` where `a` is absent or null.
"""

import re
from contextlib import suppress
from dataclasses import dataclass

_SEGMENT = re.compile(r"\.?([^.\[\]|\s]+)|\[(-?\d+)\]|\[(\*)\]|\[(\?)\]|\[\?([^\]=]+)=([^\]]*)\]")


class AbsentError(Exception):
    """Error for a path that selects no value in the response. Its text names the first absent part of the path."""


@dataclass(frozen=True)
class Key:
    """Step of a path: a member of an object."""

    name: str


@dataclass(frozen=True)
class Index:
    """Step of a path: one item of an array, by its position; a negative position counts from the end."""

    position: int


@dataclass(frozen=True)
class Items:
    """Step of a path: all items of an array, or those with a member; each is followed by the rest of the path."""

    partial: bool = False
    """Whether items without the rest of the path are left out."""
    member: tuple[Key, ...] = ()
    """Path of the member that selects items; empty for all items."""
    value: str = ""


Segment = Key | Index | Items
Path = tuple[tuple[Segment, ...], ...]
"""Alternatives, in their order."""


def parse(text: str) -> Path:
    """Parse the text of a path into its alternatives, each a tuple of steps. Raise ValueError for invalid syntax."""
    return tuple(_alternative(part.strip()) for part in text.split("|"))


def find(document: object, path: Path) -> list[object]:
    """Return the values that a path selects in the document, by its first alternative with a value other than null. It
    is one value, or one for each item that `[*]` or `[?]` selects, which may be none for `[?]`. Raise AbsentError if no
    alternative exists.
    """
    nulls: list[object] | None = None
    problem = AbsentError("nothing")
    for alternative in path:
        try:
            found = _walk(document, alternative, "")
        except AbsentError as error:
            problem = error
        else:
            if any(value is not None for value in found) or len(path) == 1:
                return found
            nulls = found if nulls is None else nulls
    if nulls is None:
        raise problem
    return nulls


def _alternative(text: str) -> tuple[Segment, ...]:
    segments: list[Segment] = []
    position = 0
    while position < len(text):
        found = _SEGMENT.match(text, position)
        if found is None:
            raise ValueError(f"expected a path such as body.data[0].id, got {text!r}")
        name, index, every, having, member, value = found.groups()
        if name is not None:
            segments.append(Key(name))
        elif index is not None:
            segments.append(Index(int(index)))
        elif member is not None:
            segments.append(Items(member=tuple(map(Key, member.split("."))), value=value))
        else:
            segments.append(Items(partial=every is None and having is not None))
        position = found.end()
    if not segments:
        raise ValueError("expected a path such as body.data[0].id, got an empty text")
    return tuple(segments)


def _walk(value: object, segments: tuple[Segment, ...], where: str) -> list[object]:
    for position, segment in enumerate(segments):
        match segment:
            case Key(name):
                here = f"{where}.{name}" if where else name
                if not isinstance(value, dict) or name not in value:
                    raise AbsentError(f"there is no {here}")
                value, where = value[name], here
            case Index(index):
                here = f"{where}[{index}]"
                if not isinstance(value, list) or not -len(value) <= index < len(value):
                    raise AbsentError(f"there is no {here}")
                value, where = value[index], here
            case Items():
                return _items(value, segment, segments[position + 1 :], where)
    return [value]


def _items(value: object, segment: Items, rest: tuple[Segment, ...], where: str) -> list[object]:
    if not isinstance(value, list):
        raise AbsentError(f"{where} is no array")
    found: list[object] = []
    for index, item in enumerate(value):
        here = f"{where}[{index}]"
        if segment.member and not _selected(item, segment):
            continue
        if segment.partial:
            with suppress(AbsentError):
                found += _walk(item, rest, here)
        else:
            found += _walk(item, rest, here)
    return found


def _selected(item: object, segment: Items) -> bool:
    try:
        return str(_walk(item, segment.member, "")[0]) == segment.value
    except AbsentError:
        return False
