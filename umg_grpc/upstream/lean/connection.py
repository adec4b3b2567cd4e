"""A connection to a provider."""

import asyncio
import ssl
from typing import NamedTuple, Protocol, runtime_checkable

from umg_grpc.errors import UmgError
from umg_grpc.upstream.lean.answer import REFUSAL_SECONDS, AnswerReader, Fetched
from umg_grpc.upstream.lean.faults import BrokenError, ConnectionFaultError, LateError, UnreachableError

PART_BYTES = 256 << 10  # a longer body is handed over in parts, each when the one before is on its way


class Place(NamedTuple):
    """Where connections lead that are the same to a call."""

    host: str
    port: int
    tls: ssl.SSLContext | None


class Owner(Protocol):
    """Where connections are kept."""

    def keep(self, connection: "Connection") -> None:
        """It can be used for another exchange."""
        ...

    def lost(self, connection: "Connection") -> None:
        """It is closed."""
        ...


@runtime_checkable
class Stream(Protocol):
    """What is needed of a transport. uvloop's are no `asyncio.Transport`s by their type."""

    def write(self, data: bytes | memoryview) -> None: ...

    def get_write_buffer_size(self) -> int: ...

    def abort(self) -> None: ...


class Connection(asyncio.Protocol):
    """One connection to a provider, for one exchange at a time."""

    _transport: Stream
    _timer: asyncio.TimerHandle
    _fires: float  # when the timer does, on the event loop's clock; uvloop's cannot all be asked
    _due: float  # the end of the exchange, or of being kept without one

    def __init__(self, owner: Owner, place: Place, idle: float) -> None:
        self.place = place
        self.closed = False
        self._owner = owner
        self._idle = idle
        self._loop = asyncio.get_running_loop()
        self._reader = AnswerReader()
        self._over = True  # no answer is awaited
        self._fault: Exception | None = None
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def answered(self) -> bool:
        """Whether a part of the last answer came."""
        return self._reader.began

    async def exchange(self, head: bytes, body: bytes, end: float) -> Fetched:
        """The answer to a request, until `end` on the event loop's clock. Raises a fault, or what `AnswerReader` does.

        Afterwards the connection is kept, unless something speaks against it: it is closed at once when the caller is
        cancelled, so that leaving stops the provider.
        """
        if self.closed:
            raise UnreachableError("the connection was closed before the request was sent")
        self._over = False
        self._last_until(end)
        try:
            if len(body) <= PART_BYTES:
                self._transport.write(head + body)
            else:
                await self._send(head, body)
            while not self._over:
                await self._woken()
            if self._fault is not None:
                raise self._fault
            answer = self._reader.answer()
        except BaseException:
            self._fault = None  # it would hold this call, which holds it
            self.close()
            raise
        if self._reusable():
            self._reader.start()
            self._last_until(self._loop.time() + self._idle)
            self._owner.keep(self)
        else:
            self.close()
        return answer

    def close(self) -> None:
        """Closes it at once, whatever it is doing."""
        self.closed = True
        self._transport.abort()

    def _reusable(self) -> bool:
        return self._reader.keep and not self.closed and not self._transport.get_write_buffer_size()

    def _last_until(self, due: float) -> None:
        self._due = due
        if due < self._fires:
            self._timer.cancel()
            self._set_timer()

    def _set_timer(self) -> None:
        self._fires = self._due
        self._timer = self._loop.call_at(self._due, self._look)

    async def _send(self, head: bytes, body: bytes) -> None:
        """Hands over a long request as fast as the provider takes it, or until that has answered."""
        self._transport.write(head)
        view = memoryview(body)
        for start in range(0, len(body), PART_BYTES):
            self._transport.write(view[start : start + PART_BYTES])
            while self._paused and not self._over:
                await self._woken()
            if self._over:
                self.closed = True  # the rest of the request is not sent, so no other can follow
                return

    async def _woken(self) -> None:
        self._waiter = self._loop.create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _end(self, fault: Exception | None = None) -> None:
        """No more is awaited."""
        self._over = True
        self._fault = fault
        self._wake()

    def _look(self) -> None:
        """The timer fired: it was set for the end of what the connection did then, which may be no more."""
        if self._loop.time() < self._due:
            self._set_timer()
        elif self._over:
            self.close()
        else:
            self._end(None if self._reader.refused else LateError("total", sent=True))

    # what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, Stream):
            raise TypeError("expected a stream's transport")
        self._transport = transport
        self._due = self._loop.time() + self._idle
        self._set_timer()

    def data_received(self, data: bytes) -> None:
        if self._over:
            self.close()  # nothing was asked
            return
        try:
            if self._reader.feed(data):
                self._end()
            elif self._reader.refused:
                self._last_until(min(self._due, self._loop.time() + REFUSAL_SECONDS))
        except (ConnectionFaultError, UmgError) as fault:
            self._end(fault)

    def eof_received(self) -> None:
        self._finish(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish(exc)
        self._timer.cancel()
        self._owner.lost(self)

    def _finish(self, error: Exception | None) -> None:
        self.closed = True
        if self._over:
            return
        try:
            if error is not None and not self._reader.refused:
                raise BrokenError(f"{type(error).__name__}: {error}")
            self._reader.close()
        except ConnectionFaultError as fault:
            self._end(fault)
        else:
            self._end()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._wake()
