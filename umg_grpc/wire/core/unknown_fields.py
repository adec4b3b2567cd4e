"""The fields of a request's body that nobody knows, at every level: an upstream of another format is not told them.

What is looked at is driven by the types of a format's structs, so it never enters the caller's own JSON: arguments,
schemas, labels and whatever else a struct keeps raw. Where a struct keeps a union raw that providers extend (parts,
items, tools), the format's table says by which struct each kind is read; one that is not in it is an opaque part, and
is not entered either.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
from msgspec import Struct, inspect

from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report

Pick: TypeAlias = Callable[[Mapping[str, object]], type[Struct] | None]
"""(members of an object) -> the struct by which it is read, None where it is not entered."""

Place: TypeAlias = "tuple[Place, str, int] | None"
"""Where an object stands: (where its parent does, name of the field, index in its list or -1); None at the top."""


def by_type(kinds: Mapping[str, type[Struct]], untyped: type[Struct] | None = None) -> Pick:
    """By `type`; `untyped` is for what has none."""

    def pick(members: Mapping[str, object]) -> type[Struct] | None:
        kind = members.get("type")
        return kinds.get(kind) if isinstance(kind, str) else untyped

    return pick


def note_top_level(unknown: Iterable[str], harmless: Collection[str], source: pb.SourceDocument) -> None:
    """Sort the top-level fields of a text request that have no canonical form.

    A harmless one is left out and reported when the request is translated. Any other may carry state or change the
    meaning of the request, so that an upstream of another format refuses it.
    """
    for name in unknown:
        (source.uncarried_fields if name in harmless else source.indispensable_fields).append(name)


def note_source(source: pb.SourceDocument, report: Report) -> None:
    """Report the fields that only a source document of a unary format holds, towards an upstream of another format."""
    for field in source.uncarried_fields:
        report.drop(field)


def note_nested(source: pb.SourceDocument, report: Report) -> None:
    """Report the unknown fields below the top level of a text request that is translated."""
    from umg_grpc.wire import FORMATS  # here: the formats need this module

    codec = FORMATS.get(source.format)
    if codec is not None and codec.unknown_fields is not None:
        for path in codec.unknown_fields(source.body):
            report.drop(path)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A struct, as far as it is looked at."""

    known: frozenset[str]
    entered: Mapping[str, Pick]


MAX_PATHS = 1000
_ENTERABLE = (dict, list)
_DECODER = msgspec.json.Decoder(dict[str, object])


class Fields:
    """The fields that a format's bodies may have."""

    def __init__(
        self,
        top: type[Struct],
        unions: Mapping[tuple[type[Struct], str], Pick],
        silent: Mapping[type[Struct], Collection[str]],
    ) -> None:
        """`unions`: (struct, name of a field) -> what may stand there, or in the list that stands there. `silent`: what
        changes no answer beside the fields of a struct, such as what answers have and callers bring back.
        """
        self._top = top
        self._unions = unions
        self._silent = silent
        self._shapes: dict[type[Struct], _Shape] = {}
        for struct in (top, *(struct for struct, _ in unions)):
            self._shape(struct)

    def nested_unknown(self, body: bytes) -> Sequence[str]:
        """Return the paths of `unknown` that stand below the top level."""
        return [_path(*place) for place in self._unknown(body) if place[0] is not None]

    def unknown(self, body: bytes) -> Sequence[str]:
        """Return the paths of the fields that are not null and stand where no struct has them, `MAX_PATHS` at most.
        `type` says only what an object is.
        """
        return [_path(*place) for place in self._unknown(body)]

    def _unknown(self, body: bytes) -> Sequence[tuple[Place, str]]:
        try:
            members = _DECODER.decode(body)
        except (ValueError, RecursionError):
            return ()  # of a caller without a face, who alone sends such bodies: nothing is read from them
        places = list[tuple[Place, str]]()
        self._look(self._shape(self._top), members, None, places)
        return places[:MAX_PATHS]

    def _look(self, shape: _Shape, members: dict[str, object], at: Place, found: list[tuple[Place, str]]) -> None:
        if not members.keys() <= shape.known:
            found += [(at, name) for name, value in members.items() if name not in shape.known and value is not None]
        if not shape.entered:
            return
        for name, value in members.items():
            if not isinstance(value, _ENTERABLE) or (pick := shape.entered.get(name)) is None:
                continue
            for index, item in enumerate(value) if isinstance(value, list) else ((-1, value),):
                if isinstance(item, dict) and (struct := pick(item)) is not None:
                    inner = self._shapes.get(struct) or self._shape(struct)
                    self._look(inner, item, (at, name, index), found)

    def _shape(self, struct: type[Struct]) -> _Shape:
        if (shape := self._shapes.get(struct)) is None:
            info = inspect.type_info(struct)
            fields = info.fields if isinstance(info, inspect.StructType) else ()
            picks = [
                (field.encode_name, self._unions.get((struct, field.encode_name)) or _picked(field.type))
                for field in fields
            ]
            known = {"type", *struct.__struct_encode_fields__, *self._silent.get(struct, ())}
            entered = {name: pick for name, pick in picks if pick is not None}
            shape = self._shapes[struct] = _Shape(frozenset(known), entered)
        return shape


def _picked(info: inspect.Type) -> Pick | None:
    """For a field that is of a struct, or a list of them."""
    match info:
        case inspect.StructType():
            struct: type[Struct] = info.cls
            return lambda _: struct
        case inspect.ListType():
            return _picked(info.item_type)
        case inspect.Metadata():
            return _picked(info.type)
        case inspect.UnionType():
            return next((pick for member in info.types if (pick := _picked(member)) is not None), None)
        case _:
            return None


def _path(at: Place, name: str) -> str:
    while at is not None:
        at, parent, index = at
        name = f"{parent}.{name}" if index < 0 else f"{parent}[{index}].{name}"
    return name
