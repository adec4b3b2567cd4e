"""Execution of work on large bodies in a thread, so that the event loop serves other calls."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from umg_grpc.wire.text_format import BIG_BYTES

Result = TypeVar("Result")


async def run_large(work: Callable[[], Result], size: int) -> Result:
    """Return the result of `work` on `size` bytes; in a thread if they are many."""
    return work() if size < BIG_BYTES else await asyncio.to_thread(work)
