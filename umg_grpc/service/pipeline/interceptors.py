"""What every operation has around it: a request id, errors told as statuses, a log line, figures; and
authentication.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Never

import structlog

from umg_grpc.access.authenticate import Authenticator
from umg_grpc.errors import UmgError, internal, shutting_down
from umg_grpc.inprocess import Context, InProcessContext, Interceptor, Pairs, Stream, Unary, Undecodable
from umg_grpc.service.call import CURRENT, Call, current, request_id_of
from umg_grpc.service.gate import REFUSALS
from umg_grpc.service.metrics import Metrics
from umg_grpc.status import DETAILS_KEY, STATUS, to_status
from umg_grpc.v1 import pb

logger = structlog.get_logger()

OWN = "/umg.v1."  # health and reflection are served without credentials and are no operations of ours


class Observing(Interceptor):
    """Outermost: opens the `Call`, sends its initial metadata, tells failures in the catalogue's words, logs and
    counts.
    """

    def __init__(self, metrics: Metrics) -> None:
        super().__init__()
        self._metrics = metrics
        self._over_sockets: set[asyncio.Task[Any] | None] = set()
        self._is_cut_off = False

    def cut_off(self) -> None:
        """Ends the calls under way that came over a socket, and tells each why; the others are our own face's."""
        self._is_cut_off = True
        for task in tuple(self._over_sockets):
            if task is not None:
                task.cancel()

    def wrap_unary(self, method: str, inner: Unary) -> Unary:
        if not method.startswith(OWN):
            return inner

        async def observed(request: object, context: Context) -> object:
            call, started, failure = _open(method, context), time.perf_counter(), None
            task = self._enter(call)
            try:
                call.limit(_time_left(context))
                answer = await inner(request, context)
                await context.send_initial_metadata(_headers(call))
                return answer
            except Exception as error:  # every failure ends here, known or not
                failure = _failure(error, call)
            except asyncio.CancelledError:
                failure = self._ended(task)
                if failure.reason == pb.ERROR_REASON_CANCELLED:
                    raise
            finally:
                self._over_sockets.discard(task)
                self._finish(call, started, failure)
            return await _abort(failure, call, context)

        return observed

    def wrap_stream(self, method: str, inner: Stream) -> Stream:
        if not method.startswith(OWN):
            return inner

        async def observed(request: object, context: Context) -> AsyncGenerator[Any, None]:
            call, started, failure, sent = _open(method, context), time.perf_counter(), None, False
            task = self._enter(call)
            try:
                call.limit(_time_left(context))
                async with aclosing(inner(request, context)) as messages:
                    async for message in messages:
                        if not sent:
                            await context.send_initial_metadata(_headers(call))
                            sent = True
                        yield message
            except Exception as error:
                failure = _failure(error, call)
            except (asyncio.CancelledError, GeneratorExit) as end:
                failure = _left() if isinstance(end, GeneratorExit) else self._ended(task)
                if failure.reason == pb.ERROR_REASON_CANCELLED:
                    raise
            finally:
                self._over_sockets.discard(task)
                self._finish(call, started, failure)
            if failure is not None:
                await _abort(failure, call, context, sent=sent)

        return observed

    def _enter(self, call: Call) -> asyncio.Task[Any] | None:
        """The task of a call that came over a socket."""
        task = None if call.trusted else asyncio.current_task()
        if task is not None:
            self._over_sockets.add(task)
        return task

    def _ended(self, task: asyncio.Task[Any] | None) -> UmgError:
        """Why a call was cancelled."""
        return shutting_down() if self._is_cut_off and task is not None else _left()

    def _finish(self, call: Call, started: float, failure: UmgError | None) -> None:
        seconds = time.perf_counter() - started
        outcome = "OK" if failure is None else failure.name
        self._metrics.finished(call, outcome, seconds)
        if failure is not None and failure.cause in REFUSALS:
            return  # of which the gate has a line for all of a second
        usage = call.usage
        logger.info(
            "call",
            method=call.method.removeprefix(OWN),
            face=call.metadata.get("x-umg-face"),
            request_id=call.request_id,
            outcome=outcome,
            cause=(failure.cause or None) if failure else None,
            ms=round(seconds * 1000, 1),
            key=call.known_caller.key_id if call.known_caller else None,
            model=call.model or None,
            channel=call.channel or None,
            attempts=call.attempts if call.attempts > 1 else None,
            abandoned=call.abandoned or None,
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            estimated=True if usage and usage.estimated else None,
        )


class Authenticating(Interceptor):
    """Finds who calls, by the bearer key in the metadata `authorization`."""

    def __init__(self, authenticator: Authenticator) -> None:
        super().__init__()
        self._authenticator = authenticator

    def wrap_unary(self, method: str, inner: Unary) -> Unary:
        if not method.startswith(OWN):
            return inner

        async def authenticated(request: object, context: Context) -> object:
            await self._authenticate(current())
            _check_decoded(request)
            return await inner(request, context)

        return authenticated

    def wrap_stream(self, method: str, inner: Stream) -> Stream:
        if not method.startswith(OWN):
            return inner

        async def authenticated(request: object, context: Context) -> AsyncGenerator[Any, None]:
            await self._authenticate(current())
            _check_decoded(request)
            async with aclosing(inner(request, context)) as messages:
                async for message in messages:
                    yield message

        return authenticated

    async def _authenticate(self, call: Call) -> None:
        scheme, _, secret = call.metadata.get("authorization", "").partition(" ")
        if scheme and scheme.lower() != "bearer":
            message = "the credentials are of an unknown scheme; send `authorization: Bearer YOUR_KEY`"
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, message)
        secret = secret.strip()
        call.known_caller = self._authenticator.cached(secret) or await self._authenticator.authenticate(secret)


def _check_decoded(request: object) -> None:
    if isinstance(request, Undecodable):
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, "the request is no message of the kind that this method takes")


def _open(method: str, context: Context) -> Call:
    trusted = isinstance(context, InProcessContext)
    pairs = context.pairs if isinstance(context, InProcessContext) else context.invocation_metadata() or ()
    metadata = {key: value for key, value in pairs if isinstance(value, str)}
    request_id = metadata.get("x-request-id", "")
    call = Call(method, metadata, trusted, request_id if trusted and request_id else request_id_of(request_id))
    CURRENT.set(call)
    return call


def _time_left(context: Context) -> float | None:
    left: object = context.time_remaining()  # a socket's context says None, whatever its stubs say
    return left if isinstance(left, float) else None


def _headers(call: Call) -> Pairs:
    """What to tell before the answer. Our own facade chose the request id itself."""
    return [*call.headers.items()] if call.trusted else [("x-request-id", call.request_id), *call.headers.items()]


def _failure(error: Exception, call: Call) -> UmgError:
    """The error as the caller may know it. What nobody expected goes to the log, whole, and not to the caller."""
    if isinstance(error, UmgError):
        return error
    logger.error("unexpected failure", request_id=call.request_id, method=call.method, exc_info=error)
    return internal(call.request_id)


def _left() -> UmgError:
    return UmgError(pb.ERROR_REASON_CANCELLED, "the caller went away")


async def _abort(error: UmgError, call: Call, context: Context, *, sent: bool = False) -> Never:
    if not sent:
        await context.send_initial_metadata(_headers(call))
    await context.abort(STATUS[error.reason], error.message, ((DETAILS_KEY, to_status(error)),))
