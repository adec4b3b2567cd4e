"""Metadata and failures of the calls of methods, as they pass between an HTTP request and the service."""

from collections.abc import Iterable
from dataclasses import dataclass

import grpc
from google.rpc.status_pb2 import Status

from http_facade.connect_envelopes import Pairs
from http_facade.connect_protocol import CONNECT, http_status
from http_facade.errors import error_response, explain
from http_facade.exchange import Exchange
from http_facade.grpc_calls import keyless_metadata, metadata, response_headers
from http_facade.rpc_status import status_of

RpcMetadata = Iterable[tuple[str, str | bytes]] | None


@dataclass(frozen=True)
class FailedCall:
    """Failure of a call, as its caller gets it."""

    status: Status
    http_status: int
    """HTTP status of a unary call of the Connect protocol; all others have 200."""
    headers: Pairs = ()
    trailers: Pairs = ()


class CallMetadata:
    """Metadata of the gateway's calls: few names pass, in either direction."""

    def request(self, exchange: Exchange, *, needs_key: bool) -> list[tuple[str, str]]:
        """Return the metadata of a call for the request. Raise UmgError for a header with an invalid value."""
        return (metadata if needs_key else keyless_metadata)(exchange, CONNECT)

    def headers(self, initial: RpcMetadata) -> Pairs:
        """Return the headers of an answer from its initial metadata."""
        return tuple(response_headers(initial).items())

    def trailers(self, trailing: RpcMetadata) -> Pairs:
        """Return the trailers of an answer from its trailing metadata: the gateway has none."""
        return ()

    def failed(self, failure: Exception, exchange: Exchange) -> FailedCall:
        """Return the failure of a call, and note it for the log."""
        error = explain(failure, exchange, CONNECT)
        exchange.failure = error.name
        headers = dict(error_response(error, CONNECT).headers)
        if isinstance(failure, grpc.aio.AioRpcError):
            headers = response_headers(failure.trailing_metadata()) | headers
        del headers["Content-Type"]
        headers.pop("Content-Length", None)
        return FailedCall(status_of(error), http_status(error), tuple(headers.items()))
