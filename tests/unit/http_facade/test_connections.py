"""Connections: their largest number, and the time that a client has to send its request head."""

import asyncio
import socket
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace

import pytest
import uvloop

from http_facade.app import Runner, make_app
from http_facade.server import client_connections
from tests.unit.http_facade.conftest import CHAT, KEY, SETTINGS, Face, MakeFace
from tests.unit.http_facade.test_stream import request_bytes
from umg_grpc.base.inprocess_channel import InProcessChannel, InProcessServer
from umg_grpc.config import Overload
from umg_grpc.service.resilience.load_shedding import LoadShedder

ALIVE = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


async def alive(face: Face, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Return the status line of a response to a health check on the connection."""
    writer.write(ALIVE)
    line = await reader.readline()
    await reader.readuntil(b"}")
    return line


async def pass_time(face: Face) -> None:
    """Wait until the time limit of a request head that began now has passed."""
    reader, writer = await face.raw()
    writer.write(ALIVE[:10])
    assert b"408" in await reader.read()


async def test_a_connection_without_a_request_is_closed(make_face: MakeFace) -> None:
    face = await make_face(silent_seconds=0.05)
    reader, _ = await face.raw()
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)


async def test_an_incomplete_head_is_refused_after_its_timeout(make_face: MakeFace) -> None:
    face = await make_face(head_seconds=0.05)
    reader, writer = await face.raw()
    writer.write(ALIVE[:10])
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"connection: close" in answer.lower()
    assert b'its head took longer than 0.05 seconds"' in answer


async def test_the_timeout_of_a_head_does_not_restart_with_each_byte(make_face: MakeFace) -> None:
    face = await make_face(head_seconds=0.1)
    reader, writer = await face.raw()

    async def trickle() -> None:
        writer.write(ALIVE[:-2] + b"x-slow: ")
        while True:
            writer.write(b"x")
            await face.alive()

    trickling = asyncio.ensure_future(trickle())
    async with asyncio.timeout(30):
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
    trickling.cancel()


async def test_a_later_head_on_a_connection_has_its_own_timeout(make_face: MakeFace) -> None:
    face = await make_face(head_seconds=0.05, silent_seconds=0.05)
    reader, writer = await face.raw()
    for _ in range(3):
        assert await alive(face, reader, writer) == b"HTTP/1.1 200 OK\r\n"
    await pass_time(face)  # between requests a connection may be idle
    assert await alive(face, reader, writer) == b"HTTP/1.1 200 OK\r\n"
    writer.write(ALIVE[:10])
    assert (await reader.readline()).startswith(b"HTTP/1.1 408")


CHUNKED = b"POST %b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" % CHAT.encode()
SIZED = b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}" % CHAT.encode()


@dataclass(frozen=True)
class Before:
    """Complete requests before the last one, in the pieces in which they arrive."""

    id: str
    pieces: tuple[bytes, ...]
    answers: int = 1

    @property
    def head_seconds(self) -> float:
        """Seconds that suffice for the round trip between the pieces of a head."""
        return 1 if len(self.pieces) > 1 and b"\r\n\r\n" not in self.pieces[0] else 0.05


BEFORE = [
    Before(id="nothing", pieces=(b"",), answers=0),
    Before(id="no body", pieces=(ALIVE,)),
    Before(id="two without a body", pieces=(ALIVE + ALIVE,), answers=2),
    Before(id="a body", pieces=(SIZED,)),
    Before(id="a body in two pieces", pieces=(SIZED[:-1], SIZED[-1:])),
    Before(id="a body after its head", pieces=(SIZED[:-2], SIZED[-2:])),
    Before(id="a head in two pieces", pieces=(ALIVE[:-1], ALIVE[-1:])),
    Before(id="the head of a body in two pieces", pieces=(SIZED[:-3], SIZED[-3:])),
    Before(id="a body in chunks", pieces=(CHUNKED,)),
    Before(id="a body in chunks in two pieces", pieces=(CHUNKED[:-6], CHUNKED[-6:])),
    Before(id="a body in chunks, but for its last byte", pieces=(CHUNKED[:-1], CHUNKED[-1:])),
]


async def send(face: Face, writer: asyncio.StreamWriter, pieces: tuple[bytes, ...]) -> None:
    for piece in pieces:
        writer.write(piece)
        if piece is not pieces[-1]:
            assert await face.alive() == 200  # a round trip later it was read


@pytest.mark.parametrize("case", BEFORE, ids=lambda case: case.id)
@pytest.mark.parametrize("start", [b"G", b"GET /v1/mo", b"GET / HTTP/1.1\r\nx: "], ids=["G", "a line", "a header"])
async def test_a_head_sent_together_with_a_request_has_its_own_timeout(
    make_face: MakeFace, case: Before, start: bytes
) -> None:
    face = await make_face(head_seconds=case.head_seconds)
    reader, writer = await face.raw()
    await send(face, writer, (*case.pieces[:-1], case.pieces[-1] + start))
    async with asyncio.timeout(30):
        answers = await reader.read()
    assert answers.count(b"HTTP/1.1 ") == case.answers + 1
    assert answers.count(b"HTTP/1.1 408") == 1
    assert answers.rindex(b"HTTP/1.1") == answers.index(b"HTTP/1.1 408")


@pytest.mark.parametrize("case", BEFORE[1:], ids=lambda case: case.id)
async def test_an_idle_connection_is_kept_open_after_complete_requests(make_face: MakeFace, case: Before) -> None:
    face = await make_face(head_seconds=case.head_seconds, silent_seconds=case.head_seconds)
    reader, writer = await face.raw()
    await send(face, writer, case.pieces)
    await pass_time(face)
    await pass_time(face)
    for _ in range(case.answers):
        assert b"408" not in await reader.readline()
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(int(length.partition(b":")[2]))
    assert await alive(face, reader, writer) == b"HTTP/1.1 200 OK\r\n"


def test_a_head_sent_at_once_has_its_own_timeout() -> None:
    """Run on the event loop of the product, which reads at once."""

    async def serve() -> bytes:
        async with AsyncExitStack() as stack:
            runner = Runner(make_app(InProcessChannel(InProcessServer()), replace(SETTINGS, head_seconds=0.05)))
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            port = await runner.listen("127.0.0.1", 0)
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.sendall(ALIVE[:10])
            client.setblocking(False)
            async with asyncio.timeout(30):
                return await asyncio.get_running_loop().sock_recv(client, 999)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        assert loop.run(serve()).startswith(b"HTTP/1.1 408")


async def test_a_head_sent_right_after_an_answer_has_its_own_timeout(make_face: MakeFace) -> None:
    face = await make_face(head_seconds=0.05)
    reader, writer = await face.raw()
    writer.write(ALIVE)
    await reader.readuntil(b"}")
    writer.write(ALIVE[:10])
    async with asyncio.timeout(30):
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")


async def test_a_head_sent_during_a_call_waits_for_the_answer(make_face: MakeFace) -> None:
    face = await make_face(head_seconds=0.05)
    reader, writer = await face.raw()
    writer.write(request_bytes("wait") + ALIVE[:10])
    await face.service.reached.wait()
    await pass_time(face)
    await pass_time(face)
    face.service.go_on.set()
    async with asyncio.timeout(30):
        answers = await reader.read()
    assert answers.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"[DONE]" in answers.partition(b"HTTP/1.1 408")[0]


async def test_calls_sent_without_a_wait_have_their_own_bodies(make_face: MakeFace) -> None:
    face = await make_face()
    reader, writer = await face.raw()
    writer.write(request_bytes("wait"))
    await face.service.reached.wait()
    for model in ("m", "n"):
        writer.write(request_bytes(model))
        assert await face.alive() == 200  # a round trip later it was read
    face.service.go_on.set()
    async with asyncio.timeout(30):
        for _ in range(3):
            await reader.readuntil(b"[DONE]")
    assert [request.model for request in face.service.requests] == ["wait", "m", "n"]


async def test_a_head_sent_after_a_refused_call_has_its_own_timeout(make_face: MakeFace) -> None:
    load_shedder = LoadShedder(Overload(calls=1, queue=0))
    await load_shedder.enter()
    face = await make_face(head_seconds=0.05, load_shedder=load_shedder)
    reader, writer = await face.raw()
    writer.write(request_bytes("m") + ALIVE[:10])
    async with asyncio.timeout(30):
        answers = await reader.read()
    assert answers.startswith(b"HTTP/1.1 503")
    assert answers.count(b"HTTP/1.1 408") == 1


async def test_a_head_in_two_parts_is_read(make_face: MakeFace) -> None:
    face = await make_face(head_seconds=1)
    reader, writer = await face.raw()
    writer.write(ALIVE[:10])
    assert await face.alive() == 200  # a round trip later the first part was read
    writer.write(ALIVE[10:])
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    await reader.readuntil(b"}")
    await pass_time(face)  # its time limit has passed, without an effect
    assert await alive(face, reader, writer) == b"HTTP/1.1 200 OK\r\n"


async def test_a_call_in_flight_is_not_ended_by_the_head_timeout(make_face: MakeFace) -> None:
    face = await make_face(head_seconds=0.05, silent_seconds=0.05)
    reader, writer = await face.raw()
    writer.write(request_bytes("wait"))
    await face.service.reached.wait()
    await pass_time(face)
    face.service.go_on.set()
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"


async def test_a_refused_call_does_not_start_the_timeout_of_a_head(make_face: MakeFace) -> None:
    load_shedder = LoadShedder(Overload(calls=1, queue=0))
    await load_shedder.enter()
    face = await make_face(head_seconds=0.05, load_shedder=load_shedder)
    reader, writer = await face.raw()
    writer.write(request_bytes("m"))
    assert (await reader.readline()).startswith(b"HTTP/1.1 503")
    await reader.readuntil(b"}")
    await pass_time(face)
    writer.write(ALIVE[:10])
    assert b"HTTP/1.1 408" in await reader.read()


@pytest.fixture
async def crowded(make_face: MakeFace) -> Face:
    """Return a facade with as many connections as it accepts."""
    face = await make_face(connections=2)
    for _ in range(2):
        assert await alive(face, *await face.raw()) == b"HTTP/1.1 200 OK\r\n"
    return face


async def test_a_connection_beyond_the_limit_is_refused_and_closed(crowded: Face) -> None:
    reader, writer = await crowded.raw()
    writer.write(request_bytes("m"))
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"as many connections as it takes" in answer
    assert b"retry-after: 1" in answer.lower()
    assert crowded.service.requests == []


@pytest.mark.parametrize("path", ["/", "/api/hello", "/healthz", "/readyz", "/metrics"])
async def test_health_checks_are_answered_on_a_connection_beyond_the_limit(crowded: Face, path: str) -> None:
    async with crowded.client.get(crowded.url(path)) as answer:
        assert answer.status == 200


async def test_a_closed_connection_makes_room_for_another(make_face: MakeFace) -> None:
    face = await make_face(connections=1)
    reader, writer = await face.raw()
    assert await alive(face, reader, writer) == b"HTTP/1.1 200 OK\r\n"
    writer.close()
    await writer.wait_closed()
    statuses = set[int]()
    async with asyncio.timeout(30):
        while 200 not in statuses:  # until the server noticed that the client left
            async with face.chat("m", headers={**KEY, "connection": "close"}) as answer:
                statuses.add(answer.status)


async def test_the_oldest_connection_beyond_the_limit_is_closed_for_the_newest(
    make_face: MakeFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_connections, "MAX_CONNECTIONS_OVER_LIMIT", 2)
    face = await make_face(connections=1)
    held = [await face.raw() for _ in range(4)]
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await held[1][0].readexactly(1)
    for reader, writer in (held[0], held[2], held[3]):
        assert await alive(face, reader, writer) == b"HTTP/1.1 200 OK\r\n"


async def test_an_idle_connection_beyond_the_limit_is_closed_soon(make_face: MakeFace) -> None:
    face = await make_face(connections=1, head_seconds=0.05)
    await face.raw()
    reader, _ = await face.raw()
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)


async def test_the_newest_connections_of_a_burst_beyond_the_limit_are_kept(
    make_face: MakeFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_connections, "MAX_CONNECTIONS_OVER_LIMIT", 2)
    face = await make_face(connections=1)
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", face.port))) for _ in range(40)
        ]  # all in one iteration of the event loop
        for client in clients:
            client.setblocking(False)
        async with asyncio.timeout(30):
            for client in clients[1:-2]:
                assert await loop.sock_recv(client, 1) == b""
            for client in (clients[0], *clients[-2:]):
                await loop.sock_sendall(client, ALIVE)
                assert (await loop.sock_recv(client, 999)).startswith(b"HTTP/1.1 200")
