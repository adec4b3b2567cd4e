"""Findings of a cloud's content filter, in errors and beside the choices of responses. They have an object for each
category: `{"hate": {"filtered": true, "severity": "high"}}` (Azure OpenAI, content filtering).
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import Raw

_NAME = re.compile(r"[A-Za-z][\w -]{0,39}", re.ASCII)
RESULT_MEMBERS = ("content_filter_results", "content_filter_result")
CATEGORY_SEPARATOR = ","


def filtered_categories(results: object) -> list[str]:
    """Return the categories that decoded findings mark as filtered, in their order; [] for any other value."""
    if not isinstance(results, dict):
        return []
    return [
        name
        for name, result in results.items()
        if isinstance(result, dict) and result.get("filtered") is True and _NAME.fullmatch(name)
    ]


def categories_of(results: Raw) -> str:
    """Return the filtered categories of findings (JSON), separated by commas; "" without any."""
    try:
        return CATEGORY_SEPARATOR.join(filtered_categories(msgspec.json.decode(results)))
    except (ValueError, RecursionError):
        return ""


def categories_in(levels: Sequence[Mapping[str, object]]) -> str:
    """Return the categories that the error objects of a body mark as filtered, separated by commas; "" without any."""
    found = [name for level in levels for results in _results(level) for name in filtered_categories(results)]
    return CATEGORY_SEPARATOR.join(dict.fromkeys(found))


def _results(level: Mapping[str, object]) -> Iterator[object]:
    listed = level.get("content_filters")
    for place in (level, level.get("innererror"), *(listed if isinstance(listed, list) else ())):
        if isinstance(place, dict):
            yield from (place[name] for name in RESULT_MEMBERS if name in place)
