"""Listening sockets of the HTTP server, which accept all waiting connections at once."""

import asyncio
import errno
import socket
import ssl
import sys
import time
from collections.abc import Callable

import structlog

LISTEN_BACKLOG = 4096
UNSENT_BYTES = 128 << 10
"""Most unsent bytes in the socket buffer of the system (`TCP_NOTSENT_LOWAT`: accepted sockets inherit it from the
listening one). The default is megabytes per connection, also for clients that never read.
"""
NOTSENT_LOWAT = getattr(socket, "TCP_NOTSENT_LOWAT", 25 if sys.platform == "linux" else None)  # named since Python 3.12
AT_ONCE = 64
"""Most connections accepted in one round of the event loop; this number takes some 5 milliseconds."""
NO_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
RETRY_SECONDS = 1.0
"""Pause of a listening socket after the system had no resources for a connection."""
HANDSHAKE_SECONDS = 10.0
"""Longest TLS handshake; gRPC has the same limit."""
MAX_HANDSHAKES = 256
"""Most TLS handshakes in progress. Others wait, until handshakes over `FULL_HANDSHAKE_SECONDS` are ended."""
FULL_HANDSHAKE_SECONDS = 1.0
FULL_PAUSE_SECONDS = 0.05
"""Pause of a listening socket while `MAX_HANDSHAKES` are in progress."""
CLOSE_SECONDS = 1.0
"""Time for handshakes in progress when the listener closes."""
LOG_SECONDS = 1.0
REASON_TEXTS = {
    "HTTP_REQUEST": "the client sent HTTP without TLS: it has to use https://",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client has no certificate, which `tls.client_ca` demands",
    "CERTIFICATE_VERIFY_FAILED": "the client certificate is not valid, or not of an authority in `tls.client_ca`",
}
"""Reasons of OpenSSL whose remedy is known, for operators."""
log = structlog.get_logger()


class Listener:
    """Set of listening sockets that accepts all waiting connections in one iteration of the event loop. asyncio's own
    server accepts one; under load, iterations are long, and new connections, for example health checks, would wait for
    many of them.
    """

    def __init__(
        self,
        connection: Callable[[], asyncio.BaseProtocol],
        accept_limit: Callable[[], int] = lambda: AT_ONCE,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """Create a listener without sockets. `connection`: protocol factory of asyncio; `accept_limit`: returns the
        number of connections to accept in one iteration of the event loop; `tls`: returns the context of the next
        connection.
        """
        self._connection = connection
        self._accept_limit = accept_limit
        self._tls = tls
        self._failures = HandshakeFailures()
        self._loop = asyncio.get_running_loop()
        self._bound: list[socket.socket] = []
        self._listening: list[socket.socket] = []
        self._connecting = dict[asyncio.Task[None], float]()  # with the time of its start

    async def bind(self, host: str, port: int, *, share_port: bool = False) -> int:
        """Listen on a host's addresses. Return the port. Connections wait for `accept`. Raises OSError if it fails."""
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, (name, *_) in dict.fromkeys((family, address) for family, _, _, _, address in found):
            bound = socket.create_server((name, port), family=family, backlog=LISTEN_BACKLOG, reuse_port=share_port)
            if NOTSENT_LOWAT is not None:
                bound.setsockopt(socket.IPPROTO_TCP, NOTSENT_LOWAT, UNSENT_BYTES)
            port = port or bound.getsockname()[1]
            self._bound.append(bound)
        return port

    def accept(self) -> None:
        """Start to accept connections on the bound sockets."""
        while self._bound:
            self.watch(self._bound.pop())

    def watch(self, listening: socket.socket) -> None:
        """Accept connections on a socket that already listens; `close` closes this socket, too."""
        listening.setblocking(False)
        self._listening.append(listening)
        self._loop.add_reader(listening, self._accept, listening)

    async def close(self) -> None:
        """Stop accepting connections. Wait for TLS handshakes; after `CLOSE_SECONDS` they are aborted."""
        for listening in self._listening:
            self._loop.remove_reader(listening)
        for listening in (*self._listening, *self._bound):
            listening.close()
        self._listening.clear()
        self._bound.clear()
        while self._connecting:
            _, late = await asyncio.wait(self._connecting, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()

    def _accept(self, listening: socket.socket) -> None:
        limit = self._accept_limit() - len(self._connecting)
        if self._tls is not None:
            limit = min(self._accept_limit(), MAX_HANDSHAKES - len(self._connecting))
            if limit <= 0:
                self._end_slow_handshakes()
                self._pause(listening, FULL_PAUSE_SECONDS)
        for _ in range(min(AT_ONCE, limit)):
            try:
                client, _ = listening.accept()
            except OSError as error:  # mostly because no connection waits
                if error.errno in NO_RESOURCES:
                    self._pause(listening, RETRY_SECONDS)
                break
            client.setblocking(False)
            task = self._loop.create_task(self._connect(client))
            self._connecting[task] = self._loop.time()
            task.add_done_callback(self._connecting.pop)

    def _pause(self, listening: socket.socket, seconds: float) -> None:
        self._loop.remove_reader(listening)
        self._loop.call_later(seconds, self._resume, listening)

    def _end_slow_handshakes(self) -> None:
        latest = self._loop.time() - FULL_HANDSHAKE_SECONDS
        for task, started in self._connecting.items():
            if started < latest:
                task.cancel()

    def _resume(self, listening: socket.socket) -> None:
        if listening in self._listening:
            self._loop.add_reader(listening, self._accept, listening)

    async def _connect(self, client: socket.socket) -> None:
        tls = self._tls
        try:
            if tls is None:
                await self._loop.connect_accepted_socket(self._connection, client)
            else:
                await self._loop.connect_accepted_socket(
                    self._connection, client, ssl=tls(), ssl_handshake_timeout=HANDSHAKE_SECONDS
                )
        except OSError as error:  # the client disconnected meanwhile, or its handshake failed
            client.close()
            if tls is not None:
                self._failures.record(error)
        except asyncio.CancelledError:
            client.close()
            if tls is not None:
                self._failures.record(TimeoutError("it took too long while many clients were connecting"))
            raise


class HandshakeFailures:
    """Log of the failed TLS handshakes of one listener, at most one line a second."""

    def __init__(self) -> None:
        self._next = 0.0
        self._unlogged = 0

    def record(self, error: OSError) -> None:
        """Log a failed handshake; within a second of another line, only count it. Connections that close without
        sending a byte, for example port checks of load balancers, are ignored.
        """
        if isinstance(error, ConnectionResetError):
            return
        now = time.monotonic()
        if now < self._next:
            self._unlogged += 1
            return
        self._next = now + LOG_SECONDS
        text = error.reason if isinstance(error, ssl.SSLError) else str(error)
        log.info("TLS handshake failed", reason=REASON_TEXTS.get(text, text), not_logged=self._unlogged or None)
        self._unlogged = 0
