"""Conversion between HTTP headers and the gRPC metadata of a call, for the Connect protocol and gRPC-Web.

`rpc_handler` makes the calls, `connect_protocol` and `grpc_web` encode messages and errors, and `rpc_status` converts
errors to statuses; only headers and trailers are converted here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import grpc
from google.rpc.status_pb2 import Status

from http_facade.connect_protocol import CONNECT, http_status
from http_facade.error_responses import error_response, explain
from http_facade.grpc_calls import keyless_metadata, metadata, response_headers
from http_facade.http_exchange import Exchange
from http_facade.rpc_message_envelopes import Pairs
from http_facade.rpc_status import status_of

RpcMetadata = Iterable[tuple[str, str | bytes]] | None


@dataclass(frozen=True)
class FailedCall:
    """Error response to a failed RPC: its gRPC status, its HTTP status, its headers and its trailers."""

    status: Status
    http_status: int
    """HTTP status of a unary call of the Connect protocol; all others have 200."""
    headers: Pairs = ()
    trailers: Pairs = ()


class CallMetadata:
    """Converter between HTTP headers and the gRPC metadata of a call. Only the names that the gateway documents are
    copied.
    """

    def request(self, exchange: Exchange, *, needs_key: bool) -> list[tuple[str, str]]:
        """Return the gRPC metadata of a call from the headers of its HTTP request, without the API key unless
        `needs_key`.

        Raise UmgError for a header with an invalid value.
        """
        return (metadata if needs_key else keyless_metadata)(exchange, CONNECT)

    def headers(self, initial: RpcMetadata) -> Pairs:
        """Return the HTTP response headers from the initial metadata of a call."""
        return tuple(response_headers(initial).items())

    def trailers(self, trailing: RpcMetadata) -> Pairs:
        """Return the HTTP trailers from the trailing metadata of a call; always empty, since the gateway sends none."""
        return ()

    def failed(self, failure: Exception, exchange: Exchange) -> FailedCall:
        """Return the error response to a call that failed with the exception `failure`; store its reason for the access
        log.
        """
        error = explain(failure, exchange, CONNECT)
        exchange.failure = error.name
        headers = dict(error_response(error, CONNECT).headers)
        if isinstance(failure, grpc.aio.AioRpcError):
            headers = response_headers(failure.trailing_metadata()) | headers
        del headers["Content-Type"]
        headers.pop("Content-Length", None)
        return FailedCall(status_of(error), http_status(error), tuple(headers.items()))
