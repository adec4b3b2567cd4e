"""JSON bodies read once into typed structs, with errors that name the field as its sender wrote it."""

import re
from collections.abc import Collection
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Raw

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.ragged import decode

T = TypeVar("T")

JsonObject = dict[str, object]

# What documents call "integer" or "number" where only whole numbers make sense: `50` and `50.0` (`whole` reads it).
Whole = int | float
PositiveWhole = Annotated[int, Meta(ge=1)] | Annotated[float, Meta(ge=1)]

# Default of a field that is kept raw; msgspec has no `Raw | None`. `given` tells what is there from this and from null.
ABSENT = Raw()

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
MAX_ECHO = 80  # characters of a caller's value that a message repeats

_MISSING = re.compile(r"^Object missing required field `([^`]*)`")
_PLACE = re.compile(r" - at (?:`key` in )*`\$([^`]*)`$")
_GOT = re.compile(r"^Expected `([^`]*)`, got `([^`]*)`")
_BOUND = re.compile(r"^Expected `(\w+)` (.*)$")
_ENUM = re.compile(r"^Invalid enum value (.*)$", re.DOTALL)
_TOKEN = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_WORDS = {
    "str": "a string",
    "bool": "a boolean",
    "int": "an integer",
    "float": "a number",
    "array": "an array",
    "object": "an object",
}


def check_utf8(body: bytes) -> bytes:
    """The body, known to be UTF-8 to its last byte: msgspec does not look into what it skips or keeps raw.

    Raises UmgError(MALFORMED_BODY).
    """
    try:
        if not body.isascii():
            str(body, "utf-8")
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8 (byte {error.start}); encode it as UTF-8"
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, message) from None
    return body


def parse(kind: type[T], body: bytes | Raw, at: str = "") -> T:
    """The JSON as a `kind`; `at` is the path of `body` within the sender's document.

    Raises UmgError: MALFORMED_BODY for what is no JSON (or no object at the top), MISSING_FIELD and INVALID_FIELD with
    the path of the field in `field`.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise _invalid(kind, str(error), at) from None
    except RecursionError:
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, "the body is nested too deeply; flatten it") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = str(error)
        if _LONE_SURROGATE.search(bytes(body)):
            why += "; it may hold half of a surrogate pair (\\ud83d without \\ude00)"
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the body is not valid JSON: {why}") from None


def unknown_fields(body: bytes, known: Collection[str]) -> dict[str, Raw]:
    """The fields of a body that say something and that nobody knows."""
    return {name: raw for name, raw in parse(dict[str, Raw], body).items() if name not in known and given(raw)}


def given(raw: Raw) -> bool:
    """Whether a field that is kept raw says anything."""
    return bytes(raw) not in {b"", b"null"}


def loosely(decoder: msgspec.json.Decoder[T], raw: Raw) -> T | None:
    """What a raw field says; None for one that says nothing or cannot be read, where that costs nobody the rest."""
    try:
        return decoder.decode(raw) if given(raw) else None
    except (ValueError, RecursionError):
        return None


def whole(value: float | None, field: str) -> int | None:
    """The value as an integer of 64 bits, None for None. Raises UmgError(INVALID_FIELD) for a fraction or what does not
    fit.
    """
    if value is None:
        return None
    number = int(value)
    if number != value:
        raise invalid(field, f"expected a whole number, got {value}; round it")
    if not INT64_MIN <= number <= INT64_MAX:
        raise invalid(field, "the number does not fit into 64 bits; send a smaller one")
    return number


def json_text(text: str, field: str) -> Raw:
    """The JSON of a canonical `*_json` field, for a place inside a body.

    Raises UmgError(INVALID_FIELD) for anything else: gRPC callers write these fields themselves, and what is more than
    one value would add members to the body, such as another `model`.
    """
    try:
        return msgspec.json.decode(text, type=Raw)
    except (ValueError, RecursionError):
        raise invalid(field, "it is not one JSON value; correct it") from None


def json_object(raw: msgspec.Raw, field: str) -> str:
    """The JSON object as it stands. Raises UmgError(INVALID_FIELD) for anything else."""
    text = str(raw, "utf-8")
    if text.startswith("{"):
        return text
    raise invalid(field, "expected an object; send a JSON object")


def under_model(body: bytes, theirs: str | None, ours: str, member: str = "model") -> bytes:
    """A provider's answer with the caller's model id, all else byte for byte; as it is for a caller who named none.

    Where the member's name stands elsewhere too, halves of characters become U+FFFD. Raises ValueError or
    RecursionError for what is no JSON object.
    """
    if theirs == ours or not ours:
        return body
    wanted, name = msgspec.json.encode(ours), b'"%b"' % member.encode()
    if theirs is not None and body.count(name) == 1:
        spelled, place = msgspec.json.encode(theirs), body.find(b'"', body.index(name) + len(name))
        if place > 0 and body.startswith(spelled, place):
            return body[:place] + wanted + body[place + len(spelled) :]
    fields = decode(_FIELDS, body)
    fields[member] = Raw(wanted)
    return msgspec.json.encode(fields)


_FIELDS = msgspec.json.Decoder(dict[str, Raw])


def invalid(field: str, problem: str) -> UmgError:
    """UmgError(INVALID_FIELD) for a field by its path; `problem` says what was expected and what to do."""
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, f"`{field}`: {problem}", field=field)


def missing(field: str) -> UmgError:
    """UmgError(MISSING_FIELD) for a field by its path."""
    return UmgError(pb.ERROR_REASON_MISSING_FIELD, f"`{field}` is required; add it", field=field)


def echo(value: str) -> str:
    """A caller's value as a message may repeat it: one line, without control characters, cut when long."""
    shown = value if len(value) <= MAX_ECHO else value[:MAX_ECHO] + "..."
    return "".join(character if character.isprintable() else "?" for character in shown)


