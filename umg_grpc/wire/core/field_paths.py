"""Paths of canonical fields as the callers of a format know them. For errors only."""

import re
from collections.abc import Callable, Sequence


def wire_paths(rules: Sequence[tuple[str, str]]) -> Callable[[str], str]:
    """The `TextFormat.wire_path` of a format, by its rules: (pattern of a canonical path, what stands on the wire).

    The first rule that fits wins; what follows the matched part is kept. So more particular rules stand first. A path
    that no rule fits is the same in both, or is a wire path already.
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
