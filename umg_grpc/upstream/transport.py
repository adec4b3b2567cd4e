"""The one way out: sends a request to a provider and gives back its status, headers and bytes.

Deadlines and connection faults end here as `UmgError`s. Whole answers come by the connections of `lean`; streams, and
what goes through a proxy, by the client of aiohttp. Both stand behind this module alone.
"""

import asyncio
import io
import math
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import aiohttp
from aiohttp import hdrs
from yarl import URL

from umg_grpc.errors import UmgError
from umg_grpc.upstream.lean import faults
from umg_grpc.upstream.lean.answer import MAX_ANSWER_BYTES, MAX_REFUSAL_BYTES, Fetched
from umg_grpc.upstream.lean.connections import Connections
from umg_grpc.upstream.lean.request import DEFAULT_HEADERS
from umg_grpc.v1 import pb

LARGE_BYTES = 1 << 20
END_SECONDS = 0.1  # from an answer's last event to the end of its body
FAULTS = (faults.ConnectionFaultError, aiohttp.ClientError, TimeoutError, ConnectionError)
WAITS = {
    "connect": "a connection",
    "first_byte": "its first bytes",
    "idle": "the next part of its answer",
    "total": "the whole answer",
}
READ_BYTES = 256 << 10  # what one read may bring: a burst of events goes on as one message


@dataclass(frozen=True)
class Deadlines:
    """How long to wait for a provider, in seconds."""

    connect: float
    first_byte: float  # of a stream: from sending to its first bytes
    idle: float  # of a stream: between its reads
    total: float

    def within(self, seconds: float) -> Self:
        """These, none longer than the caller waits. Raises UmgError(UPSTREAM_TIMEOUT) when that is over."""
        if seconds >= self.total:
            return self
        if seconds <= 0:
            raise UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, "the call's own deadline is over", deadline="total")
        return type(self)(
            min(self.connect, seconds), min(self.first_byte, seconds), min(self.idle, seconds), min(self.total, seconds)
        )


