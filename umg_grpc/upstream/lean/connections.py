"""The connections to all providers."""

import asyncio
import socket
import ssl
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property

import aiohappyeyeballs

from umg_grpc.upstream.lean.answer import Fetched
from umg_grpc.upstream.lean.connection import Connection, Place
from umg_grpc.upstream.lean.faults import BrokenError, DisconnectedError, LateError, StaleError, UnreachableError
from umg_grpc.upstream.lean.names import Names
from umg_grpc.upstream.lean.request import request_to

SECOND_ADDRESS_SECONDS = 0.25  # how long one address of a host is tried alone (RFC 8305)
END_SECONDS = 1
STALE_SECONDS = 2.0  # in which a connection shows that was closed before it was written to: one way there and back


class Connections:
    """The connections to all providers. Opened once a process, closed with it."""

    def __init__(self, idle: float = 60) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle = idle  # seconds that a connection is kept for another call
        self._all: set[Connection] = set()
        self._kept: defaultdict[Place, list[Connection]] = defaultdict(list)  # those without an exchange
        self._names = Names()
        self._closed: asyncio.Future[None] | None = None

    async def post(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        connect: float,
        total: float,
        tls: ssl.SSLContext | None = None,
        repeatable: bool = True,
    ) -> Fetched:
        """The whole answer, within `total` seconds, of them no more than `connect` for a new connection.

        A connection that was kept may be closed by the provider while it is written to: then a new one is made for the
        call, if it is `repeatable`, for what the provider did with the first it does not say.

        Raises ConnectionFaultError, or UmgError(UPSTREAM_FAILED) for a head of more than 64 KiB or a body of more than
        256 MiB. Without `tls` the system's authorities are believed.
        """
        started = self._loop.time()
        end = started + total
        request = request_to(url, tuple(headers.items()))
        place = Place(request.host, request.port, (tls or self._system) if request.secure else None)
        head = b"%b%d\r\n\r\n" % (request.head, len(body))
        if (kept := self._take(place)) is not None:
            try:
                return await kept.exchange(head, body, end)
            except (DisconnectedError, BrokenError) as fault:
                if kept.answered or self._loop.time() - started > STALE_SECONDS or self._closed is not None:
                    raise
                self._drop(place)
                if not repeatable:
                    raise StaleError(f"{fault}") from None
        connection = await self._connect(place, connect, end)
        return await connection.exchange(head, body, end)

    async def close(self) -> None:
        """Closes all connections, in the midst of what they do. Afterwards none is left."""
        self._closed = self._loop.create_future()
        await self._names.close()
        for connection in tuple(self._all):
            connection.close()
        if self._all:
            await asyncio.wait({self._closed}, timeout=END_SECONDS)

    @cached_property
    def _system(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _take(self, place: Place) -> Connection | None:
        """The one that was used last: the others may then grow old."""
        kept = self._kept.get(place)
        while kept:
            connection = kept.pop()
            if not connection.closed:
                return connection
        return None

    def _drop(self, place: Place) -> None:
        """Closes all that are kept: what ended one of them, a restart of the provider's, ended the others too."""
        for connection in self._kept.pop(place, ()):
            connection.close()

    async def _connect(self, place: Place, connect: float, end: float) -> Connection:
        until = min(self._loop.time() + connect, end)
        try:
            async with asyncio.timeout_at(until) as waiting:
                return await self._connected(place)
        except (OSError, UnicodeError) as error:  # TimeoutError and ssl.SSLError are OSErrors
            if waiting.expired():
                raise LateError("connect" if until < end else "total", sent=False) from None
            self._names.forget(place.host, place.port)
            raise UnreachableError(f"{type(error).__name__}: {error}", getattr(error, "errno", None)) from None

    async def _connected(self, place: Place) -> Connection:
        addresses = await self._names.addresses(place.host, place.port)
        opened = await aiohappyeyeballs.start_connection(
            addresses, happy_eyeballs_delay=SECOND_ADDRESS_SECONDS, interleave=1
        )
        with suppress(OSError):  # it was reset already, which shows below
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # closes the socket itself when it fails or is cancelled
        # and it must not be closed before this returns: uvloop would then close its descriptor twice
        _, connection = await self._loop.create_connection(
            lambda: Connection(self, place, self._idle),
            sock=opened,
            ssl=place.tls,
            server_hostname=place.host.rstrip(".") if place.tls else None,
        )
        self._all.add(connection)
        if self._closed is not None:
            connection.close()
        return connection

    # what the connections call

    def keep(self, connection: Connection) -> None:
        self._kept[connection.place].append(connection)

    def lost(self, connection: Connection) -> None:
        self._all.discard(connection)
        kept = self._kept[connection.place]
        with suppress(ValueError):  # it was in use
            kept.remove(connection)
        if not kept:
            del self._kept[connection.place]
        if self._closed is not None and not self._all and not self._closed.done():
            self._closed.set_result(None)
