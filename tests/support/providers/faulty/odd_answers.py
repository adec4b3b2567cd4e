"""Faults of the faulty provider: answers in unusual forms, which are nevertheless right."""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.providers.aws_event_stream import event, with_payload
from tests.support.providers.common import compact
from tests.support.providers.faulty.answer_encoding import (
    END,
    PADDING,
    chunk,
    gzipped,
    head,
    head_of,
    send_body,
    send_events,
    send_pieces,
    send_right,
    written,
)
from tests.support.providers.faulty.broken_connections import POOLED
from tests.support.providers.faulty.provider_connection import Link
from tests.support.providers.faulty.right_answers import Reply

Do = Callable[[Link, Reply], Awaitable[None]]
COUNTS = ("usage", "usageMetadata", "meta")


async def _slow(link: Link, reply: Reply) -> None:
    await asyncio.sleep(0.2)
    await link.send(head_of(reply))
    for piece in (reply.body[:9], reply.body[9:]) if not reply.streamed else reply.pieces:
        await asyncio.sleep(0.02)
        await send_pieces(link, reply, [piece])
    if reply.streamed:
        await link.send(END)


async def _without_usage(link: Link, reply: Reply) -> None:
    if reply.streamed:
        await send_events(link, reply, [made for piece in reply.pieces if (made := _uncounted_event(piece))])
    else:
        await send_body(link, compact(_uncounted(json.loads(reply.body))).encode())


def _uncounted_event(sent: bytes) -> bytes:
    """Return an event without its token counts, b"" if it has no other content."""
    if sent.startswith(b"\0"):  # a frame of an AWS event stream
        return with_payload(sent, lambda payload: compact(_uncounted(json.loads(payload))).encode())
    before, _, data = sent.partition(b"data: ")
    if data.startswith(b"[DONE]"):
        return sent
    value = json.loads(data)
    if value.get("choices") == [] and "usage" in value:
        return b""
    return before + b"data: " + compact(_uncounted(value)).encode() + b"\n\n"


def _uncounted(value: dict[str, Any]) -> dict[str, Any]:
    kept = {name: member for name, member in value.items() if name not in COUNTS}
    for name in ("response", "message"):
        if isinstance(kept.get(name), dict):
            kept[name] = _uncounted(kept[name])
    return kept


async def _mislabelled(link: Link, reply: Reply) -> None:
    await link.send(head(200, "text/plain", len(reply.body)) + reply.body)


async def _padded(link: Link, reply: Reply) -> None:
    """Send the response with an unknown member of a megabyte in one line."""
    at, pieces = reply.content_at, list(reply.pieces)
    pieces[at] = _with_member(pieces[at], b'"x_padding":"%b",' % PADDING)
    if reply.streamed:
        await send_events(link, reply, pieces)
    else:
        await send_body(link, b"".join(pieces))


def _with_member(piece: bytes, member: bytes) -> bytes:
    def added(data: bytes) -> bytes:
        return data.replace(b"{", b"{" + member, 1)

    return with_payload(piece, added) if piece.startswith(b"\0") else added(piece)


async def _gzip(link: Link, reply: Reply) -> None:
    await link.send(head(200, reply.content_type, None, "Content-Encoding: gzip"))
    for piece in gzipped(reply.pieces):
        await link.send(chunk(piece))
    await link.send(END)


async def _old(link: Link, reply: Reply) -> None:
    await link.send(f"HTTP/1.0 200 OK\r\nContent-Type: {reply.content_type}\r\n\r\n".encode() + reply.body)
    link.close()


async def _hints(link: Link, reply: Reply) -> None:
    await link.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
    await send_right(link, reply)


async def _more_than_requested(link: Link, reply: Reply) -> None:
    *before, last = reply.pieces
    end = END if reply.streamed else b""
    await link.send(head_of(reply))
    await send_pieces(link, reply, before)
    await link.send(written(reply, last) + end + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


async def _bytewise(link: Link, reply: Reply) -> None:
    """Send the first content byte by byte, the rest in small pieces."""
    await link.send(head_of(reply))
    start = len(b"".join(reply.pieces[: reply.content_at]))
    body, end = reply.body, start + len(reply.pieces[reply.content_at])
    cuts = [*range(0, start, 13), *range(start, end), *range(end, len(body), 13), len(body)]
    for one, other in itertools.pairwise(cuts):
        await send_pieces(link, reply, [body[one:other]])
        await asyncio.sleep(0)  # lets the other side read
    if reply.streamed:
        await link.send(END)


async def _marked(link: Link, reply: Reply) -> None:
    body = b"\xef\xbb\xbf" + reply.body
    await link.send(head(200, reply.content_type, len(body)) + body)


async def _old_letters(link: Link, reply: Reply) -> None:
    pieces = [_with_member(piece, b'"x_note":"caf\xe9",') for piece in reply.pieces]
    await (send_events(link, reply, pieces) if reply.streamed else send_body(link, b"".join(pieces)))


HARMLESS: dict[str, Do] = {
    **POOLED,
    "slow": _slow,
    "no-usage": _without_usage,
    "mislabelled": _mislabelled,
    "huge-line": _padded,
    "gzip": _gzip,
    "http-1.0": _old,
    "early-hints": _hints,
    "more-than-requested": _more_than_requested,
    "bytewise": _bytewise,
    "byte-order-mark": _marked,
    "invalid-utf8": _old_letters,
}


def _events(made: Callable[[Reply], list[bytes]]) -> Do:
    async def do(link: Link, reply: Reply) -> None:
        await send_events(link, reply, made(reply))

    return do


def _with_comments(reply: Reply) -> list[bytes]:
    return [part for piece in reply.pieces for part in (b": keep-alive\n\n", piece, b":\n\n")]


def _with_unknown(reply: Reply) -> list[bytes]:
    """Return the pieces with events of a kind that is newer than any client."""
    named = reply.pieces[0].startswith(b"event: ")
    unknown = (
        b'event: x.weird\ndata: {"type":"x.weird"}\n\n' if named else b'data: {"object":"x.weird","choices":[]}\n\n'
    )
    if reply.format == "native":
        unknown = b'data: {"xWeird":1}\r\n\r\n'
    if reply.format == "converse":
        unknown = event("xWeird", {"x": 1})
    return [
        *reply.pieces[:1],
        unknown,
        *reply.pieces[1 : reply.content_at + 2],
        unknown,
        *reply.pieces[reply.content_at + 2 :],
    ]


def _with_other_line_ends(reply: Reply) -> list[bytes]:
    return [piece.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") for piece in reply.pieces]


def _and_again(reply: Reply) -> list[bytes]:
    return [*reply.pieces, *reply.pieces[reply.content_at :]]


async def _whole_answer(link: Link, reply: Reply) -> None:
    await send_body(link, reply.whole())


HARMLESS_STREAMS: dict[str, Do] = {
    "comments": _events(_with_comments),
    "unknown-events": _events(_with_unknown),
    "crlf": _events(_with_other_line_ends),
    "end-twice": _events(lambda reply: [*reply.pieces, reply.pieces[reply.end_at]]),
    "more-after-end": _events(_and_again),
    "whole-for-stream": _whole_answer,
}
