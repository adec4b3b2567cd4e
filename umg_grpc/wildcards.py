"""Patterns in which `*` stands for any characters, and nothing else for anything but itself."""

import re
from collections.abc import Iterable
from fnmatch import translate


def matcher(patterns: Iterable[str]) -> re.Pattern[str]:
    """What matches each text that one of the patterns has in it, in one pass, whatever a caller may send."""
    literal = (re.sub(r"[?\[]", r"[\g<0>]", pattern) for pattern in patterns)  # of fnmatch's wildcards only `*` is one
    return re.compile("|".join(translate(pattern) for pattern in literal))
