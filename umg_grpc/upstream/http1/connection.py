"""HTTP/1.1 connection to a provider, and the exchanges (request and response) on it."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from math import inf
from typing import Protocol, runtime_checkable

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.http1.connection_errors import broken, unreachable
from umg_grpc.upstream.http1.deadlines import ExchangeDeadline
from umg_grpc.upstream.http1.decompression import Inflater, inflate
from umg_grpc.upstream.http1.detached_context import NO_CALL, without_call
from umg_grpc.upstream.http1.request import ConnectionTarget
from umg_grpc.upstream.http1.response import MAX_ERROR_BODY_BYTES, ReceivedResponse, ResponseParser

PART_BYTES = 256 << 10  # a longer body is written in parts, each after the one before was sent
READ_BYTES = 32 << 10
"""Maximum bytes of one read. They are forwarded as one message, which takes about a millisecond to translate."""
BUFFER_BYTES = 64 << 10
"""Bytes of a stream that are received before they are read; the event loop may add up to 256 KiB."""
ERROR_BODY_SECONDS = 5.0  # from the first bytes of an error response to its end
END_SECONDS = 0.1  # from a response's last event to the end of its body
MAX_RELAYED_BYTES = 4 << 10
"""Largest part of a stream that is relayed in the event loop's callback: ten microseconds of work."""
NO_RESPONSE = ReceivedResponse(None)
"""Response of a connection in the pool."""


class Owner(Protocol):
    """Interface of the connection pool, whose methods its connections call."""

    def keep(self, connection: "ProviderConnection") -> None:
        """Return a connection to the pool after its exchange, so that another exchange can use it."""
        ...

    def lost(self, connection: "ProviderConnection") -> None:
        """Remove a closed connection from the pool."""
        ...


@runtime_checkable
class Transport(Protocol):
    """Used methods of an asyncio transport; transports of uvloop are not subclasses of `asyncio.Transport`."""

    def write(self, data: bytes | memoryview) -> None: ...

    def get_write_buffer_size(self) -> int: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def abort(self) -> None: ...