def _invalid(kind: type[T], problem: str, at: str) -> UmgError:
    """The UmgError for a message of msgspec, which has the place at its end and names a missing field at its parent."""
    place = _PLACE.search(problem)
    problem, local = (problem[: place.start()], place[1]) if place else (problem, "")
    path = (at + local.replace("[...]", "")).removeprefix(".")
    if absent := _MISSING.match(problem):
        return missing(f"{path}.{absent[1]}" if path else absent[1])
    if not path:
        return UmgError(pb.ERROR_REASON_MALFORMED_BODY, "the body is not a JSON object; send one")
    if value := _ENUM.match(problem):
        known = ", ".join(f"`{choice}`" for choice in _choices(kind, local))
        return invalid(path, f"{echo(value[1])} is none of its values; send one of {known}")
    if got := _GOT.match(problem):
        return invalid(path, f"expected {_expected(got[1])}, got {_words(got[2])}; correct its type")
    if bound := _BOUND.match(problem):
        return invalid(path, f"expected {_words(bound[1])} {_limits(bound[2])}; correct its value")
    return invalid(path, f"{echo(problem)}; correct its value")


def _expected(kinds: str) -> str:
    """`int | float | null` as `a number`: null is never asked for, it only means absent."""
    names = [name for name in kinds.split(" | ") if name != "null"]
    if {"int", "float"} <= set(names):
        names.remove("int")
    return " or ".join(_words(name) for name in names)


def _words(name: str) -> str:
    return _WORDS.get(name, name)


def _limits(bound: str) -> str:
    return (
        bound.replace(".0", "")
        .replace(">=", "of at least")
        .replace("<=", "of at most")
        .replace("of length of", "of length")
    )


def _choices(kind: type[T], local: str) -> list[str]:
    """The values that the field at `local` (`.a[0].b`) of a `kind` may have."""
    found: list[msgspec.inspect.Type] = [msgspec.inspect.type_info(kind)]
    for name, _ in _TOKEN.findall(local):
        inner: list[msgspec.inspect.Type] = []
        for info in _members(found):
            if isinstance(info, msgspec.inspect.StructType):
                inner += [field.type for field in info.fields if field.encode_name == name]
            elif isinstance(info, msgspec.inspect.ListType):
                inner.append(info.item_type)
            elif isinstance(info, msgspec.inspect.DictType):
                inner.append(info.value_type)
        found = inner
    return [
        str(value) for info in _members(found) if isinstance(info, msgspec.inspect.LiteralType) for value in info.values
    ]


def _members(found: list[msgspec.inspect.Type]) -> list[msgspec.inspect.Type]:
    """The types with unions taken apart."""
    return [part for info in found for part in (info.types if isinstance(info, msgspec.inspect.UnionType) else (info,))]
