"""Conversion between HTTP headers and gRPC metadata, for the Connect protocol and gRPC-Web. `rpc_handler` makes the
calls, `connect_protocol` and `grpc_web` encode messages and errors, and `rpc_status` converts errors to statuses.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import grpc
from google.rpc.status_pb2 import Status

from http_facade.connect.connect_protocol import CONNECT_PROTOCOL, http_status
from http_facade.connect.rpc_message_envelopes import Pairs
from http_facade.connect.rpc_status import status_of
from http_facade.exchange.error_responses import error_response
from http_facade.exchange.grpc_service_calls import (
    administrative_metadata,
    keyless_metadata,
    metadata,
    response_headers,
)
from http_facade.exchange.handler_failures import explain
from http_facade.exchange.http_exchange import HttpExchange

RpcMetadata = Iterable[tuple[str, str | bytes]] | None


@dataclass(frozen=True)
class FailedCall:
    """Parts of the response to a failed RPC: the gRPC status, the HTTP status, headers and trailers."""

    status: Status
    http_status: int
    """HTTP status of a unary call of the Connect protocol; all others have 200."""
    headers: Pairs = ()
    trailers: Pairs = ()


class CallMetadata:
    """Converter between HTTP headers and the gRPC metadata of a call: it copies only documented headers."""

    def request(self, exchange: HttpExchange, *, needs_key: bool) -> list[tuple[str, str]]:
        """Return a call's gRPC metadata. `needs_key`: False for signed requests. Raise UmgError for invalid headers."""
        return (metadata if needs_key else keyless_metadata)(exchange, CONNECT_PROTOCOL)

    def headers(self, initial: RpcMetadata) -> Pairs:
        """Return the HTTP response headers in the initial metadata of a call; none for None."""
        return tuple(response_headers(initial).items())

    def trailers(self, trailing: RpcMetadata) -> Pairs:
        """Return the HTTP trailers from the trailing metadata of a call; always empty, since the gateway sends none."""
        return ()

    def failed(self, failure: Exception, exchange: HttpExchange) -> FailedCall:
        """Convert a call's exception to the parts of its error response; store its reason for the access log."""
        error = explain(failure, exchange, CONNECT_PROTOCOL)
        exchange.failure = error.name
        headers = dict(error_response(error, CONNECT_PROTOCOL).headers)
        if isinstance(failure, grpc.aio.AioRpcError):
            headers = response_headers(failure.trailing_metadata()) | headers
        del headers["Content-Type"]
        headers.pop("Content-Length", None)
        return FailedCall(status_of(error), http_status(error), tuple(headers.items()))


class AdministrativeMetadata(CallMetadata):
    """Converter for the methods of administrative services, whose audit log has the address of the caller."""

    def request(self, exchange: HttpExchange, *, needs_key: bool) -> list[tuple[str, str]]:
        return administrative_metadata(exchange, CONNECT_PROTOCOL)
