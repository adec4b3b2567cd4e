"""Secrets of the tests, and the check that no log of the gateway contains one."""

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
