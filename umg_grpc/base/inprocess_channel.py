"""In-process gRPC: a `grpc.aio` server and channel without a socket, for the same stubs, servicers and interceptors.

Messages are passed by reference: the receiver must not change them. A call runs in the task of its consumer: `await
call` runs the servicer's coroutine, and each step of `async for` one step of its generator. Backpressure, cancellation
and context variables therefore work without a queue or a task.
"""

from __future__ import annotations  # grpc's classes are generic in their stubs only

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Never, Self, TypeAlias, TypeVar

import grpc

Response = TypeVar("Response")
Pairs: TypeAlias = grpc.aio.Metadata | Sequence[tuple[str, str | bytes]]
# The stubs of grpc type a handler's functions for the threaded server only; those of a grpc.aio server are coroutine
# functions and asynchronous generator functions. `Any` is the type of the messages: this module does not read them.
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
Unary: TypeAlias = Callable[[Any, Context], Awaitable[Any]]
Stream: TypeAlias = Callable[[Any, Context], AsyncGenerator[Any, None]]
Deserializer: TypeAlias = Callable[[bytes], Any]

EMPTY_METADATA = grpc.aio.Metadata()
NO_MESSAGES: tuple[object, ...] = ()


class Interceptor:
    """Base class of interceptors, for servers with and without a socket. It wraps the function of each method once."""

    def wrap_unary(self, method: str, inner: Unary) -> Unary:
        """Return the function to call instead of `inner`, the one of a unary method (`/package.Service/Method`)."""
        return inner

    def wrap_stream(self, method: str, inner: Stream) -> Stream:
        """Return the function to call instead of `inner`, the function of a server-streaming method."""
        return inner

    def wrap_deserializer(self, method: str, deserialize: Deserializer | None) -> Deserializer | None:
        """Return the decoder of the method's request bytes. None (also for `deserialize`) means that the bytes are
        passed on. In-process calls have no decoder, since their requests are messages already.
        """
        return deserialize

    def wrap(self, method: str, handler: Handler) -> Handler:
        """Return a method's handler with its function wrapped; a handler of a stream of requests is unchanged."""
        if handler.request_streaming:
            return handler
        behavior: Any = handler.unary_stream if handler.response_streaming else handler.unary_unary
        make: Any = (
            grpc.unary_stream_rpc_method_handler if handler.response_streaming else grpc.unary_unary_rpc_method_handler
        )
        wrapped = (
            self.wrap_stream(method, behavior) if handler.response_streaming else self.wrap_unary(method, behavior)
        )
        deserialize = self.wrap_deserializer(method, handler.request_deserializer)
        wrapped_handler: Handler = make(wrapped, deserialize, handler.response_serializer)
        return wrapped_handler


class InProcessServer(grpc.aio.Server):
    """Server without a socket; generated functions (`add_..._to_server`) register servicers at it."""

    def __init__(self, interceptors: Sequence[Interceptor] = ()) -> None:
        self._interceptors = interceptors
        self.handlers: dict[str, Handler] = {}

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        """Do nothing: `add_registered_method_handlers` gets the same methods by name."""

    def add_registered_method_handlers(self, service_name: str, method_handlers: Mapping[str, Handler]) -> None:
        """Register the methods of a service. Each is wrapped by all interceptors, of which the first is outermost."""
        for name, handler in method_handlers.items():
            method = f"/{service_name}/{name}"
            wrapped = handler
            for interceptor in reversed(self._interceptors):
                wrapped = interceptor.wrap(method, wrapped)
            self.handlers[method] = wrapped

    def add_insecure_port(self, address: str) -> Never:
        raise TypeError("this server has no socket")

    def add_secure_port(self, address: str, server_credentials: grpc.ServerCredentials) -> Never:
        raise TypeError("this server has no socket")

    async def start(self) -> None:
        """Do nothing: a call runs when it is made."""

    async def stop(self, grace: float | None) -> None:
        """Do nothing: each call ends with the task that consumes it."""

    async def wait_for_termination(self, timeout: float | None = None) -> bool:
        """Return False at once."""
        return False


class HandlerTable(grpc.GenericRpcHandler):
    """Handlers of a server without a socket, for a `grpc.aio` server with one (its argument `handlers`).

    A `grpc.aio` server on which methods are registered by name has an open request for each of them, and waits for all
    of these again with each call. For fifty methods that takes longer than everything else that it does for a call.
    """

    def __init__(self, server: InProcessServer) -> None:
        self._handlers = server.handlers

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        return self._handlers.get(handler_call_details.method)


