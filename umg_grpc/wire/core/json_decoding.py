"""Decoding of JSON bodies into typed structs. Errors name the field by its path in the sender's body."""

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache, lru_cache
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Raw

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.split_character_repair import decode, replace_invalid_utf8

Parsed = TypeVar("Parsed")

JsonObject = dict[str, object]

# Type of fields that documents call "integer" or "number" where only whole numbers make sense: `50` and `50.0`. `whole`
# converts them.
Whole = int | float
NonEmpty = Annotated[str, Meta(min_length=1)]
PositiveWhole = Annotated[int, Meta(ge=1)] | Annotated[float, Meta(ge=1)]

# Default of a field that is kept raw; msgspec has no `Raw | None`. `is_present` distinguishes values from this and from
# null.
ABSENT_MEMBER = Raw()

INT64_MAX = 2**63 - 1
MAX_ECHO = 80  # characters of a caller's value that an error message repeats

_MISSING = re.compile(r"^Object missing required field `([^`]*)`")
_UNKNOWN = re.compile(r"^Object contains unknown field `(.*)`$", re.DOTALL)
_PATH = re.compile(r" - at (?:`key` in )*`\$([^`]*)`$")
_GOT = re.compile(r"^Expected `([^`]*)`, got `([^`]*)`")
_BOUND = re.compile(r"^Expected `(\w+)` (.*)$")
_ENUM = re.compile(r"^Invalid enum value (.*)$", re.DOTALL)
_TOKEN = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LARGE_NUMBER = re.compile(rb"[0-9][eE]\+?[0-9]{3}|[0-9]{19}")
_QUOTE = ord('"')
_TYPE_NAMES = {
    "str": "a string",
    "bool": "a boolean",
    "int": "an integer",
    "float": "a number",
    "array": "an array",
    "object": "an object",
}


def check_utf8(body: bytes) -> bytes:
    """Return a body that was checked to be UTF-8: msgspec checks only parts of it. Raise UmgError(MALFORMED_BODY)."""
    try:
        if not body.isascii():
            str(body, "utf-8")
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8 (byte {error.start}); encode it as UTF-8"
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, message) from None
    return body


def check_surrogates(body: bytes) -> None:
    r"""Raise UmgError(MALFORMED_BODY) if a string of a JSON text has half of a surrogate pair (`\ud83d` without
    `\ude00`), which decoders other than msgspec accept. A text without an escaped surrogate is not decoded.
    """
    if _LONE_SURROGATE.search(body):
        parse(object, body)


