"""Start of every response, streams and errors included: the headers that all of them have."""

from aiohttp import hdrs, web

from http_facade.connections import connection_of
from http_facade.grpc_calls import REQUEST_ID_HEADERS, exchange
from http_facade.overload_refusals import SERVER


async def begin_response(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Add the common headers, and send the status line and the headers, which `web.Response` sends with its body."""
    known = exchange(request)
    known.is_begun = True
    headers = response.headers
    headers[hdrs.SERVER] = SERVER
    for name in REQUEST_ID_HEADERS:
        headers[name] = known.request_id
    if known.cors is not None:
        known.cors.add_headers(request.headers, response)
    connection = connection_of(request)
    if connection is not None and connection.is_draining:
        response.force_close()
    await response.prepare(request)
