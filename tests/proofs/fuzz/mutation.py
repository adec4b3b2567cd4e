"""Bodies close to known ones: a seed with some of its values and bytes changed."""

import re
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.proofs.linear.growth import Json, Path, places, replaced

T = TypeVar("T")
JUNK: list[Json] = [
    None, True, False, 0, -1, 1, 1.5, 1e308, -1e308, 2**63, -(2**63) - 1, 10**30, "", " ", "x", "\x00", "é", "\U0001f600",
    "null", "{}", "[]", '{"a":1}', "0", "-1", "1e999", "data:,", "data:image/png;base64,!", "https://x.test/a?b#c", "auto",
    "9999-12-31T23:59:59.999999999Z", "10000-01-01T00:00:00Z", "²x²", "9999999999x1", "https://[::1/x", "\u202e", "text", "type", [], {}, [[]], [None], [{}], [""], [1],
    {"type": 1}, {"type": None}, {"type": "x"}, {"type": "text"}, {"": ""}, {"role": "x"}, {"a": [{"b": {}}]},
]  # fmt: skip
BYTES = [
    b"",
    b"\x00",
    b"\xff",
    b"\\ud83d",
    b'"',
    b"{",
    b"]",
    b",",
    b"\n",
    b"\r",
    b"\n\n",
    b"\r\n\r\n",
    b"1e999",
    b"9" * 400,
    b"\xef\xbb\xbf",
]


@cache
def _integers(least: int, most: int) -> st.SearchStrategy[int]:
    return st.integers(least, most)


def _one_of(draw: DrawFn, values: Sequence[T]) -> T:
    return values[draw(_integers(0, len(values) - 1))]


@st.composite
def bodies(draw: DrawFn, seeds: Sequence[bytes]) -> bytes:
    """Draw a JSON body close to a seed, and sometimes bytes that are no JSON at all."""
    return _body(draw, _one_of(draw, seeds))


def _body(draw: DrawFn, body: bytes) -> bytes:
    try:
        value: Json = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return _with_bytes(draw, body)
    others = [inner for _, inner in places(value, ())]
    for _ in range(draw(_integers(1, 4))):
        value = _changed(draw, value, others)
    body = msgspec.json.encode(value)
    return _with_bytes(draw, body) if draw(_integers(0, 9)) == 9 else body


@st.composite
def streams(draw: DrawFn, seeds: Sequence[bytes]) -> bytes:
    """Draw a stream close to a seed: some of its events are changed, repeated, moved or left out."""
    events = [event for event in re.split(rb"(?:\r?\n){2}", _one_of(draw, seeds)) if event]
    for _ in range(draw(_integers(0, 3))):
        if not events:
            break
        at = draw(_integers(0, len(events) - 1))
        match draw(_integers(0, 5)):
            case 0:
                del events[at]
            case 1:
                events.insert(draw(_integers(0, len(events))), events[at])
            case 2:
                del events[at:]
            case _:
                head, mark, data = events[at].rpartition(b"data: ")
                events[at] = head + mark + _body(draw, data)
    return b"".join(event + b"\n\n" for event in events)


def _changed(draw: DrawFn, value: Json, others: Sequence[Json]) -> Json:
    path: Path = _one_of(draw, [path for path, _ in places(value, ())])
    kind = draw(_integers(0, 5))
    if kind == 0 and path:
        return replaced(value, path[:-1], lambda parent: _without(parent, path[-1]))
    if kind == 1:
        other = _one_of(draw, others)
        return replaced(value, path, lambda _: other)
    if kind == 2:
        return replaced(value, path, lambda old: [*old, *old] if isinstance(old, list) else [old])
    junk = _one_of(draw, JUNK)
    return replaced(value, path, lambda _: junk)


def _without(parent: Json, step: str | int) -> Json:
    if isinstance(parent, dict):
        return {name: inner for name, inner in parent.items() if name != step}
    assert isinstance(parent, list)
    return [inner for at, inner in enumerate(parent) if at != step]


def _with_bytes(draw: DrawFn, body: bytes) -> bytes:
    at = draw(_integers(0, len(body)))
    return body[:at] + _one_of(draw, BYTES) + body[at + draw(_integers(0, 3)) :]
