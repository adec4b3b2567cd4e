"""Texts in the formats that JSON schemas name."""

import base64
import re
from collections.abc import Callable
from uuid import UUID

from umg_grpc.upstream.sandbox.words import Words, digest

_DATE = re.compile(r"(?<!\d)(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8]))(?!\d)")
_ADDRESS = re.compile(r"https?://[^\s\"'<>”“()]+[^\s\"'<>”“().,;:!?]")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+")


def formatted(name: str, words: Words, at: str) -> str | None:
    """A text of the format, the prompt's own where it has one; None for a format that says nothing of the form."""
    maker = _MAKERS.get(name)
    return maker(words, at) if maker else None


def _slug(words: Words) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", words.phrase().lower().encode("ascii", "ignore").decode()).strip("-")
    return plain[:30].strip("-") or "simulated"


def _date(words: Words, at: str) -> str:
    found = _DATE.search(words.text)
    return found[1] if found else f"2030-{1 + words.pick(at, 12):02}-{1 + words.pick(at + 'd', 28):02}"


def _time(words: Words, at: str) -> str:
    return f"{words.pick(at + 'h', 24):02}:{words.pick(at + 'm', 60):02}:00Z"


def _uri(words: Words, at: str) -> str:
    found = _ADDRESS.search(words.text)
    return found[0] if found and found[0].isascii() else f"https://sandbox.example/{_slug(words)}"


def _email(words: Words, at: str) -> str:
    found = _EMAIL.search(words.text)
    return found[0] if found and found[0].isascii() else f"{_slug(words)}@sandbox.example"


def _uuid(words: Words, at: str) -> str:
    return str(UUID(bytes=digest(words.text, at), version=4))


def _ipv4(words: Words, at: str) -> str:
    return f"192.0.2.{1 + words.pick(at, 254)}"


def _base64(words: Words, at: str) -> str:
    return base64.b64encode(words.phrase().encode("utf-8", "replace")).decode()


_MAKERS: dict[str, Callable[[Words, str], str]] = {
    "date": _date,
    "time": _time,
    "date-time": lambda words, at: f"{_date(words, at)}T{_time(words, at)}",
    "duration": lambda words, at: f"PT{1 + words.pick(at, 59)}M",
    "email": _email,
    "idn-email": _email,
    "hostname": lambda words, _: f"{_slug(words)}.sandbox.example",
    "idn-hostname": lambda words, _: f"{_slug(words)}.sandbox.example",
    "ipv4": _ipv4,
    "ipv6": lambda words, at: f"2001:db8::{1 + words.pick(at, 65534):x}",
    "uri": _uri,
    "url": _uri,
    "iri": _uri,
    "uri-reference": lambda words, _: f"/{_slug(words)}",
    "iri-reference": lambda words, _: f"/{_slug(words)}",
    "uri-template": lambda words, _: f"/{_slug(words)}/{{id}}",
    "uuid": _uuid,
    "json-pointer": lambda words, _: f"/{_slug(words)}",
    "relative-json-pointer": lambda words, _: f"1/{_slug(words)}",
    "regex": lambda words, _: f"^{_slug(words)}$",
    "byte": _base64,
    "binary": _base64,
}