def parse(kind: type[Parsed], body: bytes | Raw, at: str = "") -> Parsed:
    """Return a JSON text decoded as a `kind`. `at`: its path in the sender's document, "" for the whole body. Raise
    UmgError: MALFORMED_BODY if it is no JSON, or a body no object; MISSING_FIELD and INVALID_FIELD with the path.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise _invalid(kind, str(error), at) from None
    except RecursionError:
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, "the body is nested too deeply; flatten it") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = str(error)
        if _LONE_SURROGATE.search(bytes(body)):
            reason += "; it may hold half of a surrogate pair (\\ud83d without \\ude00)"
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the body is not valid JSON: {reason}") from None


def parse_open(
    known: msgspec.json.Decoder[Parsed], kind: type[Parsed], body: bytes, names: Collection[str]
) -> tuple[Parsed, dict[str, Raw]]:
    """Return a body decoded as a `kind`, and its members whose names are not in `names`. Raise UmgError(MALFORMED_BODY,
    MISSING_FIELD, INVALID_FIELD). `known`: decoder that rejects unknown members, tried first, since most have none.
    """
    try:
        return known.decode(body if body.isascii() else check_utf8(body)), {}
    except (ValueError, RecursionError):
        return parse(kind, body), unknown_fields(body, names)


def convert(
    kind: type[Parsed], value: object, at: str, dec_hook: Callable[[type, object], object] | None = None
) -> Parsed:
    """Return a decoded JSON value as a `kind`. `at`: its path in the sender's document. `dec_hook`: converts types that
    msgspec does not support. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with the path of the field.
    """
    try:
        return msgspec.convert(value, kind, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise _invalid(kind, str(error), at) from None


def unknown_fields(body: bytes, known: Collection[str]) -> dict[str, Raw]:
    """Return the members of a JSON object whose names are not in `known` and whose values are not null."""
    return {name: raw for name, raw in parse(dict[str, Raw], body).items() if name not in known and is_present(raw)}


def is_present(raw: Raw) -> bool:
    """Return whether a member that is kept as raw JSON is present and not null. `raw`: empty for an absent member."""
    return bytes(raw) not in {b"", b"null"}


def check_numbers(members: Mapping[str, Raw], at: str = "") -> None:
    """Raise UmgError(INVALID_FIELD) for a member with a number that decoders cannot read (`1e999`, a thousand digits):
    some protocols encode passed-on members anew. `at`: path of the object with a dot at its end, or "".
    """
    for name, raw in members.items():
        if memoryview(raw)[0] != _QUOTE and _LARGE_NUMBER.search(bytes(raw)):
            try:
                msgspec.json.decode(raw)
            except (ValueError, RecursionError):
                raise invalid(f"{at}{name}", "a number in it is out of range; send a smaller one") from None


def any_value(raw: Raw) -> object:
    """Return the decoded value of a raw member of a provider's response, with U+FFFD for halves of characters. If it
    cannot be decoded, for example because of a number beyond a double, return its JSON text.
    """
    try:
        return decode(_ANY, bytes(raw))
    except (ValueError, RecursionError):
        return bytes(raw).decode(errors="replace")


def decode_or_none(decoder: msgspec.json.Decoder[Parsed], raw: Raw) -> Parsed | None:
    """Return a decoded field; None if it is absent, null or invalid. For fields whose loss does not affect others."""
    try:
        return decoder.decode(raw) if is_present(raw) else None
    except (ValueError, RecursionError):
        return None


def whole(value: float | None, field: str, maximum: int = MAX_COUNT) -> int | None:
    """Return a JSON number as an integer; None for None. Raise UmgError(INVALID_FIELD) about `field` for a fraction,
    and for a number outside the canonical field's type: above `maximum` or below -`maximum` - 1.
    """
    if value is None:
        return None
    number = int(value)
    if number != value:
        raise invalid(field, f"expected a whole number, got {value}; round it")
    if number > maximum:
        raise invalid(field, f"the number is larger than {maximum}, the maximum; send a smaller one")
    if number < -maximum - 1:
        raise invalid(field, f"the number is smaller than {-maximum - 1}, the minimum; send a larger one")
    return number


def json_text(text: str, field: str) -> Raw:
    """Return the text of a canonical `*_json` field as raw JSON. Raise UmgError(INVALID_FIELD) unless it is exactly one
    JSON value. gRPC callers write these fields: text after the value could add members to the body, for example another
    `model`.
    """
    try:
        return msgspec.json.decode(text, type=Raw)
    except (ValueError, RecursionError):
        raise invalid(field, "it is not one JSON value; correct it") from None


def json_object(raw: msgspec.Raw, field: str) -> str:
    """Return a JSON object's text. Raise UmgError(INVALID_FIELD) about `field` for any other JSON value."""
    text = str(raw, "utf-8")
    if text.startswith("{"):
        return text
    raise invalid(field, "expected an object; send a JSON object")


def replace_model_id(
    body: bytes, provider_id: str | None, public_id: str, member: str = "model", parent: str = ""
) -> bytes:
    """Return a provider's response with the model id replaced by `public_id`; unchanged if `public_id` is "".

    `provider_id`: id in the response, None if it has none. `member`: name of the member with the id. `parent`:
    top-level object around it, "" if there is none. Invalid UTF-8 becomes U+FFFD; so do lone surrogates if the member's
    name is repeated. Raise ValueError or RecursionError for a body that is not a JSON object.
    """
    body = replace_invalid_utf8(body)
    if provider_id == public_id or not public_id:
        return body
    replacement, name = msgspec.json.encode(public_id), b'"%b"' % member.encode()
    if provider_id is not None and body.count(name) == 1:
        encoded, position = msgspec.json.encode(provider_id), body.find(b'"', body.index(name) + len(name))
        if position > 0 and body.startswith(encoded, position):
            return body[:position] + replacement + body[position + len(encoded) :]
    fields = decode(MEMBERS_DECODER, body)
    inner = decode(MEMBERS_DECODER, bytes(fields[parent])) if parent else fields
    inner[member] = Raw(replacement)
    if parent:
        fields[parent] = Raw(msgspec.json.encode(inner))
    return msgspec.json.encode(fields)


_ANY = msgspec.json.Decoder()
MEMBERS_DECODER = msgspec.json.Decoder(dict[str, Raw])
ELEMENTS_DECODER = msgspec.json.Decoder(list[Raw])


def invalid(field: str, problem: str) -> UmgError:
    """Return UmgError(INVALID_FIELD). `problem`: text that states the expected value and the remedy."""
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, f"`{field}`: {problem}", field=field)


