"""Acknowledgement of calls to a proxy: an interim response before a call can reach a provider.

If the connection to a replica ends, or no acknowledgement comes, a proxy may send the call to another replica. The
first replica then does not make the call, even if it reads the request later, for example because its process was
paused.
"""

from aiohttp import HttpVersion11
from multidict import istr

from http_facade.exchange.http_exchange import HttpExchange
from umg_grpc.wire.core.gateway_headers import ACKNOWLEDGE_HEADER

ACKNOWLEDGE_FIELD = istr(ACKNOWLEDGE_HEADER)
PROCESSING_RESPONSE = b"HTTP/1.1 102 Processing\r\n\r\n"


def acknowledge(exchange: HttpExchange) -> None:
    """Send the interim response 102 Processing (RFC 2518, section 10.1) before the service is called, if the request
    has the header for it. Raise ConnectionResetError if the client has left: it may have repeated the request.
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
