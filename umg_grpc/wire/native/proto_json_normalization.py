"""Normalization of proto-JSON, which has several spellings: camelCase or snake_case, 64-bit numbers as text, enums in
any case, a list's only element without the list, null for absent members.

The types of the structs decide which members are normalized; the caller's own JSON (arguments, results, schemas,
labels) is raw there. A body in the spelling of the structs is decoded at once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Raw, inspect

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.core.json_decoding import echo, parse
from umg_grpc.wire.core.unknown_field_detection import MAX_PATHS
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.native import schema

Parsed = TypeVar("Parsed")

_NUMBER = re.compile(rb'"(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"')
_WORD = re.compile(r"[A-Za-z_]\w*")
_QUOTED_PATH = re.compile(r"^`[^`]*`")

OPAQUE_KEY = "(opaque)"  # key under which a part of an unknown kind is kept


class UnknownField(NamedTuple):
    """Field of a body that no struct declares, with its path in the body."""

    path: str
    nested: bool  # whether it is below the top level


@dataclass(slots=True)
class Notes:
    """Facts about one native body: unknown fields, the spelling of known fields, and the notes of the request."""

    unknown: list[UnknownField] = field(default_factory=list)  # `MAX_PATHS` at most
    at: list[str] = field(default_factory=list)  # path of the member that is read
    base: int = 0  # length of `at` at the top of the body
    snake: dict[str, str] = field(default_factory=dict)  # our spelling -> the caller's, where they differ
    request: RequestNotes = field(default_factory=RequestNotes)

    def record_uncarried(self, name: str) -> None:
        """Record a known field without a canonical form, once. `name`: path of the field."""
        if name not in self.request.uncarried:
            self.request.uncarried.append(name)

    def with_caller_path(self, error: UmgError) -> UmgError:
        """Return an error whose field path, also in its message, is in the caller's spelling (camel or snake case)."""
        path = error.metadata.get("field")
        if not self.snake or path is None:
            return error
        written = _WORD.sub(lambda word: self.snake.get(word[0], word[0]), path)
        message = _QUOTED_PATH.sub(f"`{written}`".replace("\\", ""), error.message, count=1)
        return UmgError(error.reason, message, **{**error.metadata, "field": written})


