"""Fake provider that sends given bytes, and reads as commanded: a server on bare connections."""

import asyncio
import inspect
import socket
import ssl
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any

import pytest
import uvloop
from msgspec import structs

from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.request import OutgoingRequest

Run = Callable[[Coroutine[None, None, None]], None]
"""`asyncio.run` or uvloop's: code on sockets is tested with both."""

PATIENT = Deadlines(connect=60, first_byte=60, idle=60, total=60)
LINE = b"HTTP/1.1 200 OK\r\n"
HELLO = LINE + b"Content-Length: 5\r\n\r\nhello"


def chunked(head: bytes = LINE) -> bytes:
    return head + b"Transfer-Encoding: chunked\r\n\r\n2;note=x\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"


def sized(body: bytes, head: bytes = LINE) -> bytes:
    return head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@dataclass
class Link:
    """Server's side of a connection to the provider."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def request(self, *, body: bool = True) -> tuple[bytes, bytes]:
        """Read the next request. Return its head and body. Raises IncompleteReadError when there is none."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        return head, await self.reader.readexactly(length) if body else b""

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def left(self) -> None:
        """Wait until the gateway closes the connection."""
        try:
            while await self.reader.read(1 << 16):
                pass
        except ConnectionError:
            pass

    def reset(self) -> None:
        """Reset the connection, which the other side notices."""
        opened: socket.socket = self.writer.get_extra_info("socket")
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


HandleConnection = Callable[[Link], Awaitable[None]]


@dataclass
class Provider:
    url: str = ""
    links: list[Link] = field(default_factory=list)
    requests: list[tuple[bytes, bytes]] = field(default_factory=list)


@asynccontextmanager
async def provider(
    handle: HandleConnection, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncGenerator[Provider, None]:
    """Run `handle` on every connection, which is then closed."""
    made = Provider()
    busy: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(reader, writer)
        made.links.append(link)
        try:
            await handle(link)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the gateway left
        finally:
            writer.close()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(connected(reader, writer))
        busy.add(task)
        task.add_done_callback(busy.discard)

    server = await asyncio.start_server(accepted, host, 0, ssl=tls, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    made.url = f"https://localhost:{port}/v1/x" if tls else f"http://{shown}:{port}/v1/x"
    try:
        yield made
    finally:
        server.close()
        if busy:
            await asyncio.wait(busy, timeout=60)
        for link in made.links:
            link.writer.transport.abort()  # one with unsent bytes stays open after `close`
        await asyncio.sleep(0)
        assert not busy, "the gateway did not close its connections"


def answering(*pieces: bytes, then: str = "") -> HandleConnection:
    """Return a handler of connections that reads a request and sends the pieces, for each request; `then` closes or
    resets.
    """

    async def handle(link: Link) -> None:
        while True:
            await link.request()
            for piece in pieces:
                await link.send(piece)
            if then == "reset":
                return link.reset()
            if then == "close":
                return None

    return handle


async def stall(link: Link) -> None:
    """Read a request, and send no response."""
    await link.request()
    await link.left()


def outgoing(made: Provider, body: bytes = b"{}", **more: Any) -> OutgoingRequest:
    plain = OutgoingRequest(made.url, {"Content-Type": "application/json"}, body, PATIENT)
    return structs.replace(plain, **more)


async def refused(client: Client, call: OutgoingRequest) -> tuple[str, Mapping[str, str]]:
    error = await failed(client.fetch(call))
    return error.name, error.metadata


async def failed(call: Awaitable[object]) -> UmgError:
    with pytest.raises(UmgError) as caught:
        await call
    return caught.value


each_loop = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


def on_each_loop(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """Return the test that runs a coroutine function on the event loop of asyncio, and on that of uvloop."""

    def run_on_loop(run: Run, **arguments: object) -> None:
        run(test(**arguments))

    wanted = inspect.signature(test)
    update_wrapper(run_on_loop, test)
    del run_on_loop.__wrapped__  # pytest passes the arguments of the signature
    run_on_loop.__signature__ = wanted.replace(
        parameters=[*wanted.parameters.values(), inspect.Parameter("run", inspect.Parameter.KEYWORD_ONLY)]
    )
    marked: Callable[..., None] = each_loop(run_on_loop)
    return marked


Send = Callable[[Client, OutgoingRequest], Awaitable[bytes]]


async def fetch(client: Client, call: OutgoingRequest) -> bytes:
    return (await client.fetch(call)).body


async def stream(client: Client, call: OutgoingRequest) -> bytes:
    answer = await client.open(call)
    try:
        return b"".join([chunk async for chunk in answer.chunks()])
    finally:
        answer.close()


each_way = pytest.mark.parametrize("send", [fetch, stream], ids=["whole", "streamed"])
