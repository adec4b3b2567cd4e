"""The connections that aiohttp makes to providers."""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial

import aiohttp
from aiohttp.client_proto import ResponseHandler

from umg_grpc.upstream.lean.request import DEFAULT_HEADERS

READ_BYTES = 256 << 10  # what one read may bring: a burst of events goes on as one message


class Reach:
    """How far a call came."""

    def __init__(self) -> None:
        self.connects = False  # a connection is being made: nothing was sent
        self.kept = True  # it had no need of a new one


REACH: ContextVar[Reach] = ContextVar("reach")


class Exchanges(ResponseHandler):
    """A connection's answers, one after the other.

    An answer is forgotten as soon as it came: who still has to read it has nothing to do with what happens on the
    connection from then on, which is another call's by then.
    """

    _was_paused = False

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        finally:
            if self._payload is not None and self._payload.is_eof():
                self._payload = None

    def pause_reading(self) -> None:
        super().pause_reading()
        self._was_paused = True

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Goes on where it was paused. aiohttp asks for it with each chunk of a body that is read, and each time looks
        for more in what came, which takes longer than to read the chunk. Once it was paused there may be more, whatever
        it says of itself.
        """
        if self._was_paused:
            super().resume_reading(resume_parser)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Ends the answer that is not whole also where aiohttp lets its reader wait: after what is no HTTP."""
        payload, fault = self._payload, self.exception()
        super().connection_lost(exc)
        if payload is not None and not payload.is_eof() and payload.exception() is None:
            payload.set_exception(aiohttp.ClientPayloadError(str(fault or exc)))

    def is_connected(self) -> bool:
        """Whether it can serve another call: not where something came unasked, which would be taken for its answer."""
        return super().is_connected() and not self.should_close


class Connector(aiohttp.TCPConnector):
    """One that tells how far a call came."""

    def __init__(self, *, keeps: bool) -> None:
        """`keeps`: whether a connection may serve one call after the other."""
        super().__init__(limit=0, ttl_dns_cache=60, force_close=not keeps, keepalive_timeout=60 if keeps else None)
        made: Callable[[asyncio.AbstractEventLoop], ResponseHandler] = Exchanges
        self._factory = partial(made, self._loop)

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[aiohttp.tracing.Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> ResponseHandler:
        reach = REACH.get()
        reach.connects, reach.kept = True, False
        made = await super()._create_connection(req, traces, timeout)
        reach.connects = False
        return made


def session_over(connector: Connector) -> aiohttp.ClientSession:
    """The client of these connections. It closes them."""
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=DEFAULT_HEADERS,  # to leave one out costs a copy of all
        read_bufsize=READ_BYTES,
        trust_env=False,
    )
