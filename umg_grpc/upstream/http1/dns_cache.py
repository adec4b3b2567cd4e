"""DNS cache for the host names of providers."""

import asyncio
import itertools
import socket

from aiohappyeyeballs import AddrInfoType

from umg_grpc.upstream.http1.detached_context import NO_CALL

CACHED_SECONDS = 60  # time for which a host's addresses are cached

Addresses = list[AddrInfoType]


class DnsCache:
    """Cache of the addresses of providers' host names. Concurrent calls for one host share one look-up."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lookups: dict[tuple[str, int], tuple[float, asyncio.Task[Addresses]]] = {}
        self._rotation = itertools.count()

    async def addresses(self, host: str, port: int) -> Addresses:
        """Return a host's addresses, rotated at each call to distribute connections. Raise OSError if it has none."""
        until, lookup = self._lookups.get((host, port), (0.0, None))
        if lookup is None or until < self._loop.time():
            lookup = self._loop.create_task(self._look_up(host, port), context=NO_CALL.copy())
            lookup.add_done_callback(lambda done: self._looked_up(host, port, done))
            self._lookups[host, port] = (self._loop.time() + CACHED_SECONDS, lookup)
        if not lookup.done():
            await asyncio.wait({lookup})  # continues when this call is cancelled: other calls may wait for it too
        if lookup.cancelled():
            raise OSError("no more names are looked up")
        found = lookup.result()
        first = next(self._rotation) % len(found)
        return found[first:] + found[:first]

    def forget(self, host: str, port: int) -> None:
        """Remove a host from the cache because it could not be reached, so that it is looked up again."""
        self._lookups.pop((host, port), None)

    async def close(self) -> None:
        """Cancel the DNS look-ups in progress."""
        lookups = [lookup for _, lookup in self._lookups.values()]
        for lookup in lookups:
            lookup.cancel()
        await asyncio.gather(*lookups, return_exceptions=True)

    def _looked_up(self, host: str, port: int, lookup: asyncio.Task[Addresses]) -> None:
        if lookup.cancelled() or lookup.exception() is not None:
            self.forget(host, port)

    async def _look_up(self, host: str, port: int) -> Addresses:
        return [*await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
