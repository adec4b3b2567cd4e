"""Errors of values under JSON schemas as jsonschema finds them by itself, with formats by simple expressions."""

import re
from collections.abc import Iterator

from jsonschema import Draft202012Validator, FormatChecker

FORMATS = {
    "date": r"\d{4}-\d\d-\d\d",
    "time": r"\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)",
    "date-time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)",
    "duration": r"P(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?",
    "email": r"[^@\s]+@[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+",
    "hostname": r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*",
    "ipv4": r"(\d{1,3}\.){3}\d{1,3}",
    "ipv6": r"[0-9a-f:]+",
    "uri": r"https?://[^\s]+",
    "uuid": r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}",
}
_CHECKER = FormatChecker(formats=())
for name, expression in FORMATS.items():
    _CHECKER.checks(name)(lambda value, it=expression: not isinstance(value, str) or bool(re.fullmatch(it, value)))


def problems(value: object, schema: object) -> Iterator[str]:
    """Yield all errors as `path: message` lines; none for a valid value."""
    for error in Draft202012Validator(schema, format_checker=_CHECKER).iter_errors(value):
        yield f"{error.json_path}: {error.message}"