class Outgoing(NamedTuple):
    """A request to a provider."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    deadlines: Deadlines
    proxy: str | None = None
    tls: ssl.SSLContext | bool = True  # True: the system's authorities


class Answer:
    """A provider's answer, its body still to be read."""

    def __init__(self, response: aiohttp.ClientResponse, deadlines: Deadlines, started: float) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers  # looked up in any case
        self.content_type = response.content_type
        self._response = response
        self._deadlines = deadlines
        self._started = started  # the event loop's time when the request was sent

    async def read(self) -> bytes:
        """The whole body. Raises as `Transport.fetch`."""
        try:
            return await _body(self._response)
        except FAULTS as error:
            raise _fault(error, self._deadlines) from None

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, one item a read. Raises as `Transport.fetch`, also when a read is too late."""
        watch = Watch(self._response, self._deadlines, self._started)
        try:
            async for chunk in self._response.content.iter_any():
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
        self._name, self._due = "first_byte", started + deadlines.first_byte
        self._set_timer(min(self._due, self._end))

    def pause(self) -> None:
        """Nobody waits for the provider now."""
        self._due = math.inf

    def resume(self) -> None:
        """The consumer waits again."""
        now = self._loop.time()
        due = now + self._idle
        if self._name == "first_byte":
            self._name = "idle"
            if due < self._fires:  # it was set for a longer wait
                self._timer.cancel()
                self._set_timer(due)
        self._due = due

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
        self._response.close()


class Transport:
    """The pool of connections to all providers. Opened once a process, closed with it."""

    def __init__(self, session: aiohttp.ClientSession, connections: Connections) -> None:
        self._session = session
        self._connections = connections

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncGenerator[Self, None]:
        """A transport whose connections are closed at the end."""
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60, ttl_dns_cache=60)
        async with aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=DEFAULT_HEADERS,  # to leave one out costs a copy of all
            read_bufsize=READ_BYTES,
            trust_env=False,
        ) as session:
            connections = Connections()
            try:
                yield cls(session, connections)
            finally:
                await connections.close()

    async def fetch(self, call: Outgoing) -> Fetched:
        """The whole answer. Raises UmgError as `_fault` says, UPSTREAM_FAILED for a body of more than 256 MiB."""
        try:
            if call.proxy is not None or call.tls is False:
                return await self._fetch_by_aiohttp(call)
            return await self._connections.post(
                call.url,
                call.headers,
                call.body,
                connect=call.deadlines.connect,
                total=call.deadlines.total,
                tls=None if call.tls is True else call.tls,
            )
        except FAULTS as error:
            raise _fault(error, call.deadlines) from None

    async def _fetch_by_aiohttp(self, call: Outgoing) -> Fetched:
        response = await self._send(call)
        try:
            return Fetched(response.status, response.headers, await _body(response))
        finally:
            response.close()  # nothing is left to read, unless this call was cancelled or failed

    async def open(self, call: Outgoing) -> Answer:
        """A streamed answer, from its headers on, which come within the first-byte deadline. Raises as `fetch`.

        Whoever opened it closes it: a body that was not read to its end then ends with its connection, so that leaving
        early stops the provider.
        """
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(call.deadlines.first_byte) as waiting:
                response = await self._send(call)
        except TimeoutError as error:
            raise late("first_byte", call.deadlines) if waiting.expired() else _fault(error, call.deadlines) from None
        except FAULTS as error:
            raise _fault(error, call.deadlines) from None
        return Answer(response, call.deadlines, started)

    async def _send(self, call: Outgoing) -> aiohttp.ClientResponse:
        return await self._session.post(
            _url(call.url),
            # aiohttp warns of a large body that is given as bytes
            data=call.body if len(call.body) <= LARGE_BYTES else io.BytesIO(call.body),
            headers=call.headers,
            proxy=call.proxy,
            ssl=call.tls,
            allow_redirects=False,
            timeout=_timeout(call.deadlines.total, call.deadlines.connect),
        )


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """The body; of one that says why a call was refused, no more than is looked at."""
    limit = MAX_ANSWER_BYTES if response.status == 200 else MAX_REFUSAL_BYTES
    length = response.content_length
    if length is not None and length <= limit and hdrs.CONTENT_ENCODING not in response.headers:
        return await response.content.read()
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit and response.status != 200:
            return bytes(body[:limit])
        if len(body) > limit:
            raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "the provider's answer is larger than 256 MiB")
    return bytes(body)


@lru_cache(maxsize=1024)
def _url(url: str) -> URL:
    return URL(url)


@lru_cache(maxsize=1024)
def _timeout(total: float, connect: float) -> aiohttp.ClientTimeout:
    # exact: aiohttp would round what is longer than 5 s up to whole seconds
    return aiohttp.ClientTimeout(total=total, sock_connect=connect, ceil_threshold=total + 1)


def _fault(error: Exception, deadlines: Deadlines) -> UmgError:
    """What went wrong with the connection, as the caller may know it: UPSTREAM_UNREACHABLE when nothing can have been
    sent, UPSTREAM_CUT when the connection broke, UPSTREAM_TIMEOUT with the deadline's name.
    """
    match error:
        case faults.LateError():
            return late(error.name, deadlines)
        case aiohttp.ConnectionTimeoutError():
            return late("connect", deadlines)
        case TimeoutError():
            return late("total", deadlines)
        case (
            faults.UnreachableError()
            | aiohttp.ClientConnectorError()
            | aiohttp.ClientProxyConnectionError()
            | aiohttp.ClientHttpProxyError()
        ):
            reason, message = pb.ERROR_REASON_UPSTREAM_UNREACHABLE, "the provider could not be reached; try again"
        case faults.DisconnectedError() | aiohttp.ServerDisconnectedError():
            reason = pb.ERROR_REASON_UPSTREAM_CUT
            message = "the provider closed the connection before it answered; try again"
        case _:
            reason = pb.ERROR_REASON_UPSTREAM_CUT
            message = "the provider's connection broke before the answer was whole; try again"
    fault = UmgError(reason, message)
    fault.cause = f"{type(error).__name__}: {error}"
    return fault


def late(name: str, deadlines: Deadlines) -> UmgError:
    """UPSTREAM_TIMEOUT, for the deadline of this name."""
    seconds: float = getattr(deadlines, name)
    message = f"the provider was too slow: more than {seconds:g} s for {WAITS[name]}; try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline=name)
