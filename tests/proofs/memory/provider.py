"""Provider of large answers in every text format: a real server whose model ids select the size."""

import asyncio
import re
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache

from bench.codec_samples import Stream, samples

MODEL = re.compile(rb"(stream|plain|chunked|gzip)-(\d+)-(\d+)(?:-(\w+))?")
"""Kind of the response, its MiB, the characters of each delta, and an option."""
WORD = b" word0"
WRITE_BYTES = 64 << 10
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n"
PATHS = {b"/chat/completions": "chat", b"/responses": "responses", b"/messages": "messages", b"/models/": "native"}


@dataclass
class Provider:
    port: int = 0
    calls: Counter[str] = field(default_factory=Counter)  # by model
    sent: int = 0  # bytes of streams
    open: int = 0  # streams that are being sent
    closed: asyncio.Condition = field(default_factory=asyncio.Condition)  # notified when a stream ends
    _streams: dict[str, Stream] = field(default_factory=dict)

    async def until_closed(self) -> None:
        """Wait until no stream is being sent."""
        async with self.closed:
            await self.closed.wait_for(lambda: self.open == 0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                body = await reader.readexactly(length)
                await self._answer(head.partition(b"\r\n")[0], body, writer)
        writer.close()

    async def _answer(self, line: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        match = MODEL.search(line) or MODEL.search(body)
        assert match is not None, body
        self.calls[match[0].decode()] += 1
        kind, size = match[1], int(match[2]) << 20
        if kind == b"stream":
            name = next(name for path, name in PATHS.items() if path in line)
            await self._stream(name, size, int(match[3]), match[4] or b"", writer)
        elif kind == b"plain":
            writer.write(HEAD % b"application/json" + b"content-length: %d\r\n\r\n" % size)
            await _write_all(writer, (b" " * WRITE_BYTES for _ in range(size // WRITE_BYTES)))
        elif kind == b"chunked":
            writer.write(HEAD % b"application/json" + b"transfer-encoding: chunked\r\n\r\n")
            await _write_all(writer, (_chunk(b" " * WRITE_BYTES) for _ in range(size // WRITE_BYTES)))
            writer.write(b"0\r\n\r\n")
        else:
            packed = gzipped(size)
            head = HEAD % b"application/json" + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
            await _write_all(writer, [head + packed])

    async def _stream(self, name: str, size: int, piece: int, option: bytes, writer: asyncio.StreamWriter) -> None:
        """Send deltas of `piece` characters until `size` bytes of text were sent, then the end of the response."""
        stream = samples()[name].stream(1)
        ending = stream.ending
        if option == b"uncounted":  # without usage, which the gateway then estimates
            ending = re.sub(rb'"(usage|usageMetadata)":\{', rb'"x_\1":{', ending)
        text = (b"lorem ipsum dolor " * (piece // 18 + 1))[:piece]
        delta = stream.deltas[0].replace(WORD, text)
        if option == b"uncounted":
            delta = delta.replace(b'"usageMetadata"', b'"x_usage"')
        together = max(1, WRITE_BYTES // len(delta))
        block = delta * together
        self.open += 1
        try:
            writer.write(HEAD % b"text/event-stream" + b"transfer-encoding: chunked\r\n\r\n")
            if stream.opening:
                writer.write(_chunk(stream.opening))
            for _ in range(max(1, size // (piece * together))):
                writer.write(_chunk(block))
                self.sent += len(block)
                await writer.drain()
            writer.write(_chunk(ending) + b"0\r\n\r\n")
            await writer.drain()
        finally:
            self.open -= 1
            async with self.closed:
                self.closed.notify_all()


@cache
def gzipped(size: int) -> bytes:
    packer = zlib.compressobj(6, wbits=16 + zlib.MAX_WBITS)
    blanks = b" " * (1 << 20)
    return b"".join([packer.compress(blanks) for _ in range(size >> 20)]) + packer.flush()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _write_all(writer: asyncio.StreamWriter, parts: Iterator[bytes] | list[bytes]) -> None:
    for part in parts:
        writer.write(part)
        await writer.drain()


@asynccontextmanager
async def provider() -> AsyncGenerator[Provider, None]:
    """Serve on a free port, until the context ends."""
    made = Provider()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
