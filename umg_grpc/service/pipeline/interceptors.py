"""Interceptors of every operation: request id, errors as gRPC statuses, log line and metrics; authentication."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Never

import structlog
from google.protobuf.message import DecodeError

from umg_grpc.access.authentication import Authenticator
from umg_grpc.access.caller import KeyReference
from umg_grpc.access.permissions import required_scopes
from umg_grpc.access.usage import UsageLog
from umg_grpc.errors import UmgError, internal, shutting_down
from umg_grpc.inprocess import Context, Deserializer, InProcessContext, Interceptor, Pairs, Stream, Unary
from umg_grpc.request_ids import request_id_of
from umg_grpc.service.metrics import MICRO_CREDITS, Metrics
from umg_grpc.service.pipeline.call import CURRENT, Call, current
from umg_grpc.service.pipeline.usage import add_usage, set_cost
from umg_grpc.service.resilience.overload import REFUSALS
from umg_grpc.service.telemetry.interface import Attribute, Telemetry
from umg_grpc.status import DETAILS_KEY, STATUS, to_status
from umg_grpc.trace_context import OUTGOING, trace_context_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json import echo
from umg_grpc.wire.request_notes import RequestNotes
from umg_grpc.wire.text_format import BIG_BYTES

logger = structlog.get_logger()

KEY, KEY_PREFIX = "key", "key_prefix"  # fields of the log
OWN_PREFIX = "/umg.v1."  # health and reflection are other services, served without credentials


class LoggingInterceptor(Interceptor):
    """Outermost interceptor: creates the `Call`, sends the initial metadata, converts errors to statuses, logs and
    counts.
    """

    def __init__(self, metrics: Metrics, usage: UsageLog | None = None, telemetry: Telemetry | None = None) -> None:
        super().__init__()
        self._metrics = metrics
        self._usage = usage
        self._telemetry = telemetry
        self._socket_tasks: set[asyncio.Task[Any] | None] = set()
        self._is_shutting_down = False

    def cut_off(self) -> None:
        """Cancel the calls in flight over sockets, each with the error of a shutdown. The HTTP face cancels its own."""
        self._is_shutting_down = True
        for task in tuple(self._socket_tasks):
            if task is not None:
                task.cancel()

    def wrap_unary(self, method: str, inner: Unary) -> Unary:
        if not method.startswith(OWN_PREFIX):
            return inner

        async def logged(request: object, context: Context) -> object:
            call, started, failure = self._open(method, context), time.perf_counter(), None
            task = self._register(call)
            try:
                call.limit(_time_left(context))
                answer = await inner(request, context)
                await context.send_initial_metadata(_headers(call))
                return answer
            except Exception as error:  # all failures, expected or not
                failure = _failure(error, call)
            except asyncio.CancelledError:
                failure = self._cancellation_error(task)
                if failure.reason == pb.ERROR_REASON_CANCELLED:
                    raise
            finally:
                self._socket_tasks.discard(task)
                self._finish(call, started, failure)
            aborted = _abort(failure, call, context)
            del request, context  # the error of gRPC keeps this frame, and the context keeps that error: see `_abort`
            return await aborted

        return logged

    def wrap_stream(self, method: str, inner: Stream) -> Stream:
        if not method.startswith(OWN_PREFIX):
            return inner

        async def logged(request: object, context: Context) -> AsyncGenerator[Any, None]:
            call, started, failure, sent = self._open(method, context), time.perf_counter(), None, False
            task = self._register(call)
            try:
                call.limit(_time_left(context))
                async with aclosing(inner(request, context)) as messages:
                    async for message in messages:
                        if not sent:
                            call.first_output_seconds = time.perf_counter() - started
                            await context.send_initial_metadata(_headers(call))
                            sent = True
                        yield message
            except Exception as error:
                failure = _failure(error, call)
            except (asyncio.CancelledError, GeneratorExit) as end:
                failure = _caller_cancelled() if isinstance(end, GeneratorExit) else self._cancellation_error(task)
                if failure.reason == pb.ERROR_REASON_CANCELLED:
                    raise
            finally:
                self._socket_tasks.discard(task)
                self._finish(call, started, failure)
            if failure is not None:
                aborted = _abort(failure, call, context, sent=sent)
                del request, context  # the error of gRPC keeps this frame, and the context keeps that error
                await aborted

        return logged

    def _open(self, method: str, context: Context) -> Call:
        """Create the call, with its span if there is telemetry, and make it the current one."""
        call = _open(method, context)
        if self._telemetry is not None:
            call.span = self._telemetry.begin(method, call.trace)
            call.trace = call.span.trace
        OUTGOING.set(call.trace)
        return call

    def _register(self, call: Call) -> asyncio.Task[Any] | None:
        """Add the task of a call over a socket to the tasks to cancel and return it; None for an in-process call."""
        task = None if call.trusted else asyncio.current_task()
        if task is not None:
            self._socket_tasks.add(task)
        return task

    def _cancellation_error(self, task: asyncio.Task[Any] | None) -> UmgError:
        """Return the error of a cancelled call: a shutdown or a cancellation by the caller."""
        return shutting_down() if self._is_shutting_down and task is not None else _caller_cancelled()

    def _finish(self, call: Call, started: float, failure: UmgError | None) -> None:
        """Release the limits of the key, count the call, and write its usage record and its log line."""
        call.release(cancelled=failure is not None and failure.reason == pb.ERROR_REASON_CANCELLED)
        seconds = time.perf_counter() - started
        quantities = set_cost(call)
        if self._usage is not None:
            add_usage(self._usage, call, quantities, seconds, failure)
        if call.reservation is not None:  # after the journal has the cost: a killed process must not have freed it
            call.reservation.end(call.micro_credits)
        outcome = "OK" if failure is None else failure.name
        self._metrics.finished(call, outcome, seconds)
        if call.span is not None:
            call.span.end(_span_attributes(call), call.usage if not call.is_cached else None, failure)
        if failure is not None and failure.cause in REFUSALS:
            return  # the load shedder logs one line per second for all of them
        usage, model = call.usage, call.model
        facts: dict[str, str | int | None] = {"upstream_status": call.upstream_status or None}
        if failure is not None:
            model = model or echo(failure.metadata.get("model", ""))
            facts = failure.facts.log_fields() if failure.facts is not None else facts
        logger.info(
            "call",
            method=call.method.removeprefix(OWN_PREFIX),
            face=call.metadata.get("x-umg-face"),
            request_id=call.request_id,
            trace_id=call.trace.trace_id if call.trace is not None else None,
            outcome=outcome,
            cause=(failure.cause or None) if failure else None,
            ms=round(seconds * 1000, 1),
            first_ms=round(call.first_output_seconds * 1000, 1) if call.first_output_seconds is not None else None,
            **_key_fields(call),
            model=model or None,
            channel=call.channel or None,
            attempts=call.attempts or None,
            abandoned=call.abandoned or None,
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            estimated=True if usage and usage.estimated else None,
            cost=call.micro_credits / MICRO_CREDITS if call.micro_credits else None,
            **facts,
        )


class AuthenticationInterceptor(Interceptor):
    """Authentication by the bearer key in the metadata `authorization`, and the check of the key's scopes, before the
    request is decoded.
    """

    def __init__(self, authenticator: Authenticator) -> None:
        super().__init__()
        self._authenticator = authenticator
        self._deserializers: dict[str, Deserializer] = {}

    def wrap_deserializer(self, method: str, deserialize: Deserializer | None) -> Deserializer | None:
        if not method.startswith(OWN_PREFIX) or deserialize is None:
            return deserialize
        self._deserializers[method] = deserialize
        return None

    def wrap_unary(self, method: str, inner: Unary) -> Unary:
        if not method.startswith(OWN_PREFIX):
            return inner

        required = required_scopes(method)

        async def authenticated(request: object, context: Context) -> object:
            await self._authenticate(current(), required)
            return await inner(await self._message(method, request), context)

        return authenticated

    def wrap_stream(self, method: str, inner: Stream) -> Stream:
        if not method.startswith(OWN_PREFIX):
            return inner

        required = required_scopes(method)

        async def authenticated(request: object, context: Context) -> AsyncGenerator[Any, None]:
            await self._authenticate(current(), required)
            async with aclosing(inner(await self._message(method, request), context)) as messages:
                async for message in messages:
                    yield message

        return authenticated

    async def _message(self, method: str, request: object) -> object:
        """Return the request, decoded if it came over a socket. Raise UmgError(MALFORMED_BODY) for bytes that are not a
        message of the method's type.
        """
        if not isinstance(request, bytes):
            return request
        try:
            if len(request) < BIG_BYTES:
                return self._deserializers[method](request)
            return await asyncio.to_thread(self._deserializers[method], request)
        except DecodeError:
            message = "the request is no message of the kind that this method takes"
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, message)

    def is_cached(self, authorization: str) -> bool:
        """Return whether the key is valid according to the cache of the authenticator, without a look-up."""
        scheme, _, secret = authorization.partition(" ")
        return scheme.lower() == "bearer" and self._authenticator.cached(secret.strip()) is not None

    def reference(self, authorization: str) -> KeyReference | None:
        """Return the reference to the key, valid or not, if it is in the cache of the authenticator."""
        scheme, _, secret = authorization.partition(" ")
        return self._authenticator.reference(secret.strip()) if scheme.lower() == "bearer" else None

    async def _authenticate(self, call: Call, required: frozenset[str]) -> None:
        """Set the caller. Raise UmgError for a key that is not valid, or that has none of the required scopes."""
        scheme, _, secret = call.metadata.get("authorization", "").partition(" ")
        if scheme and scheme.lower() != "bearer":
            message = "the credentials are of an unknown scheme; send `authorization: Bearer YOUR_KEY`"
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, message)
        secret = secret.strip()
        try:
            caller = self._authenticator.cached(secret) or await self._authenticator.authenticate(secret)
        except UmgError:
            call.rejected_key = self._authenticator.reference(secret)
            raise
        call.known_caller = caller
        caller.check_scopes(required)


def _open(method: str, context: Context) -> Call:
    """Create the call and make it the current one."""
    trusted = isinstance(context, InProcessContext)
    pairs = context.pairs if isinstance(context, InProcessContext) else context.invocation_metadata() or ()
    metadata = {key: value for key, value in pairs if isinstance(value, str)}
    request_id = metadata.get("x-request-id", "")
    request_id = request_id if trusted and request_id else request_id_of(request_id)
    trace = trace_context_of(metadata)
    call = Call(method, metadata, trusted, request_id, _notes(context), trace)
    CURRENT.set(call)
    return call


def _key_fields(call: Call) -> dict[str, str]:
    """Return the fields of the key in the log line of a call, also of a key that was rejected."""
    if (caller := call.known_caller) is not None:
        return {KEY: caller.key_id, KEY_PREFIX: caller.key_prefix}
    return {} if call.rejected_key is None else {KEY: call.rejected_key.key_id, KEY_PREFIX: call.rejected_key.prefix}


def _span_attributes(call: Call) -> dict[str, Attribute | None]:
    """Return the attributes of the span of a call."""
    return {
        "umg.request_id": call.request_id,
        "umg.face": call.metadata.get("x-umg-face"),
        "umg.key_id": call.known_caller.key_id if call.known_caller is not None else None,
        "umg.model": call.model or None,
        "umg.channel": call.channel or None,
        "umg.attempts": call.attempts,
        "umg.cached": call.is_cached or None,
        "umg.cost_credits": call.micro_credits / MICRO_CREDITS if call.micro_credits else None,
    }


def _notes(context: Context) -> RequestNotes | None:
    attachment = context.attachment if isinstance(context, InProcessContext) else None
    return attachment if isinstance(attachment, RequestNotes) else None


def _time_left(context: Context) -> float | None:
    left: object = context.time_remaining()  # None for a socket without a deadline, although the stubs do not allow it
    return left if isinstance(left, float) else None


def _headers(call: Call) -> Pairs:
    """Return the initial metadata. The HTTP face chose its request id itself and gets none."""
    return [*call.headers.items()] if call.trusted else [("x-request-id", call.request_id), *call.headers.items()]


def _failure(error: Exception, call: Call) -> UmgError:
    """Return the error for the caller, without its traceback: the frames in it hold the request, and that of the
    caller of this function also the error, a cycle that would keep them until the next garbage collection. An
    unexpected exception is logged, and the caller gets an internal error.
    """
    if isinstance(error, UmgError):
        if error.place:
            logger.error("a body could not be decoded", request_id=call.request_id, place=error.place)
        return error.with_traceback(None)
    logger.error("unexpected failure", request_id=call.request_id, method=call.method, exc_info=error)
    return internal(call.request_id)


def _caller_cancelled() -> UmgError:
    return UmgError(pb.ERROR_REASON_CANCELLED, "the caller went away")


async def _abort(error: UmgError, call: Call, context: Context, *, sent: bool = False) -> Never:
    """End the call with the error. The headers of a failure before the first message are also in its trailing metadata:
    the Python client of gRPC reports no initial metadata if the status overtakes it.

    A context over a socket keeps the error that its `abort` raises, and with its traceback the frames of this function
    and its callers. They must not refer to the context: the cycle would keep the request until the next garbage
    collection.
    """
    headers = [] if sent else _headers(call)
    if not sent:
        await context.send_initial_metadata(headers)
    details = to_status(error, "" if call.trusted else call.request_id)
    aborted = context.abort(STATUS[error.reason], error.message, (*headers, (DETAILS_KEY, details)))
    del context
    await aborted
