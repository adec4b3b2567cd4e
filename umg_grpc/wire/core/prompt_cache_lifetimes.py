"""Lifetime of the prompt cache entries that a request writes, for vendors whose usage does not state it. OpenAI's usage
adds up entries for half an hour and for twelve hours, that of chat relays entries for five minutes and for an hour;
their prices differ.
"""

import re

_TWELVE_HOURS, _HOUR = b'"12h"', b'"1h"'
_SELECTED = re.compile(rb'"prompt_cache_(?:options|breakpoint)"\s*:\s*\{[^{}]*"ttl"\s*:\s*"12h"')
"""Pattern that selects the longer lifetime. Quotes within a JSON string are escaped, so that no text matches."""
_RELAYED = re.compile(rb'"cache_control"\s*:\s*\{[^{}]*"ttl"\s*:\s*"1h"')
"""Pattern that selects the longer lifetime at a relay that accepts marks."""


def selects_long_lifetime(protocol: str, body: bytes) -> bool:
    """Return whether the body of a request, as sent, selects the longer lifetime for a cache entry. False for the
    `protocol` messages, whose usage states the lifetimes itself.
    """
    if protocol == "messages":
        return False
    if _TWELVE_HOURS in body and _SELECTED.search(body) is not None:
        return True
    return _HOUR in body and protocol == "chat" and _RELAYED.search(body) is not None
