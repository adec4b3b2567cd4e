"""Hedged requests: a slow channel gets a second one beside it; the first answer wins and the other is cancelled."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine
from typing import Any, TypeVar

from umg_grpc.errors import UmgError
from umg_grpc.service.pipeline.attempt import AttemptT
from umg_grpc.service.pipeline.failover import AttemptScope, FailoverLoop
from umg_grpc.service.pipeline.failure_policy import FINAL

Result = TypeVar("Result")
Message = TypeVar("Message")
Opened = tuple[list[Message], AsyncGenerator[Message, None]]
"""A stream, with the messages already read from it."""


async def first_to_answer(
    attempts: FailoverLoop[AttemptT],
    scope: AttemptScope[AttemptT],
    seconds: float,
    start: Callable[[AttemptT], Coroutine[Any, Any, Result]],
    close: Callable[[Result], Awaitable[None]] | None = None,
) -> Result:
    """Return the result of the attempt; if it takes longer than `seconds`, start a hedge and return the first result.

    `scope` then has the attempt that won. Raises the failure of the last attempt that is left, or a failure of the
    first attempt after which no other channel is tried. The other attempt is cancelled and has ended before this
    function returns; `close` releases a result that it produced in the meantime.
    """
    first, hedge, won = scope.attempt, None, False
    running = {asyncio.create_task(start(first), name="attempt"): first}
    try:
        await asyncio.wait(running, timeout=seconds)
        if not next(iter(running)).done() and (hedge := await attempts.next_hedge(first)) is not None:
            running[asyncio.create_task(start(hedge), name="hedge")] = hedge
        while True:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            task = next(iter(done))
            attempt, error = running.pop(task), task.exception()
            if not running or not isinstance(error, UmgError) or (attempt is first and error.failure in FINAL):
                scope.attempt, won = attempt, error is None and attempt is hedge
                attempts.select(attempt)
                return task.result()
            attempts.should_retry(attempt, attempts.outcomes.failed(attempt, error))
            scope.attempt = next(iter(running.values()))  # its outcome is recorded by the scope
    finally:
        for attempt in running.values():  # before any await: the slot is released even if this task is cancelled
            if attempt is not scope.attempt:
                attempts.outcomes.abandoned(attempt, slow=won)
        if hedge is not None:
            attempts.outcomes.count_hedge(won=won)
        await _cancel_all(running, close)


async def _cancel_all(
    tasks: Collection[asyncio.Task[Result]], close: Callable[[Result], Awaitable[None]] | None
) -> None:
    """Cancel the tasks and wait for their end, unless the waiting task is cancelled again."""
    if not tasks:
        return
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled() and task.exception() is None and close is not None:
            await close(task.result())


async def open_stream(
    stream: AsyncGenerator[Message, None], has_no_output: Callable[[Message], bool]
) -> Opened[Message]:
    """Read the stream up to its first message with output. Close it on any error."""
    early = list[Message]()
    try:
        while (message := await anext(stream, None)) is not None:
            early.append(message)
            if not has_no_output(message):
                break
        return early, stream
    except BaseException:
        await stream.aclose()
        raise


async def open_within(
    stream: AsyncGenerator[Message, None], has_no_output: Callable[[Message], bool], seconds: float
) -> Opened[Message]:
    """Read the stream up to its first message with output, for at most `seconds` after its first message. Failover to
    another channel is possible until then.
    """
    loop, early = asyncio.get_running_loop(), list[Message]()
    deadline, reading = loop.time() + seconds, None

    async def read_on() -> None:
        while (message := await anext(stream, None)) is not None:
            early.append(message)
            if not has_no_output(message) or loop.time() >= deadline:
                break

    try:
        if (message := await anext(stream, None)) is None:
            return early, stream
        early.append(message)
        if not has_no_output(message):  # the usual case needs no task
            return early, stream
        reading = asyncio.create_task(read_on(), name="beginning")
        await asyncio.wait({reading}, timeout=deadline - loop.time())
        if not reading.done():
            return [], _delayed_stream(
                early, reading, stream
            )  # no messages before it: the consumer starts, and so closes, it immediately
        reading.result()
        return early, stream
    except BaseException:
        await _close_stream(reading, stream)
        raise


async def _delayed_stream(
    early: list[Message], reading: asyncio.Task[None], stream: AsyncGenerator[Message, None]
) -> AsyncGenerator[Message, None]:
    """Yield the messages that were held back, then the rest of the stream, whose next message is being read."""
    held = len(early)
    try:
        for message in early[:held]:
            yield message
        await reading
        for message in early[held:]:
            yield message
        async for message in stream:
            yield message
    finally:
        await _close_stream(reading, stream)


async def _close_stream(reading: asyncio.Task[None] | None, stream: AsyncGenerator[Any, None]) -> None:
    """Cancel the reading of a stream and close the stream."""
    try:
        if reading is not None:
            await _cancel_all({reading}, None)
    finally:
        await stream.aclose()
