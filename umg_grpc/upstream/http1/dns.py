"""The addresses of hosts."""

import asyncio
import itertools
import socket

from aiohappyeyeballs import AddrInfoType

SECONDS = 60  # how long a host's addresses are believed

Addresses = list[AddrInfoType]


class Names:
    """The addresses of hosts. However many ask at once, a name is looked up once."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._known: dict[tuple[str, int], tuple[float, asyncio.Task[Addresses]]] = {}
        self._turn = itertools.count()

    async def addresses(self, host: str, port: int) -> Addresses:
        """At least one; those of a host take turns. Raises OSError."""
        until, lookup = self._known.get((host, port), (0.0, None))
        if lookup is None or until < self._loop.time():
            lookup = self._loop.create_task(self._look_up(host, port))
            lookup.add_done_callback(lambda done: self._looked_up(host, port, done))
            self._known[host, port] = (self._loop.time() + SECONDS, lookup)
        if not lookup.done():
            await asyncio.wait({lookup})  # goes on when this call is cancelled: others may wait for it too
        if lookup.cancelled():
            raise OSError("no more names are looked up")
        found = lookup.result()
        first = next(self._turn) % len(found)
        return found[first:] + found[:first]

    def forget(self, host: str, port: int) -> None:
        """Nobody answers there: the next call asks again."""
        self._known.pop((host, port), None)

    async def close(self) -> None:
        """Ends what is being looked up."""
        lookups = [lookup for _, lookup in self._known.values()]
        for lookup in lookups:
            lookup.cancel()
        await asyncio.gather(*lookups, return_exceptions=True)

    def _looked_up(self, host: str, port: int, lookup: asyncio.Task[Addresses]) -> None:
        if lookup.cancelled() or lookup.exception() is not None:
            self.forget(host, port)

    async def _look_up(self, host: str, port: int) -> Addresses:
        return [*await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
