"""Client connections: connection limit, timeouts, and error responses that are sent before a handler runs.

A `ServerConnection` is between the event loop and aiohttp's HTTP protocol object: it passes all events on, and observes
bytes and times. It uses only asyncio's protocol interface, no internals of aiohttp.
"""

import asyncio
import select
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import cast

from aiohttp import hdrs

from http_facade.exchange.cors import CorsRules
from http_facade.exchange.error_responses import error_response
from http_facade.exchange.http_exchange import HttpExchange, KnownHeaders
from http_facade.exchange.overload_rejections import Refusals, encode_http, parse_model_call
from http_facade.exchange.server_settings import Settings
from http_facade.exchange.unknown_paths import error_format
from http_facade.routes import DEFAULT_FORMAT
from http_facade.server.request_framing import RequestFraming, split_request
from umg_grpc.base.errors import UmgError, shutting_down
from umg_grpc.base.refused_request import RefusedRequest
from umg_grpc.base.request_ids import request_id_of
from umg_grpc.v1 import pb

MAX_CONNECTIONS_OVER_LIMIT = 256
"""Most connections beyond the limit, kept open for health checks and metrics. One more closes the oldest of them."""
MIN_ACCEPTED = 64
"""Connections accepted at once even at the limit; more would use up file descriptors before the excess is closed."""

MAX_READ_BYTES = 64 << 10
"""Largest read whose body is taken from it: of a larger one, aiohttp pauses the connection until its reader took it."""
MAX_JOINED_BYTES = 64 << 10
"""Largest body that is written together with its head; joining a larger one takes longer than a second write."""

_CLOSED_BY_CLIENT = getattr(select, "POLLRDHUP", select.POLLHUP)  # Linux alone has the first


class OpenConnections:
    """Open client connections of a listener, counted against the limit. Called for a new client, returns its object."""

    def __init__(self, make_protocol: Callable[[], asyncio.Protocol], settings: Settings) -> None:
        """Create an empty set. `make_protocol`: returns aiohttp's HTTP protocol object for a connection."""
        self.settings = settings
        self.cors = CorsRules(settings.cors_origins)
        self.refusals = Refusals()
        self._make_protocol = make_protocol
        self._open = set[ServerConnection]()
        self._over_limit: dict[ServerConnection, None] = {}  # the oldest first

    def __call__(self) -> "ServerConnection":
        return ServerConnection(self, self._make_protocol())

    def __iter__(self) -> "Iterator[ServerConnection]":
        return iter(tuple(self._open))

    def accept_limit(self) -> int:
        """Return the number of waiting connections that may be accepted in one iteration of the event loop."""
        return max(MIN_ACCEPTED, self.settings.connections - len(self._open))

    def add(self, connection: "ServerConnection") -> bool:
        """Register a connection, and close the oldest if too many exceed the limit. Return whether it is within."""
        self._open.add(connection)
        if len(self._open) <= self.settings.connections:
            return True
        self._over_limit[connection] = None
        if len(self._over_limit) > MAX_CONNECTIONS_OVER_LIMIT:
            oldest = next(iter(self._over_limit))
            del self._over_limit[oldest]  # more connections may come before it is closed
            oldest.abort()
        return False

    def remove(self, connection: "ServerConnection") -> None:
        """Unregister a connection that was closed."""
        self._open.discard(connection)
        self._over_limit.pop(connection, None)

    async def receive_remaining(self, seconds: float) -> None:
        """Wait at most `seconds` until each request that has arrived in part is complete, or its connection closed."""
        if arriving := [connection.received() for connection in self._open if connection.framing.is_incomplete()]:
            await asyncio.wait(arriving, timeout=seconds)


