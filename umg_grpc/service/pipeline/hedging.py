"""A second channel where the first does not begin to answer: who does so first is heard, the other is stopped."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine
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
    """Cancels the tasks and waits for their end, unless whoever waits is cancelled once more."""
    if not tasks:
        return
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled() and task.exception() is None and close is not None:
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


async def open_within(
    stream: AsyncGenerator[Message, None], says_nothing: Callable[[Message], bool], seconds: float
) -> Opened[Message]:
    """The same, where messages that say nothing are held back for at most `seconds`: until then another channel may
    still give the answer.
    """
    loop, early = asyncio.get_running_loop(), list[Message]()
    until, reading = loop.time() + seconds, None

    async def read_on() -> None:
        while (message := await anext(stream, None)) is not None:
            early.append(message)
            if not says_nothing(message) or loop.time() >= until:
                break

    try:
        if (message := await anext(stream, None)) is None:
            return early, stream
        early.append(message)
        if not says_nothing(message):  # as most streams begin: without a task
            return early, stream
        reading = asyncio.create_task(read_on(), name="beginning")
        await asyncio.wait({reading}, timeout=until - loop.time())
        if not reading.done():
            return [], _late(early, reading, stream)  # with nothing before it: to be begun at once, and so closed
        reading.result()
        return early, stream
    except BaseException:
        await _closed(reading, stream)
        raise


async def _late(
    early: list[Message], reading: asyncio.Task[None], stream: AsyncGenerator[Message, None]
) -> AsyncGenerator[Message, None]:
    """All messages of a stream of which these were held back, while its next is read."""
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
        await _closed(reading, stream)


async def _closed(reading: asyncio.Task[None] | None, stream: AsyncGenerator[Any, None]) -> None:
    """Ends the reading of a stream, and it."""
    try:
        if reading is not None:
            await _stopped({reading}, None)
    finally:
        await stream.aclose()
