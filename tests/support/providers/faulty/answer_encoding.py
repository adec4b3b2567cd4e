"""Encoding of the faulty provider's answers as bytes on a connection: heads, chunks, compression."""

import asyncio
import http
import zlib
from collections.abc import Iterable

from tests.support.providers.faulty.provider_connection import Link
from tests.support.providers.faulty.right_answers import Reply


def head(status: int = 200, kind: str = "application/json", length: int | None = None, *more: str) -> bytes:
    """Return a response head; without a length the body is chunked. `more`: further lines."""
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:
        phrase = "Whatever"
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = [f"HTTP/1.1 {status} {phrase}", *([f"Content-Type: {kind}"] if kind else []), framing, *more, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def chunk(data: bytes) -> bytes:
    """Return a chunk of a body; without data the last chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


END = chunk(b"")
PADDING = b"x" * (1 << 20)
READING_SECONDS = 0.05


def head_of(reply: Reply, *more: str) -> bytes:
    return head(200, reply.content_type, None if reply.streamed else len(reply.body), *more)


def written(reply: Reply, data: bytes) -> bytes:
    """Return a part of the body in the transfer coding of the response."""
    return chunk(data) if reply.streamed else data


async def send_right(link: Link, reply: Reply, *more: str) -> None:
    await link.send(head_of(reply, *more))
    await send_pieces(link, reply, reply.pieces)
    if reply.streamed:
        await link.send(END)


async def send_pieces(link: Link, reply: Reply, pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        await link.send(written(reply, piece))


async def send_content(link: Link, reply: Reply, pieces: Iterable[bytes]) -> None:
    """Send parts of the body, and wait until they are read: the next data is not in the same read."""
    await send_pieces(link, reply, pieces)
    await asyncio.sleep(READING_SECONDS)


async def send_body(link: Link, body: bytes, status: int = 200, kind: str = "application/json", *more: str) -> None:
    """Send a complete answer with another content."""
    await link.send(head(status, kind, len(body), *more) + body)


async def send_events(link: Link, reply: Reply, pieces: Iterable[bytes]) -> None:
    """Send a stream of other events, in a body that ends correctly."""
    await link.send(head_of(reply))
    await send_pieces(link, reply, pieces)
    await link.send(END)


def gzipped(pieces: Iterable[bytes]) -> list[bytes]:
    """Return the pieces compressed, each so that it can be read when it has come; the last ends it."""
    squeezer = zlib.compressobj(wbits=31)
    made = [squeezer.compress(piece) + squeezer.flush(zlib.Z_SYNC_FLUSH) for piece in pieces]
    return [*made, squeezer.flush()]
