"""Streams over connections that are kept: what becomes of one after an answer is none of that answer's business."""

import asyncio
import time
from dataclasses import replace

import pytest
import uvloop

from tests.upstream.raw import HELLO, LINE, PATIENT, Link, Run, failed, outgoing, provider
from umg_grpc.errors import Failure
from umg_grpc.upstream.transport import Answer, Transport

MANY_HEADERS = LINE + b"X-More: and more\r\n" * 200
CHUNKED = LINE + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    chosen: Run = request.param
    return chosen


async def read(answer: Answer) -> bytes:
    """The body, of an answer that is then closed."""
    try:
        return b"".join([chunk async for chunk in answer.chunks()])
    finally:
        answer.close()


def test_an_answer_that_came_is_whole_whatever_becomes_of_its_connection(run: Run) -> None:
    """It came in whole before it is read: another call has its connection, which breaks, by then."""

    async def main() -> None:
        left = asyncio.Event()

        async def speak(link: Link) -> None:
            await link.request()
            await link.send(HELLO)
            await link.request()
            await link.send(MANY_HEADERS)
            await link.left()
            left.set()

        async with provider(speak) as made, Transport.opened() as transport:
            early = await transport.open(outgoing(made))
            error = await failed(transport.open(outgoing(made)))
            await left.wait()
            assert (error.name, len(made.links)) == ("UPSTREAM_CUT", 1)
            assert await read(early) == b"hello"

    run(main())


def test_a_connection_on_which_something_came_unasked_is_not_used_again(run: Run) -> None:
    async def main() -> None:
        come = asyncio.Event()

        async def speak(link: Link) -> None:
            await link.request()
            await link.send(HELLO)
            if len(made.links) == 1:
                await come.wait()
                await link.send(HELLO.replace(b"hello", b"wrong"))
                unasked.set()
            await link.left()

        async with provider(speak) as made, Transport.opened() as transport:
            unasked = asyncio.Event()
            assert await read(await transport.open(outgoing(made))) == b"hello"
            come.set()
            await unasked.wait()
            for _ in range(10):  # turns of the event loop, in which it is read
                await asyncio.sleep(0)
            assert await read(await transport.open(outgoing(made))) == b"hello"
            assert len(made.links) == 2

    run(main())


@pytest.mark.parametrize("waits", [True, False], ids=["reader waits", "reader is busy"])
def test_a_stream_that_is_no_http_any_more_breaks_at_once(waits: bool, run: Run) -> None:
    async def main() -> None:
        go, left = asyncio.Event(), asyncio.Event()

        async def speak(link: Link) -> None:
            await link.request()
            await link.send(CHUNKED + b"1\r\nx\r\n")
            await go.wait()
            await link.send(b"zz\r\nwhatever\r\n")
            await link.left()
            left.set()

        async with provider(speak) as made, Transport.opened() as transport:
            answer = await transport.open(outgoing(made))
            chunks = answer.chunks()
            assert await anext(chunks) == b"x"
            go.set()
            if not waits:
                await left.wait()
            error = await failed(anext(chunks))
            answer.close()
        assert (error.name, error.failure) == ("UPSTREAM_CUT", Failure.AMBIGUOUS)

    run(main())


def test_a_deadline_that_ends_in_the_moment_when_a_chunk_does_is_late(run: Run) -> None:
    """The end of a chunk wakes the reader, for whom there is nothing; before it can wait again, the time is over."""

    def is_elsewhere(seconds: float) -> None:
        """What else the machine has to do: what comes, and what is due meanwhile, then happens at once."""
        time.sleep(seconds)

    async def main() -> None:
        begun = asyncio.Event()

        async def speak(link: Link) -> None:
            await link.request()
            await link.send(CHUNKED + b"1\r\nx")
            await begun.wait()
            link.writer.write(b"\r\n")
            is_elsewhere(0.2)
            await link.left()

        deadlines = replace(PATIENT, first_byte=0.1)
        async with provider(speak) as made, Transport.opened() as transport:
            answer = await transport.open(outgoing(made, deadlines=deadlines))
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

    run(main())
