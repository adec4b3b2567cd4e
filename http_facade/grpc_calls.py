"""Common parts of the gRPC calls of the face: metadata, response headers, and the state of one HTTP request."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from math import inf
from types import TracebackType
from typing import Generic, TypeVar

import grpc
from aiohttp import web
from multidict import istr

from http_facade import credentials
from http_facade.cors import Cors
from umg_grpc.request_ids import request_id_of
from umg_grpc.trace_context import TRACEPARENT, TRACESTATE, TraceContext, read_trace_context
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import FORMATS
from umg_grpc.wire.attachment import Attachment
from umg_grpc.wire.core.headers import CACHE, TIMEOUT, cache_seconds, is_strict, timeout_seconds

REQUEST_ID_HEADER = istr("x-request-id")
REQUEST_ID_HEADERS = (
    REQUEST_ID_HEADER,
    *(istr(codec.request_id_header) for codec in FORMATS.values() if codec.request_id_header),
)
"""Response headers with the request id, of which clients of each format read theirs."""
STRICT = istr("x-umg-strict")
TIMEOUT_HEADER, CACHE_HEADER = istr(TIMEOUT), istr(CACHE)
TRACEPARENT_HEADER, TRACESTATE_HEADER = istr(TRACEPARENT), istr(TRACESTATE)
RESPONSE_HEADER_PREFIXES = ("x-umg-", "retry-after", *{codec.rate_limit_prefix for codec in FORMATS.values()})
"""Prefixes of the initial metadata that becomes response headers."""

MIN_TIMEOUT_SECONDS = 0.001
"""Shortest timeout that the service accepts, in seconds."""

EXCHANGE: web.RequestKey["Exchange"] = web.RequestKey("exchange")

Call = TypeVar("Call", bound=grpc.aio.Call)
Method = TypeVar("Method")


def attach(method: Method, attachment: Attachment) -> Method:
    """Return the method for calls that pass the attachment to a service in this process. A service over a socket gets
    none: it decodes the source document and checks the key itself.
    """
    with_attachment: Callable[[Attachment], Method] | None = getattr(method, "with_attachment", None)
    return method if with_attachment is None else with_attachment(attachment)


class Exchange:
    """State of one HTTP request while the face handles it, from its headers to its response."""

    __slots__ = (
        "admitted",
        "began_at",
        "cors",
        "cut_off",
        "failure",
        "is_begun",
        "is_body_unread",
        "is_called",
        "known_key",
        "parameters",
        "rejected",
        "request_id",
    )

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id  # sent with every answer and call, and logged
        self.began_at = time.monotonic()
        self.parameters: Mapping[str, str] = {}  # of its path, by the names in the table of routes
        self.cors: Cors | None = None  # rules for pages of other origins, where any may call
        self.cut_off: Callable[[], None] | None = None  # ends its stream with an error, once the stream has begun
        self.known_key: object = None  # its key, if a service in this process has validated it
        self.admitted = False  # whether the load shedder has a slot for it, released when the answer is written
        self.rejected = False  # whether it was rejected unread, which is not logged
        self.is_begun = False  # whether a part of its response was sent
        self.is_called = False  # whether the service was called for it, which then logs it
        self.failure: str | None = None  # name of the reason, for the access log
        self.is_body_unread = False  # whether a part of its body was left unread: its connection is not reused


def exchange(request: web.BaseRequest) -> Exchange:
    """Return the state of a request, created at the first call."""
    try:
        return request[EXCHANGE]
    except KeyError:
        known = request[EXCHANGE] = Exchange(request_id_in(request.headers))
        return known


def request_id_in(headers: Mapping[str, str]) -> str:
    """Return the caller's request id if it is 1 to 128 visible ASCII characters, else a new one."""
    return request_id_of(headers.get(REQUEST_ID_HEADER))


class opened(Generic[Call]):  # noqa: N801  # reads as `contextlib.aclosing` does
    """Context in which a stream is read. Its exit ends the call, so that a disconnected caller keeps no
    provider busy.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    async def __aenter__(self) -> Call:
        return self._call

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # A call in this process is closed: that waits until its upstream resources are released.
        close: Callable[[], Awaitable[None]] | None = getattr(self._call, "aclose", None)
        if close is None:
            self._call.cancel()
        else:
            await close()


def metadata(request: web.BaseRequest, face: str) -> list[tuple[str, str]]:
    """Return the gRPC metadata with which the face makes a call for the request. Raises UmgError for a header with an
    invalid value.
    """
    pairs = _identity(request, face)
    if is_strict(request.headers.get(STRICT)):
        pairs.append(("x-umg-strict", "true"))
    if (cache := request.headers.get(CACHE_HEADER)) is not None:
        cache_seconds(cache)
        pairs.append((CACHE, cache.strip()))
    if TIMEOUT_HEADER in request.headers:  # the time left: the caller's timeout began with the request
        pairs.append((TIMEOUT, f"{max(MIN_TIMEOUT_SECONDS, seconds_left(request)):.3f}"))
    if (trace := trace_context(request)) is not None:
        pairs += trace.pairs
    exchange(request).is_called = True
    return pairs


def trace_context(request: web.BaseRequest) -> TraceContext | None:
    """Return the caller's trace context; None if the request has no valid one."""
    headers = request.headers
    if TRACEPARENT_HEADER not in headers:
        return None
    return read_trace_context(headers.getall(TRACEPARENT_HEADER), headers.getall(TRACESTATE_HEADER, ()))


def _identity(request: web.BaseRequest, face: str) -> list[tuple[str, str]]:
    """Return the metadata that identifies the call and the caller."""
    pairs = [("x-request-id", exchange(request).request_id), ("x-umg-face", face)]
    authorization = credentials.credentials(request.headers, request.query, face)
    if authorization is not None:
        pairs.append(("authorization", authorization))
    return pairs


async def check_key(models: "rpc.ModelServiceAsyncStub", request: web.BaseRequest, face: str) -> None:
    """Raise the error of the service if the key of the request is not valid; a key that may not list models is valid.
    The service logs a rejected request; a request with a valid key is logged later.
    """
    identity = _identity(request, face)
    exchange(request).is_called = True
    try:
        await models.ListModels(pb.ListModelsRequest(page_size=1), metadata=identity)
    except grpc.aio.AioRpcError as error:
        if error.code() != grpc.StatusCode.PERMISSION_DENIED:
            raise
    exchange(request).is_called = False


def seconds_left(request: web.BaseRequest) -> float:
    """Return the seconds until the timeout of the caller; infinite without one. Raises UmgError(INVALID_FIELD)."""
    if (given := request.headers.get(TIMEOUT_HEADER)) is None:
        return inf
    return timeout_seconds(given) - (time.monotonic() - exchange(request).began_at)


def model_of(request: web.BaseRequest) -> str:
    """Return the model id in the path, without the `models/` that SDKs put in front; "" for a path without one."""
    return exchange(request).parameters.get("model", "").removeprefix("models/")


def response_headers(metadata: Iterable[tuple[str, str | bytes]] | None) -> dict[str, str]:
    """Return the response headers that the service sent as initial metadata, or with a failure as trailing metadata."""
    return {
        key: value
        for key, value in metadata or ()
        if isinstance(value, str) and key.startswith(RESPONSE_HEADER_PREFIXES)
    }
