"""Streams over reused connections: a response does not depend on the connection once it is complete."""

import asyncio
import time
from dataclasses import replace

import pytest

from tests.support.providers.raw import (
    HELLO,
    LINE,
    PATIENT,
    Link,
    answering,
    failed,
    on_each_loop,
    outgoing,
    provider,
)
from umg_grpc.base.errors import Failure
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.connection import BUFFER_BYTES, ProviderExchange

GARBAGE = b"SSH-2.0-OpenSSH_9.6\r\n"
CHUNKED = LINE + b"Transfer-Encoding: chunked\r\n\r\n"


async def read(answer: ProviderExchange) -> bytes:
    try:
        return b"".join([chunk async for chunk in answer.chunks()])
    finally:
        answer.close()


@on_each_loop
async def test_a_received_answer_is_complete_when_its_connection_breaks() -> None:
    """Break a connection after its response has arrived and before it is read, while another call uses the connection."""

    left = asyncio.Event()

    async def handle(link: Link) -> None:
        await link.request()
        await link.send(HELLO)
        await link.request()
        await link.send(GARBAGE)
        await link.left()
        left.set()

    async with provider(handle) as made, Client.opened() as client:
        early = await client.open(outgoing(made))
        error = await failed(client.open(outgoing(made)))
        await left.wait()
        assert (error.name, len(made.links)) == ("UPSTREAM_CUT", 1)
        assert await read(early) == b"hello"


@on_each_loop
async def test_a_connection_with_unexpected_data_is_not_used_again() -> None:
    come = asyncio.Event()

    async def handle(link: Link) -> None:
        await link.request()
        await link.send(HELLO)
        if len(made.links) == 1:
            await come.wait()
            await link.send(HELLO.replace(b"hello", b"wrong"))
            unasked.set()
        await link.left()

    async with provider(handle) as made, Client.opened() as client:
        unasked = asyncio.Event()
        assert await read(await client.open(outgoing(made))) == b"hello"
        come.set()
        await unasked.wait()
        for _ in range(10):  # iterations of the event loop, during which it is read
            await asyncio.sleep(0)
        assert await read(await client.open(outgoing(made))) == b"hello"
        assert len(made.links) == 2


@pytest.mark.parametrize("waits", [True, False], ids=["reader waits", "reader is busy"])
@on_each_loop
async def test_a_stream_that_is_no_http_any_more_breaks_at_once(waits: bool) -> None:
    go, left = asyncio.Event(), asyncio.Event()

    async def handle(link: Link) -> None:
        await link.request()
        await link.send(CHUNKED + b"1\r\nx\r\n")
        await go.wait()
        await link.send(b"zz\r\nwhatever\r\n")
        await link.left()
        left.set()

    async with provider(handle) as made, Client.opened() as client:
        answer = await client.open(outgoing(made))
        chunks = answer.chunks()
        assert await anext(chunks) == b"x"
        go.set()
        if not waits:
            await left.wait()
        error = await failed(anext(chunks))
        answer.close()
    assert (error.name, error.failure) == ("UPSTREAM_CUT", Failure.AMBIGUOUS)


@on_each_loop
async def test_a_deadline_that_ends_in_the_moment_when_a_chunk_does_is_late() -> None:
    """Wake the reader by the end of a chunk that has no data for it; before it can wait again, the deadline has passed."""

    def is_elsewhere(seconds: float) -> None:
        """Block the event loop, so that arriving data and due timers are processed together."""
        time.sleep(seconds)

    begun = asyncio.Event()

    async def handle(link: Link) -> None:
        await link.request()
        await link.send(CHUNKED + b"1\r\nx")
        await begun.wait()
        link.writer.write(b"\r\n")
        is_elsewhere(1.1)
        await link.left()

    deadlines = replace(PATIENT, first_byte=1)
    async with provider(handle) as made, Client.opened() as client:
        answer = await client.open(outgoing(made, deadlines=deadlines))
        chunks = answer.chunks()
        assert await anext(chunks) == b"x"
        reading = asyncio.ensure_future(anext(chunks))
        asyncio.get_running_loop().call_soon(begun.set)
        error = await failed(reading)
        answer.close()
    assert (error.name, error.metadata, error.failure) == (
        "UPSTREAM_TIMEOUT",
        {"deadline": "first_byte"},
        Failure.AMBIGUOUS,
    )


PAUSING = BUFFER_BYTES + 1
"""Number of chunks of one byte, waiting to be read, at which reading from the connection stops."""


@pytest.mark.parametrize("waiting", [1, PAUSING - 1, PAUSING, 4 * PAUSING])
@on_each_loop
async def test_a_body_of_many_small_chunks_ends_after_a_pause_of_its_reader(waiting: int) -> None:
    read = asyncio.Event()

    async def handle(link: Link) -> None:
        await link.request()
        await link.send(CHUNKED + b"1\r\nx\r\n" * waiting)
        await read.wait()
        await link.send(b"1\r\nx\r\n0\r\n\r\n")
        await link.left()

    async with provider(handle) as made, asyncio.timeout(60):
        client = Client()
        exchange = await client.open(outgoing(made))
        while len(exchange.response.body) < min(waiting, PAUSING):  # noqa: ASYNC110  no event reports its arrival
            await asyncio.sleep(0.01)
        body = await exchange.read()
        read.set()
        while part := await exchange.read():
            body += part
        exchange.close()
        await client.close()
    assert body == b"x" * (waiting + 1)


@on_each_loop
async def test_a_head_that_is_too_large_fails_before_its_body() -> None:
    """Send the end of a large head together with a complete body."""
    head = CHUNKED.replace(b"\r\n\r\n", b"\r\nx: " + b"y" * (128 << 10) + b"\r\n\r\n")

    async with Client.opened() as client, provider(answering(head + b"1\r\nx\r\n0\r\n\r\n")) as made:
        error = await failed(client.open(outgoing(made)))
    assert (error.name, error.failure) == ("UPSTREAM_FAILED", Failure.AMBIGUOUS)


@on_each_loop
async def test_a_part_is_relayed_only_while_the_reader_waits_for_it() -> None:
    go = [asyncio.Event() for _ in range(4)]
    taken = list[bytes]()

    async def handle(link: Link) -> None:
        await link.request()
        await link.send(CHUNKED + b"1\r\na\r\n")
        for event, part in zip(go, (b"b", b"c", b"refused", b"d"), strict=True):
            await event.wait()
            await link.send(b"%x\r\n%b\r\n" % (len(part), part))
        await link.send(b"0\r\n\r\n")

    def relay(part: bytes) -> bool:
        if part == b"refused":
            return False
        taken.append(part)
        go[len(taken) + 1].set()
        return True

    async with provider(handle) as made, Client.opened() as client:
        answer = await client.open(outgoing(made))
        assert await answer.read() == b"a"
        answer.relay = relay
        go[0].set()
        while not answer.response.body:  # noqa: ASYNC110  it arrives while nobody reads, and sets no event
            await asyncio.sleep(0)
        assert await answer.read() == b"b"
        go[1].set()
        assert await answer.read() == b"refused"
        assert taken == [b"c"]
        go[3].set()
        rest = b"".join([part async for part in answer.chunks()])
        assert b"".join(taken) + rest == b"cd"  # the last part may come with the end of the body
        answer.close()
        assert answer.relay is None
