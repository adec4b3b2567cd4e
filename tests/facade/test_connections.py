"""Connections: how many there may be, and how long one may take to say what it wants."""

import asyncio

import pytest

from http_facade import connections
from tests.facade.conftest import KEY, Face, MakeFace
from tests.facade.test_stream import request_bytes
from umg_grpc.config import Overload
from umg_grpc.service.gate import Gate

ALIVE = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


async def alive(face: Face, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """The status line of the answer to a question for the gateway's health."""
    writer.write(ALIVE)
    line = await reader.readline()
    await reader.readuntil(b"}")
    return line


async def pass_time(face: Face) -> None:
    """Until what takes the time of a head now has taken too long."""
    reader, writer = await face.raw()
    writer.write(ALIVE[:10])
    assert b"408" in await reader.read()


async def test_a_connection_that_says_nothing_is_closed(make_face: MakeFace) -> None:
    face = await make_face(silent_seconds=0.05)
    reader, _ = await face.raw()
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)


async def test_a_head_that_does_not_come_whole_in_time_is_refused(make_face: MakeFace) -> None:
    face = await make_face(head_seconds=0.05)
    reader, writer = await face.raw()
    writer.write(ALIVE[:10])
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"connection: close" in answer.lower()
    assert b'its head took longer than 0.05 seconds"' in answer


async def test_a_head_that_trickles_in_has_no_more_time(make_face: MakeFace) -> None:
    face = await make_face(head_seconds=0.1)
    reader, writer = await face.raw()

    async def trickle() -> None:
        writer.write(ALIVE[:-2] + b"x-slow: ")
        while True:
            writer.write(b"x")
            await face.alive()

    trickling = asyncio.ensure_future(trickle())
    async with asyncio.timeout(5):
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
    trickling.cancel()


async def test_a_later_head_on_a_connection_has_its_time_too(make_face: MakeFace) -> None:
    face = await make_face(head_seconds=0.05, silent_seconds=0.05)
    reader, writer = await face.raw()
    for _ in range(3):
        assert await alive(face, reader, writer) == b"HTTP/1.1 200 OK\r\n"
    await pass_time(face)  # between requests a connection may rest
    assert await alive(face, reader, writer) == b"HTTP/1.1 200 OK\r\n"
    writer.write(ALIVE[:10])
    assert (await reader.readline()).startswith(b"HTTP/1.1 408")


async def test_a_head_in_two_parts_is_read(make_face: MakeFace) -> None:
    face = await make_face(head_seconds=0.2)
    reader, writer = await face.raw()
    writer.write(ALIVE[:10])
    assert await face.alive() == 200  # a round trip later the first part was read
    writer.write(ALIVE[10:])
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    await reader.readuntil(b"}")
    await pass_time(face)  # its time is over, and nothing happens
    assert await alive(face, reader, writer) == b"HTTP/1.1 200 OK\r\n"


async def test_a_call_under_way_takes_the_time_it_needs(make_face: MakeFace) -> None:
    face = await make_face(head_seconds=0.05, silent_seconds=0.05)
    reader, writer = await face.raw()
    writer.write(request_bytes("wait"))
    await face.service.reached.wait()
    await pass_time(face)
    face.service.go_on.set()
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"


async def test_a_refused_call_is_no_head_that_began(make_face: MakeFace) -> None:
    gate = Gate(Overload(calls=1, queue=0))
    await gate.enter()
    face = await make_face(head_seconds=0.05, gate=gate)
    reader, writer = await face.raw()
    writer.write(request_bytes("m"))
    assert (await reader.readline()).startswith(b"HTTP/1.1 503")
    await reader.readuntil(b"}")
    await pass_time(face)
    writer.write(ALIVE[:10])
    assert b"HTTP/1.1 408" in await reader.read()


@pytest.fixture
async def crowded(make_face: MakeFace) -> Face:
    """A face with as many connections as it takes."""
    face = await make_face(connections=2)
    for _ in range(2):
        assert await alive(face, *await face.raw()) == b"HTTP/1.1 200 OK\r\n"
    return face


async def test_a_connection_too_many_is_told_so_and_closed(crowded: Face) -> None:
    reader, writer = await crowded.raw()
    writer.write(request_bytes("m"))
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"as many connections as it takes" in answer
    assert b"retry-after: 1" in answer.lower()
    assert crowded.service.requests == []


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_those_who_watch_are_answered_on_a_connection_too_many(crowded: Face, path: str) -> None:
    async with crowded.client.get(crowded.url(path)) as answer:
        assert answer.status == 200


async def test_one_who_leaves_makes_room(make_face: MakeFace) -> None:
    face = await make_face(connections=1)
    reader, writer = await face.raw()
    assert await alive(face, reader, writer) == b"HTTP/1.1 200 OK\r\n"
    writer.close()
    await writer.wait_closed()
    statuses = set[int]()
    async with asyncio.timeout(5):
        while 200 not in statuses:  # until the server saw it leave
            async with face.chat("m", headers={**KEY, "connection": "close"}) as answer:
                statuses.add(answer.status)


async def test_of_connections_too_many_the_oldest_ends_for_the_newest(
    make_face: MakeFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SPARE", 2)
    face = await make_face(connections=1)
    held = [await face.raw() for _ in range(4)]
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await held[1][0].readexactly(1)
    for reader, writer in (held[0], held[2], held[3]):
        assert await alive(face, reader, writer) == b"HTTP/1.1 200 OK\r\n"


async def test_a_connection_too_many_that_says_nothing_ends_soon(make_face: MakeFace) -> None:
    face = await make_face(connections=1, head_seconds=0.05)
    await face.raw()
    reader, _ = await face.raw()
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
