"""State of one HTTP request, from its headers to the end of its response."""

import time
from collections.abc import Callable, Mapping
from math import inf
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

import msgspec
from aiohttp import web
from multidict import istr

from http_facade.exchange.cors import CorsRules
from http_facade.exchange.server_settings import Settings
from umg_grpc.base.errors import UmgError
from umg_grpc.base.trace_context import PARENT_HEADER, STATE_HEADER, TraceContext, read_trace_context
from umg_grpc.wire import TEXT_FACES
from umg_grpc.wire.core.gateway_headers import TIMEOUT_HEADER, timeout_seconds

REQUEST_ID_FIELD = istr("x-request-id")
REQUEST_ID_HEADERS = (
    REQUEST_ID_FIELD,
    *(istr(codec.request_id_header) for codec in TEXT_FACES.values() if codec.request_id_header),
)
"""Response headers with the request id, of which clients of each format read theirs."""
TIMEOUT_FIELD = istr(TIMEOUT_HEADER)
TRACEPARENT_FIELD, TRACESTATE_FIELD = istr(PARENT_HEADER), istr(STATE_HEADER)

EXCHANGE_KEY: web.RequestKey["HttpExchange"] = web.RequestKey("exchange")
"""Key of a request whose handler or answer has failed."""


RawHeaders: TypeAlias = tuple[tuple[bytes, bytes], ...]


class KnownHeaders(NamedTuple):
    """Headers of the last call of a connection, with the metadata that they gave: the next call mostly has the same."""

    key: tuple[str, str | None, RawHeaders]
    """Face of the call, its credentials, and its headers."""
    pairs: list[tuple[str, str]]
    """Metadata of the call without the request id."""


class ClientConnection(Protocol):
    """Connection of a client, implemented by the server in `http_facade.server.client_connections`."""

    settings: Settings
    authorization: str | None
    """Credentials of the last call; None before the first one."""
    known_key: object
    """The key in these credentials, if a service in this process has validated it; else None."""
    known_headers: KnownHeaders | None
    """None before the first call."""
    is_over_limit: bool
    is_expected: bool
    """Whether the load shedder has admitted the next call."""

    async def write(self, head: bytes, body: bytes = b"") -> None:
        """Write a response's beginning (`head`) or a later part, then `body`, and wait until the write buffer is nearly
        empty. If the client disconnects, its handler is cancelled.
        """

    def write_now(self, data: bytes) -> None:
        """Write a part of a response without waiting. Do nothing if the client is disconnected."""

    def is_writable(self) -> bool:
        """Return whether the client is connected, and reads fast enough: no part waits to be written."""
        ...

    def is_closed_by_client(self) -> bool:
        """Return whether the client has closed the connection, even if the event loop has not noticed it yet."""
        ...

    def abort(self) -> None:
        """Close the connection without a response."""


class HttpExchange(msgspec.Struct, eq=False):
    """One HTTP request and the state of its handling. An attribute has its default until its value is known."""

    request: web.BaseRequest
    connection: ClientConnection
    request_id: str  # sent with every response and call
    body: bytes | None  # if it came with the headers and was not read elsewhere
    began_at: float = msgspec.field(default_factory=time.monotonic)
    parameters: Mapping[str, str] = MappingProxyType({})  # of its path, by the names in the table of routes
    cors: CorsRules | None = None  # rules for pages of other origins, where any may call
    cut_off: Callable[[], None] | None = None  # ends its stream with an error, once the stream has begun
    authorization: str | None = None  # its credentials, once they were checked
    known_key: object = None  # its key, if a service in this process has validated it
    admitted: bool = False  # whether the load shedder has a slot for it, released when the response is written
    rejected: bool = False  # whether it was rejected unread, which is not logged
    is_begun: bool = False  # whether a part of its response was sent
    is_called: bool = False  # whether the service was called for it, which then logs it
    is_key_checked: bool = False  # whether the service has checked its key, apart from the call
    may_retry: bool = True  # whether its failure may be followed by the same request, without double costs
    failure: str | None = None  # name of the reason, for the access log
    refusal: UmgError | None = None  # error that its caller got
    refused_body: bytes = b""  # JSON body that could not be decoded, in which the record of the call reads the model
    is_body_unread: bool = False  # whether a part of its body was left unread: its connection is not reused

    @property
    def model(self) -> str:
        """Model id in the request's path, without the prefix `models/` of some SDKs; "" if the path has none."""
        return self.parameters.get("model", "").removeprefix("models/")

    @property
    def deployment(self) -> str:
        """Model id in the path of the request that replaces the one in the body; "" if the path has none."""
        return self.parameters.get("deployment", "")

    @property
    def trace_context(self) -> TraceContext | None:
        """Trace context (W3C `traceparent`) that the caller sent; None if the request has no valid one."""
        headers = self.request.headers
        if TRACEPARENT_FIELD not in headers:
            return None
        return read_trace_context(headers.getall(TRACEPARENT_FIELD), headers.getall(TRACESTATE_FIELD, ()))

    def elapsed_nanoseconds(self) -> int:
        """Return the nanoseconds since the request arrived."""
        return int((time.monotonic() - self.began_at) * 1e9)

    def seconds_left(self) -> float:
        """Return the seconds until the timeout in the caller's header `x-umg-timeout`: infinite without the header,
        negative after the timeout. Raise UmgError(INVALID_FIELD) for an invalid header.
        """
        if (given := self.request.headers.get(TIMEOUT_FIELD)) is None:
            return inf
        return timeout_seconds(given) - (time.monotonic() - self.began_at)