class ServerConnection(asyncio.Protocol):
    """Client connection. It is closed if its first byte, or the end of a request's headers, does not arrive in time."""

    __slots__ = (
        "_connections",
        "_drained",
        "_loop",
        "_protocol",
        "_received",
        "_timer",
        "_transport",
        "_write_timeout",
        "authorization",
        "body",
        "exchange",
        "framing",
        "is_expected",
        "is_over_limit",
        "known_headers",
        "known_key",
        "settings",
        "unanswered",
    )

    def __init__(self, connections: OpenConnections, protocol: asyncio.Protocol) -> None:
        self._connections, self._protocol = connections, protocol
        self.settings = connections.settings
        self._loop = asyncio.get_running_loop()
        self.framing = RequestFraming()
        self.unanswered = 0  # requests whose headers are complete and whose response is not
        self._transport: asyncio.Transport | None = None
        self._drained: asyncio.Future[None] | None = None  # set while `write` waits
        self._received: asyncio.Future[None] | None = None  # set while a shutdown waits for the rest of a request
        self._write_timeout: WriteTimeout | None = None  # set while the write buffer of the connection is full
        self._timer: asyncio.TimerHandle | None = None  # runs before the first byte, and while headers are incomplete
        self.exchange: HttpExchange | None = None  # the request that the dispatcher answers
        self.body: bytes | None = None  # of the next request, if all of it came in the last read and it is small
        self.authorization: str | None = None  # credentials of its last call, which the next one nearly always has too
        self.known_key: object = None  # the key in them, if the service had validated it
        self.known_headers: KnownHeaders | None = None
        self.is_over_limit = False  # whether it is beyond the connection limit
        self.is_expected = False  # whether the load shedder admitted the next call

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timeout for the first byte, which is shorter if the connection limit is exceeded."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports do not derive from it
        self._protocol.connection_made(transport)
        self.is_over_limit = not self._connections.add(self)
        seconds = self.settings.head_seconds if self.is_over_limit else self.settings.silent_seconds
        self._start_timer(seconds, self.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers of the closed connection."""
        self._transport = None
        self._stop_timer()
        self._cancel_write_timeout()
        self._end_receiving()
        self._connections.remove(self)
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the write timeout, because the write buffer is full."""
        self._protocol.pause_writing()
        if self._transport is not None:
            self._write_timeout = WriteTimeout(self._transport, self.settings.write_timeout_seconds)

    def resume_writing(self) -> None:
        """Cancel the write timeout: the client has read most of the buffer."""
        self._cancel_write_timeout()
        self._protocol.resume_writing()

    def eof_received(self) -> bool | None:
        """Pass the end of the input on to the HTTP protocol."""
        return self._protocol.eof_received()

    def data_received(self, data: bytes) -> None:
        """Pass received bytes to the HTTP protocol, or reject a model call under overload. The first bytes of headers
        start the timeout for the rest of the headers.
        """
        framing = self.framing
        if framing.is_between_requests and not self.unanswered:
            if self.settings.load_shedder.admits():
                self.is_expected = True
            # while it drains, a handler rejects the call, which closes the connection
            elif not self.settings.drain.is_announced and self._reject_unparsed(data):
                return
            # of a client that does not wait for its responses, aiohttp has the bodies in their order
            if len(data) <= MAX_READ_BYTES and (request := split_request(data)) is not None:
                head, self.body = request  # the request in `exchange` takes the body, and no later one
                self.unanswered = 1
                if self._timer is not None:
                    self._stop_timer()
                self._protocol.data_received(head)
                return
        was_in_headers, begun = framing.is_in_headers, framing.feed(data)
        self.unanswered += begun
        self._protocol.data_received(data)
        if self._received is not None and not framing.is_incomplete():
            self._end_receiving()
        if not framing.is_in_headers:
            if self._timer is not None:
                self._stop_timer()
        elif begun or not was_in_headers:
            self._start_timer(self.settings.head_seconds, self._reject_slow_headers)

    def received(self) -> asyncio.Future[None]:
        """Return a future that is done when the incomplete request is complete or the connection is closed."""
        self._received = self._loop.create_future()
        return self._received

    async def write(self, head: bytes, body: bytes = b"") -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if len(body) <= MAX_JOINED_BYTES:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        if self._write_timeout is not None:
            self._drained = self._loop.create_future()
            await self._drained

    def write_now(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def is_writable(self) -> bool:
        return self._write_timeout is None and self._transport is not None and not self._transport.is_closing()

    def is_closed_by_client(self) -> bool:
        if self._transport is None or self._transport.is_closing():
            return True
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket"), _CLOSED_BY_CLIENT)
        return bool(poll.poll(0))

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def cut_off(self) -> None:
        """End the request in flight with a shutdown error: as the last event of a stream that has begun, otherwise as
        the response. Then the connection is closed.
        """
        if (exchange := self.exchange) is None:
            return
        if exchange.cut_off is not None:
            exchange.cut_off()
        elif not exchange.is_begun:
            request = exchange.request
            face = error_format(request.method, request.path)
            self._send_error(shutting_down(), face, exchange.request_id, request.headers, close=True)

    def reject_version(self, exchange: HttpExchange) -> int:
        """Reject a request of an unsupported major version of HTTP, close the connection, and return the status. It is
        505 (RFC 9110, 15.6.6), or 400 for HTTP/0.9, which no valid request line states. The response is written as
        HTTP/1.1; aiohttp would use the version of the request.
        """
        major, minor = exchange.request.version
        status = HTTPStatus.HTTP_VERSION_NOT_SUPPORTED if major > 1 else HTTPStatus.BAD_REQUEST
        message = f"the request cannot be read: HTTP/{major}.{minor} is not spoken on this port; send HTTP/1.1"
        error = UmgError(pb.ERROR_REASON_MALFORMED_BODY, message)
        self._send_error(error, DEFAULT_FORMAT, exchange.request_id, {}, status, close=True)
        return status

    def _reject_unparsed(self, data: bytes) -> bool:
        """Respond to `data` with an overload error if it is exactly one complete model call. Return whether it was."""
        transport, cors = self._transport, self._connections.cors
        call = None if self.is_over_limit else parse_model_call(data)
        if call is None or transport is None or transport.is_closing() or self._write_timeout is not None:
            return False
        error = self.settings.load_shedder.refusal()
        self.settings.note_refused(RefusedRequest(call.error_format, call.request_id, error))
        if call.request_id or cors.enabled:
            headers: dict[str, str] = {hdrs.ORIGIN: call.origin} if call.origin else {}
            self._send_error(error, call.error_format, call.request_id or request_id_of(), headers, close=False)
        else:
            transport.write(self._connections.refusals.write(error, call))
        self._stop_timer()
        return True

    def _reject_slow_headers(self) -> None:
        """Reject a request whose headers are incomplete at the timeout, after the responses to earlier requests."""
        if self.unanswered or self.exchange is not None:
            self._start_timer(self.settings.head_seconds, self._reject_slow_headers)
            return
        message = f"the request cannot be read: its head took longer than {self.settings.head_seconds:g} seconds"
        error = UmgError(pb.ERROR_REASON_MALFORMED_BODY, message)
        self._send_error(error, DEFAULT_FORMAT, request_id_of(), {}, HTTPStatus.REQUEST_TIMEOUT, close=True)

    def _send_error(
        self,
        error: UmgError,
        face: str,
        request_id: str,
        request_headers: Mapping[str, str],
        status: int | None = None,
        *,
        close: bool,
    ) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        error.metadata.setdefault("request_id", request_id)
        refusal = error_response(error, face, status)
        refusal.headers.extend(self._connections.cors.headers(request_headers))
        transport.write(encode_http(refusal, request_id, close=close))
        if close:
            transport.close()

    def _end_receiving(self) -> None:
        if self._received is not None and not self._received.done():
            self._received.set_result(None)

    def _start_timer(self, seconds: float, act: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, act)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cancel_write_timeout(self) -> None:
        if self._write_timeout is not None:
            self._write_timeout.end()
            self._write_timeout = None
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)


class WriteTimeout:
    """Timeout while a connection's write buffer is full, until `end`. A client that reads nothing for this time is
    disconnected, which cancels the call; a client that reads slowly is not.
    """

    def __init__(self, transport: asyncio.Transport, seconds: float) -> None:
        """Start the timeout, which disconnects the client after `seconds` in which it reads nothing."""
        self._transport = transport
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._unread = 0
        self._timer = self._loop.call_later(seconds, self._check)

    def end(self) -> None:
        """Stop the timeout."""
        self._timer.cancel()

    def _check(self) -> None:
        unread = self._transport.get_write_buffer_size()
        if unread and unread == self._unread:
            self._transport.abort()
            return
        self._unread = unread
        self._timer = self._loop.call_later(self._seconds, self._check)
