"""Stalled process: its own delays are not counted as failures of a provider."""

import asyncio
import time

import pytest

from tests.support.providers.raw import LINE, Link, answering, outgoing, provider, sized
from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines, LoadAwareTimeout, LoopDelay

STALL_SECONDS = 0.6
SHORT = Deadlines(connect=0.2, first_byte=0.2, idle=0.2, total=30)


def block_loop() -> None:
    """Block the event loop, as on a host that takes the processor away."""
    time.sleep(STALL_SECONDS)


async def test_lateness_is_the_time_in_which_no_timer_fired() -> None:
    lateness = LoopDelay()
    lateness.start()
    block_loop()
    await asyncio.sleep(0)
    while not lateness.seconds:  # noqa: ASYNC110  # nobody tells when a tick has come
        await asyncio.sleep(0.01)
    lateness.close()
    assert lateness.seconds > STALL_SECONDS / 2


async def test_a_wait_ends_when_its_time_is_over() -> None:
    with pytest.raises(TimeoutError):
        async with LoadAwareTimeout(0.05, LoopDelay()) as waiting:
            await asyncio.Event().wait()
    assert waiting.expired()


@pytest.mark.parametrize("measured", [True, False], ids=["a stall before", "a stall at the end"])
async def test_a_stall_of_this_process_lengthens_a_wait(measured: bool) -> None:
    lateness, happened = LoopDelay(), asyncio.Event()
    if measured:
        lateness.start()
    async with asyncio.timeout(20), LoadAwareTimeout(STALL_SECONDS / 2, lateness) as waiting:
        block_loop()
        asyncio.get_running_loop().call_later(STALL_SECONDS / 4, happened.set)
        await happened.wait()
    lateness.close()
    assert not waiting.expired()


async def test_a_connection_that_is_made_during_a_stall_is_not_too_late() -> None:
    async with provider(answering(sized(b"hello"))) as made, Client.opened() as client:
        asyncio.get_running_loop().call_soon(block_loop)
        answer = await client.fetch(outgoing(made, deadlines=SHORT))
    assert answer.body == b"hello"


async def test_an_event_that_arrives_during_a_stall_is_not_too_late() -> None:
    async def handle(link: Link) -> None:
        await link.request()
        await link.send(LINE + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        block_loop()
        await asyncio.sleep(SHORT.idle / 2)
        await link.send(b"1\r\nb\r\n0\r\n\r\n")

    async with provider(handle) as made, Client.opened() as client:
        answer = await client.open(outgoing(made, deadlines=SHORT))
        read = b""
        async for chunk in answer.chunks():
            answer.deadline.has_begun = True
            read += chunk
        answer.close()
    assert read == b"ab"


async def test_a_late_provider_is_reported_as_the_providers_timeout() -> None:
    async def handle(link: Link) -> None:
        await link.request()
        await link.left()

    async with provider(handle) as made, Client.opened() as client:
        with pytest.raises(UmgError, match="its first bytes"):
            await client.open(outgoing(made, deadlines=SHORT))