class InProcessContext(Context):
    """Context of an in-process call for its servicer, a `grpc.aio.ServicerContext`."""

    initial: Pairs = ()
    trailing: Pairs = ()
    deadline: float = inf  # of the caller, on the monotonic clock
    on_early_metadata: Callable[[Pairs], None] | None = None
    """Set by a caller that can use the initial metadata before the first message, and called with it."""
    relay: Callable[[bytes], bool] | None = None
    """Set by a caller that can take a provider's frames without a message around them, after the first message. It
    returns whether it took them; the servicer sends a message with the frames that it did not take.
    """

    def __init__(self, pairs: Pairs, timeout: float | None, attachment: object = None) -> None:
        """Create the context of a call with the metadata `pairs` and a timeout in seconds. `attachment`: Python object
        that the caller passes to the servicer beside the request, for example decoder findings.
        """
        self.pairs = pairs  # metadata of the request; faster to read than `invocation_metadata`
        self.attachment = attachment
        if timeout is not None:
            self.deadline = time.monotonic() + timeout

    def invocation_metadata(self) -> grpc.aio.Metadata:
        return _metadata(self.pairs)

    async def send_initial_metadata(self, initial_metadata: Pairs) -> None:
        self.initial = initial_metadata

    def send_early(self, initial_metadata: Pairs) -> bool:
        """Send the initial metadata before a late first message. Return False if the caller cannot use it yet."""
        if self.on_early_metadata is None:
            return False
        self.initial = initial_metadata
        self.on_early_metadata(initial_metadata)
        return True

    def set_trailing_metadata(self, trailing_metadata: Pairs) -> None:
        self.trailing = trailing_metadata

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Pairs = ()) -> Never:
        self.trailing = trailing_metadata or self.trailing
        raise grpc.aio.AioRpcError(code, _metadata(self.initial), _metadata(self.trailing), details=details)

    async def abort_with_status(self, status: grpc.Status) -> Never:
        await self.abort(status.code, status.details, status.trailing_metadata or ())

    def time_remaining(self) -> float:
        """Return the seconds until the caller's deadline; infinite without one."""
        return max(0.0, self.deadline - time.monotonic())

    def peer(self) -> str:
        return "inprocess"

    def peer_identities(self) -> Iterable[bytes] | None:
        return None

    def peer_identity_key(self) -> str | None:
        return None

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        return {}

    def set_compression(self, compression: grpc.Compression) -> None:
        """Do nothing: no bytes are sent."""

    def disable_next_message_compression(self) -> None:
        """Do nothing: no bytes are sent."""

    # The older API to read, write and fail, which UMG does not use.
    async def read(self) -> Never:
        raise TypeError("a call without a socket takes one request")

    async def write(self, message: object) -> Never:
        raise TypeError("a servicer called without a socket yields its messages")

    def set_code(self, code: grpc.StatusCode) -> Never:
        raise TypeError("a servicer called without a socket fails by raising")

    def set_details(self, details: str) -> Never:
        raise TypeError("a servicer called without a socket fails by raising")


class InProcessCall(grpc.aio.Call):
    """In-process call from the caller's side, a `grpc.aio.Call`. Its status is known when the response was consumed."""

    _context: InProcessContext

    @property
    def sent_metadata(self) -> Pairs:
        """Initial metadata as the servicer sent it, without the conversion that `initial_metadata` makes."""
        return self._context.initial

    async def initial_metadata(self) -> grpc.aio.Metadata:
        """Return the servicer's initial metadata, available from its first message on."""
        return _metadata(self._context.initial)

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        return _metadata(self._context.trailing)

    async def code(self) -> grpc.StatusCode:
        """Return OK: any other status was raised to the consumer."""
        return grpc.StatusCode.OK

    async def details(self) -> str:
        return ""

    async def wait_for_connection(self) -> None:
        """Return at once."""

    def time_remaining(self) -> float | None:
        return self._context.time_remaining()

    def cancel(self) -> bool:
        """Return False: the call is cancelled with its consumer's task, in which it runs; `aclose` ends a stream."""
        return False

    def cancelled(self) -> bool:
        return False

    def done(self) -> bool:
        """Return False: the call ends only when its consumer stops."""
        return False

    def add_done_callback(self, callback: Callable[[Any], None]) -> Never:
        raise TypeError("the end of a call without a socket is its consumer's")


class InProcessUnaryCall(InProcessCall, grpc.aio.UnaryUnaryCall[Any, Response]):
    """In-process call of a unary method; it runs when it is awaited, once."""

    def __init__(self, response: Awaitable[Response], context: InProcessContext) -> None:
        self._context = context
        self._response = response

    def __await__(self) -> Generator[Any, None, Response]:
        return self._response.__await__()


class InProcessStreamCall(InProcessCall, grpc.aio.UnaryStreamCall[Any, Response]):
    """In-process call of a streaming method; each step of its iteration runs the servicer up to its next message."""

    def __init__(self, messages: AsyncGenerator[Response, None], context: InProcessContext) -> None:
        self._context = context
        self._messages = messages
        self.aclose = messages.aclose
        """End the call early. The servicer has released its resources when this returns."""

    def expect_early_metadata(self, use: Callable[[Pairs], None]) -> None:
        """Let the call pass its initial metadata to `use` if its first message is late."""
        self._context.on_early_metadata = use

    def __aiter__(self) -> AsyncIterator[Response]:
        return self._messages

    async def read(self) -> Response | object:
        """Return the next message, or `grpc.aio.EOF`."""
        return await anext(self._messages, grpc.aio.EOF)


