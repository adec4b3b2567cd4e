"""Calls of the gRPC services for HTTP requests: metadata of the call, and response headers from its response."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import grpc
from multidict import istr

from http_facade.exchange.caller_credentials import credentials
from http_facade.exchange.early_acknowledgement import acknowledge
from http_facade.exchange.http_exchange import TIMEOUT_FIELD, TRACEPARENT_FIELD, HttpExchange, KnownHeaders
from umg_grpc.base.grpc_status import has_status_of
from umg_grpc.base.refused_request import PEER_HEADER
from umg_grpc.knowledge.agent_detection import AGENT_HEADER, agent_of
from umg_grpc.knowledge.agent_sessions import AGENT_HEADERS, MAX_CHARACTERS, SESSION_HEADERS
from umg_grpc.knowledge.vendor_client_headers import HEADER_FACES, RESPONSE_HEADERS, request_names
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import TEXT_FACES
from umg_grpc.wire.core.gateway_headers import (
    CACHE_HEADER,
    STRICT_HEADER,
    TIMEOUT_HEADER,
    WAITING_HEADER,
    cache_seconds,
    is_strict,
)
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.inprocess_request_attachment import Attachment

STRICT_FIELD, CACHE_FIELD = istr(STRICT_HEADER), istr(CACHE_HEADER)
SESSION_NAMES = tuple((istr(name), name) for name in (*SESSION_HEADERS, *AGENT_HEADERS))
"""Headers in which clients name the session of a request, and their names in metadata."""
RESPONSE_HEADER_PREFIXES = (
    "x-umg-",
    "retry-after",
    "openai-poll-after",
    *RESPONSE_HEADERS,
    *{codec.rate_limit_prefix for codec in TEXT_FACES.values()},
)
"""Prefixes of the initial metadata that becomes response headers."""

MIN_TIMEOUT_SECONDS = 0.001
"""Shortest timeout that the service accepts, in seconds."""

Call = TypeVar("Call", bound=grpc.aio.Call)
Method = TypeVar("Method")
Request = TypeVar("Request")
Response = TypeVar("Response")
Pairs: TypeAlias = Iterable[tuple[str, str | bytes]]


class InitialMetadata(Protocol):
    """Interface of a call with initial metadata, once its response or its stream's first message has arrived."""

    on_early_metadata: Callable[[Pairs], None] | None
    """Function to call with the initial metadata of a stream if it is early, because the first message is late."""
    relay: Callable[[bytes], bool] | None
    """Function that takes frames of the provider which need no message, and returns whether it took them."""

    @property
    def initial(self) -> Pairs:
        """Initial metadata of the call."""
        ...


OpenedStream: TypeAlias = tuple[AsyncGenerator[Response, None], InitialMetadata]
Opened = TypeVar("Opened")
OpenInProcess: TypeAlias = Callable[[Request, list[tuple[str, str]], Attachment], tuple[Opened, InitialMetadata]]
"""Call of a method in this process, which returns its response or its messages."""


def attach(method: Method, notes: RequestNotes | None, known_key: object = None) -> Method:
    """Return `method` with calls that pass Python objects beside the request to a service in this process, to save
    work. The objects are `notes`, the decoder's findings about the body, and `known_key`, the validated API key from
    `Settings.find_key`. A service in another process gets neither: it decodes the body and checks the key again.
    `attach` is for callers that need the grpc call object; `call_unary` and `open_stream` pass the objects by
    themselves.
    """
    with_attachment: Callable[[Attachment], Method] | None = getattr(method, "with_attachment", None)
    return method if with_attachment is None else with_attachment(Attachment(notes, known_key))


async def call_unary(
    method: "grpc.aio.UnaryUnaryMultiCallable[Request, Response]",
    request: Request,
    exchange: HttpExchange,
    face: str,
    notes: RequestNotes | None,
) -> tuple[Response, dict[str, str]]:
    """Call a unary method of a service for an HTTP request. Return its response and the HTTP response headers. `notes`:
    findings about the body, for a service in this process. Raise the RPC error of the service, or UmgError for a header
    with an invalid value.
    """
    pairs = metadata(exchange, face)
    open_in_process: OpenInProcess[Request, Awaitable[Response]] | None = getattr(method, "open", None)
    if open_in_process is not None:
        response, opened_call = open_in_process(request, pairs, Attachment(notes, exchange.known_key))
        return await response, response_headers(opened_call.initial)
    call = method(request, metadata=pairs)  # a service in another process takes no attachment
    return await call, await initial_headers(call)


