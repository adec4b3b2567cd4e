"""Connections of aiohttp's, as we make them."""

import asyncio

import pytest

from tests.upstream.raw import LINE, Link, provider
from umg_grpc.upstream.connector import REACH, Connector, Reach, session_over

PAUSING = 16_385
"""Chunks that wait to be read when aiohttp reads no more, whatever their size."""


@pytest.mark.parametrize("waiting", [1, PAUSING - 1, PAUSING, 2 * PAUSING])
async def test_a_body_of_many_small_chunks_comes_to_its_end_when_nobody_read_it_for_a_while(waiting: int) -> None:
    read = asyncio.Event()

    async def speak(link: Link) -> None:
        await link.request()
        await link.send(LINE + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * waiting)
        await read.wait()
        await link.send(b"1\r\nx\r\n0\r\n\r\n")
        await link.left()

    REACH.set(Reach())
    async with (
        provider(speak) as made,
        session_over(Connector(keeps=True)) as session,
        asyncio.timeout(20),
        session.post(made.url, data=b"") as response,
    ):
        while True:
            if response.content.total_bytes >= min(waiting, PAUSING):
                break
            await asyncio.sleep(0.01)  # nobody tells when it is here
        body = await response.content.readany()
        read.set()
        body += await response.content.read()
    assert body == b"x" * (waiting + 1)
