"""Patterns in which `*` matches any characters and every other character matches itself."""

import re
from collections.abc import Iterable
from fnmatch import translate


def matcher(patterns: Iterable[str]) -> re.Pattern[str]:
    """Return a regular expression whose `match` accepts a text if one of the patterns matches the whole text."""
    # `*` is the only wildcard of fnmatch that is kept
    literal = (re.sub(r"[?\[]", r"[\g<0>]", pattern) for pattern in patterns)
    return re.compile("|".join(translate(pattern) for pattern in literal))


def wildcard_match(pattern: str, text: str) -> str | None:
    """Return the text, maybe "", for the `*` of a pattern (at most one); None if the whole text does not match."""
    prefix, star, suffix = pattern.partition("*")
    if not star:
        return "" if text == pattern else None
    if len(text) < len(prefix) + len(suffix) or not (text.startswith(prefix) and text.endswith(suffix)):
        return None
    return text[len(prefix) : len(text) - len(suffix)]
