"""JSON bodies and messages as flat tables, to be compared field by field."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.message import Message


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of every leaf of a JSON value: scalars, and empty objects and lists."""
    if isinstance(value, dict) and value:
        for name, member in value.items():
            yield from leaves(member, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list) and value:
        for place, item in enumerate(value):
            yield from leaves(item, f"{path}[{place}]")
    else:
        yield path, value


def changed(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    """Return the paths at which the tables differ, without positions in lists."""
    keys = {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}
    return {re.sub(r"\[\d+\]", "[]", key) for key in keys}


def set_fields(message: Message, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path and full name, value) of every scalar that is set."""
    for field, value in message.ListFields():
        if field.full_name.endswith("Request.source"):
            continue
        for place, item in enumerate(value if field.is_repeated else [value]):
            at = f"{path}/{field.name}[{place}]"
            if field.message_type is not None:
                yield from set_fields(item, at)
            else:
                yield f"{at} {field.full_name}", item


def covers(name: str, path: str) -> bool:
    """Return whether the path is the named one, or below it."""
    return path == name or path.startswith((f"{name}.", f"{name}["))