def missing(field: str) -> UmgError:
    """Return UmgError(MISSING_FIELD) for a field that the caller has to add. `field`: its path."""
    return UmgError(pb.ERROR_REASON_MISSING_FIELD, f"`{field}` is required; add it", field=field)


def echo(value: str) -> str:
    """Return a caller's value for an error message: one line, no control characters, truncated to `MAX_ECHO`."""
    shown = value if len(value) <= MAX_ECHO else value[:MAX_ECHO] + "..."
    return "".join(character if character.isprintable() else "?" for character in shown)


def _invalid(kind: type[Parsed], problem: str, at: str) -> UmgError:
    """Return the error (MISSING_FIELD, INVALID_FIELD or MALFORMED_BODY) for a value that msgspec could not decode."""
    found = _PATH.search(problem)
    problem, local = (problem[: found.start()], found[1]) if found else (problem, "")
    path = (at + local.replace("[...]", "")).removeprefix(".")
    if absent := _MISSING.match(problem):
        return missing(f"{path}.{absent[1]}" if path else absent[1])
    if unknown := _UNKNOWN.match(problem):
        known = ", ".join(f"`{name}`" for name in _member_names(kind, local))
        return invalid(f"{path}.{echo(unknown[1])}".removeprefix("."), f"there is no such member; use some of {known}")
    if not path:
        return UmgError(pb.ERROR_REASON_MALFORMED_BODY, "the body is not a JSON object; send one")
    if value := _ENUM.match(problem):
        known = ", ".join(f"`{choice}`" for choice in _choices(kind, local))
        return invalid(path, f"{echo(value[1])} is not one of its values; send one of {known}")
    if got := _GOT.match(problem):
        return invalid(path, f"expected {_expected_types(got[1])}, got {_type_name(got[2])}; correct its type")
    if bound := _BOUND.match(problem):
        return invalid(path, f"expected {_type_name(bound[1])} {_limits(bound[2])}; correct its value")
    return invalid(path, f"{echo(problem)}; correct its value")


def _expected_types(kinds: str) -> str:
    """Return a description of the expected types in an error message of msgspec: `a number` for the `kinds` `int |
    float | null`. Null is left out: callers are never required to send it.
    """
    names = [name for name in kinds.split(" | ") if name != "null"]
    if {"int", "float"} <= set(names):
        names.remove("int")
    return " or ".join(_type_name(name) for name in names)


def _type_name(name: str) -> str:
    return _TYPE_NAMES.get(name, name)


def _limits(bound: str) -> str:
    return (
        bound.replace(".0", "")
        .replace(">=", "of at least")
        .replace("<=", "of at most")
        .replace("of length of", "of length")
    )


def _choices(kind: type[Parsed], local: str) -> tuple[str, ...]:
    """Return the allowed values of the enumerated field at a path within a struct `kind`; () for any other field."""
    literals = (info for info in _types_at(kind, local) if isinstance(info, msgspec.inspect.LiteralType))
    return tuple(str(value) for info in literals for value in info.values)


def _member_names(kind: type[Parsed], local: str) -> tuple[str, ...]:
    """Return the names of the members of the object at a path within a struct `kind`."""
    structs = (info for info in _types_at(kind, local) if isinstance(info, msgspec.inspect.StructType))
    return tuple(field.encode_name for info in structs for field in info.fields)


def _types_at(kind: type[Parsed], local: str) -> tuple[msgspec.inspect.Type, ...]:
    described: object = kind  # a `type[T]` is not hashable to the type checker
    return _described_at(described, tuple(name for name, _ in _TOKEN.findall(local)))


@lru_cache(maxsize=1024)
def _described_at(kind: object, names: tuple[str, ...]) -> tuple[msgspec.inspect.Type, ...]:
    """Return the types, as msgspec describes them, of the value at a path within a type."""
    found: list[msgspec.inspect.Type] = [_type_info(kind)]
    for name in names:
        inner: list[msgspec.inspect.Type] = []
        for info in _members(found):
            if isinstance(info, msgspec.inspect.StructType):
                inner += [field.type for field in info.fields if field.encode_name == name]
            elif isinstance(info, msgspec.inspect.ListType):
                inner.append(info.item_type)
            elif isinstance(info, msgspec.inspect.DictType):
                inner.append(info.value_type)
        found = inner
    return tuple(_members(found))


@cache
def _type_info(kind: object) -> msgspec.inspect.Type:
    """Return msgspec's description of a type. It is cached, because making it takes milliseconds."""
    return msgspec.inspect.type_info(kind)


def _members(found: list[msgspec.inspect.Type]) -> list[msgspec.inspect.Type]:
    return [part for info in found for part in (info.types if isinstance(info, msgspec.inspect.UnionType) else (info,))]
