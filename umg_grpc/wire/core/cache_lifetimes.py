"""Lifetime of the prompt cache entries that a request writes, for vendors whose usage does not state it: OpenAI counts
entries for half an hour and for twelve hours together, and charges other prices for them.
"""

import re

_LONG = b'"12h"'
_SELECTED = re.compile(rb'"prompt_cache_(?:options|breakpoint)"\s*:\s*\{[^{}]*"ttl"\s*:\s*"12h"')
"""Selection of the longer lifetime. Quotes within a JSON string are escaped, so that no text matches."""


def selects_long_lifetime(body: bytes) -> bool:
    """Return whether the body of a request, as it was sent, selects the longer lifetime for an entry of the cache."""
    return _LONG in body and _SELECTED.search(body) is not None