def read(kind: type[Parsed], raw: bytes | Raw, notes: Notes, at: str = "") -> Parsed:
    """Return JSON decoded as a `kind`, in any spelling that protobuf's JSON parser accepts. `notes`: receives unknown
    fields and the spelling. Raise UmgError(MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD) with the path.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except (ValueError, RecursionError):
        pass  # another spelling, an unknown field, or an error
    notes.at[:] = [at] if at else []
    try:
        normalized = _normalize(_plan_of(kind), Raw(bytes(raw)), notes)
    except (ValueError, RecursionError):
        normalized = parse(Raw, raw, at)  # raises the error of the JSON
    return parse(kind, normalized, at)


# --- plans of the types


@dataclass(frozen=True)
class _Struct:
    kind: type
    fields: Mapping[str, "tuple[str, _Plan]"]  # either spelling -> (ours, plan of the value)
    kinds: frozenset[str]  # keys that name the kind of a part; empty for any other type


@dataclass(frozen=True)
class _List:
    item: "_Plan"


@dataclass(frozen=True)
class _Words:
    words: Mapping[str, Raw]  # lower case -> as it is written


class _Number:
    pass


class _Upper:
    pass


_Plan = _Struct | _List | _Words | _Number | _Upper | None  # None: unchanged


def _plan(info: inspect.Type) -> _Plan:
    if isinstance(info, inspect.UnionType):
        return next((plan for member in info.types if (plan := _plan(member)) is not None), None)
    if isinstance(info, inspect.StructType):
        return _struct(info.cls)
    if isinstance(info, inspect.ListType):
        return _List(_plan(info.item_type))
    if isinstance(info, inspect.LiteralType):
        return _Words({str(word).lower(): Raw(msgspec.json.encode(word)) for word in info.values})
    if isinstance(info, inspect.IntType | inspect.FloatType):
        return _Number()
    if isinstance(info, inspect.Metadata) and info.extra == {"upper": True}:
        return _Upper()
    return None


@cache
def _struct(kind: type) -> _Struct:
    info = inspect.type_info(kind)
    fields = dict[str, tuple[str, _Plan]]()
    if isinstance(info, inspect.StructType):
        for member in info.fields:
            if member.encode_name == OPAQUE_KEY:
                continue  # set here; in a caller's body it is a field like any unknown one
            fields[member.name] = fields[member.encode_name] = (member.encode_name, _plan(member.type))
    kinds = (
        {name for key, (name, _) in fields.items() if key in schema.PART_KINDS} if kind is schema.Part else set[str]()
    )
    return _Struct(kind, fields, frozenset(key for key, (name, _) in fields.items() if name in kinds))


_PLANS = dict[object, _Plan]()


def _plan_of(kind: object) -> _Plan:
    if kind not in _PLANS:
        _PLANS[kind] = _plan(inspect.type_info(kind))
    return _PLANS[kind]


# --- normalization by plans


def _normalize(plan: _Plan, raw: Raw, notes: Notes) -> Raw:
    text = bytes(raw)
    match plan:
        case _Struct():
            return _members(plan, _wrap_part(plan.kind, raw), notes)
        case _List() if text.startswith(b"{"):  # its only element
            return Raw(b"[" + bytes(_normalize(plan.item, raw, notes)) + b"]")
        case _List() if text.startswith(b"["):
            items = msgspec.json.decode(raw, type=list[Raw])
            return Raw(msgspec.json.encode([_item(plan.item, f"[{n}]", item, notes) for n, item in enumerate(items)]))
        case _Words() if text.startswith(b'"'):
            return plan.words.get(msgspec.json.decode(raw, type=str).lower(), raw)
        case _Upper() if text.startswith(b'"'):
            return Raw(text.upper()) if b"\\" not in text else raw
        case _Number() if number := _NUMBER.fullmatch(text):
            return Raw(number[1])
    return raw


def _item(plan: _Plan, step: str, raw: Raw, notes: Notes) -> Raw:
    notes.at.append(step)
    normalized = _normalize(plan, raw, notes)
    notes.at.pop()
    return normalized


def _members(plan: _Struct, raw: Raw, notes: Notes) -> Raw:
    if not bytes(raw).startswith(b"{"):
        return raw
    members = msgspec.json.decode(raw, type=dict[str, Raw])
    if plan.kinds and not plan.kinds & members.keys() and members.keys() - plan.fields.keys():
        return Raw(msgspec.json.encode({OPAQUE_KEY: raw}))
    normalized = dict[str, Raw]()
    for key, value in members.items():
        if bytes(value) == b"null":
            continue
        if (entry := plan.fields.get(key)) is None:
            if len(notes.unknown) < MAX_PATHS:
                path = "".join([*notes.at, f".{key}"]).removeprefix(".")
                notes.unknown.append(UnknownField(echo(path), nested=len(notes.at) > notes.base))
            continue
        name, inner = entry
        if key != name:
            if name in members:
                continue  # the member is there in our spelling, too
            notes.snake[name] = key
        normalized[name] = _item(inner, f".{key}", value, notes)
    return Raw(msgspec.json.encode(normalized))


def _wrap_part(kind: type, raw: Raw) -> Raw:
    if kind is not schema.Content:
        return raw
    text = bytes(raw)
    if text.startswith(b"{") and _is_part(raw):
        return Raw(b'{"parts":[' + text + b"]}")
    return raw


def _is_part(raw: Raw) -> bool:
    return bool(msgspec.json.decode(raw, type=dict[str, Raw]).keys() & _struct(schema.Part).kinds)
