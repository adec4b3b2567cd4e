"""One spelling of what proto-JSON spells in several: keys in camelCase or snake_case, 64-bit numbers as text, enums in
any case, a list's only element without the list, null for what is absent.

What is read is driven by the types of the structs, so it never enters the caller's own JSON: arguments, results,
schemas and labels are raw there. A body that is spelled as the structs are is decoded at once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Raw, inspect

from umg_grpc.errors import UmgError
from umg_grpc.wire.json import echo, parse
from umg_grpc.wire.native import schema
from umg_grpc.wire.unknown import MAX_PATHS

T = TypeVar("T")

_NUMBER = re.compile(rb'"(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"')
_WORD = re.compile(r"[A-Za-z_]\w*")
_PLACE = re.compile(r"^`[^`]*`")

OPAQUE = "(opaque)"  # where a part of an unknown kind is kept


class UnknownField(NamedTuple):
    """A field of a body that no struct has."""

    path: str
    nested: bool  # whether it stands below the top level


@dataclass(slots=True)
class Notes:
    """What was met while reading."""

    unknown: list[UnknownField] = field(default_factory=list)  # `MAX_PATHS` at most
    at: list[str] = field(default_factory=list)  # where one reads
    base: int = 0  # length of `at` at the top of the body
    snake: dict[str, str] = field(default_factory=dict)  # our spelling -> the caller's, where that is another

    def spelled(self, error: UmgError) -> UmgError:
        """The error with the path of its field as the caller wrote it."""
        path = error.metadata.get("field")
        if not self.snake or path is None:
            return error
        written = _WORD.sub(lambda word: self.snake.get(word[0], word[0]), path)
        message = _PLACE.sub(f"`{written}`".replace("\\", ""), error.message, count=1)
        return UmgError(error.reason, message, **{**error.metadata, "field": written})


def read(kind: type[T], raw: bytes | Raw, notes: Notes, at: str = "") -> T:
    """The JSON as a `kind` in whatever spelling. Raises UmgError as `json.parse` does."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (ValueError, RecursionError):
        pass  # another spelling, a field that nobody knows, or a fault
    notes.at[:] = [at] if at else []
    try:
        plain = _plain(_plan_of(kind), Raw(bytes(raw)), notes)
    except (ValueError, RecursionError):
        plain = parse(Raw, raw, at)  # says what is wrong with the JSON
    return parse(kind, plain, at)


# --- what the types say


@dataclass(frozen=True)
class _Struct:
    kind: type
    fields: Mapping[str, "tuple[str, _Plan]"]  # either spelling -> (ours, what stands there)
    kinds: frozenset[str]  # keys that say of which kind a part is; none for anything else


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


_Plan = _Struct | _List | _Words | _Number | _Upper | None  # None: as it stands


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
            fields[member.name] = fields[member.encode_name] = (member.encode_name, _plan(member.type))
    kinds = {name for key, (name, _) in fields.items() if key in schema.KINDS} if kind is schema.Part else set[str]()
    return _Struct(kind, fields, frozenset(key for key, (name, _) in fields.items() if name in kinds))


_PLANS = dict[object, _Plan]()


def _plan_of(kind: object) -> _Plan:
    if kind not in _PLANS:
        _PLANS[kind] = _plan(inspect.type_info(kind))
    return _PLANS[kind]


# --- reading by them


def _plain(plan: _Plan, raw: Raw, notes: Notes) -> Raw:
    text = bytes(raw)
    match plan:
        case _Struct():
            return _members(plan, _whole(plan.kind, raw), notes)
        case _List() if text.startswith(b"{"):  # its only element
            return Raw(b"[" + bytes(_plain(plan.item, raw, notes)) + b"]")
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
    plain = _plain(plan, raw, notes)
    notes.at.pop()
    return plain


def _members(plan: _Struct, raw: Raw, notes: Notes) -> Raw:
    if not bytes(raw).startswith(b"{"):
        return raw
    members = msgspec.json.decode(raw, type=dict[str, Raw])
    if plan.kinds and not plan.kinds & members.keys() and members.keys() - plan.fields.keys():
        return Raw(msgspec.json.encode({OPAQUE: raw}))
    plain = dict[str, Raw]()
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
                continue  # it stands there in our spelling, too
            notes.snake[name] = key
        plain[name] = _item(inner, f".{key}", value, notes)
    return Raw(msgspec.json.encode(plain))


def _whole(kind: type, raw: Raw) -> Raw:
    """A turn that is only its one part, as clients send system instructions."""
    if kind is not schema.Content:
        return raw
    text = bytes(raw)
    if text.startswith(b"{") and _is_part(raw):
        return Raw(b'{"parts":[' + text + b"]}")
    return raw


def _is_part(raw: Raw) -> bool:
    return bool(msgspec.json.decode(raw, type=dict[str, Raw]).keys() & _struct(schema.Part).kinds)
