"""Successful responses with one JSON body, whose head and body are written to the connection in one step.

Nearly all calls end with one of them, and aiohttp takes longer to write one than the gateway takes to encode it.
Any other response, and any on a connection that ends with it, is written by aiohttp.
"""

import time
from email.utils import formatdate
from typing import NamedTuple

from aiohttp import HttpVersion11, hdrs, web

from http_facade.exchange import REQUEST_ID_HEADERS, Exchange
from http_facade.overload_refusals import SERVER

JSON = "application/json"

_START = f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nServer: {SERVER}\r\n"
_ID = "{}"
_REQUEST_IDS = "".join(f"{name}: {_ID}\r\n" for name in REQUEST_ID_HEADERS)


class WholeResponse(NamedTuple):
    """Successful response to a call of a model."""

    headers: dict[str, str]
    """Headers of its own, without the common ones of all responses."""
    body: bytes
    status: int = 200

    def for_aiohttp(self) -> web.Response:
        """Return the response for aiohttp to write."""
        return web.Response(headers={hdrs.CONTENT_TYPE: JSON, **self.headers}, body=self.body)


class SentResponse(web.StreamResponse):
    """Response that was written already, as aiohttp gets it from a handler: there is nothing left to send."""

    @property
    def keep_alive(self) -> bool:
        return True

    async def prepare(self, request: web.BaseRequest) -> None:
        """Do nothing: the head was written."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: the body was written."""


SENT = SentResponse()


def is_plain(exchange: Exchange) -> bool:
    """Return whether the response to the request has no headers that depend on the connection or on other origins."""
    request = exchange.request
    return (
        request.version == HttpVersion11
        and request.keep_alive
        and exchange.cors is None
        and not exchange.connection.is_draining
    )


def encode_head(response: WholeResponse, request_id: str) -> bytes:
    """Return the head of a response. Raise ValueError for a header with a line break."""
    own = "".join([f"{name}: {value}\r\n" for name, value in response.headers.items()])
    if not len(response.headers) == own.count("\r") == own.count("\n"):
        raise ValueError("a header has a line break in it")
    ids = _REQUEST_IDS.replace(_ID, request_id)
    head = f"{_START}{own}{ids}Content-Length: {len(response.body)}\r\nDate: {_DATE.now()}\r\n\r\n"
    return head.encode("utf-8", "surrogateescape")


class _Date:
    """Date of responses, formatted once a second."""

    def __init__(self) -> None:
        self._second, self._text = 0, ""

    def now(self) -> str:
        """Return the date now."""
        if (second := int(time.time())) != self._second:
            self._second, self._text = second, formatdate(second, usegmt=True)
        return self._text


_DATE = _Date()
