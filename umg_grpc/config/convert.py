"""A mapping of the file as a typed entry, and what msgspec finds wrong in it in the file's own terms."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar, get_args, get_origin

import msgspec

from umg_grpc.config.document import Document, Path, Value
from umg_grpc.config.values import Channel, Log, Written
from umg_grpc.quirks import SearchWithFunctions

LATER_AUTH = frozenset({"access_key", "service_account"})

CHOICES = {
    "kind": ("bearer", "header", "none"),
    "level": get_args(Log.__annotations__["level"]),
    "format": get_args(Log.__annotations__["format"]),
    "other_dimensions": ("`any`", "a list of lengths"),
    "prompt_caching": get_args(Channel.__annotations__["prompt_caching"]),
    "search_with_functions": get_args(SearchWithFunctions),
}

STEP = re.compile(r"\.(?P<key>\w+)|\[(?P<index>\d+)\]|\[\.\.\.\]")  # the last: some key of a mapping
MISSING = re.compile(r"Object missing required field `([^`]*)`")
UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")
WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
}
OF_NUMBER = re.compile(r"Expected `(?:[a-z]+ \| )*(?:int|float)\b")
FRACTION = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?", re.IGNORECASE)
INFINITE = re.compile(r"[-+]?\.?inf(?:inity)?", re.IGNORECASE)
NAN = re.compile(r"[-+]?\.?nan", re.IGNORECASE)

Entry = TypeVar("Entry", bound=Written)


def read_entry(document: Document, path: Path, value: Value, kind: type[Entry]) -> Entry | None:
    """The mapping at the path as `kind`, a key without a value counting as absent; None if it has problems."""
    if not isinstance(value, dict):
        document.problem(path, "expected a mapping of keys to values")
        return None
    good = True
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    given = {key: child for key, child in value.items() if child is not None or key not in fields}
    for key in given.keys() - fields.keys():
        document.problem((*path, key), _unknown(key, fields))
        good = False
    for key, field in fields.items():
        if key in given:
            for part in _parts(given[key], field.type):
                try:
                    msgspec.convert(part, field.type, strict=False)
                except msgspec.ValidationError as error:
                    _mismatch(document, (*path, key), part, str(error))
                    good = False
        elif field.required:
            document.problem(path, f"expected `{key}`, which is missing")
            good = False
    return msgspec.convert(given, kind, strict=False) if good else None


def _parts(value: Value, kind: object) -> Sequence[Value]:
    """A mapping whose keys are free, in mappings of one key each: msgspec does not say which key it means."""
    if get_origin(kind) is dict and isinstance(value, dict):
        return [{key: child} for key, child in value.items()]
    return [value]


def _unknown(key: str, known: Mapping[str, object]) -> str:
    return f"`{key}` is not known here; expected {any_of(tuple(known))}"


def _mismatch(document: Document, path: Path, value: Value, message: str) -> None:
    """Notes msgspec's complaint of the value, in the file's terms, at the place it is about."""
    text, _, place = message.partition(" - at `$")
    for step in STEP.finditer(place):
        if isinstance(value, list):
            path, value = (*path, int(step["index"])), value[int(step["index"])]
        elif isinstance(value, dict):
            key = step["key"] or next(iter(value))
            path, value = (*path, key), value.get(key)
    if missing := MISSING.fullmatch(text):
        document.problem(path, f"expected `{missing[1]}`, which is missing")
    elif unknown := UNKNOWN.fullmatch(text):
        document.problem((*path, unknown[1]), f"`{unknown[1]}` is not known here")
    elif text.startswith("Invalid"):
        choices = any_of(CHOICES[str(path[-1])])
        later = any(f"'{kind}'" in text for kind in LATER_AUTH)
        document.problem(path, f"expected {choices}" + ("; this one is not served by this version" if later else ""))
    else:
        told = _of_number(text, value) if isinstance(value, str) else text
        document.problem(path, re.sub(r"`([a-z| ]+)`", _words, told).replace("Expected", "expected", 1))


def _of_number(text: str, value: str) -> str:
    """The complaint with what is wrong with a number: to msgspec each is text. The value may be a secret."""
    if text == "Number out of range":
        return "Expected a number nearer to 0"
    if not OF_NUMBER.match(text):
        return text
    expected = text.partition(", got ")[0]
    if INFINITE.fullmatch(value):
        return f"{expected}, got infinity"
    if NAN.fullmatch(value):
        return f"{expected}, got nan, which is no number"
    if FRACTION.fullmatch(value) and "`float" not in text and "got" in text:
        return f"{expected}, got a fraction"
    return text


def _words(match: re.Match[str]) -> str:
    return " or ".join(WORDS.get(kind, "nothing") for kind in match[1].split(" | "))


def any_of(names: tuple[str, ...]) -> str:
    """The names as a reader would be told them."""
    return f"one of {', '.join(names)}" if len(names) > 2 else " or ".join(names)
