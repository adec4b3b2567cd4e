"""Start of every response, streams and errors included: the headers that all of them have."""

from aiohttp import hdrs, web

from http_facade.exchange import REQUEST_ID_HEADERS, Exchange
from http_facade.overload_refusals import SERVER


async def begin_response(exchange: Exchange, response: web.StreamResponse) -> None:
    """Add the common headers, and send the status line and the headers, which `web.Response` sends with its body."""
    exchange.is_begun = True
    headers = response.headers
    headers[hdrs.SERVER] = SERVER
    for name in REQUEST_ID_HEADERS:
        headers[name] = exchange.request_id
    if exchange.cors is not None:
        exchange.cors.add_headers(exchange.request.headers, response)
    if exchange.connection.is_draining:
        response.force_close()
    await response.prepare(exchange.request)
