"""Requests that are still being received when the facade stops."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass

import pytest

from tests.unit.http_facade.conftest import CHAT, KEY, Face, MakeFace, body

HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: {KEY['authorization']}\r\n".encode()
PADDING = 2**20
"""Spaces in the body: more than aiohttp's buffer holds, so that reading pauses."""
JSON = json.dumps(body("m")).encode() + b" " * PADDING
LENGTH = b"content-length: %d\r\n\r\n" % len(JSON)
CHUNKED = b"transfer-encoding: chunked\r\n\r\n%x\r\n" % len(JSON)
CHUNKS_END = b"\r\n0\r\n\r\n"


@dataclass(frozen=True)
class Upload:
    id: str
    before: bytes  # sent before the facade stops
    after: bytes


UPLOADS = [
    Upload("within the headers", HEAD[:-9], HEAD[-9:] + LENGTH + JSON),
    Upload("before the body", HEAD + LENGTH, JSON),
    Upload("within the body", HEAD + LENGTH + JSON[:9], JSON[9:]),
    Upload("within a chunk", HEAD + CHUNKED + JSON[:9], JSON[9:] + CHUNKS_END),
    Upload("before the last chunk", HEAD + CHUNKED + JSON, CHUNKS_END),
]


async def _begin_cleanup(face: Face) -> "asyncio.Task[None]":
    """Begin to stop the facade. Return the task once new connections are refused, and the loop ran some more times."""
    assert await face.alive() == 200
    stopping = asyncio.ensure_future(face.runner.cleanup())
    with suppress(ConnectionError):  # refused, or reset since the facade never accepted it
        while True:
            _, writer = await asyncio.open_connection("127.0.0.1", face.port)
            writer.close()
            await writer.wait_closed()
    for _ in range(10):  # in which aiohttp's shutdown begins, unless it waits for requests
        await asyncio.sleep(0)
    return stopping


@pytest.mark.parametrize("upload", UPLOADS, ids=lambda upload: upload.id)
async def test_a_request_that_arrives_during_the_drain_is_answered(make_face: MakeFace, upload: Upload) -> None:
    face = await make_face(drain_seconds=600)
    reader, writer = await face.raw()
    writer.write(upload.before)
    stopping = await _begin_cleanup(face)
    writer.write(upload.after)
    answer = await reader.read()  # the connection is closed after the response
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b'"hello"' in answer
    await asyncio.wait_for(stopping, 60)


async def test_several_requests_may_arrive_during_the_drain(make_face: MakeFace) -> None:
    face = await make_face(drain_seconds=600)
    connections = [await face.raw() for _ in range(3)]
    for _, writer in connections:
        writer.write(HEAD + LENGTH + JSON[:9])
    stopping = await _begin_cleanup(face)
    gone = connections.pop()[1]
    gone.close()  # is waited for no longer
    for reader, writer in connections:
        writer.write(JSON[9:])
        assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
    await asyncio.wait_for(stopping, 60)


async def test_a_request_that_is_incomplete_at_the_end_of_the_drain_gets_an_error(make_face: MakeFace) -> None:
    face = await make_face(drain_seconds=0.5)
    reader, writer = await face.raw()
    writer.write(HEAD + LENGTH + JSON[:9])
    stopping = await _begin_cleanup(face)
    head, _, text = (await reader.read()).partition(b"\r\n\r\n")
    await asyncio.wait_for(stopping, 60)
    assert head.startswith(b"HTTP/1.1 503 ")
    assert "shutting down" in json.loads(text)["error"]["message"]


async def test_an_idle_connection_whose_requests_have_no_known_end_does_not_prolong_the_drain(
    make_face: MakeFace,
) -> None:
    face = await make_face(drain_seconds=600)
    reader, writer = await face.raw()
    writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n")
    assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
    await asyncio.wait_for(face.runner.cleanup(), 60)