class ProviderExchange(msgspec.Struct, eq=False):
    """One HTTP request and its response. It is detached from its connection when the response is complete, so that
    later events of the connection do not affect a body that is still to be read.
    """

    response: ReceivedResponse
    deadline: ExchangeDeadline
    _connection: "ProviderConnection"
    done: bool = False  # the response is complete, or the connection broke
    fault: UmgError | None = None  # of the connection
    relay: Callable[[bytes], bool] | None = None
    """Function that is offered each part for which `read` waits, before `read` returns it: most parts of a stream need
    no coroutine. It returns whether it took the part; if not, it has changed nothing.
    """
    _waiter: asyncio.Future[None] | None = None
    _inflater: Inflater | None = None  # of a compressed body that is read in parts
    _pieces: Iterator[bytes] = iter(())  # decompressed pieces of the last part

    async def send(self, head: bytes, body: bytes) -> None:
        """Write a long request as fast as the provider reads it, unless it responds or the connection breaks."""
        connection = self._connection
        connection.sending = True  # a response before the end of the request leaves the connection unusable
        connection.transport.write(head)
        view = memoryview(body)
        for start in range(0, len(body), PART_BYTES):
            connection.transport.write(view[start : start + PART_BYTES])
            while connection.writing_paused and not self.done:
                self._waiter = connection.loop.create_future()
                await self._waiter
            if self.done:
                return
        connection.sending = False

    async def receive(self, *, whole: bool) -> None:
        """Wait for the headers, or with `whole` for all of the response. Raise UmgError if it is cut or too late."""
        response = self.response
        while not (self.done or (response.has_head and not whole)):
            self._waiter = self._connection.loop.create_future()
            await self._waiter
        self.deadline.read_end = inf
        if self.fault is not None and (whole or not response.has_head):
            self._raise_fault()

    async def refusal(self) -> bytes:
        """Return the body of an error or of an unexpected response. It may be incomplete, or cut at the size limit."""
        response = self.response
        response.refused, response.limit = True, MAX_ERROR_BODY_BYTES
        if response.size <= MAX_ERROR_BODY_BYTES:
            self._connection.resume_reading()
            await self.receive(whole=True)
        return (await inflate(response, MAX_ERROR_BODY_BYTES)).body

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the decompressed parts of the body as they arrive. Raise UmgError if it is cut or takes too long."""
        while chunk := await self.read():
            yield chunk

    async def read(self, max_bytes: int = READ_BYTES, *, inflates: bool = True) -> bytes:
        """Return the next part of the body as soon as it arrives, b"" at the end. `inflates`: whether to decompress the
        part; `max_bytes`: maximum size of a part that is not decompressed. Raise UmgError if the connection breaks or
        the provider sends nothing for too long; all bytes that arrived are returned before.
        """
        response, connection = self.response, self._connection
        if response.encodings and inflates:
            return await self._read_inflated()
        body = response.body
        if not (body or self.done):
            due = self.deadline.start_read(connection.loop.time())
            if due < connection.timer_due:
                connection.set_timer(due)
            while not (body or self.done):
                self._waiter = connection.loop.create_future()
                await self._waiter
            self.deadline.read_end = inf
        if not body:
            self._raise_fault()
            return b""
        data = bytes(memoryview(body)[:max_bytes])
        del body[:max_bytes]
        if connection.reading_paused and not (body or self.done):
            connection.resume_reading()
        return data

    async def finish(self) -> None:
        """Read the end of a stream's body, so that the connection can be reused; close it if the body does not end."""
        with suppress(UmgError, TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                while await self.read(inflates=False):
                    pass

    async def _read_inflated(self) -> bytes:
        """Return the next part of the body, decompressed; b"" at its end."""
        if self._inflater is None:
            self._inflater = Inflater(self.response.encodings, READ_BYTES)
        while not (piece := next(self._pieces, b"")):
            if not (data := await self.read(inflates=False)):
                self._inflater.close()
                return b""
            self._pieces = iter(self._inflater.feed(data))
        return piece

    def close(self) -> None:
        """Release the response. If it is incomplete, close the connection, which stops the provider."""
        self.response.body.clear()
        self.relay = None  # it refers to the call, which refers to this exchange
        if not self.done:
            self._connection.abandon()

    def is_relayed(self, relay: Callable[[bytes], bool]) -> bool:
        """Offer the received part to `relay`, if `read` waits for it. Return whether it was taken."""
        waiter, body = self._waiter, self.response.body
        if waiter is None or waiter.done() or len(body) > MAX_RELAYED_BYTES or not relay(bytes(body)):
            return False
        body.clear()
        self.deadline.start_read(self._connection.loop.time())
        return True

    def wake(self) -> None:
        """Resume the task that waits for data of the connection, if there is one."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _raise_fault(self) -> None:
        """Raise the error of the connection, if it has one that was not raised before."""
        fault, self.fault = self.fault, None
        if fault is not None:
            try:
                raise fault
            finally:
                del fault  # its traceback references this frame


class ProviderConnection(asyncio.Protocol):
    """HTTP/1.1 connection to a provider, used by one exchange at a time."""

    transport: Transport
    timer_due: float  # when the timer fires, on the event loop's clock; not all timers of uvloop report it
    _timer: asyncio.TimerHandle | None = None
    _idle_end: float  # end of the time in the pool

    def __init__(self, owner: Owner, origin: ConnectionTarget, idle: float) -> None:
        self.origin = origin
        self.closed = False
        self.sending = False
        self.reading_paused = False
        self.writing_paused = False
        self.loop = asyncio.get_running_loop()
        self._owner = owner
        self._idle = idle
        self._parser = ResponseParser()
        self._exchange: ProviderExchange | None = None

    @property
    def answered(self) -> bool:
        """Whether the provider has sent at least one byte of the response to the last request."""
        return self._parser.response.received > 0

    async def start_tls(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        """Start TLS with the provider on `transport`, a tunnel through its proxy. Raise OSError if that fails."""
        self.transport = transport
        starting = self.loop.start_tls(transport, self, tls, server_hostname=self.origin.server.tls_name)
        secured = await without_call(starting)
        if secured is None:
            raise ConnectionResetError("the connection was closed during the TLS handshake")
        self.connection_made(secured)

    def begin(self, deadline: ExchangeDeadline, max_bytes: int | None, *, has_body: bool = True) -> ProviderExchange:
        """Start an exchange on this connection. `max_bytes`: maximum size of the response, None for a stream;
        `has_body`: False for HEAD. Raise UmgError(UPSTREAM_UNREACHABLE) if the provider has closed the connection.
        """
        if self.closed:
            raise unreachable("the connection was closed before the request was sent")
        self._parser.response = response = ReceivedResponse(max_bytes, has_body=has_body)
        self._exchange = exchange = ProviderExchange(response, deadline, self)
        if (due := deadline.end if max_bytes is not None else deadline.start_read(self.loop.time())) < self.timer_due:
            self.set_timer(due)
        return exchange

    def resume_reading(self) -> None:
        """Resume reading the body from the socket, after the read buffer was full."""
        if self.reading_paused:
            self.reading_paused = False
            if not self.closed:
                self.transport.resume_reading()

    def abandon(self) -> None:
        """Close the connection because its response is no longer needed."""
        self._exchange = None
        self.close()

    def close(self) -> None:
        """Close the connection at once, in any state."""
        self.closed = True
        self.transport.abort()

    def set_timer(self, due: float) -> None:
        """Set the timer for deadlines to `due`, a time that is earlier than the one to which it is set."""
        self._stop_timer()
        self.timer_due = due
        self._timer = self.loop.call_at(due, self._on_timer, context=NO_CALL)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _on_timer(self) -> None:
        """End the exchange if one of its deadlines has passed; otherwise set the timer to the next deadline."""
        now, exchange = self.loop.time(), self._exchange
        if exchange is None:
            if now >= self._idle_end:
                self.close()
            else:
                self.set_timer(self._idle_end)
        elif name := exchange.deadline.expired(now, self.timer_due):
            self._end(exchange, None if exchange.response.refused else exchange.deadline.deadlines.late(name))
        else:
            self.set_timer(min(exchange.deadline.read_end, exchange.deadline.end))

    def _end(self, exchange: ProviderExchange, fault: UmgError | None = None) -> None:
        """End the exchange. With an error (`fault`) the connection is closed, else a reusable one is pooled."""
        self._exchange = None
        exchange.done, exchange.fault = True, fault
        exchange.wake()
        keeps = fault is None and exchange.response.keep and not (self.closed or self.sending)
        if keeps and not self.transport.get_write_buffer_size():
            self._parser.response = NO_RESPONSE
            self._idle_end = self.loop.time() + self._idle
            if self._idle_end < self.timer_due:
                self.set_timer(self._idle_end)
            self._owner.keep(self)
        else:
            self.close()

    # callbacks of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, Transport):
            raise TypeError("expected a stream's transport")
        self.transport = transport
        if not self.closed:
            self._idle_end = self.loop.time() + self._idle
            self.set_timer(self._idle_end)

    def data_received(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange is None:
            self.close()  # no request was sent
            return
        try:
            is_complete = self._parser.feed(data)
        except UmgError as fault:
            self._end(exchange, fault)
            return
        if is_complete:
            self._end(exchange)
            return
        response = exchange.response
        if response.refused:
            exchange.deadline.end = min(exchange.deadline.end, self.loop.time() + ERROR_BODY_SECONDS)
            if exchange.deadline.end < self.timer_due:
                self.set_timer(exchange.deadline.end)
        elif response.limit is None and len(response.body) > BUFFER_BYTES and not self.reading_paused:
            self.reading_paused = True
            self.transport.pause_reading()
        elif exchange.relay is not None and exchange.is_relayed(exchange.relay):
            return
        exchange.wake()

    def eof_received(self) -> None:
        self._finish(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish(exc)
        self._stop_timer()
        self._parser.close()
        self._owner.lost(self)

    def _finish(self, error: Exception | None) -> None:
        self.closed = True
        if (exchange := self._exchange) is None:
            return
        response = exchange.response
        try:
            if error is not None and not response.refused:
                raise broken(f"{type(error).__name__}: {error}")
            response.close()
        except UmgError as fault:
            self._end(exchange, fault)
        else:
            self._end(exchange)

    def pause_writing(self) -> None:
        self.writing_paused = True

    def resume_writing(self) -> None:
        self.writing_paused = False
        if self._exchange is not None:
            self._exchange.wake()
