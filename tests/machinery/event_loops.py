"""Event loops of tests: one fails the test which leaves a connection open.

Without it, the garbage collector warns of the connection minutes later, and fails a test that has no part in it.
"""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

ON_UVLOOP = {"e2e", "http_facade", "service", "spec"}
"""Directories whose tests run on the event loop of a gateway that serves. It reports transports that SDKs leave open."""
LEAVES_CONNECTIONS = "test_langchain.py"
"""File of tests whose library keeps its clients until the process ends, without a way to close them."""


class ClosingLoop(asyncio.SelectorEventLoop):
    """Event loop whose `close` closes the connections that are still open, for libraries that never close theirs."""

    _transports: "dict[int, asyncio.WriteTransport]"  # private: see `StrictLoop`

    def close(self) -> None:
        if not self.is_closed():
            for transport in [*self._transports.values()]:
                transport.abort()
            self.run_until_complete(asyncio.sleep(0))
        super().close()


class StrictLoop(asyncio.SelectorEventLoop):
    """Event loop whose `close` raises `AssertionError` when a transport of it has an open socket."""

    _transports: "dict[int, asyncio.Transport]"  # private, by file descriptor; asyncio has no public list of them

    def close(self) -> None:
        if self.is_closed():
            return
        is_open = [each for each in self._transports.values() if each.get_extra_info("socket").fileno() >= 0]
        peers = [f"{each.get_protocol()!r}, peer {each.get_extra_info('peername')}" for each in is_open]
        super().close()
        if is_open:
            raise AssertionError("\n".join(["the test leaves connections open:", *peers]))


@pytest.fixture(scope="module", name="_asyncio_loop_factory")
def loop_factory(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the event loop of the tests and fixtures of a module, in place of the fixture of pytest-asyncio.

    Its hook `pytest_asyncio_loop_factories` would make the loop a parameter that ends with each test, and with it the
    asynchronous fixtures of the module, which the next test would set up again.
    """
    if request.path.parent.name in ON_UVLOOP:
        return uvloop.new_event_loop
    return ClosingLoop if request.path.name == LEAVES_CONNECTIONS else StrictLoop
