"""Reading of a provider's error body: message, codes and type, wherever the provider puts them.

The paths are rows of `knowledge/data/error_places.json`, in the order in which they are tried. An error may contain
another one, also as text: relays quote the provider's body. The innermost error with words is the cause.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.wire.errors.secret_masking import without_secrets

MAX_DEPTH = 8
MAX_CHARACTERS = 4000
MAX_VIOLATIONS = 3

FIRST_ELEMENT = "[]"
"""Step of a path to the first element of a list."""
RELAY_PREFIX = re.compile(
    r"(?:\[[\w./:@-]{1,100}\] )?\[\d{3}\]: |event:error\ndata:|Error from provider ?\([\w .,:/-]{1,80}\): "
    r"|The model returned the following errors: |<\d{3}> InternalError\.Algo\.InvalidParameter: "
    r"|Failed to deserialize the JSON body into the target type: |(?:litellm\.\w{1,40}: )?\w{1,40}Exception - "
)
_EVENT = re.compile(r"(?:event: ?[\w.]{1,40}\r?\n)?data: ?(?=[{\[])")
_PAGE = re.compile(r"<(?:!doctype|html|head|body|title|h1)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,300})</title>", re.IGNORECASE)


class Place(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: path to a part of an error."""

    path: str
    """Names of members, separated by dots. `[]` after a name stands for the first element of a list."""
    part: Literal["inner", "text", "code", "type", "hint"]
    """Part of the error at this path: an inner error, the message, a code, the type, or a hint (a further code)."""
    prefix: str = ""
    """Text to put before a numeric code, since the same numbers mean different things at different vendors."""
    vendors: str
    source: str
    as_of: str


class StatedError(NamedTuple):
    """Words and codes of an error body."""

    levels: list[dict[str, object]]
    """Error objects, the innermost one first."""
    message: str
    """Message of the innermost error that has one; "" without any."""
    codes: list[str | int | float]
    """Codes of all errors, with those of the innermost error first."""
    types: list[str]
    """Types of all errors, with those of the innermost error first."""


def stated(value: object) -> StatedError:
    """Return the words and codes of a decoded error body, or of one error in it."""
    levels = list(_levels(value))
    levels.reverse()
    texts = (text for level in levels for text in _texts(level))
    outer = plain(value) if isinstance(value, str) and not levels else ""
    message = without_secrets(next(texts, outer))[:MAX_CHARACTERS]
    codes = [code for level in levels for code in _codes(level)]
    types = [found for level in levels for found in values_of(level, "type") if isinstance(found, str) and found]
    return StatedError(levels, message, codes, types)


def _levels(value: object) -> Iterator[dict[str, object]]:
    for _ in range(MAX_DEPTH):
        level = _container(value)
        if level is None:
            return
        yield level
        inner = (_container(found) for found in (*values_of(level, "inner"), *values_of(level, "text")))
        value = next((found for found in inner if found), None)


def _container(value: object) -> dict[str, object] | None:
    if isinstance(value, str):
        value = _quoted(value)
    if isinstance(value, list) and value and isinstance(value[0], dict) and "error" in value[0]:
        value = value[0]  # vendor G's chat endpoint
    return value if isinstance(value, dict) else None


def _quoted(text: str) -> object:
    """Return the JSON in a text that consists of JSON, apart from the prefixes of relays; None for any other text."""
    text = text.strip()
    while (prefix := RELAY_PREFIX.match(text)) is not None:
        text = text[prefix.end() :]
    if (event := _EVENT.match(text)) is not None:
        text = text[event.end() :].partition("\n")[0].rstrip()
    if not (text.startswith(("{", "[")) and text.endswith(("}", "]"))):
        return None
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None


def _texts(level: dict[str, object]) -> Iterator[str]:
    for found in values_of(level, "text"):
        words = _violations(found) if isinstance(found, list) else found
        if isinstance(words, str) and _container(words) is None and (text := plain(words)):
            yield text


def plain(text: str) -> str:
    """Return a text unchanged; of an HTML page only the title, "" without a title."""
    if _PAGE.search(text[:1000]) is None:
        return text.strip()
    title = _TITLE.search(text)
    return title[1].strip() if title is not None else ""


def _codes(level: dict[str, object]) -> Iterator[str | int | float]:
    for place, steps in _places("code"):
        if steps[0] not in level:
            continue
        found = _at(level, steps)
        if isinstance(found, bool) or not isinstance(found, str | int | float) or found == "":
            continue
        yield f"{place.prefix}{found}" if place.prefix and isinstance(found, int) else found


class _Violation(Struct):
    """Element of the validation errors of many Python servers: a message, and the location of the invalid value."""

    msg: str
    loc: list[str | int] = []


def _violations(value: list[object]) -> str:
    """Return the first entries of a list of violations or messages as one message; "" for any other list."""
    words = list[str]()
    for each in value[:MAX_VIOLATIONS]:
        if isinstance(each, str):
            words.append(each)
            continue
        try:
            violation = msgspec.convert(each, _Violation)
        except ValueError:
            continue
        where = ".".join(str(step) for step in violation.loc if step != "body")
        words.append(f"{where}: {violation.msg}" if where else violation.msg)
    return "; ".join(words)


def values_of(level: dict[str, object], part: str) -> list[object]:
    """Return the values at all paths of one part of an error, or of its details' element, in the table's order."""
    found = (_at(level, steps) for _, steps in _places(part) if steps[0] in level)
    return [value for value in found if value is not None and value != ""]


def _at(level: dict[str, object], steps: tuple[str, ...]) -> object:
    """Return the value at the end of a path, where `FIRST_ELEMENT` is the first of a list; None if it is absent."""
    value: object = level
    for step in steps:
        if step == FIRST_ELEMENT:
            value = value[0] if isinstance(value, list) and value else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


@cache
def _places(part: str) -> tuple[tuple[Place, tuple[str, ...]], ...]:
    rows = (row for row in read_rows("error_places", Place) if row.part == part)
    return tuple((row, tuple(row.path.replace(FIRST_ELEMENT, f".{FIRST_ELEMENT}").split("."))) for row in rows)
