"""Connections that are accepted while the gateway stops."""

import asyncio
import os
import resource
import socket
from contextlib import ExitStack

import pytest

from http_facade.server import listener as listening_sockets
from http_facade.server.listener import Listener

CLIENTS = 20


class Greeted(asyncio.Protocol):
    """Protocol that records its connection and sends no data."""

    def __init__(self, made: list[asyncio.BaseTransport]) -> None:
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._made.append(transport)


async def until_accepted() -> None:
    """Wait for the round of the event loop that finds the connections, and the one that accepts them."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_accepted_connections_are_handed_over_when_the_listener_closes() -> None:
    made: list[asyncio.BaseTransport] = []
    listener = Listener(lambda: Greeted(made))
    listening = socket.create_server(("127.0.0.1", 0), backlog=CLIENTS)
    address = listening.getsockname()
    listener.watch(listening)
    clients = [socket.create_connection(address) for _ in range(CLIENTS)]
    await until_accepted()
    assert len(asyncio.all_tasks()) == CLIENTS + 1
    await listener.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert len(made) == CLIENTS
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    for transport, client in zip(made, clients, strict=True):
        client.close()
        transport.abort() if isinstance(transport, asyncio.Transport) else transport.close()
    await listener.close()  # a second call has no effect


async def test_the_number_of_connections_accepted_at_once_is_bounded() -> None:
    made: list[asyncio.BaseTransport] = []
    listener = Listener(lambda: Greeted(made), lambda: 3)
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=CLIENTS))
        listener.watch(listening)
        for _ in range(CLIENTS):
            stack.enter_context(socket.create_connection(listening.getsockname()))
        await until_accepted()
        assert len(asyncio.all_tasks()) == 3 + 1
        await listener.close()
        assert len(made) == 3
        for transport in made:
            transport.close()
        await asyncio.sleep(0)


async def test_a_connection_waits_until_file_descriptors_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening_sockets, "RETRY_SECONDS", 0.01)
    accepted = asyncio.Event()

    class Accepted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.set()
            transport.close()

    listener = Listener(Accepted)
    listening = socket.create_server(("127.0.0.1", 0))
    listener.watch(listening)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.create_connection(listening.getsockname()):
        next_file = os.dup(0)
        os.close(next_file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (next_file, files[1]))
        try:
            await until_accepted()
            assert not asyncio.get_running_loop().remove_reader(listening)  # the event loop no longer looks at it
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, files)
        async with asyncio.timeout(60):
            await accepted.wait()
    await listener.close()
