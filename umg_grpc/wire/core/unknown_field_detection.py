"""Detection of unknown fields at every level of a caller's body. Providers of another format do not get these fields.

The search follows the types of a format's structs. So it never enters the caller's own JSON: arguments, schemas, labels
and other values that a struct keeps raw. For a raw union that providers extend (parts, items, tools), a table of the
format maps each type to its struct. A type that is not in the table is an opaque part and is not entered.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
from msgspec import Struct, inspect

from umg_grpc.wire.facts_beside_request import RequestNotes

Pick: TypeAlias = Callable[[Mapping[str, object]], type[Struct] | None]
"""Function of (members of an object) that returns the struct for the object; None for an object that is not entered."""

FieldPath: TypeAlias = "tuple[FieldPath, str, int] | None"
"""Path of an object: (path of its parent, name of the field, index in its list or -1); None at the top level."""


def by_type(kinds: Mapping[str, type[Struct]], untyped: type[Struct] | None = None) -> Pick:
    """Return a function that selects an object's struct by its `type`: None if unknown, `untyped` if it has no type."""

    def pick(members: Mapping[str, object]) -> type[Struct] | None:
        kind = members.get("type")
        return kinds.get(kind) if isinstance(kind, str) else untyped

    return pick


def record_unknown_fields(unknown: Iterable[str], harmless: Collection[str], notes: RequestNotes) -> None:
    """Record unknown top-level fields of a body in `notes`. `harmless`: fields that do not change the response.

    A translation leaves harmless fields out and reports them. Any other field may change the meaning, so that a
    provider of another format cannot get the request.
    """
    for name in unknown:
        (notes.uncarried if name in harmless else notes.indispensable).append(name)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Names of a struct's fields, and field with structs or lists of structs -> function that selects the struct."""

    known: frozenset[str]
    entered: Mapping[str, Pick]


MAX_PATHS = 1000
_ENTERABLE = (dict, list)
_DECODER = msgspec.json.Decoder(dict[str, object])


class Fields:
    """Fields that the structs of one format declare, at every level; all other fields of a body are unknown."""

    def __init__(
        self,
        top: type[Struct],
        unions: Mapping[tuple[type[Struct], str], Pick],
        silent: Mapping[type[Struct], Collection[str]],
    ) -> None:
        """Collect the fields of `top`, the struct of a body, and of all structs below it.

        `unions`: (struct, name of a field) -> function that selects the struct of the field's value, or of the items of
        its list, where several are possible. `silent`: struct -> further members that have no effect on a response, for
        example members of responses that callers send back.
        """
        self._top = top
        self._unions = unions
        self._silent = silent
        self._shapes: dict[type[Struct], _Shape] = {}
        for struct in (top, *(struct for struct, _ in unions)):
            self._shape(struct)

    def nested_unknown(self, body: bytes) -> Sequence[str]:
        """Return the paths, at most `MAX_PATHS`, of unknown fields below the top level that are not null."""
        return [_path(*path) for path in self._unknown(body) if path[0] is not None]

    def unknown(self, body: bytes) -> Sequence[str]:
        """Return the paths, at most `MAX_PATHS`, of non-null fields that no struct declares, other than `type`."""
        return [_path(*path) for path in self._unknown(body)]

    def _unknown(self, body: bytes) -> Sequence[tuple[FieldPath, str]]:
        try:
            members = _DECODER.decode(body)
        except (ValueError, RecursionError):
            return ()  # only a caller without a face sends an invalid body
        paths = list[tuple[FieldPath, str]]()
        self._collect(self._shape(self._top), members, None, paths)
        return paths[:MAX_PATHS]

    def _collect(
        self, shape: _Shape, members: dict[str, object], at: FieldPath, found: list[tuple[FieldPath, str]]
    ) -> None:
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
                    self._collect(inner, item, (at, name, index), found)

    def _shape(self, struct: type[Struct]) -> _Shape:
        if (shape := self._shapes.get(struct)) is None:
            info = inspect.type_info(struct)
            fields = info.fields if isinstance(info, inspect.StructType) else ()
            picks = [
                (field.encode_name, self._unions.get((struct, field.encode_name)) or _pick_of(field.type))
                for field in fields
            ]
            known = {"type", *struct.__struct_encode_fields__, *self._silent.get(struct, ())}
            entered = {name: pick for name, pick in picks if pick is not None}
            shape = self._shapes[struct] = _Shape(frozenset(known), entered)
        return shape


def _pick_of(info: inspect.Type) -> Pick | None:
    """Return the function that selects a value's struct; None if the type is neither a struct nor a list of structs."""
    match info:
        case inspect.StructType():
            struct: type[Struct] = info.cls
            return lambda _: struct
        case inspect.ListType():
            return _pick_of(info.item_type)
        case inspect.Metadata():
            return _pick_of(info.type)
        case inspect.UnionType():
            return next((pick for member in info.types if (pick := _pick_of(member)) is not None), None)
        case _:  # a scalar or raw JSON has no fields that are searched
            return None


def _path(at: FieldPath, name: str) -> str:
    while at is not None:
        at, parent, index = at
        name = f"{parent}.{name}" if index < 0 else f"{parent}[{index}].{name}"
    return name
