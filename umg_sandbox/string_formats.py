"""Sample values for the string formats of JSON schemas, for example dates and e-mail addresses."""

import base64
import re
from collections.abc import Callable
from uuid import UUID

from umg_sandbox.words_from_prompt import Words, digest

_DATE = re.compile(r"(?<!\d)(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8]))(?!\d)")
_ADDRESS = re.compile(r"https?://[^\s\"'<>”“()]+[^\s\"'<>”“().,;:!?]")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+")


def slug(phrase: str) -> str:
    """Return a phrase in lower case as one word of letters, digits and hyphens."""
    plain = re.sub(r"[^a-z0-9]+", "-", phrase.lower().encode("ascii", "ignore").decode()).strip("-")
    return plain[:30].strip("-") or "simulated"


def _date(words: Words, at: str) -> str:
    found = _DATE.search(words.text)
    return found[1] if found else f"2030-{1 + words.pick(at, 12):02}-{1 + words.pick(at + 'd', 28):02}"


def _time(words: Words, at: str) -> str:
    return f"{words.pick(at + 'h', 24):02}:{words.pick(at + 'm', 60):02}:00Z"


def _host(words: Words) -> str:
    return f"{slug(words.phrase())}.sandbox.example"


def _quoted(pattern: re.Pattern[str], words: Words) -> str | None:
    found = pattern.search(words.text)
    return found[0] if found and found[0].isascii() else None


STRING_FORMATS: dict[str, Callable[[Words, str], str]] = {
    "date": _date,
    "time": _time,
    "date-time": lambda words, at: f"{_date(words, at)}T{_time(words, at)}",
    "duration": lambda words, at: f"PT{1 + words.pick(at, 59)}M",
    "email": lambda words, _: _quoted(_EMAIL, words) or f"{slug(words.phrase())}@sandbox.example",
    "hostname": lambda words, _: _host(words),
    "ipv4": lambda words, at: f"192.0.2.{1 + words.pick(at, 254)}",
    "ipv6": lambda words, at: f"2001:db8::{1 + words.pick(at, 65534):x}",
    "uri": lambda words, _: _quoted(_ADDRESS, words) or f"https://{_host(words)}",
    "uuid": lambda words, at: str(UUID(bytes=digest(words.text, at), version=4)),
    "byte": lambda words, _: base64.b64encode(words.phrase().encode("utf-8", "replace")).decode(),
}
STRING_FORMATS |= {
    "url": STRING_FORMATS["uri"],
    "iri": STRING_FORMATS["uri"],
    "binary": STRING_FORMATS["byte"],
    "base64": STRING_FORMATS["byte"],
}
"""Functions (words, place) -> a text of the format, taken from the prompt if it contains one."""
