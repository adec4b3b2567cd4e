"""A second channel where the first does not begin to answer: who does so first is heard, the other is stopped."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from umg_grpc.errors import UmgError
from umg_grpc.service.course import FINAL, Course, Tried, Try

Said = TypeVar("Said")
Message = TypeVar("Message")
Opened = tuple[list[Message], AsyncGenerator[Message, None]]
"""A stream, and what was read of it."""


async def first_to_answer(
    course: Course[Tried],
    tried: Try[Tried],
    seconds: float,
    start: Callable[[Tried], Coroutine[Any, Any, Said]],
    close: Callable[[Said], Awaitable[None]] | None = None,
) -> Said:
    """What the attempt gives, or, if it gives nothing within `seconds`, what it or another gives first; `tried` is then
    the one that did. Raises the failure of the last that is left, or of the first one that no other would mend.

    The other is cancelled and at its end before this returns; `close` lets go of what it gave in the same moment.
    """
    first, spare, won = tried.attempt, None, False
    running = {asyncio.create_task(start(first), name="attempt"): first}
    try:
        await asyncio.wait(running, timeout=seconds)
        if not next(iter(running)).done() and (spare := await course.spare(first)) is not None:
            running[asyncio.create_task(start(spare), name="hedge")] = spare
        while True:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            task = next(iter(done))
            attempt, error = running.pop(task), task.exception()
            if not running or not isinstance(error, UmgError) or (attempt is first and error.failure in FINAL):
                tried.attempt, won = attempt, error is None and attempt is spare
                course.speaks(attempt)
                return task.result()
            course.goes_on(attempt, course.failed(attempt, error))
            tried.attempt = next(iter(running.values()))  # its end is the one that counts
    finally:
        for attempt in running.values():  # before anything is waited for, so that its place is free whatever comes
            if attempt is not tried.attempt:
                course.abandoned(attempt, slow=won)
        if spare is not None:
            course.hedged(won=won)
        await _stopped(running, close)


async def _stopped(tasks: Collection[asyncio.Task[Said]], close: Callable[[Said], Awaitable[None]] | None) -> None:
    """Cancels the tasks and waits for their end, also when whoever waits is cancelled."""
    if not tasks:
        return
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if close is not None and not task.cancelled() and task.exception() is None:
            await close(task.result())


async def open_stream(
    stream: AsyncGenerator[Message, None], says_nothing: Callable[[Message], bool]
) -> Opened[Message]:
    """The stream, up to its first message that says something. Whatever goes wrong, it is closed."""
    early = list[Message]()
    try:
        while (message := await anext(stream, None)) is not None:
            early.append(message)
            if not says_nothing(message):
                break
        return early, stream
    except BaseException:
        await stream.aclose()
        raise


async def resumed(opened: Opened[Message]) -> AsyncGenerator[Message, None]:
    """All messages of a stream that was begun elsewhere."""
    early, stream = opened
    async with aclosing(stream):
        for message in early:
            yield message
        async for message in stream:
            yield message


async def held_back(
    messages: AsyncGenerator[Message, None], says_nothing: Callable[[Message], bool], seconds: float
) -> AsyncGenerator[Message, None]:
    """The messages; those at the beginning that say nothing wait for one that does, at most `seconds`: until then
    another channel may still give the answer.
    """
    pulled: asyncio.Task[Message | None] | None = None
    held = list[Message]()
    until = asyncio.get_running_loop().time() + seconds

    async def pull() -> Message | None:
        return await anext(messages, None)

    try:
        message = await anext(messages, None)
        while message is not None and says_nothing(message):
            held.append(message)
            pulled = asyncio.create_task(pull(), name="pull")
            await asyncio.wait({pulled}, timeout=until - asyncio.get_running_loop().time())
            if not pulled.done():
                break
            message, pulled = pulled.result(), None
        for early in held:
            yield early
        if pulled is not None:
            message = await pulled
    finally:
        if pulled is not None:
            pulled.add_done_callback(_forget)
            if not pulled.done():
                pulled.cancel()
                await asyncio.wait({pulled})
    if message is not None:
        yield message
        async for later in messages:
            yield later


def _forget(pulled: asyncio.Task[Any]) -> None:
    """Nobody is told how it ended: its caller left."""
    if not pulled.cancelled():
        pulled.exception()
