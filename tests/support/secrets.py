"""Secrets of the tests, none of which may be in a log of the gateway."""

import re
from collections.abc import Iterable

SECRET = re.compile(
    r"sk-umg-[\w-]{5,}"  # keys that the gateway makes, and first keys of the tests; shown prefixes are shorter
    r"|sk-provider[\w-]*|provider-key-\w+"  # keys of channels
)


def leaked(text: str | Iterable[str]) -> list[str]:
    """Return the lines that contain a secret."""
    lines = text.splitlines() if isinstance(text, str) else text
    return [line for line in lines if SECRET.search(line)]
