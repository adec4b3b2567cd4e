"""Lifetime of the prompt cache entries that a request writes, for vendors whose usage does not state it: OpenAI counts
entries for half an hour and for twelve hours together, relays in chat those for five minutes and for an hour, and both
charge other prices for them.
"""

import re

_TWELVE_HOURS, _HOUR = b'"12h"', b'"1h"'
_SELECTED = re.compile(rb'"prompt_cache_(?:options|breakpoint)"\s*:\s*\{[^{}]*"ttl"\s*:\s*"12h"')
"""Selection of the longer lifetime. Quotes within a JSON string are escaped, so that no text matches."""
_RELAYED = re.compile(rb'"cache_control"\s*:\s*\{[^{}]*"ttl"\s*:\s*"1h"')
"""The same at a relay of marks."""


def selects_long_lifetime(protocol: str, body: bytes) -> bool:
    """Return whether the body of a request, as it was sent, selects the longer lifetime for an entry of the cache.
    Usage in the messages format (`protocol`) states the lifetimes itself.
    """
    if protocol == "messages":
        return False
    if _TWELVE_HOURS in body and _SELECTED.search(body) is not None:
        return True
    return _HOUR in body and protocol == "chat" and _RELAYED.search(body) is not None
