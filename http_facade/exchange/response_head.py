"""Beginning of every HTTP response: the status line and the headers that all responses have.

Successful responses of models, complete or streamed, are written directly to the connection, since aiohttp takes longer
to write one than the gateway takes to encode it. aiohttp writes all other responses.
"""

import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from itertools import starmap

from aiohttp import HttpVersion11, hdrs, web
from multidict import CIMultiDict

from http_facade.exchange.http_exchange import REQUEST_ID_HEADERS, HttpExchange
from http_facade.exchange.overload_rejections import SERVER_NAME

_ID = "{}"
_REQUEST_IDS = "".join(f"{name}: {_ID}\r\n" for name in REQUEST_ID_HEADERS)


class SentResponse(web.StreamResponse):
    """Placeholder that a handler returns to aiohttp for a response that was already written to the connection."""

    keep_alive = True  # whether aiohttp leaves the connection open

    async def prepare(self, request: web.BaseRequest) -> None:
        """Do nothing: the headers are already written."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: the body is already written."""


class LastSentResponse(SentResponse):
    """Placeholder for a response that was already written, on a connection that aiohttp has to close."""

    keep_alive = False


SENT_RESPONSE, SENT_LAST = SentResponse(), LastSentResponse()
"""Responses on a connection that stays open, and on one that aiohttp closes."""


def encode_head(exchange: HttpExchange, headers: Mapping[str, str], length: int | None) -> tuple[bytes, SentResponse]:
    """Return the status line and headers of a successful response, and the placeholder that the handler returns to
    aiohttp. `length`: bytes of the body; None for a chunked body (RFC 9112, section 7.1). For an HTTP/1.0 client, the
    body is not chunked, and ends with the connection. Raise ValueError for a header with a line break.
    """
    request, version = exchange.request, "HTTP/1.1"
    stays = request.keep_alive and not exchange.connection.settings.drain.is_announced
    if exchange.cors is not None:
        headers = CIMultiDict(headers)
        headers.update(exchange.cors.headers(request.headers))
    own = "".join(starmap("{}: {}\r\n".format, headers.items()))
    if not len(headers) == own.count("\r") == own.count("\n"):
        raise ValueError("a header has a line break in it")
    framing = "Transfer-Encoding: chunked\r\n" if length is None else f"Content-Length: {length}\r\n"
    if request.version < HttpVersion11:
        version, stays = "HTTP/1.0", stays and length is not None
        framing = ("" if length is None else framing) + ("Connection: keep-alive\r\n" if stays else "")
    elif not stays:
        framing += "Connection: close\r\n"
    ids = _REQUEST_IDS.replace(_ID, exchange.request_id)
    head = f"{version} 200 OK\r\n{_dated(int(time.time()))}{own}{framing}{ids}\r\n"
    return head.encode("utf-8", "surrogateescape"), SENT_RESPONSE if stays else SENT_LAST


@lru_cache(maxsize=1)
def _dated(second: int) -> str:
    return f"Server: {SERVER_NAME}\r\nDate: {formatdate(second, usegmt=True)}\r\n"


async def begin_response(exchange: HttpExchange, response: web.StreamResponse) -> None:
    """Add the headers of all responses to one that aiohttp writes, and send its head, or all of a `web.Response`."""
    exchange.is_begun = True
    headers = response.headers
    headers[hdrs.SERVER] = SERVER_NAME
    for name in REQUEST_ID_HEADERS:
        headers[name] = exchange.request_id
    if exchange.cors is not None:
        headers.extend(exchange.cors.headers(exchange.request.headers))
    if exchange.connection.settings.drain.is_announced:
        response.force_close()
    await response.prepare(exchange.request)
