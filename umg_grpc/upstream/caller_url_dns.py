"""DNS look-ups of host names in callers' URLs, in threads of their own."""

import asyncio
import socket
from functools import partial

from umg_grpc.base.daemon_threads import in_daemon_thread
from umg_grpc.upstream.http1.dns_cache import Addresses

MAX_LOOKUPS = 16


class Lookups:
    """DNS resolver with at most `MAX_LOOKUPS` threads of its own. If a name's DNS servers do not answer, the look-up
    occupies one of these threads for many seconds. It delays neither other work in threads nor the end of the process.
    """

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(MAX_LOOKUPS)

    async def __call__(self, name: str, port: int) -> Addresses:
        """Return the addresses of a host name for connections to `port`. Raise OSError if there are none. A cancelled
        look-up occupies its thread until it ends.
        """
        await self._free.acquire()
        look_up = partial(socket.getaddrinfo, name, port, type=socket.SOCK_STREAM)
        return [*await in_daemon_thread(look_up, "guarded look-up", self._free.release)]
