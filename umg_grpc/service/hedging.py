"""A second channel where the first does not begin to answer: who does so first is heard, the other is stopped."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from umg_grpc.errors import UmgError
from umg_grpc.service.choice import Tried
from umg_grpc.service.course import FINAL, Course, Try

Said = TypeVar("Said")
Message = TypeVar("Message")
Opened = tuple[Message | None, AsyncGenerator[Message, None]]
"""A stream of which the first message was read; None for one that has none."""


async def first_to_answer(
    course: Course[Tried],
    tried: Try[Tried],
    seconds: float,
    start: Callable[[Tried], Coroutine[Any, Any, Said]],
    close: Callable[[Said], Awaitable[None]] | None = None,
) -> Said:
    """What the attempt gives, or, if it gives nothing within `seconds`, what it or another gives first; `tried` is then
    the one that did. Raises the failure of the last that is left, or one that no other would mend.

    The other is cancelled and at its end before this returns; `close` lets go of what it gave in the same moment.
    """
    first = tried.attempt
    running = {asyncio.create_task(start(first), name="attempt"): first}
    try:
        await asyncio.wait(running, timeout=seconds)
        if not next(iter(running)).done() and (spare := await course.spare()) is not None:
            running[asyncio.create_task(start(spare), name="hedge")] = spare
        while True:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            task = next(iter(done))
            attempt, error = running.pop(task), task.exception()
            if error is None or not running or not isinstance(error, UmgError) or error.failure in FINAL:
                tried.attempt = attempt
                course.speaks(attempt)
                return task.result()
            course.goes_on(attempt, course.failed(attempt, error))
    finally:
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        for task, attempt in running.items():
            if close is not None and not task.cancelled() and task.exception() is None:
                await close(task.result())
            if attempt is not tried.attempt:  # which its `with` notes
                course.abandoned(attempt, slow=attempt is first)


async def open_stream(stream: AsyncGenerator[Message, None]) -> Opened[Message]:
    """The stream, begun. Whatever goes wrong, it is closed."""
    try:
        return await anext(stream, None), stream
    except BaseException:
        await stream.aclose()
        raise


async def resumed(opened: Opened[Message]) -> AsyncGenerator[Message, None]:
    """All messages of a stream that was begun elsewhere."""
    first, stream = opened
    async with aclosing(stream):
        if first is not None:
            yield first
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
        if pulled is not None and not pulled.done():
            pulled.cancel()
            await asyncio.wait({pulled})
    while message is not None:
        yield message
        message = await anext(messages, None)
