"""Patterns in which `*` matches any characters and every other character matches itself."""

import re
from collections.abc import Iterable
from fnmatch import translate


def matcher(patterns: Iterable[str]) -> re.Pattern[str]:
    """Return one regular expression whose `match` accepts a whole text if any of the patterns does."""
    # `*` is the only wildcard of fnmatch that is kept
    literal = (re.sub(r"[?\[]", r"[\g<0>]", pattern) for pattern in patterns)
    return re.compile("|".join(translate(pattern) for pattern in literal))
