"""Conversion of canonical field paths to the paths of a wire format. For error messages only."""

import re
from collections.abc import Callable, Sequence


def wire_paths(rules: Sequence[tuple[str, str]]) -> Callable[[str], str]:
    """Return the `TextFormat.wire_path` function of a format. Each rule is a pattern of a canonical path and its
    replacement.

    The first rule that matches wins, so more specific rules must come first; the text after the match is kept. A path
    that no rule matches is the same in both forms, or is a wire path already.
    """
    compiled = [(re.compile(pattern), replacement) for pattern, replacement in rules]

    def wire_path(path: str) -> str:
        plain = path.removeprefix("request.")
        for pattern, replacement in compiled:
            wired, found = pattern.subn(replacement, plain)
            if found:
                return wired
        return plain

    return wire_path
