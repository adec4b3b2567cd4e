"""Faults of the faulty provider: answers that no client can decode."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.support.providers.faulty.answer_encoding import (
    END,
    PADDING,
    chunk,
    gzipped,
    head,
    head_of,
    send_body,
    send_content,
    send_events,
    send_pieces,
)
from tests.support.providers.faulty.provider_connection import Link
from tests.support.providers.faulty.right_answers import Reply

Do = Callable[[Link, Reply], Awaitable[None]]


async def _no_http(link: Link, reply: Reply) -> None:
    await link.send(b"SSH-2.0-OpenSSH_9.9\r\n")
    link.close()


async def _no_gzip(link: Link, reply: Reply) -> None:
    await send_body(link, reply.body, 200, reply.content_type, "Content-Encoding: gzip")


async def _unrequested_encoding(link: Link, reply: Reply) -> None:
    await send_body(link, b"\x8b\x05\x80" + reply.body, 200, reply.content_type, "Content-Encoding: br")


async def _cut_gzip(link: Link, reply: Reply) -> None:
    body = gzipped(reply.pieces)[0] if not reply.streamed else b"".join(gzipped(reply.pieces[: reply.content_at])[:-1])
    await send_body(link, body[: max(9, len(body) // 2)], 200, reply.content_type, "Content-Encoding: gzip")


async def _garbage(link: Link, reply: Reply) -> None:
    await send_body(link, b"data: {]garbage\n\n" if reply.streamed else b"{]garbage", 200, reply.content_type)


async def _null(link: Link, reply: Reply) -> None:
    await send_body(link, b"data: null\n\n" if reply.streamed else b"null", 200, reply.content_type)


async def _other_object(link: Link, reply: Reply) -> None:
    await send_body(
        link, b'data: {"hello":"world"}\n\n' if reply.streamed else b'{"hello":"world"}', 200, reply.content_type
    )


async def _deep(link: Link, reply: Reply) -> None:
    deep = b'{"a":' * 100_000
    await send_body(link, b"data: " + deep + b"\n\n" if reply.streamed else deep, 200, reply.content_type)


async def _huge_head(link: Link, reply: Reply) -> None:
    await link.send(head_of(reply, f"X-Large: {'x' * (128 << 10)}"))
    await send_pieces(link, reply, reply.pieces)


async def _endless_head(link: Link, reply: Reply) -> None:
    await link.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await link.send(b"X-More: and more\r\n" * 64)
        await asyncio.sleep(0)


UNREADABLE: dict[str, Do] = {
    "no-http": _no_http,
    "no-gzip": _no_gzip,
    "unrequested-encoding": _unrequested_encoding,
    "cut-gzip": _cut_gzip,
    "garbage": _garbage,
    "null-answer": _null,
    "other-object": _other_object,
}
COSTLY: dict[str, Do] = {"huge-head": _huge_head, "endless-head": _endless_head, "deep": _deep}


async def _half(link: Link, reply: Reply) -> None:
    await send_body(link, reply.body[: len(reply.body) // 2])


async def _shorter_than_it_is(link: Link, reply: Reply) -> None:
    await link.send(head(200, reply.content_type, len(reply.body) // 2) + reply.body)


async def _bad_chunk(link: Link, reply: Reply) -> None:
    await link.send(head(200, reply.content_type) + b"zz\r\n" + reply.body)


async def _stream_for_whole(link: Link, reply: Reply) -> None:
    await send_body(link, b"data: " + reply.body + b"\n\ndata: [DONE]\n\n", 200, "text/event-stream")


UNREADABLE_WHOLE: dict[str, Do] = {
    "truncated": _half,
    "shorter-than-it-is": _shorter_than_it_is,
    "bad-chunk": _bad_chunk,
    "stream-for-whole": _stream_for_whole,
}


def _first(event: bytes) -> Do:
    async def do(link: Link, reply: Reply) -> None:
        await send_events(link, reply, [event, *reply.pieces])

    return do


def _mid(event: bytes) -> Do:
    async def do(link: Link, reply: Reply) -> None:
        at = reply.content_at + 2
        await link.send(head_of(reply))
        await send_content(link, reply, reply.pieces[:at])
        await send_pieces(link, reply, [event, *reply.pieces[at:]])
        await link.send(END)

    return do


async def _ends_in_first(link: Link, reply: Reply) -> None:
    first = reply.pieces[reply.content_at]
    await send_events(link, reply, [*reply.pieces[: reply.content_at], first[: len(first) // 2]])


async def _comments_for_ever(link: Link, reply: Reply) -> None:
    await link.send(head_of(reply))
    while True:
        await send_pieces(link, reply, [b": still at work\n\n"])
        await asyncio.sleep(0.1)


UNREADABLE_STREAMS: dict[str, Do] = {
    "garbage-first": _first(b"data: {]garbage\n\n"),
    "ends-in-first": _ends_in_first,
}
WITHOUT_END: dict[str, Do] = {"comments-for-ever": _comments_for_ever}


async def _bad_chunk_mid(link: Link, reply: Reply) -> None:
    await link.send(head_of(reply))
    await send_content(link, reply, reply.pieces[: reply.content_at + 2])
    await link.send(b"zz\r\nwhatever\r\n")
    await link.stall()


def _gzip_then(rest: bytes) -> Do:
    async def do(link: Link, reply: Reply) -> None:
        await link.send(head(200, reply.content_type, None, "Content-Encoding: gzip"))
        await send_content(link, reply, gzipped(reply.pieces)[: reply.content_at + 2])
        await link.send(rest)

    return do


UNREADABLE_MID: dict[str, Do] = {
    "garbage-mid": _mid(b"data: {]garbage\n\n"),
    "bad-chunk-mid": _bad_chunk_mid,
    "gzip-cut-mid": _gzip_then(END),
    "gzip-breaks-mid": _gzip_then(chunk(b"\xff" * 64) + END),
}


async def _endless_line_mid(link: Link, reply: Reply) -> None:
    await link.send(head_of(reply))
    await send_pieces(link, reply, [*reply.pieces[: reply.content_at + 2], b'data: {"x":"'])
    while True:
        await send_pieces(link, reply, [PADDING])
        await asyncio.sleep(0)


COSTLY_MID: dict[str, Do] = {"endless-line": _endless_line_mid}
