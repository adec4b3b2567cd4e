"""gRPC interceptor of every call: admits it, authenticates the caller, and writes status and log line at its end."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Never

import structlog
from google.protobuf.message import DecodeError

from umg_grpc.access.authentication import Authenticator
from umg_grpc.access.caller_identity import Caller
from umg_grpc.access.key_permissions import SESSION_SCOPES, required_scopes
from umg_grpc.access.sessions import SESSION_SCHEME
from umg_grpc.base.errors import UmgError, internal, shutting_down
from umg_grpc.base.grpc_status import DETAILS_KEY, HTTP_STATUSES, to_status
from umg_grpc.base.inprocess_channel import Context, Deserializer, Interceptor, Stream, Unary
from umg_grpc.base.response_memory_reservation import CALL_MEMORY, CallMemory
from umg_grpc.service.pipeline.call_log import OWN_PREFIX, CallLog
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.early_response_headers import SlowStarts
from umg_grpc.service.resilience.load_shedding import LoadShedder, uses_model
from umg_grpc.v1 import pb
from umg_grpc.wire.core.gateway_headers import TIMEOUT_HEADER
from umg_grpc.wire.text_format_interface import BIG_BYTES

logger = structlog.get_logger()

MAX_KEYLESS_BYTES = 2 << 20
"""Largest request of a method that needs no key: twice the largest callback of a provider."""


class CallInterceptor(Interceptor):
    """Interceptor of every method of `umg.v1`. It admits the call, authenticates the caller and decodes the request. At
    the end it sends the headers of the response, or the status of an error, and writes the log line.
    """

    def __init__(
        self,
        log: CallLog,
        authenticator: Authenticator,
        load_shedder: LoadShedder | None = None,
        slow_starts: SlowStarts | None = None,
    ) -> None:
        """Create the interceptor. `load_shedder`: None for the calls of the HTTP server in this process, which rejects
        calls by itself, before it reads a body. `slow_starts`: sends the headers of slow streams early.
        """
        self._slow_starts = slow_starts or SlowStarts()
        self._log = log
        self._authenticator = authenticator
        self._load_shedder = load_shedder
        self._deserializers: dict[str, Deserializer] = {}
        self._socket_tasks: dict[Call, asyncio.Task[Any] | None] = {}
        self._is_shutting_down = False

    def cut_off(self) -> None:
        """Cancel the calls over sockets with the error of a shutdown. The HTTP server cancels its calls itself."""
        self._is_shutting_down = True
        for task in tuple(self._socket_tasks.values()):
            if task is not None:
                task.cancel()

    def wrap_deserializer(self, method: str, deserialize: Deserializer | None) -> Deserializer | None:
        if not method.startswith(OWN_PREFIX) or deserialize is None:
            return deserialize
        self._deserializers[method] = deserialize  # called after the authentication
        return None

    def wrap_unary(self, method: str, inner: Unary) -> Unary:
        if not method.startswith(OWN_PREFIX):
            return inner
        load_shedder, scopes = self._load_shedder if uses_model(method) else None, required_scopes(method)

        async def served(request: object, context: Context) -> object:
            call, failure = self._log.open(method, context), None
            try:
                await self._admit(call, load_shedder, scopes)
                if isinstance(request, bytes):
                    request = await self._decode(method, request, scopes)
                response = await inner(request, context)
                await context.send_initial_metadata(call.metadata)
                return response
            except Exception as error:  # all failures, expected or not
                failure = _failure(error, call)
            except asyncio.CancelledError:
                failure = self._cancellation_error(call)
                if failure.reason == pb.ERROR_REASON_CANCELLED:
                    raise
            finally:
                self._socket_tasks.pop(call, None)
                self._log.close(call, failure)
            aborted = _abort(failure, call, context)
            del request, context  # the error of gRPC keeps this frame, and the context keeps that error: see `_abort`
            return await aborted

        return served

    def wrap_stream(self, method: str, inner: Stream) -> Stream:
        if not method.startswith(OWN_PREFIX):
            return inner
        load_shedder, scopes = self._load_shedder if uses_model(method) else None, required_scopes(method)
        slow_starts, may_wait = self._slow_starts, uses_model(method)

        async def served(request: object, context: Context) -> AsyncGenerator[Any, None]:
            call, failure, sent, waiting = self._log.open(method, context), None, False, None
            try:
                await self._admit(call, load_shedder, scopes)
                if isinstance(request, bytes):
                    request = await self._decode(method, request, scopes)
                if may_wait:
                    waiting = slow_starts.add(call, context)
                async with aclosing(inner(request, context)) as messages:
                    async for message in messages:
                        if not sent:
                            call.facts.first_output_seconds = time.perf_counter() - call.facts.began_at
                            if waiting is not None and slow_starts.end(waiting):
                                await waiting.finish_sending()
                            else:
                                await context.send_initial_metadata(call.metadata)
                            sent = True
                        yield message
                        del message  # until the next one, which may take hours
            except Exception as error:
                failure = _failure(error, call)
            except (asyncio.CancelledError, GeneratorExit) as end:
                failure = _caller_cancelled() if isinstance(end, GeneratorExit) else self._cancellation_error(call)
                if failure.reason == pb.ERROR_REASON_CANCELLED:
                    raise
            finally:
                self._socket_tasks.pop(call, None)
                self._log.close(call, failure)
                is_early = waiting is not None and slow_starts.end(waiting)
            if failure is not None:
                if is_early and waiting is not None:
                    await waiting.finish_sending()
                aborted = _abort(failure, call, context, sent=sent, headers_sent=sent or is_early)
                del request, context  # the error of gRPC keeps this frame, and the context keeps that error
                await aborted

        return served

    async def _admit(self, call: Call, load_shedder: LoadShedder | None, scopes: frozenset[str] | None) -> None:
        """Set the call's deadline, take a slot of the load shedder (None: no limit), and authenticate the caller."""
        if not call.arrival.trusted:
            self._socket_tasks[call] = task = asyncio.current_task()
            _hold_memory(task)
        if TIMEOUT_HEADER in call.arrival.metadata:
            call.limit()
        if load_shedder is not None:
            load_shedder.check()
            await load_shedder.enter(call.seconds_left())
            call.charges.load_shedder = load_shedder
        if scopes is None:
            return
        if (caller := self._authenticator.valid_caller(call.arrival.known_key)) is None:
            caller = await self._authenticate(call, scopes)
        call.known_caller = caller
        caller.check_scopes(scopes)

    async def _authenticate(self, call: Call, scopes: frozenset[str]) -> Caller:
        """Return the caller by the credentials in the metadata. Methods of `SESSION_SCOPES` accept sessions, too."""
        scheme, _, secret = call.arrival.metadata.get("authorization", "").partition(" ")
        secret = secret.strip()
        if scheme.lower() == SESSION_SCHEME:
            if scopes.isdisjoint(SESSION_SCOPES):
                message = "a session is no credential of this method; send `authorization: Bearer YOUR_KEY`"
                raise UmgError(pb.ERROR_REASON_INVALID_KEY, message)
            return await self._authenticator.authenticate_session(secret)
        if scheme and scheme.lower() != "bearer":
            message = "the credentials are of an unknown scheme; send `authorization: Bearer YOUR_KEY`"
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, message)
        try:
            return self._authenticator.cached(secret) or await self._authenticator.authenticate(secret)
        except UmgError:
            call.rejected_key = self._authenticator.reference(secret)
            raise

    async def _decode(self, method: str, request: bytes, scopes: frozenset[str] | None) -> object:
        """Return the message of a request from a socket. `scopes`: None for a method without key, for small ones."""
        if scopes is None and len(request) > MAX_KEYLESS_BYTES:
            message = f"the request is larger than {MAX_KEYLESS_BYTES} bytes"
            raise UmgError(pb.ERROR_REASON_BODY_TOO_LARGE, message, limit_bytes=str(MAX_KEYLESS_BYTES))
        try:
            if len(request) < BIG_BYTES:
                return self._deserializers[method](request)
            return await asyncio.to_thread(self._deserializers[method], request)
        except DecodeError:
            message = "the request is no message of the kind that this method takes"
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, message)

    def _cancellation_error(self, call: Call) -> UmgError:
        return shutting_down() if self._is_shutting_down and not call.arrival.trusted else _caller_cancelled()


