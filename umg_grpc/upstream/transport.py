"""The one way out: sends a request to a provider and gives back its status, headers and bytes.

Deadlines and connection faults end here as `UmgError`s. The client library stands behind this module alone, so that
another can take its place.
"""

import asyncio
import io
import ssl
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import aiohttp
import structlog
from yarl import URL

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

logger = structlog.get_logger()

MAX_ANSWER_BYTES = 256 << 20
LARGE_BYTES = 1 << 20
FAULTS = (aiohttp.ClientError, TimeoutError, ConnectionError)
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
        """These, none longer than the caller waits."""
        if seconds >= self.total:
            return self
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


class Fetched(NamedTuple):
    """A provider's answer, read to its end."""

    status: int
    headers: Mapping[str, str]  # looked up in any case
    body: bytes


class Answer:
    """A provider's answer, its body still to be read."""

    def __init__(self, response: aiohttp.ClientResponse, deadlines: Deadlines, first_byte: float) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers  # looked up in any case
        self.content_type = response.content_type
        self._response = response
        self._deadlines = deadlines
        self._first_byte = first_byte  # what is left of that deadline

    async def read(self) -> bytes:
        """The whole body. Raises as `Transport.fetch`."""
        try:
            return await _body(self._response)
        except FAULTS as error:
            raise _fault(error, self._deadlines) from None

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, one item a read. Raises as `Transport.fetch`, also when a read is too late."""
        watch, name = Watch(self._response, self._first_byte), "first_byte"
        try:
            async for chunk in self._response.content.iter_any():
                watch.pause()  # the consumer's time is not the provider's
                yield chunk
                name = "idle"
                watch.resume(self._deadlines.idle)
        except FAULTS as error:
            raise _late(name, self._deadlines) if watch.expired else _fault(error, self._deadlines) from None
        finally:
            watch.stop()

    def close(self) -> None:
        """Closes the connection, unless the body was read to its end: then it is kept for another call."""
        self._response.close()


class Watch:
    """Closes a response that brings nothing for too long. Its one timer is moved only when it fires: a read costs
    none.
    """

    def __init__(self, response: aiohttp.ClientResponse, seconds: float) -> None:
        self.expired = False
        self._response = response
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._since: float | None = None
        self._timer = self._loop.call_later(seconds, self._look)
        self.resume(seconds)

    def pause(self) -> None:
        """Nobody waits for the provider now."""
        self._since = None

    def resume(self, seconds: float) -> None:
        """The consumer waits again, and no longer than this."""
        self._since = self._loop.time()
        if seconds < self._seconds:  # the timer was set for a longer wait
            self._timer.cancel()
            self._timer = self._loop.call_later(seconds, self._look)
        self._seconds = seconds

    def stop(self) -> None:
        """No more watching."""
        self._timer.cancel()

    def _look(self) -> None:
        left = self._seconds if self._since is None else self._since + self._seconds - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self.expired = True
            self._response.close()  # ends the read that waits


class Transport:
    """The pool of connections to all providers. Opened once a process, closed with it."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncGenerator[Self, None]:
        """A transport whose connections are closed at the end."""
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60, ttl_dns_cache=60)
        async with aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent",),
            read_bufsize=READ_BYTES,
            trust_env=False,
        ) as session:
            yield cls(session)

    async def fetch(self, call: Outgoing) -> Fetched:
        """The whole answer. Raises UmgError as `_fault` says, UPSTREAM_FAILED for a body of more than 256 MiB."""
        response = None
        try:
            response = await self._send(call)
            return Fetched(response.status, response.headers, await _body(response))
        except FAULTS as error:
            raise _fault(error, call.deadlines) from None
        finally:
            if response is not None:
                response.close()  # nothing is left to read, unless this call was cancelled or failed

    async def open(self, call: Outgoing) -> Answer:
        """A streamed answer, from its headers on, which come within the first-byte deadline. Raises as `fetch`.

        Whoever opened it closes it: a body that was not read to its end then ends with its connection, so that leaving
        early stops the provider.
        """
        started = time.monotonic()
        try:
            async with asyncio.timeout(call.deadlines.first_byte) as waiting:
                response = await self._send(call)
        except TimeoutError as error:
            raise _late("first_byte", call.deadlines) if waiting.expired() else _fault(error, call.deadlines) from None
        except FAULTS as error:
            raise _fault(error, call.deadlines) from None
        return Answer(response, call.deadlines, max(0.001, call.deadlines.first_byte - (time.monotonic() - started)))

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
    length = response.content_length
    if length is not None and length <= MAX_ANSWER_BYTES:
        return await response.content.read()
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "the provider's answer is larger than 256 MiB")
    return bytes(body)


@lru_cache(maxsize=1024)
def _url(url: str) -> URL:
    return URL(url)


@lru_cache(maxsize=1024)
def _timeout(total: float, connect: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total, sock_connect=connect)


def _fault(error: Exception, deadlines: Deadlines) -> UmgError:
    """What the client library raised, as the caller may know it: UPSTREAM_UNREACHABLE when no answer was begun,
    UPSTREAM_CUT when the connection broke, UPSTREAM_TIMEOUT with the deadline's name.
    """
    match error:
        case aiohttp.ConnectionTimeoutError():
            return _late("connect", deadlines)
        case TimeoutError():
            return _late("total", deadlines)
        case aiohttp.ClientConnectorError() | aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            logger.warning("upstream unreachable", error=str(error))
            return UmgError(pb.ERROR_REASON_UPSTREAM_UNREACHABLE, "the provider could not be reached; try again")
        case aiohttp.ServerDisconnectedError():
            message = "the provider closed the connection before it answered; try again"
            return UmgError(pb.ERROR_REASON_UPSTREAM_UNREACHABLE, message)
    logger.warning("upstream broke off", error=str(error))
    message = "the provider's connection broke before the answer was whole; try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_CUT, message)


def _late(name: str, deadlines: Deadlines) -> UmgError:
    seconds: float = getattr(deadlines, name)
    message = f"the provider was too slow: more than {seconds:g} s for {WAITS[name]}; try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline=name)