class InProcessUnaryMethod(grpc.aio.UnaryUnaryMultiCallable[Any, Any]):
    """Unary method of an in-process service, which generated stubs call with a request."""

    def __init__(self, behavior: Unary) -> None:
        self._behavior = behavior

    def open(self, request: object, metadata: Pairs, attachment: object) -> tuple[Awaitable[Any], InProcessContext]:
        """Call the method. Return its response, which must be awaited, and its context, whose `initial` is then the
        initial metadata. `attachment`: passed to the servicer beside the request.
        """
        context = InProcessContext(metadata, None, attachment)
        return self._behavior(request, context), context

    def with_attachment(self, attachment: object) -> partial[InProcessUnaryCall[Any]]:
        """Return a callable that calls the method with the object `attachment` for the servicer beside the request."""
        return partial(self, attachment=attachment)

    def __call__(
        self,
        request: object,
        *,
        timeout: float | None = None,
        metadata: Pairs | None = None,
        credentials: grpc.CallCredentials | None = None,
        wait_for_ready: bool | None = None,
        compression: grpc.Compression | None = None,
        attachment: object = None,
    ) -> InProcessUnaryCall[Any]:
        context = InProcessContext(metadata or (), timeout, attachment)
        return InProcessUnaryCall(self._behavior(request, context), context)


class InProcessStreamMethod(grpc.aio.UnaryStreamMultiCallable[Any, Any]):
    """Streaming method of an in-process service, which generated stubs call with a request."""

    def __init__(self, behavior: Stream) -> None:
        self._behavior = behavior

    def open(
        self, request: object, metadata: Pairs, attachment: object
    ) -> tuple[AsyncGenerator[Any, None], InProcessContext]:
        """Call the method. Return the generator of its messages, and its context, whose `initial` is the initial
        metadata once the first message came. `attachment`: passed to the servicer beside the request.
        """
        context = InProcessContext(metadata, None, attachment)
        return self._behavior(request, context), context

    def with_attachment(self, attachment: object) -> partial[InProcessStreamCall[Any]]:
        """Return a callable that calls the method with the object `attachment` for the servicer beside the request."""
        return partial(self, attachment=attachment)

    def __call__(
        self,
        request: object,
        *,
        timeout: float | None = None,
        metadata: Pairs | None = None,
        credentials: grpc.CallCredentials | None = None,
        wait_for_ready: bool | None = None,
        compression: grpc.Compression | None = None,
        attachment: object = None,
    ) -> InProcessStreamCall[Any]:
        context = InProcessContext(metadata or (), timeout, attachment)
        return InProcessStreamCall(self._behavior(request, context), context)


class InProcessChannel(grpc.aio.Channel):
    """Channel to the servicers of an `InProcessServer`, which generated stubs take like a `grpc.aio` channel."""

    def __init__(self, server: InProcessServer) -> None:
        self._handlers = server.handlers
        self._unary = dict[str, InProcessUnaryMethod]()  # the stubs of all routes share the methods
        self._streams = dict[str, InProcessStreamMethod]()

    def unary_unary(self, method: str, *_: object, **__: object) -> InProcessUnaryMethod:
        if (known := self._unary.get(method)) is None:
            behavior: Any = self._handlers[method].unary_unary if method in self._handlers else _unknown_unary
            known = self._unary[method] = InProcessUnaryMethod(behavior)
        return known

    def unary_stream(self, method: str, *_: object, **__: object) -> InProcessStreamMethod:
        if (known := self._streams.get(method)) is None:
            behavior: Any = self._handlers[method].unary_stream if method in self._handlers else _unknown_stream
            known = self._streams[method] = InProcessStreamMethod(behavior)
        return known

    def stream_unary(self, method: str, *_: object, **__: object) -> Never:
        raise TypeError("no operation of the gateway takes a stream")

    def stream_stream(self, method: str, *_: object, **__: object) -> Never:
        raise TypeError("no operation of the gateway takes a stream")

    async def close(self, grace: float | None = None) -> None:
        """Do nothing: each call ends with the task that consumes it."""

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return grpc.ChannelConnectivity.READY

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Return at once: the state is always READY."""

    async def channel_ready(self) -> None:
        """Return at once."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _metadata(pairs: Pairs) -> grpc.aio.Metadata:
    if not pairs:
        return EMPTY_METADATA
    return pairs if isinstance(pairs, grpc.aio.Metadata) else grpc.aio.Metadata(*pairs)


async def _unknown_unary(_: object, context: Context) -> Never:
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")


async def _unknown_stream(_: object, context: Context) -> AsyncGenerator[Any, None]:
    for message in NO_MESSAGES:  # makes this a generator
        yield message
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
