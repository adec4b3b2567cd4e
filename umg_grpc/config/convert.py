"""A mapping of the file as a typed entry, and what msgspec finds wrong in it in the file's own terms."""

import re
from collections.abc import Mapping
from typing import TypeVar, get_args

import msgspec

from umg_grpc.config.document import Document, Path, Value
from umg_grpc.config.values import Log, Written

LATER_AUTH = frozenset({"access_key", "service_account"})

CHOICES = {
    "kind": ("bearer", "header", "none"),
    "level": get_args(Log.__annotations__["level"]),
    "format": get_args(Log.__annotations__["format"]),
    "other_dimensions": ("`any`", "a list of lengths"),
}

STEP = re.compile(r"\.(?P<key>\w+)|\[(?P<index>\d+)\]")
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
            try:
                msgspec.convert(given[key], field.type, strict=False)
            except msgspec.ValidationError as error:
                _mismatch(document, (*path, key), str(error))
                good = False
        elif field.required:
            document.problem(path, f"expected `{key}`, which is missing")
            good = False
    return msgspec.convert(given, kind, strict=False) if good else None


def _unknown(key: str, known: Mapping[str, object]) -> str:
    return f"`{key}` is not known here; expected {any_of(tuple(known))}"


def _mismatch(document: Document, path: Path, message: str) -> None:
    """Notes msgspec's complaint, in the file's terms, at the place it is about."""
    text, _, place = message.partition(" - at `$")
    for step in STEP.finditer(place):
        path = (*path, step["key"] or int(step["index"]))
    if missing := MISSING.fullmatch(text):
        document.problem(path, f"expected `{missing[1]}`, which is missing")
    elif unknown := UNKNOWN.fullmatch(text):
        document.problem((*path, unknown[1]), f"`{unknown[1]}` is not known here")
    elif text.startswith("Invalid"):
        choices = any_of(CHOICES[str(path[-1])])
        later = any(f"'{kind}'" in text for kind in LATER_AUTH)
        document.problem(path, f"expected {choices}" + ("; this one is not served by this version" if later else ""))
    else:
        document.problem(path, re.sub(r"`([a-z| ]+)`", _words, text).replace("Expected", "expected", 1))


def _words(match: re.Match[str]) -> str:
    return " or ".join(WORDS.get(kind, "nothing") for kind in match[1].split(" | "))


def any_of(names: tuple[str, ...]) -> str:
    """The names as a reader would be told them."""
    return f"one of {', '.join(names)}" if len(names) > 2 else " or ".join(names)
