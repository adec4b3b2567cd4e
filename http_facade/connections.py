"""Clients' connections: how many there are, how long one may say nothing or dawdle, and what is no HTTP."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus

from aiohttp import StreamReader, hdrs, web
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import LineTooLong

from http_facade.calls import MESSAGES_REQUEST_ID, REQUEST_ID_HEADER, exchange, new_request_id, request_id_in
from http_facade.cors import Cors
from http_facade.errors import error_response, log
from http_facade.heads import Heads
from http_facade.listening import Arrivals
from http_facade.routes import DEFAULT_FORMAT, asking, error_format
from http_facade.settings import Settings
from http_facade.stalls import Stall
from umg_grpc.errors import UmgError, internal, shutting_down
from umg_grpc.v1 import pb

SERVER = "umg"
KEEPALIVE_SECONDS = 620.0  # longer than a load balancer's in front of us, or it meets connections that we just closed
LINGERING_SECONDS = 30.0  # how long a refused upload is read on, so that its sender gets to read the refusal
SPARE = 256
"""Connections beyond the bound that are kept, so that those who watch over the gateway get through; when there is one
more, the oldest of them is ended.
"""
SPARE_AT_ONCE = 64
"""Most of them that are let in before others are ended: their files are there for a moment all the same."""


class Server(web.Server):
    """Makes our connections, and knows which of them are too many."""

    def __init__(self, made: web.Server, settings: Settings) -> None:
        """In place of one that aiohttp made."""
        super().__init__(
            made.request_handler,
            request_factory=made.request_factory,
            handler_cancellation=True,
            loop=asyncio.get_running_loop(),
            access_log=None,
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=LINGERING_SECONDS,
            auto_decompress=False,
        )
        self.settings = settings
        self.cors = Cors(settings.cors_origins)
        self._spare: dict[Connection, None] = {}  # the oldest first
        self.arrivals = Arrivals(self, self._welcome)

    def __call__(self) -> web.RequestHandler:
        self.arrivals.look()
        return Connection(self, loop=self._loop, **self._kwargs)

    def pre_shutdown(self) -> None:
        """Called when nobody new is to come."""
        self.arrivals.close()
        super().pre_shutdown()

    def has_room(self, connection: "Connection") -> bool:
        """Whether a connection that was just made is within the bound."""
        if len(self._connections) <= self.settings.connections:
            return True
        self._spare[connection] = None
        if len(self._spare) > SPARE:
            oldest = next(iter(self._spare))
            del self._spare[oldest]  # others may come before it has ended
            oldest.end()
        return False

    def _welcome(self) -> int:
        return max(SPARE_AT_ONCE, self.settings.connections - len(self._connections))

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        if isinstance(handler, Connection):
            self._spare.pop(handler, None)


class Connection(web.RequestHandler):
    """A client's connection. It ends when it never says anything, and when the head of a request is long in coming."""

    __slots__ = ("_cors", "_head_began", "_heads", "_settings", "_stall", "_timer", "is_spare", "was_checked")

    def __init__(self, server: Server, *, loop: asyncio.AbstractEventLoop, **arguments: object) -> None:
        super().__init__(server, loop=loop, **arguments)  # type: ignore[arg-type]  # as aiohttp hands them on
        self._settings, self._cors = server.settings, server.cors
        self._heads = Heads()
        self._stall: Stall | None = None  # while the client has much to read
        self._timer: asyncio.TimerHandle | None = None  # runs while nothing was said, and while a head comes
        self._head_began = False
        self.is_spare = False  # whether it is one too many
        self.was_checked = False  # whether the gate took on the call that comes next

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins to wait for the first request: not for long, where others wait for a place."""
        super().connection_made(transport)
        server, settings = self._manager, self._settings
        self.is_spare = isinstance(server, Server) and not server.has_room(self)
        seconds = settings.head_seconds if self.is_spare else settings.silent_seconds
        self._timer = self._loop.call_later(seconds, self.end)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Waits for nothing any more."""
        self._stop_timer()
        self._end_stall()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Watches a client who has much to read, until `resume_writing`."""
        super().pause_writing()
        if self.transport is not None:
            self._stall = Stall(self.transport, self._settings.stalled_seconds)

    def resume_writing(self) -> None:
        """Most was read."""
        self._end_stall()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Takes what came; nothing, where aiohttp looks again at what is here. From the first bytes of a head on, the
        rest of it has its time.
        """
        waiter = self._waiter
        if data and waiter is not None and not waiter.done() and self._settings.gate.is_tight:
            self._sift(data, waiter)
        else:
            self._take(data)

    def _take(self, data: bytes) -> None:
        known = len(self._messages)
        super().data_received(data)
        last = self._messages[-1] if len(self._messages) > known else None
        if self._heads.is_cut(data, last) and not self._upgraded:
            if last is not None or not self._head_began:
                self._head_began = True
                self._wait_for_head()
        elif data or last is not None:  # a whole head was here, or what comes is a body
            self._head_began = False
            self._stop_timer()

    def _sift(self, data: bytes, waiter: asyncio.Future[None]) -> None:
        """Takes what came while nothing is under way, and turns a call away at once for which there is no room: it
        would have to wait for its turn to be refused behind all the work that there is no room for.
        """
        self._waiter = None  # so that no task wakes
        try:
            self._take(data)
        finally:
            self._waiter = waiter
        if len(self._messages) == 1 and self._turn_away(*self._messages[0]):
            self._messages.clear()
            if self._parser is not None:
                self._parser.message_consumed()
            self._next_keepalive_close_time = self._loop.time() + KEEPALIVE_SECONDS
        elif self._messages and not waiter.done():
            waiter.set_result(None)

    def _turn_away(self, message: object, body: StreamReader) -> bool:
        """Whether a call of a model, which is here as a whole, was refused."""
        if not isinstance(message, RawRequestMessage) or not body.is_eof():
            return False  # what the handlers know better
        route = asking(message.method, message.path)
        if route is None or message.upgrade or self.writing_paused:
            return False
        try:
            self._settings.gate.check()
        except UmgError as error:
            asked = request_id_in(message.headers)
            self._say(error, route.error_format, asked, message.headers, close=message.should_close)
            return True
        self.was_checked = True
        return False

    def end(self) -> None:
        """Ends it without a word."""
        if self.transport is not None:
            self.transport.abort()

    def refuse_unanswered(self) -> None:
        """Answers, whatever its handler does, a call of which nothing was said yet; nothing is sent after it."""
        request = self._current_request
        if request is None or request.writer.output_size > 0:
            return
        face = error_format(request.method, request.path)
        self._say(shutting_down(), face, exchange(request).request_id, request.headers, close=True)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what no handler saw (it is not HTTP) or could answer (its answer was under way)."""
        if request.writer.output_size > 0:
            if not isinstance(exc, ConnectionError):  # which is the client's leaving
                log.error("answer broke off", exc_info=exc)
            raise ConnectionError("half an answer was sent")
        asked = exchange(request).request_id
        if status < 500:
            status = 431 if isinstance(exc, LineTooLong) else status
            what = "a line of its head is too long" if status == 431 else "it is not HTTP as the standard has it"
            error = UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the request cannot be read: {what}")
            log.info("request", status=status, request_id=asked, failure=type(exc).__name__)
        else:
            error = internal(asked)
            log.error("unexpected failure", request_id=asked, exc_info=exc)
        response = error_response(error, DEFAULT_FORMAT, status)
        response.headers.update({hdrs.SERVER: SERVER, REQUEST_ID_HEADER: asked})
        response.force_close()
        return response

    def _give_up(self) -> None:
        """Of a head that does not come whole; not before the answers to what came before it."""
        if self._waiter is None or self._waiter.done():
            self._wait_for_head()
            return
        message = f"the request cannot be read: its head took longer than {self._settings.head_seconds:g} seconds"
        error = UmgError(pb.ERROR_REASON_MALFORMED_BODY, message)
        self._say(error, DEFAULT_FORMAT, new_request_id(), {}, HTTPStatus.REQUEST_TIMEOUT, close=True)

    def _say(
        self,
        error: UmgError,
        face: str,
        request_id: str,
        asked: Mapping[str, str],
        status: int | None = None,
        *,
        close: bool,
    ) -> None:
        """Sends an answer past the handlers; `asked` are the headers of what it answers."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        error.metadata.setdefault("request_id", request_id)
        refusal = error_response(error, face, status)
        self._cors.mark(asked, refusal)
        body = refusal.body if isinstance(refusal.body, bytes) else b""
        headers = {
            **refusal.headers,
            hdrs.CONTENT_LENGTH: len(body),
            hdrs.DATE: rfc822_formatted_time(),
            hdrs.SERVER: SERVER,
            REQUEST_ID_HEADER: request_id,
            MESSAGES_REQUEST_ID: request_id,
            hdrs.CONNECTION: "close" if close else "keep-alive",
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        phrase = HTTPStatus(refusal.status).phrase
        transport.write(f"HTTP/1.1 {refusal.status} {phrase}\r\n{head}\r\n".encode() + body)
        if close:
            transport.close()

    def _wait_for_head(self) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(self._settings.head_seconds, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_stall(self) -> None:
        if self._stall is not None:
            self._stall.end()
            self._stall = None
