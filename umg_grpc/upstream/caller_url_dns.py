"""DNS look-ups of host names in callers' URLs, in threads of their own."""

import asyncio
import socket
import threading
from contextlib import suppress

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
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Addresses] = loop.create_future()

        def finish(addresses: Addresses, error: Exception | None) -> None:
            self._free.release()
            if found.done():  # cancelled
                return
            if error is None:
                found.set_result(addresses)
            else:
                found.set_exception(error)

        def look_up() -> None:
            addresses: Addresses = []
            error: Exception | None = None
            try:
                addresses = [*socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)]
            except Exception as failure:  # passed on to the call
                error = failure
            with suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(finish, addresses, error)

        await self._free.acquire()
        threading.Thread(target=look_up, name="guarded look-up", daemon=True).start()
        return await found
