"""Acknowledgement of calls to a proxy: an interim response before a call can reach a provider.

A proxy may send a call to another replica if the connection to the first one ends, or nothing comes, before the
acknowledgement. The first one then does not make the call, even if it reads the request later, for example because its
process was stopped.
"""

from aiohttp import HttpVersion11
from multidict import istr

from http_facade.exchange.http_exchange import HttpExchange
from umg_grpc.wire.core.gateway_headers import ACKNOWLEDGE_HEADER

ACKNOWLEDGE_FIELD = istr(ACKNOWLEDGE_HEADER)
PROCESSING_RESPONSE = b"HTTP/1.1 102 Processing\r\n\r\n"


def acknowledge(exchange: HttpExchange) -> None:
    """Send 102 Processing (RFC 2518, section 10.1), if the request has the header, before the service is called. Raise
    ConnectionResetError if the client has left: it may have repeated the request.
    """
    if (
        ACKNOWLEDGE_FIELD not in exchange.request.headers
        or exchange.is_called
        or exchange.request.version < HttpVersion11
    ):
        return
    connection = exchange.connection
    if connection.is_closed_by_client():
        connection.abort()
        raise ConnectionResetError("the client closed the connection before the call was made")
    connection.write_now(PROCESSING_RESPONSE)
