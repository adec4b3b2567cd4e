"""Conversion of the paths of canonical fields to the paths in callers' own bodies, for error messages."""

import re
from collections.abc import Callable, Sequence

BODY_PATH = "source."
"""Prefix that marks a path as one in the caller's body. It is needed where the path is also a canonical path."""


def body_path(path: str, wire_path: Callable[[str], str]) -> str:
    """Return the canonical path of a field from its `path` in the caller's body. If `wire_path` would change it, a
    prefix is added, with which `wire_path` returns the path in the body unchanged.
    """
    return path if wire_path(path) == path else BODY_PATH + path


def wire_paths(rules: Sequence[tuple[str, str]]) -> Callable[[str], str]:
    """Return a function that converts the canonical path of a field to its path in the bodies of a format, for errors.

    The first of the `rules` (pattern of a canonical path, replacement) that matches wins, so specific rules come first;
    the text after the match is kept. A path without a match stays: both paths are equal, or it is a path in the body.
    """
    compiled = [(re.compile(pattern), replacement) for pattern, replacement in rules]

    def wire_path(path: str) -> str:
        if path.startswith(BODY_PATH):
            return path.removeprefix(BODY_PATH)
        plain = path.removeprefix("request.")
        for pattern, replacement in compiled:
            wired, found = pattern.subn(replacement, plain)
            if found:
                return wired
        return plain

    return wire_path
