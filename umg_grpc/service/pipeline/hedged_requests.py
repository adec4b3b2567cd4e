"""Hedged requests: if a channel is slow, a second one is called at the same time. The first response wins, the other
call is cancelled.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine
from math import inf
from typing import Any, TypeVar

from umg_grpc.errors import UmgError
from umg_grpc.service.pipeline.attempt import AttemptT
from umg_grpc.service.pipeline.failover import FailoverLoop
from umg_grpc.service.pipeline.failure_policy import FINAL

Result = TypeVar("Result")
Message = TypeVar("Message")
Opened = tuple[list[Message], AsyncGenerator[Message, None]]
"""The messages that were already read from a stream, and the stream with the rest of them."""


async def first_to_answer(
    attempts: FailoverLoop[AttemptT],
    seconds: float,
    start: Callable[[AttemptT], Coroutine[Any, Any, Result]],
    close: Callable[[Result], Awaitable[None]] | None = None,
) -> Result:
    """Return the result of the current attempt. If it takes longer than `seconds`, start a second attempt (the hedge)
    beside it, and return the first result of the two.

    `start`: calls the channel of an attempt, and returns the result. `close`: releases a result that is not needed. The
    attempt that won is then the current one; the other was cancelled and has ended. Raise the failure of the last
    attempt that is left, or a failure of the first attempt after which no other channel is tried.
    """
    first, hedge, won = attempts.attempt, None, False
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
                won = error is None and attempt is hedge
                attempts.select(attempt)
                return task.result()
            attempts.should_retry(attempt, attempts.fail(attempt, error))
            attempts.attempt = next(iter(running.values()))  # its outcome is recorded by the loop
    finally:
        for attempt in running.values():  # before any await: the slot is released even if this task is cancelled
            if attempt is not attempts.attempt:
                attempts.abandon(attempt, slow=won)
        if hedge is not None:
            attempts.count_hedge(won=won)
        await _cancel_all(running, close)


async def first_stream(
    attempts: FailoverLoop[AttemptT],
    hedge_seconds: float | None,
    has_no_output: Callable[[Message], bool],
    hold_seconds: float,
) -> Opened[Message]:
    """Return the stream of the current attempt. If it has no output after `hedge_seconds` (None: no hedging), start a
    second attempt, and return the stream that produces output first.

    `has_no_output`: returns whether a message contains no output. `hold_seconds`: without hedging, time up to which the
    stream is read in wait of its first output: until it is returned, failover to another channel is possible.
    """
    call = attempts.call
    early: list[Message] = []
    if hedge_seconds is not None and attempts.has_others:
        return await first_to_answer(
            attempts,
            hedge_seconds,
            lambda attempt: _open_stream(attempt.call.stream(call.seconds_left()), has_no_output),
            lambda opened: opened[1].aclose(),
        )
    now, reading = asyncio.get_running_loop().time, None
    deadline = now() + hold_seconds
    stream: AsyncGenerator[Message, None] = attempts.attempt.call.stream(call.seconds_left())
    try:
        if (message := await anext(stream, None)) is None:
            return early, stream
        early.append(message)
        if not has_no_output(message):  # the usual case needs no task
            return early, stream
        reading = asyncio.create_task(_read_on(stream, early, has_no_output, deadline), name="beginning")
        await asyncio.wait({reading}, timeout=deadline - now())
        if not reading.done():  # no messages before the stream: the consumer starts, and so closes, it immediately
            return [], _delayed_stream(early, reading, stream)
        reading.result()
        return early, stream
    except BaseException:
        await _close_stream(reading, stream)
        raise


async def _open_stream(
    stream: AsyncGenerator[Message, None], has_no_output: Callable[[Message], bool]
) -> Opened[Message]:
    """Read the stream up to its first message with output. Return the messages read, and the stream. Close it on any
    error.
    """
    early = list[Message]()
    try:
        await _read_on(stream, early, has_no_output)
        return early, stream
    except BaseException:
        await stream.aclose()
        raise


async def _read_on(
    stream: AsyncGenerator[Message, None],
    early: list[Message],
    has_no_output: Callable[[Message], bool],
    deadline: float = inf,
) -> None:
    """Append messages of the stream to `early`, up to the first one with output, until the stream ends, or until the
    first message after `deadline`, a time on the event loop's clock.
    """
    loop = asyncio.get_running_loop()
    while (message := await anext(stream, None)) is not None:
        early.append(message)
        if not has_no_output(message) or loop.time() >= deadline:
            break


async def _delayed_stream(
    early: list[Message], reading: asyncio.Task[None], stream: AsyncGenerator[Message, None]
) -> AsyncGenerator[Message, None]:
    """Yield the messages in `early`, then the rest of the stream. `reading`: task that still appends messages to
    `early`.
    """
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
    """Cancel the task that reads from a stream (None: no task), and close the stream."""
    try:
        if reading is not None:
            await _cancel_all({reading}, None)
    finally:
        await stream.aclose()


async def _cancel_all(
    tasks: Collection[asyncio.Task[Result]], close: Callable[[Result], Awaitable[None]] | None
) -> None:
    """Cancel the tasks, and wait for their end unless this task is cancelled again. `close`: releases the result of a
    task that has ended with one; None for results that need no release.
    """
    if not tasks:
        return
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled() and task.exception() is None and close is not None:
            await close(task.result())
