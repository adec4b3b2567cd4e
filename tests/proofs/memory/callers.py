"""Callers of large answers: callers that do not read, and callers that read and discard."""

import asyncio
import json
import socket
from typing import Protocol, runtime_checkable
from urllib.parse import urlsplit

from tests.pairs.table import TEXT_FACES
from tests.proofs.soak.gateway import KEY
from tests.support.callers.requests import Request

RECEIVE_BYTES = 64 << 10


@runtime_checkable
class Wire(Protocol):
    """Required methods of a transport. uvloop's transports are no `asyncio.Transport` by their type."""

    def write(self, data: bytes) -> None: ...

    def pause_reading(self) -> None: ...

    def abort(self) -> None: ...


class Caller(asyncio.Protocol):
    """One call over a connection of its own, which keeps only the beginning and the end of the response."""

    def __init__(self) -> None:
        self.received = 0
        self.head = b""
        self.tail = b""
        self.began = asyncio.Event()
        self.ended = asyncio.Event()  # the response is complete, or the connection is closed
        self.transport: Wire

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, Wire)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        if len(self.head) < 2048:
            self.head += data[:2048]
        self.tail = (self.tail + data)[-4096:] if len(data) < 4096 else data[-4096:]
        self.began.set()
        if self.tail.endswith(b"0\r\n\r\n"):
            self.ended.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.began.set()
        self.ended.set()

    @property
    def status(self) -> int:
        """Status of the response; 0 if none was received."""
        return int(self.head.split(b" ", 2)[1]) if self.head else 0


def request(face: str, model: str, address: str, *, stream: bool = True, **more: object) -> bytes:
    spoken = TEXT_FACES[face]
    raw = json.dumps(spoken.body(Request("go on"), model, stream=stream) | more).encode()
    head = "".join(
        f"{name}: {value}\r\n"
        for name, value in {
            **spoken.credentials(KEY),
            "host": address,
            "content-type": "application/json",
            "content-length": str(len(raw)),
        }.items()
    )
    return f"POST {spoken.path(model, stream)} HTTP/1.1\r\n{head}\r\n".encode() + raw


async def call(url: str, face: str, model: str, *, reads: bool = True, **more: object) -> Caller:
    """Make a streamed call. A caller that does not read stops at once."""
    return await send(url, request(face, model, urlsplit(url).netloc, **more), reads=reads)


async def send(url: str, sent: bytes, *, reads: bool = True) -> Caller:
    """Send a request over a new connection."""
    place = urlsplit(url)
    opened = socket.create_connection((place.hostname or "", place.port or 0))
    opened.setblocking(False)
    if not reads:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    _, caller = await asyncio.get_running_loop().create_connection(Caller, sock=opened)
    caller.transport.write(sent)
    if not reads:
        caller.transport.pause_reading()
    return caller
