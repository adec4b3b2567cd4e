"""Conversion of a YAML mapping to a typed section of the config, with errors in the terms of the config file."""

import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import TypeVar, get_args, get_origin

import msgspec

from umg_grpc.config.alert_settings import EmailReceiver
from umg_grpc.config.config_values import Channel, GuardRow
from umg_grpc.config.file_sections import AccessKeyAuth, Auth, ConfigEntry, Log
from umg_grpc.config.sign_on_section import RoleOfClaim
from umg_grpc.config.yaml_document import Path, Value, YamlDocument
from umg_grpc.knowledge.model_quirk_definitions import SearchWithFunctions

KEY_CHOICES = {
    "kind": tuple(str(kind.__struct_config__.tag) for kind in get_args(Auth)),
    "scheme": get_args(AccessKeyAuth.__annotations__["scheme"]),
    "level": get_args(Log.__annotations__["level"]),
    "format": get_args(Log.__annotations__["format"]),
    "other_dimensions": ("`any`", "a list of lengths"),
    "prompt_caching": get_args(Channel.__annotations__["prompt_caching"]),
    "search_with_functions": get_args(SearchWithFunctions),
    "role": get_args(RoleOfClaim.__annotations__["role"]),
    "on": get_args(get_args(GuardRow.__annotations__["phases"])[0]),
    "action": get_args(GuardRow.__annotations__["action"]),
    "security": get_args(EmailReceiver.__annotations__["security"]),
    "on_failure": get_args(GuardRow.__annotations__["on_failure"]),
}

PATH_STEP = re.compile(r"\.(?P<key>\w+)|\[(?P<index>\d+)\]|\[\.\.\.\]")  # the last is any key of a mapping
MISSING_FIELD = re.compile(r"Object missing required field `([^`]*)`")
UNKNOWN_FIELD = re.compile(r"Object contains unknown field `([^`]*)`")
TYPE_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
}
NUMBER_EXPECTED = re.compile(r"Expected `(?:[a-z]+ \| )*(?:int|float)\b")
FRACTION_TEXT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?", re.IGNORECASE)
INFINITE_TEXT = re.compile(r"[-+]?\.?inf(?:inity)?", re.IGNORECASE)
NAN_TEXT = re.compile(r"[-+]?\.?nan", re.IGNORECASE)

LEAST_SIMILARITY = 0.75
"""Least `difflib` ratio at which a misspelt word counts as similar to a name; `price` and `pace` have 0.67."""

Entry = TypeVar("Entry", bound=ConfigEntry)


def read_entry(document: YamlDocument, path: Path, value: Value, kind: type[Entry]) -> Entry | None:
    """Convert the mapping at `path` to a section; None after a problem. A key without a value counts as absent."""
    if not isinstance(value, dict):
        document.problem(path, "expected a mapping of keys to values")
        return None
    is_valid = True
    fields = _fields(kind)
    present = {key: child for key, child in value.items() if child is not None or key not in fields}
    for key in present.keys() - fields.keys():
        document.problem((*path, key), _unknown_key(key, fields))
        is_valid = False
    for key, field in fields.items():
        if key in present:
            for part in _parts(present[key], field.type):
                try:
                    msgspec.convert(part, field.type, strict=False)
                except msgspec.ValidationError as error:
                    _report_mismatch(document, (*path, key), part, field.type, str(error))
                    is_valid = False
        elif field.required:
            document.problem(path, f"expected `{key}`, which is missing")
            is_valid = False
    return msgspec.convert(present, kind, strict=False) if is_valid else None


@cache
def _fields(kind: type[ConfigEntry]) -> Mapping[str, msgspec.structs.FieldInfo]:
    """Return the fields of a section type by name; cached, because msgspec reads them slowly from annotations."""
    return {field.name: field for field in msgspec.structs.fields(kind)}


def _parts(value: Value, kind: object) -> Sequence[Value]:
    """Split a mapping with arbitrary keys into mappings of one key each; return any other value as the only part. Parts
    are converted one by one, because msgspec's errors do not name the key.
    """
    if get_origin(kind) is dict and isinstance(value, dict):
        return [{key: child} for key, child in value.items()]
    return [value]


def _unknown_key(key: str, known: Mapping[str, object]) -> str:
    if (meant := similar(key, known)) is not None:
        return f"`{key}` is not known here; did you mean `{meant}`?"
    return f"`{key}` is not known here; expected {any_of(tuple(known))}" if known else f"`{key}` is not known here"


def _report_mismatch(document: YamlDocument, path: Path, value: Value, kind: object, message: str) -> None:
    """Report a conversion error of msgspec at the path of the wrong value, in the terms of the config file."""
    text, _, place = message.partition(" - at `$")
    for step in PATH_STEP.finditer(place):
        if isinstance(value, list):
            path, value = (*path, int(step["index"])), value[int(step["index"])]
        elif isinstance(value, dict):
            key = step["key"] or next(iter(value))
            path, value = (*path, key), value.get(key)
    if missing := MISSING_FIELD.fullmatch(text):
        document.problem(path, f"expected `{missing[1]}`, which is missing")
    elif unknown := UNKNOWN_FIELD.fullmatch(text):
        document.problem((*path, unknown[1]), _unknown_key(unknown[1], _keys_of(kind)))
    elif text.startswith("Invalid"):
        key = next(step for step in reversed(path) if isinstance(step, str))
        document.problem(path, f"expected {any_of(KEY_CHOICES[key])}")
    else:
        reworded = _number_mismatch(text, value) if isinstance(value, str) else text
        document.problem(path, re.sub(r"`([a-z| ]+)`", _type_words, reworded).replace("Expected", "expected", 1))


def _keys_of(kind: object) -> Mapping[str, object]:
    structs = [part for part in (kind, *get_args(kind)) if isinstance(part, type) and issubclass(part, ConfigEntry)]
    return {name: field for struct in structs for name, field in _fields(struct).items()}


def _number_mismatch(text: str, value: str) -> str:
    """Return msgspec's message `text` about the invalid number `value`, completed by a description of the value
    (fraction, infinity). The value is left out, since it may be a secret.
    """
    if text == "Number out of range":
        return "Expected a number nearer to 0"
    if not NUMBER_EXPECTED.match(text):
        return text
    expected = text.partition(", got ")[0]
    if INFINITE_TEXT.fullmatch(value):
        return f"{expected}, got infinity"
    if NAN_TEXT.fullmatch(value):
        return f"{expected}, got nan, which is no number"
    if FRACTION_TEXT.fullmatch(value) and "`float" not in text and "got" in text:
        return f"{expected}, got a fraction"
    return text


def _type_words(match: re.Match[str]) -> str:
    return " or ".join(TYPE_WORDS.get(kind, "nothing") for kind in match[1].split(" | "))


def similar(written: str, names: Collection[str]) -> str | None:
    """Return the name that is most similar to `written`; None if none is similar."""
    spellings = {name.lower(): name for name in names}
    found = get_close_matches(written.lower(), spellings, n=1, cutoff=LEAST_SIMILARITY)
    return spellings[found[0]] if found else None


def any_of(names: Collection[str]) -> str:
    """Return names as a phrase: `a or b`, or `one of a, b, c`."""
    return f"one of {', '.join(names)}" if len(names) > 2 else " or ".join(names)
