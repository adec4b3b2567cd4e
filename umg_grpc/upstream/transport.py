"""The one way out: sends a request to a provider and gives back its status, headers and bytes.

Deadlines and connection faults end here as `UmgError`s. Whole answers come by the connections of `lean`; streams, and
what goes through a proxy, by the client of aiohttp. Both stand behind this module alone.
"""

import asyncio
import errno
import io
import math
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import aiohttp
from yarl import URL

from umg_grpc.errors import Failure, UmgError, come_again
from umg_grpc.upstream.bodies import FAULTS, read, read_answer, read_refusal
from umg_grpc.upstream.connector import REACH, Connector, Reach, session_over
from umg_grpc.upstream.lean import faults
from umg_grpc.upstream.lean.answer import Fetched
from umg_grpc.upstream.lean.connections import STALE_SECONDS, Connections
from umg_grpc.v1 import pb

LARGE_BYTES = 1 << 20
END_SECONDS = 0.1  # from an answer's last event to the end of its body
NO_MORE_FILES = frozenset[int | None]({errno.EMFILE, errno.ENFILE})
WAITS = {
    "connect": "a connection",
    "first_byte": "its first bytes",
    "idle": "the next part of its answer",
    "total": "the whole answer",
}


@dataclass(frozen=True)
class Deadlines:
    """How long to wait for a provider, in seconds."""

    connect: float
    first_byte: float  # of a stream: from sending to its first event; what only keeps the connection alive is none
    idle: float  # of a stream: between its reads
    total: float
    caller: float = math.inf  # how long the caller waits

    def within(self, seconds: float) -> Self:
        """These, none longer than the caller waits. Raises UmgError(UPSTREAM_TIMEOUT), which is nobody's failure, when
        that is over.
        """
        if seconds >= self.total:
            return self
        if seconds <= 0:
            raise UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, "the call's own deadline is over", deadline="total")
        return type(self)(
            min(self.connect, seconds),
            min(self.first_byte, seconds),
            min(self.idle, seconds),
            min(self.total, seconds),
            seconds,
        )


