"""Blocking work in daemon threads, for which neither the end of the process nor other threads wait."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

Result = TypeVar("Result")


def _nothing() -> None:
    pass


async def in_daemon_thread(work: Callable[[], Result], name: str, ended: Callable[[], None] = _nothing) -> Result:
    """Return the result of `work`, which runs in a new thread. A cancelled caller does not stop the thread. `name`: of
    the thread; `ended`: called in the event loop when the thread has ended, also for a cancelled caller.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Result] = loop.create_future()

    def finish(end: Callable[[], None]) -> None:
        ended()
        if not result.done():  # else it was cancelled
            end()

    def run() -> None:
        try:
            end = partial(result.set_result, work())
        except Exception as error:  # passed on to the caller
            end = partial(result.set_exception, error)
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(finish, end)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await result
