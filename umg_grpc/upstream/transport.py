"""The one way out: sends a request to a provider and gives back its status, headers and bytes.

Deadlines and connection faults end here as `UmgError`s. The client library stands behind this module alone, so that
another can take its place.
"""

import asyncio
import io
import ssl
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Self

import aiohttp
import structlog

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

logger = structlog.get_logger()

MAX_ANSWER_BYTES = 256 << 20
LARGE_BYTES = 1 << 20
DEADLINES = {
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


@dataclass(frozen=True)
class Outgoing:
    """A request to a provider."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    deadlines: Deadlines
    proxy: str | None = None
    tls: ssl.SSLContext | bool = True  # True: the system's authorities


class Answer:
    """A provider's answer, its body still to be read."""

    def __init__(self, response: aiohttp.ClientResponse, first_byte: float, idle: float) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers  # looked up in any case
        self.content_type = response.content_type
        self._response = response
        self._first_byte = first_byte
        self._idle = idle

    async def read(self) -> bytes:
        """The whole body. Raises UmgError(UPSTREAM_FAILED) past 256 MiB."""
        length = self._response.content_length
        if length is not None and length <= MAX_ANSWER_BYTES:
            return await self._response.read()
        body = bytearray()
        async for chunk in self._response.content.iter_any():
            body += chunk
            if len(body) > MAX_ANSWER_BYTES:
                raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "the provider's answer is larger than 256 MiB")
        return bytes(body)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, one item a read. Raises UmgError(UPSTREAM_TIMEOUT) when a read is too late."""
        watch = Watch(self._response, self._first_byte)
        name, seconds = "first_byte", self._first_byte
        try:
            async for chunk in self._response.content.iter_any():
                watch.pause()  # the consumer's time is not the provider's
                yield chunk
                name, seconds = "idle", self._idle
                watch.resume(self._idle)
        except aiohttp.ClientError:
            if watch.expired:
                raise _late(name, seconds) from None
            raise
        finally:
            watch.stop()


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
    async def open(cls) -> AsyncGenerator[Self, None]:
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

    @asynccontextmanager
    async def send(self, call: Outgoing, *, stream: bool) -> AsyncGenerator[Answer, None]:
        """The answer, from its headers on (of a stream: within the first-byte deadline). Its connection is closed at
        the end unless the body was read to its end, so leaving early stops the provider.

        Raises UmgError(UPSTREAM_UNREACHABLE) when nothing was sent, UPSTREAM_CUT when the connection broke, and
        UPSTREAM_TIMEOUT with the deadline's name.
        """
        deadlines, response = call.deadlines, None
        # aiohttp warns of a large body that is given as bytes
        data = call.body if len(call.body) <= LARGE_BYTES else io.BytesIO(call.body)
        started = time.monotonic()
        try:
            with _faults(deadlines):
                try:
                    async with asyncio.timeout(deadlines.first_byte if stream else None) as waiting:
                        response = await self._session.post(
                            call.url,
                            data=data,
                            headers=call.headers,
                            proxy=call.proxy,
                            ssl=call.tls,
                            allow_redirects=False,
                            timeout=aiohttp.ClientTimeout(total=deadlines.total, sock_connect=deadlines.connect),
                        )
                except TimeoutError:
                    if waiting.expired():
                        raise _late("first_byte", deadlines.first_byte) from None
                    raise
                first_byte = max(0.001, deadlines.first_byte - (time.monotonic() - started))
                yield Answer(response, first_byte, deadlines.idle)
        finally:
            if response is not None:
                response.close()


@contextmanager
def _faults(deadlines: Deadlines) -> Iterator[None]:
    """Turns what the client library raises into `UmgError`s. Whether anything was sent shows in the reason."""
    try:
        yield
    except aiohttp.ConnectionTimeoutError:
        raise _late("connect", deadlines.connect) from None
    except TimeoutError:
        raise _late("total", deadlines.total) from None
    except (aiohttp.ClientConnectorError, aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError) as error:
        logger.warning("upstream unreachable", error=str(error))
        raise UmgError(pb.ERROR_REASON_UPSTREAM_UNREACHABLE, "the provider could not be reached; try again") from None
    except aiohttp.ServerDisconnectedError:
        message = "the provider closed the connection before it answered; try again"
        raise UmgError(pb.ERROR_REASON_UPSTREAM_UNREACHABLE, message) from None
    except (aiohttp.ClientError, ConnectionError) as error:
        logger.warning("upstream broke off", error=str(error))
        message = "the provider's connection broke before the answer was whole; try again"
        raise UmgError(pb.ERROR_REASON_UPSTREAM_CUT, message) from None


def _late(deadline: str, seconds: float) -> UmgError:
    message = f"the provider was too slow: more than {seconds:g} s for {DEADLINES[deadline]}; try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline=deadline)