def open_stream(
    method: "grpc.aio.UnaryStreamMultiCallable[Request, Response]",
    request: Request,
    exchange: HttpExchange,
    face: str,
    notes: RequestNotes | None,
) -> OpenedStream[Response]:
    """Call a streaming method of a service for an HTTP request. Return the generator of its messages and its metadata.
    `notes`: findings about the body, for a service in this process. Close the generator, so that no provider works for
    a disconnected caller. It raises the RPC error of the service. Raise UmgError for a header with an invalid value.
    """
    pairs = metadata(exchange, face)
    open_in_process: OpenInProcess[Request, AsyncGenerator[Response, None]] | None = getattr(method, "open", None)
    if open_in_process is not None:
        return open_in_process(request, pairs, Attachment(notes, exchange.known_key))
    call = SocketStream(method(request, metadata=pairs))
    return call.messages(), call


class SocketStream(Generic[Response]):
    """Call of a streaming method of a service in another process, over a gRPC socket."""

    def __init__(self, call: "grpc.aio.UnaryStreamCall[Any, Response]") -> None:
        self._call = call
        self.initial: Pairs = ()
        self.on_early_metadata: Callable[[Pairs], None] | None = None
        self.relay: Callable[[bytes], bool] | None = None  # not called: each message comes over the socket

    async def messages(self) -> AsyncGenerator[Response, None]:
        """Yield the messages of the call, and cancel it when the caller stops."""
        async with opened(self._call):
            self.initial = await self._call.initial_metadata() or ()
            if self.on_early_metadata is not None and _is_early(self.initial):
                self.on_early_metadata(self.initial)
            async for message in self._call:
                yield message


async def expect_early_metadata(call: grpc.aio.Call, use: Callable[[Pairs], None]) -> None:
    """Pass the initial metadata of a streaming call to `use` if it arrives before the first message, because that is
    late. Return when this is known; at once for a call in this process.
    """
    expect: Callable[[Callable[[Pairs], None]], None] | None = getattr(call, "expect_early_metadata", None)
    if expect is not None:
        expect(use)
    elif _is_early(initial := await call.initial_metadata() or ()):
        use(initial)


def _is_early(initial: Pairs) -> bool:
    return any(name == WAITING_HEADER for name, _ in initial)


def opened(call: Call) -> AbstractAsyncContextManager[object]:
    """Return a streaming call as a context manager whose end cancels it: no provider works for an absent caller."""
    # a call in this process is closed: that waits until its upstream resources are released
    return aclosing(call) if hasattr(call, "aclose") else _cancelling(call)


@asynccontextmanager
async def _cancelling(call: grpc.aio.Call) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        call.cancel()


def administrative_metadata(exchange: HttpExchange, face: str) -> list[tuple[str, str]]:
    """Return the metadata of a call of an administrative method, with the address of the caller for the audit log."""
    return [*metadata(exchange, face), (PEER_HEADER, exchange.request.remote or "")]


def metadata(exchange: HttpExchange, face: str, *, key_only: bool = False) -> list[tuple[str, str]]:
    """Return the gRPC metadata of the call for an HTTP request in the wire format `face`, from the request's headers.
    With `key_only`, return only the ids and the API key; otherwise also acknowledge the call to a proxy. Raises
    UmgError for an invalid header, and ConnectionResetError if the proxy has left.
    """
    request, known = exchange.request, exchange.connection.known_headers
    authorization = exchange.authorization or credentials(request.headers, request.query, face)
    if key_only:
        return [("x-request-id", exchange.request_id), *_own_pairs(face, authorization)]
    key = face, authorization, request.raw_headers
    if known is None or known.key != key:
        known = KnownHeaders(key, [*_own_pairs(face, authorization), *_header_pairs(exchange, face)])
        if TIMEOUT_FIELD not in request.headers:  # whose value is the time left
            exchange.connection.known_headers = known
    acknowledge(exchange)
    exchange.is_called = True
    return [("x-request-id", exchange.request_id), *known.pairs]