class Outgoing(NamedTuple):
    """A request to a provider."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    deadlines: Deadlines
    proxy: str | None = None
    tls: ssl.SSLContext | bool = True  # True: the system's authorities
    repeatable: bool = True  # what it asks for may be made twice


class Answer:
    """A provider's answer, its body still to be read."""

    def __init__(self, response: aiohttp.ClientResponse, deadlines: Deadlines, started: float) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers  # looked up in any case
        self.content_type = response.content_type
        self._response = response
        self._deadlines = deadlines
        self._started = started  # the event loop's time when the request was sent

        self._watch: Watch | None = None

    async def refusal(self) -> bytes:
        """The body that says why the call was refused: as much of it as comes, and is looked at."""
        return await read_refusal(self._response)

    def heard(self) -> None:
        """The answer has begun: no first event is awaited any more."""
        if self._watch is not None:
            self._watch.heard()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, one item a read. Raises as `Transport.fetch`, also when a read is too late."""
        watch = self._watch = Watch(self._response, self._deadlines, self._started)
        try:
            while chunk := await read(self._response):
                watch.pause()
                yield chunk
                watch.resume()
        except FAULTS as error:
            raise late(watch.expired, self._deadlines) if watch.expired else _fault(error, self._deadlines) from None
        finally:
            watch.stop()

    async def finish(self) -> None:
        """Lets the body end, whose last event was read: its connection is then kept for another call. A provider that
        does not end it at once loses the connection instead.
        """
        if self._response.content.is_eof():
            return
        with suppress(*FAULTS):
            async with asyncio.timeout(END_SECONDS):
                while await self._response.content.readany():
                    pass

    def close(self) -> None:
        """Closes the connection, unless the body was read to its end: then it is kept for another call."""
        self._response.close()


class Watch:
    """Closes a stream's response when a read is too late, or the whole is, which ends the read that waits.

    Its one timer is moved only when it fires: a read costs none. While the consumer is busy no read is late, but the
    whole may be: a caller that stopped reading does not hold the provider for ever.
    """

    def __init__(self, response: aiohttp.ClientResponse, deadlines: Deadlines, started: float) -> None:
        self.expired = ""  # the deadline that is over
        self._response = response
        self._idle = deadlines.idle
        self._loop = asyncio.get_running_loop()
        self._end = started + deadlines.total
        self._first = self._due = started + deadlines.first_byte
        self._name = "first_byte"
        self._set_timer(min(self._due, self._end))

    def pause(self) -> None:
        """Nobody waits for the provider now."""
        self._due = math.inf

    def heard(self) -> None:
        """The answer has begun."""
        self._name = "idle"

    def resume(self) -> None:
        """The consumer waits again."""
        self._due = self._loop.time() + self._idle if self._name == "idle" else self._first
        if self._due < self._fires:  # it was set for a longer wait
            self._timer.cancel()
            self._set_timer(self._due)

    def stop(self) -> None:
        """No more watching."""
        self._timer.cancel()

    def _set_timer(self, when: float) -> None:
        self._fires = when  # uvloop's timers cannot all be asked
        self._timer = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        if now >= self._end:
            self.expired = "total"
        elif now >= self._due:
            self.expired = self._name
        else:
            self._set_timer(min(self._due, self._end, now + self._idle))
            return
        # aiohttp would tell who reads by one exception for all, which remembers for ever where each of them was
        self._response.content.set_exception(aiohttp.ClientConnectionError("too late"))
        self._response.close()


class Transport:
    """The pool of connections to all providers. Opened once a process, closed with it."""

    def __init__(self, session: aiohttp.ClientSession, fresh: aiohttp.ClientSession, connections: Connections) -> None:
        """`fresh`: a session that makes a new connection for each call."""
        self._session = session
        self._fresh = fresh
        self._connections = connections

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncGenerator[Self, None]:
        """A transport whose connections are closed at the end."""
        async with session_over(Connector(keeps=True)) as session, session_over(Connector(keeps=False)) as fresh:
            connections = Connections()
            try:
                yield cls(session, fresh, connections)
            finally:
                await connections.close()

    async def fetch(self, call: Outgoing) -> Fetched:
        """The whole answer; of a refusal, as much as comes. Raises UmgError as `_fault` says, UPSTREAM_FAILED for a
        body of more than 256 MiB.
        """
        if call.proxy is not None or call.tls is False:
            return await self._fetch_by_aiohttp(call)
        try:
            return await self._connections.post(
                call.url,
                call.headers,
                call.body,
                connect=call.deadlines.connect,
                total=call.deadlines.total,
                tls=None if call.tls is True else call.tls,
                repeatable=call.repeatable,
            )
        except FAULTS as error:
            raise _fault(error, call.deadlines) from None

    async def _fetch_by_aiohttp(self, call: Outgoing) -> Fetched:
        reach = Reach()
        try:
            response = await self._send(call, reach)
            try:
                body = await (read_answer if response.status == 200 else read_refusal)(response)
                return Fetched(response.status, response.headers, body)
            finally:
                response.close()  # nothing is left to read, unless this call was cancelled or failed
        except FAULTS as error:
            raise _fault(error, call.deadlines, sent=not reach.connects) from None

    async def open(self, call: Outgoing) -> Answer:
        """A streamed answer, from its headers on, which come within the first-byte deadline. Raises as `fetch`.

        Whoever opened it closes it: a body that was not read to its end then ends with its connection, so that leaving
        early stops the provider.
        """
        started, reach = asyncio.get_running_loop().time(), Reach()
        try:
            async with asyncio.timeout(call.deadlines.first_byte) as waiting:
                response = await self._send(call, reach)
        except FAULTS as error:
            if waiting.expired():
                raise late("first_byte", call.deadlines, sent=not reach.connects) from None
            raise _fault(error, call.deadlines) from None
        return Answer(response, call.deadlines, started)

    async def _send(self, call: Outgoing, reach: Reach) -> aiohttp.ClientResponse:
        """As `Connections.post`: a kept connection that breaks as soon as it is written to gives way to a new one."""
        started = asyncio.get_running_loop().time()
        REACH.set(reach)
        try:
            return await self._post(self._session, call)
        except aiohttp.ClientConnectionError as error:
            is_early = asyncio.get_running_loop().time() - started <= STALE_SECONDS
            if not reach.kept or not is_early or isinstance(error, TimeoutError):
                raise
            if not call.repeatable:
                raise faults.StaleError(f"{type(error).__name__}: {error}") from None
        return await self._post(self._fresh, call)

    async def _post(self, session: aiohttp.ClientSession, call: Outgoing) -> aiohttp.ClientResponse:
        return await session.post(
            _url(call.url),
            # aiohttp warns of a large body that is given as bytes
            data=call.body if len(call.body) <= LARGE_BYTES else io.BytesIO(call.body),
            headers=call.headers,
            proxy=call.proxy,
            ssl=call.tls,
            allow_redirects=False,
            timeout=_timeout(call.deadlines.total, call.deadlines.connect),
        )


@lru_cache(maxsize=1024)
def _url(url: str) -> URL:
    return URL(url)


@lru_cache(maxsize=1024)
def _timeout(total: float, connect: float) -> aiohttp.ClientTimeout:
    # exact: aiohttp would round what is longer than 5 s up to whole seconds
    return aiohttp.ClientTimeout(total=total, connect=connect, ceil_threshold=total + 1)


def _fault(error: Exception, deadlines: Deadlines, *, sent: bool = True) -> UmgError:
    """What went wrong with the connection, as the caller may know it: UPSTREAM_UNREACHABLE when nothing can have been
    sent, UPSTREAM_CUT when the connection broke, UPSTREAM_TIMEOUT with the deadline's name. `sent`: whether, when the
    time was over, the provider may have got something.
    """
    failure, cause = Failure.AMBIGUOUS, f"{type(error).__name__}: {error}"
    if isinstance(error, faults.UnreachableError | aiohttp.ClientConnectorError) and error.errno in NO_MORE_FILES:
        full = come_again("the gateway has as many connections open as its system allows")  # which no provider can help
        full.cause = cause
        return full
    match error:
        case faults.LateError():
            return late(error.name, deadlines, sent=error.sent)
        case aiohttp.ConnectionTimeoutError():
            return late("connect", deadlines, sent=False)
        case TimeoutError():
            return late("total", deadlines, sent=sent)
        case aiohttp.ClientHttpProxyError(status=401 | 403 | 407):
            reason, failure = pb.ERROR_REASON_UPSTREAM_UNREACHABLE, Failure.DOWN
            message = "the proxy to the provider refused the gateway; the operator has to check the channel"
        case (
            faults.UnreachableError()
            | aiohttp.ClientConnectorError()
            | aiohttp.ClientProxyConnectionError()
            | aiohttp.ClientHttpProxyError()
        ):
            reason, failure = pb.ERROR_REASON_UPSTREAM_UNREACHABLE, Failure.NOT_SENT
            message = "the provider could not be reached; try again"
        case faults.StaleError():
            reason, cause = pb.ERROR_REASON_UPSTREAM_CUT, f"stale: {error}"
            message = "the provider closed the connection before it answered; try again"
        case faults.DisconnectedError() | aiohttp.ServerDisconnectedError():
            reason = pb.ERROR_REASON_UPSTREAM_CUT
            message = "the provider closed the connection before it answered; try again"
        case _:
            reason = pb.ERROR_REASON_UPSTREAM_CUT
            message = "the provider's connection broke before the answer was whole; try again"
    return UmgError(reason, message).of(failure, cause)


def late(name: str, deadlines: Deadlines, *, sent: bool = True) -> UmgError:
    """UPSTREAM_TIMEOUT, for the deadline of this name. Where the caller's own came first it is nobody's failure."""
    seconds: float = getattr(deadlines, name)
    if seconds >= deadlines.caller:
        message = f"the call's own deadline was over before {WAITS[name]} came; give it more time"
        return UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline=name)
    message = f"the provider was too slow: more than {seconds:g} s for {WAITS[name]}; try again"
    error = UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline=name)
    return error.of(Failure.AMBIGUOUS if sent else Failure.NOT_SENT)
