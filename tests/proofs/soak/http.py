"""HTTP client that takes little processor time, which is to be left to the gateway."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

import httptools

from bench.chat_bodies import Wire


class Response(NamedTuple):
    """Complete answer; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Connection(asyncio.Protocol):
    """Connection on which one call at a time is made."""

    transport: Wire

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._answer: asyncio.Future[Response] | None = None
        self.pooled = True  # whether another call may follow

    async def call(self, request: bytes) -> Response:
        """Send a request. Return the response. Raises ConnectionError if there is none, or if it is not HTTP."""
        self._parser = httptools.HttpResponseParser(self)
        self._headers, self._body = {}, []
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        try:
            return await self._answer
        except BaseException:
            self.close()
            raise
        finally:
            self._answer = None

    def close(self) -> None:
        """Close the connection, also during a call."""
        self.pooled = False
        self.transport.abort()

    # --- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"no HTTP: {error}: {data[:100]!r}")

    def connection_lost(self, exc: Exception | None) -> None:
        self.pooled = False
        self._fail("closed before the response was whole")

    def _fail(self, message: str) -> None:
        self.pooled = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(message))

    # --- called by the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode().lower()] = value.decode("latin-1")

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        if self._answer is None or self._answer.done():
            self._fail("more than one response")
            return
        self.pooled = self.pooled and self._parser.should_keep_alive()
        self._answer.set_result(Response(self._parser.get_status_code(), self._headers, b"".join(self._body)))


class Client:
    """Client of one server, with as many connections as concurrent calls."""

    def __init__(self, host: str, port: int, patience: float) -> None:
        self._host = host
        self._port = port
        self._patience = patience
        self._idle: list[Connection] = []

    async def post(self, path: str, headers: dict[str, str], body: bytes) -> Response:
        """Send a POST. Return the response. Raises OSError (TimeoutError is one) if there is none."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"POST {path} HTTP/1.1\r\nhost: {self._host}:{self._port}\r\n{lines}content-length: {len(body)}\r\n\r\n"
        async with asyncio.timeout(self._patience):
            connection = await self._connection()
            answer = await connection.call(head.encode() + body)
        if connection.pooled:
            self._idle.append(connection)
        else:
            connection.transport.close()
        return answer

    async def _connection(self) -> Connection:
        while self._idle:
            if (connection := self._idle.pop()).pooled:
                return connection
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(Connection, self._host, self._port))[1]

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


@asynccontextmanager
async def client(host: str, port: int, patience: float) -> AsyncGenerator[Client, None]:
    made = Client(host, port, patience)
    try:
        yield made
    finally:
        made.close()
