"""Hedged requests: beside a slow channel a second one is called. The first response is used, the other cancelled."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine
from math import inf
from typing import Any, Generic, Self, TypeVar

from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline.channel_attempt import AttemptT
from umg_grpc.service.pipeline.failover import FailoverLoop
from umg_grpc.service.pipeline.failure_policy import FINAL_FAILURES

Result = TypeVar("Result")
Message = TypeVar("Message")
Opened = tuple[list[Message], AsyncGenerator[Message, None]]
"""Messages that were read from a stream already, and the stream of its further messages."""


class StatefulCheck(ABC, Generic[Message]):
    """Check whether messages of one stream have output. Its results depend on the earlier messages and on the end."""

    @abstractmethod
    def begin(self) -> Self:
        """Return a new check, for another stream."""

    @abstractmethod
    def __call__(self, message: Message) -> bool:
        """Return whether a message contains no output."""

    @abstractmethod
    def close(self) -> None:
        """Take note that the stream has ended without output."""


async def first_response(
    attempts: FailoverLoop[AttemptT],
    seconds: float,
    start: Callable[[AttemptT], Coroutine[Any, Any, Result]],
    close: Callable[[Result], Awaitable[None]] | None = None,
) -> Result:
    """Return the result of the current attempt. If it takes longer than `seconds`, start a second attempt (the hedge)
    beside it, and return the first result of the two. `start`: calls the channel of an attempt, and returns the result.
    `close`: releases a result that is not needed. The winner is then the current attempt; the other was cancelled and
    has ended. If both attempts fail, raise the later failure. Raise a first failure at once if no other channel may be
    tried after it.
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
            if not running or not isinstance(error, UmgError) or (attempt is first and error.failure in FINAL_FAILURES):
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
    second attempt, and return the stream with the first output. `hold_seconds`: time from the first message on in which
    messages without output are held back: until the stream is returned, failover to another channel is possible.
    """
    call = attempts.call
    if hedge_seconds is not None and attempts.has_others:
        return await first_response(
            attempts,
            hedge_seconds,
            lambda attempt: _open_stream(attempt.call.stream(call.seconds_left()), has_no_output, hold_seconds),
            lambda opened: opened[1].aclose(),
        )
    return await _open_stream(attempts.attempt.call.stream(call.seconds_left()), has_no_output, hold_seconds)


async def _open_stream(
    stream: AsyncGenerator[Message, None], has_no_output: Callable[[Message], bool], hold_seconds: float
) -> Opened[Message]:
    """Read a stream up to its first message with output, at most until `hold_seconds` after the first message."""
    early, deadline = list[Message](), inf
    if isinstance(has_no_output, StatefulCheck):
        has_no_output = has_no_output.begin()
    try:
        while (message := await anext(stream, None)) is not None:
            early.append(message)
            if not has_no_output(message):
                break
            now = asyncio.get_running_loop().time()
            if now >= deadline:
                break
            deadline = min(deadline, now + hold_seconds)
        else:
            if isinstance(has_no_output, StatefulCheck):
                has_no_output.close()
        return early, stream
    except BaseException:
        await stream.aclose()
        raise


async def _cancel_all(
    tasks: Collection[asyncio.Task[Result]], close: Callable[[Result], Awaitable[None]] | None
) -> None:
    """Cancel the tasks, and wait for their end, unless this task itself is cancelled while it waits."""
    if not tasks:
        return
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled() and task.exception() is None and close is not None:
            await close(task.result())