def _hold_memory(task: asyncio.Task[Any] | None) -> None:
    memory = CallMemory()
    CALL_MEMORY.set(memory)
    if task is not None:
        task.add_done_callback(lambda _: memory.release())


def _failure(error: Exception, call: Call) -> UmgError:
    """Return the error that the caller of a failed call gets. Log any error that is no UmgError."""
    if isinstance(error, UmgError):
        if error.place:
            logger.error("a body could not be decoded", request_id=call.arrival.request_id, place=error.place)
        return error.with_traceback(None)
    logger.error("unexpected failure", request_id=call.arrival.request_id, method=call.arrival.method, exc_info=error)
    return internal(call.arrival.request_id)


def _caller_cancelled() -> UmgError:
    return UmgError(pb.ERROR_REASON_CANCELLED, "the caller went away")


async def _abort(
    error: UmgError, call: Call, context: Context, *, sent: bool = False, headers_sent: bool = False
) -> Never:
    """End the call with the error, which gRPC raises as an exception. The exception must not refer to the context: the
    cycle would keep the request in memory until the next garbage collection.
    """
    headers = () if sent else call.metadata
    if not headers_sent:
        await context.send_initial_metadata(headers)
    details = to_status(error, "" if call.arrival.trusted else call.arrival.request_id)
    aborted = context.abort(HTTP_STATUSES[error.reason], error.message, (*headers, (DETAILS_KEY, details)))
    del context
    await aborted
