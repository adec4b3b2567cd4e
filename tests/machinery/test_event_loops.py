"""Event loop of the tests: it reports connections that are open when it closes, and only these."""

import asyncio
import gc
import socket
from collections.abc import Iterator
from itertools import count

import pytest
import pytest_asyncio

from tests.machinery.event_loops import ClosingLoop, StrictLoop


@pytest.fixture
def near() -> Iterator[socket.socket]:
    near, far = socket.socketpair()
    with near, far:
        yield near


async def test_tests_run_on_it() -> None:
    assert isinstance(asyncio.get_running_loop(), StrictLoop)


SET_UP = count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def times_set_up() -> int:
    return next(SET_UP)


@pytest.mark.parametrize("number", range(2))
async def test_tests_with_loops_of_their_own_share_a_fixture_of_the_module(number: int, times_set_up: int) -> None:
    assert times_set_up == 1


@pytest.mark.filterwarnings("ignore:unclosed transport:ResourceWarning")
def test_an_open_connection_fails_the_test(near: socket.socket) -> None:
    loop = StrictLoop()
    loop.run_until_complete(loop.connect_accepted_socket(asyncio.Protocol, near))
    with pytest.raises(AssertionError, match=r"leaves connections open:\n<asyncio\.protocols\.Protocol object"):
        loop.close()
    assert loop.is_closed()
    loop.close()  # as the owner of the loop does after an error
    del loop
    gc.collect()  # the warning of the transport belongs to this test


def test_a_closed_connection_fails_no_test(near: socket.socket) -> None:
    async def close() -> None:
        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(asyncio.Protocol, near)
        transport.close()

    with asyncio.Runner(loop_factory=StrictLoop) as runner:
        runner.run(close())


def test_a_connection_that_a_library_keeps_is_closed_with_its_loop(near: socket.socket) -> None:
    async def leave() -> None:
        await asyncio.get_running_loop().connect_accepted_socket(asyncio.Protocol, near)

    with asyncio.Runner(loop_factory=ClosingLoop) as runner:
        runner.run(leave())
    assert near.fileno() < 0