def _own_pairs(face: str, authorization: str | None) -> list[tuple[str, str]]:
    return [("x-umg-face", face), *(() if authorization is None else (("authorization", authorization),))]


def _header_pairs(exchange: HttpExchange, face: str) -> list[tuple[str, str]]:
    """Return the metadata of the headers that the service reads."""
    headers, pairs = exchange.request.headers, list[tuple[str, str]]()
    if STRICT_FIELD in headers and is_strict(headers[STRICT_FIELD]):
        pairs.append((STRICT_HEADER, "true"))
    if (cache := headers.get(CACHE_FIELD)) is not None:
        cache_seconds(cache)
        pairs.append((CACHE_HEADER, cache.strip()))
    if TIMEOUT_FIELD in headers:  # the time left: the caller's timeout began with the request
        pairs.append((TIMEOUT_HEADER, f"{max(MIN_TIMEOUT_SECONDS, exchange.seconds_left()):.3f}"))
    if TRACEPARENT_FIELD in headers and (trace := exchange.trace_context) is not None:
        pairs += trace.pairs
    names_session = False
    for header, name in SESSION_NAMES:
        if header in headers and (value := headers[header]).isascii() and value.isprintable():
            pairs.append((name, value[: MAX_CHARACTERS + 1]))
            names_session = True
    if names_session and face in HEADER_FACES:  # clients with other headers of a session name it, too
        sent = request_names(face).select(headers)
        pairs += [(name, value) for name, value in sent.items() if name not in SESSION_HEADERS]
    if agent := agent_of(headers):
        pairs.append((AGENT_HEADER, agent))
    return pairs


def keyless_metadata(exchange: HttpExchange, face: str) -> list[tuple[str, str]]:
    """Return the gRPC metadata for a request with a signed path. An API key in the request is ignored."""
    acknowledge(exchange)
    exchange.is_called = True
    trace = exchange.trace_context
    return [("x-request-id", exchange.request_id), ("x-umg-face", face), *(trace.pairs if trace is not None else ())]


async def check_model(models: "rpc.ModelServiceAsyncStub", model: str, exchange: HttpExchange, face: str) -> None:
    """Check by a call of the service whether a key may use a model, for a request that calls no model. Raise the RPC
    error for an unknown model. A key that may not list models is accepted: it may be allowed to call them, which its
    next request shows.
    """
    try:
        await models.GetModel(pb.GetModelRequest(model=model), metadata=metadata(exchange, face))
    except grpc.aio.AioRpcError as error:
        if not has_status_of(error, pb.ERROR_REASON_PERMISSION_DENIED):
            raise


async def check_key(models: "rpc.ModelServiceAsyncStub", exchange: HttpExchange, face: str) -> None:
    """Check the API key of the request by a call of the service. Raise the RPC error for an invalid key. A valid key
    that may not list models is accepted. The service logs a rejected request; a request with a valid key is logged
    later.
    """
    pairs = [*metadata(exchange, face, key_only=True), (PEER_HEADER, exchange.request.remote or "unknown")]
    exchange.is_called = exchange.is_key_checked = True
    try:
        await models.ListModels(pb.ListModelsRequest(page_size=1), metadata=pairs)
    except grpc.aio.AioRpcError as error:
        if not has_status_of(error, pb.ERROR_REASON_PERMISSION_DENIED):
            raise
    exchange.is_called = False


async def initial_headers(call: grpc.aio.Call) -> dict[str, str]:
    """Return the HTTP response headers that the service sent as the initial metadata of a call."""
    sent: Pairs | None = getattr(call, "sent_metadata", None)  # of a call in this process, not copied
    return response_headers(await call.initial_metadata() if sent is None else sent)


def response_headers(metadata: Pairs | None) -> dict[str, str]:
    """Return the documented HTTP headers in initial or, after a failure, trailing gRPC metadata; empty for None."""
    headers = dict[str, str]()
    for key, value in metadata or ():
        if isinstance(value, str) and key.startswith(RESPONSE_HEADER_PREFIXES):
            headers[key] = value
    return headers
