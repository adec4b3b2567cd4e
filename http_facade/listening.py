"""Where the HTTP face listens, and how quickly it lets clients in."""

import asyncio
import socket
from collections.abc import Callable

from aiohttp import web

BACKLOG = 4096
AT_ONCE = 1024
"""Most clients let in before others have their turn. Nearly all are let in: of those who wait outside the gate does not
know, and takes on too many.
"""


class Arrivals:
    """Lets in all clients that wait. By itself the event loop lets in one a round: with much to do its rounds are long,
    and who connects anew, such as the one who asks for the gateway's health, would wait for ages.
    """

    def __init__(
        self, connection: Callable[[], asyncio.BaseProtocol], welcome: Callable[[], int] = lambda: AT_ONCE
    ) -> None:
        """`connection` makes what speaks to a client; so many are `welcome` now."""
        self._connection = connection
        self._welcome = welcome
        self._loop = asyncio.get_running_loop()
        self._listening: list[socket.socket] = []
        self._looks = False
        self._arriving: set[asyncio.Task[object]] = set()

    def watch(self, listening: socket.socket) -> None:
        """Takes a socket that listens, on which the event loop lets in the first."""
        self._listening.append(listening)

    def look(self) -> None:
        """To be called when somebody was let in: there may be others."""
        if self._listening and not self._looks:
            self._looks = True
            self._loop.call_soon(self._let_in)

    def close(self) -> None:
        """Lets nobody in any more."""
        for listening in self._listening:
            listening.close()
        self._listening.clear()

    async def end(self) -> None:
        """Lets nobody in any more, and returns when all that were let in have their connection: that takes a round or
        two of the event loop, and waits for nobody else.
        """
        self.close()
        while self._arriving:
            await asyncio.wait(self._arriving)

    def _let_in(self) -> None:
        for listening in self._listening:
            for _ in range(min(AT_ONCE, self._welcome() - len(self._arriving))):
                try:
                    client, _ = listening.accept()
                except OSError:  # nobody is there, or there are too many open files
                    break
                client.setblocking(False)
                task = self._loop.create_task(self._begin(client))
                self._arriving.add(task)
                task.add_done_callback(self._arriving.discard)
        self._looks = False  # whoever was let in here looks again

    async def _begin(self, client: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._connection, client)
        except OSError:  # which left meanwhile
            client.close()


class Site(web.SockSite):
    """An address. Once it has stopped all its clients are known, so that the runner ends them all."""

    __slots__ = ("_arrivals",)

    def __init__(self, runner: web.AppRunner, arrivals: Arrivals, bound: socket.socket) -> None:
        super().__init__(runner, bound, backlog=BACKLOG)
        self._arrivals = arrivals

    async def stop(self) -> None:
        """Ends, as do all others of the same arrivals."""
        await super().stop()
        await self._arrivals.end()


async def listen(runner: web.AppRunner, arrivals: Arrivals, host: str, port: int, *, share_port: bool = False) -> int:
    """The port that it listens on, until the runner ends. Raises OSError where the address cannot be had."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, (name, *_) in dict.fromkeys((family, address) for family, _, _, _, address in found):
        bound = socket.create_server((name, port), family=family, backlog=BACKLOG, reuse_port=share_port)
        port = port or bound.getsockname()[1]
        await Site(runner, arrivals, bound).start()
        arrivals.watch(bound.dup())
    return port
