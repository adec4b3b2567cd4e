"""Server's side of a connection to the faulty provider: parses requests, and sends answers byte by byte."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import NamedTuple, NoReturn

MAX_HEAD = 64 << 10


class Request(NamedTuple):
    method: str
    target: str
    body: bytes


class Link(asyncio.Protocol):
    """Connection of a caller to the faulty provider. `serve` answers a request, and is cancelled when the caller
    disconnects.
    """

    def __init__(self, serve: "Callable[[Link, Request], Awaitable[None]]", gone: "Callable[[Link], None]") -> None:
        self.used = 0  # requests that were answered before this one
        self._serve = serve
        self._gone = gone
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()

    # --- parts of answers

    async def send(self, data: bytes) -> None:
        """Write data as fast as the caller reads. Raises ConnectionError when the connection is closed."""
        if self._transport.is_closing():
            raise ConnectionResetError("the connection is closed")
        self._transport.write(data)
        await self._flowing.wait()

    async def send_slowly(self, data: bytes, seconds: float) -> None:
        """Write data one byte at a time, with `seconds` after each."""
        for byte in data:
            await self.send(bytes([byte]))
            await asyncio.sleep(seconds)

    async def stall(self) -> NoReturn:
        """Send no more until the caller disconnects, which cancels this call."""
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    def close(self) -> None:
        """Close the connection normally, after the written data."""
        self._transport.close()

    def reset(self) -> None:
        """Reset the connection, which the other side notices."""
        opened: socket.socket = self._transport.get_extra_info("socket")
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    # --- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")  # uvloop's are none by type
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def eof_received(self) -> None:
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._flowing.set()
        if self._task is not None:
            self._task.cancel()
        self._gone(self)

    def pause_writing(self) -> None:
        self._flowing.clear()

    def resume_writing(self) -> None:
        self._flowing.set()

    # --- requests

    def _next(self) -> None:
        if self._task is None and (request := self._parsed()) is not None:
            self._task = asyncio.get_running_loop().create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        try:
            await self._serve(self, request)
        except ConnectionError:
            return
        except Exception:
            self._transport.abort()
            raise
        self.used += 1
        self._task = None
        if not self._transport.is_closing():
            self._next()

    def _parsed(self) -> Request | None:
        """Return the first request of the received bytes, None while it is incomplete."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            assert len(self._buffer) <= MAX_HEAD
            return None
        line, *fields = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        if headers.get("transfer-encoding", "").lower() == "chunked":
            found = self._chunks(end + 4)
        else:
            length = end + 4 + int(headers.get("content-length", 0))
            found = (bytes(self._buffer[end + 4 : length]), length) if len(self._buffer) >= length else None
        if found is None:
            return None
        body, used = found
        del self._buffer[:used]
        method, target, _ = line.split(" ")
        return Request(method, target, body)

    def _chunks(self, start: int) -> tuple[bytes, int] | None:
        """Return (body, its end) of a chunked request, None while it is incomplete."""
        body = bytearray()
        while (end := self._buffer.find(b"\r\n", start)) >= 0:
            size = int(self._buffer[start:end], 16)
            start = end + 2 + size + 2
            if len(self._buffer) < start:
                return None
            if not size:
                return bytes(body), start
            body += self._buffer[end + 2 : end + 2 + size]
        return None
