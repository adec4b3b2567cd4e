"""Seeded mutations of JSON documents: another value, a member less or more, a wrapped or repeated one, a changed byte."""

from collections.abc import Iterator
from random import Random

import msgspec

Json = object

DEEP = msgspec.json.decode(b"[" * 60 + b"]" * 60)
ODD: tuple[Json, ...] = (
    None, True, False, 0, 1, -1, 0.5, 1e300, -1e300, 10**18, -(10**18), 2**63, -(2**63), 10**30, 2**31, 253402300800,
    "", "x", "null", "0", "²", "٣", "9" * 30, "-1", "\0", "\ud7ff\ue000", "𝄞é", "{}", '{"a":', "[[[", "data:,", "x" * 300,
    "data:image/png;base64,AAAA", "data:image/png;base64,A", "9999-12-31T23:59:59.9999999Z", "10000-01-01T00:00:00Z",
    "0000-00-00T00:00:00Z", "2024-02-30T00:00:00+99:99", "http://[", "http://x:99999/", [], {}, [None], [[]], [{}],
    [1, "x", None, {}], {"type": 1}, {"type": None}, {"type": "x"}, {"type": ["text"]}, [{"type": 1}], {"": ""},
    {"a": {"b": [1]}}, {"$ref": "#"}, {"role": "user", "content": []}, {"text": None}, {"text": 1}, DEEP,
)  # fmt: skip
"""Values that replace a value."""


def mutated(document: bytes, random: Random) -> bytes:
    """Return the JSON document with one to three changes."""
    value: Json = msgspec.json.decode(document)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        value = _changed(value, random)
    body = msgspec.json.encode(value)
    return _other_bytes(body, random) if random.random() < 0.1 else body


def mutated_stream(stream: bytes, random: Random) -> bytes:
    """Return the server-sent events with changes in the data of some, or with events left out, repeated or moved."""
    events = stream.split(b"\n\n")
    for _ in range(random.choice((1, 1, 2, 3))):
        place = random.randrange(len(events))
        match random.randrange(8):
            case 0:
                del events[place]
            case 1:
                events.insert(random.randrange(len(events)), events[place])
            case 2:
                events.insert(random.randrange(len(events)), events.pop(place))
            case 3:
                events[place] = _other_bytes(events[place], random)
            case _:
                events[place] = _other_event(events[place], random)
        if not events:
            return b""
    return b"\n\n".join(events)


def _other_event(event: bytes, random: Random) -> bytes:
    head, mark, data = event.partition(b"data: ")
    try:
        return head + mark + mutated(data, random)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return event


def _changed(value: Json, random: Random) -> Json:
    """Return the value, which is changed in place below its top."""
    places = list(_places(value))
    if not places:
        return random.choice(ODD)
    parent, key = random.choice(places)
    _change(parent, key, random)
    return value


def _change(parent: list[Json] | dict[str, Json], key: int | str, random: Random) -> None:
    match parent, key:
        case list(), int():
            match random.randrange(8):
                case 0:
                    del parent[key]
                case 1:
                    parent.insert(key, _copy(random.choice(ODD)))
                case 2:
                    parent.append(_copy(parent[key]))
                case 3:
                    parent[key] = [parent[key]]
                case _:
                    parent[key] = _copy(random.choice(ODD))
        case dict(), str():
            match random.randrange(8):
                case 0:
                    del parent[key]
                case 1:
                    parent[f"{key}_x"] = parent.pop(key)
                case 2:
                    parent[key] = [parent[key]]
                case 3:
                    parent[key] = {"type": parent[key]}
                case 4:
                    parent[random.choice(list(parent))] = _copy(parent[key])
                case _:
                    parent[key] = _copy(random.choice(ODD))


def _copy(value: Json) -> Json:
    return msgspec.json.decode(msgspec.json.encode(value)) if isinstance(value, list | dict) else value


def _places(value: Json) -> Iterator[tuple[list[Json] | dict[str, Json], int | str]]:
    """Yield every place below the value."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield value, index
            yield from _places(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield value, name
            yield from _places(item)


def _other_bytes(data: bytes, random: Random) -> bytes:
    if not data:
        return data
    start = random.randrange(len(data))
    put = random.choice((b"", b"\xff", b"\0", b"\\ud83d", b'"', b"{", b"]", b"\\", b"\r", b"\xed\xa0\x80", b"1e999"))
    return data[:start] + put + data[start + random.randrange(3) :]
