"""Who is let in while the gateway ends."""

import asyncio
import socket
from contextlib import ExitStack

import pytest

from http_facade.listening import Arrivals

CLIENTS = 20


class Greeted(asyncio.Protocol):
    """What speaks to a client, by saying nothing."""

    def __init__(self, made: list[asyncio.BaseTransport]) -> None:
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._made.append(transport)


async def test_all_who_were_let_in_have_their_connection_when_it_ends() -> None:
    made: list[asyncio.BaseTransport] = []
    arrivals = Arrivals(lambda: Greeted(made))
    listening = socket.create_server(("127.0.0.1", 0), backlog=CLIENTS)
    listening.setblocking(False)
    address = listening.getsockname()
    arrivals.watch(listening)
    clients = [socket.create_connection(address) for _ in range(CLIENTS)]
    arrivals.look()
    await asyncio.sleep(0)  # they are let in
    assert len(asyncio.all_tasks()) == CLIENTS + 1
    await arrivals.end()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert len(made) == CLIENTS
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    for transport, client in zip(made, clients, strict=True):
        client.close()
        transport.abort() if isinstance(transport, asyncio.Transport) else transport.close()
    arrivals.look()
    await arrivals.end()  # once more is no harm


async def test_no_more_are_let_in_at_once_than_are_welcome() -> None:
    made: list[asyncio.BaseTransport] = []
    arrivals = Arrivals(lambda: Greeted(made), lambda: 3)
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=CLIENTS))
        listening.setblocking(False)
        arrivals.watch(listening)
        for _ in range(CLIENTS):
            stack.enter_context(socket.create_connection(listening.getsockname()))
        arrivals.look()
        await asyncio.sleep(0)  # they are let in
        assert len(asyncio.all_tasks()) == 3 + 1
        arrivals.look()
        await arrivals.end()
        assert len(made) == 3
        for transport in made:
            transport.close()
        await asyncio.sleep(0)
