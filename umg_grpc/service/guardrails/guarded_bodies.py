"""Texts in JSON bodies that are passed through: guards check, and may change, also members that the gateway ignores."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FACES
from umg_grpc.wire.core.unknown_field_detection import MAX_PATHS
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.text_format_interface import BIG_BYTES

Place: TypeAlias = tuple[str | int, ...]
"""Names and indexes from the top of a body to a value."""
SOURCE_FIELD = "source"
"""Field of a message with its body."""
INDEX_STEP = re.compile(r"\[(\d+)\]")
MIN_DIGITS = 8
"""Fewest digits of a number that is checked as a text, for example the number of a card."""


class FoundMember(NamedTuple):
    """Member of a caller's body that the gateway passes on without reading it."""

    source: pb.SourceDocument
    place: Place
    """Place of the member; () for the whole body."""
    guarded: pb.GuardedText
    """Text of an object with the member alone, or of the whole body."""

    def replace(self, text: str) -> None:
        """Replace the member by the JSON object in a text. Raise ValueError for a text that is no JSON object."""
        members = msgspec.json.decode(text, type=dict[str, object])
        document = inner = msgspec.json.decode(self.source.body)
        *places, name = self.place or ("",)
        for key in places:
            inner = inner[key]
        if self.place:
            del inner[name]
            inner.update(members)
        self.source.body = msgspec.json.encode(document if self.place else members)


class FoundRest(NamedTuple):
    """Texts of a provider's body that the gateway passes on without reading them. If a guard changes one of these
    texts, the caller gets a newly encoded response without them, not the provider's body.
    """

    guarded: pb.GuardedText

    def replace(self, text: str) -> None:
        """Replace these texts by the text of a guard, which the next guard then checks."""
        self.guarded.text = text


def unread_paths(source: pb.SourceDocument, notes: RequestNotes) -> Sequence[str]:
    """Return the paths of the members of a caller's body that the canonical request has no field for."""
    face = TEXT_FACES.get(source.format)
    nested = () if face is None or face.unknown_fields is None else face.unknown_fields(source.body)
    return [*dict.fromkeys([*notes.uncarried, *notes.indispensable, *nested])]


def unread_members(source: pb.SourceDocument, paths: Sequence[str]) -> Iterator[FoundMember]:
    """Yield the members of a caller's body at these paths. If one of the paths is not found, yield the whole body."""
    if not paths:
        return
    try:
        document = msgspec.json.decode(source.body)
    except ValueError:  # a form, of which no more than the known fields is sent
        return
    found = [[*_places(document, path)] for path in paths]
    is_complete = all(found) and len(paths) < MAX_PATHS
    places = {place for places in found for place in places} if is_complete else {()}
    for place in sorted(places, key=str):
        if any(place[:size] in places for size in range(len(place))):
            continue  # a part of another one
        value = document
        for key in place:
            value = value[key]
        if _has_text(value):
            text = msgspec.json.encode({place[-1]: value} if place else value).decode()
            path = f"{SOURCE_FIELD}.body{''.join(map(_step, place))}"
            yield FoundMember(source, place, pb.GuardedText(path=path, text=text, is_json=True))


async def found_rest(body: bytes, encode: Callable[[], bytes]) -> FoundRest | None:
    """Return the texts of a provider's body that the canonical response lacks; None if there is none. A large body is
    searched in a thread. `encode`: returns the canonical response, encoded as a body.
    """
    if len(body) < BIG_BYTES:
        return rest_of(body, encode())
    return await asyncio.to_thread(lambda: rest_of(body, encode()))


def rest_of(body: bytes, encoded: bytes) -> FoundRest | None:
    """Return the texts in a provider's body that its canonical response has lost, so that guards check them, too; None
    if it has lost none. `encoded`: the canonical response, encoded again as a body.
    """
    try:
        own, known = msgspec.json.decode(body), {each for _, each in _leaves(msgspec.json.decode(encoded))}
    except ValueError:
        return None  # a body that is a text
    rest = {
        "".join(map(_step, place)).removeprefix("."): each
        for place, each in _leaves(own)
        if each not in known and _has_text(each)
    }
    if not rest:
        return None
    text = msgspec.json.encode(rest).decode()
    return FoundRest(pb.GuardedText(path=f"{SOURCE_FIELD}.body", text=text, is_json=True))


def edit_body(source: pb.SourceDocument, texts: Collection[tuple[pb.GuardedText, str]]) -> bool:
    """Replace texts everywhere in a caller's body. Return whether each old text was found in it unchanged."""
    if not texts:
        return True
    try:
        document = msgspec.json.decode(source.body)
    except ValueError:
        return False
    edits = _Edits(texts)
    source.body = msgspec.json.encode(edits.applied(document))
    return edits.are_complete


class _Edits:
    """Replacements of texts and JSON values in a body, which count how often each text is still missing."""

    def __init__(self, texts: Iterable[tuple[pb.GuardedText, str]]) -> None:
        self._texts = dict[str, str]()
        self._values = list[tuple[str, object, object]]()
        self._missing = Counter[str]()
        for guarded, new in texts:
            self._texts[guarded.text] = new
            self._missing[guarded.text] += 1
            if guarded.is_json and guarded.text.lstrip()[:1] in ("{", "["):
                values = (msgspec.json.decode(text) for text in (guarded.text, new))
                self._values.append((guarded.text, *values))

    @property
    def are_complete(self) -> bool:
        return max(self._missing.values()) <= 0

    def applied(self, value: object) -> object:
        if isinstance(value, str):
            if (new := self._texts.get(value)) is None:
                return value
            self._missing[value] -= 1
            return new
        for text, old, changed in self._values:
            if value == old:
                self._missing[text] -= 1
                return changed
        if isinstance(value, dict):
            return {name: self.applied(each) for name, each in value.items()}
        return [self.applied(each) for each in value] if isinstance(value, list) else value


def _places(value: object, path: str, at: Place = ()) -> Iterator[Place]:
    """Yield the positions of a path in a JSON value. Names may contain dots; a list without index means all items."""
    if not path:
        yield _of_member(at)
    elif isinstance(value, list):
        if (index := INDEX_STEP.match(path)) is None:
            for position, each in enumerate(value):
                yield from _places(each, path, (*at, position))
        elif int(index[1]) < len(value):
            rest = path[index.end() :].removeprefix(".")
            yield from _places(value[int(index[1])], rest, (*at, int(index[1])))
    elif isinstance(value, dict):
        for name, each in value.items():
            if path == name or path.startswith((f"{name}.", f"{name}[")):
                yield from _places(each, path[len(name) :].removeprefix("."), (*at, name))


def _of_member(place: Place) -> Place:
    """Return the position of the object member that contains a position, without the list indexes at its end."""
    while place and isinstance(place[-1], int):
        place = place[:-1]
    return place


def _step(key: str | int) -> str:
    return f"[{key}]" if isinstance(key, int) else f".{key}"


def _has_text(value: object) -> bool:
    if isinstance(value, dict | list):
        return bool(value)
    return bool(value) if isinstance(value, str) else len(str(value)) >= MIN_DIGITS


def _leaves(value: object, at: Place = ()) -> Iterator[tuple[Place, str | int | float | None]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(each, (*at, name))
    elif isinstance(value, list):
        for position, each in enumerate(value):
            yield from _leaves(each, (*at, position))
    elif isinstance(value, str | int | float | None):
        yield at, value
