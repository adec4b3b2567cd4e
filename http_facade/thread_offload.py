"""Execution of CPU work on large bodies in a thread, so that the event loop continues to serve other calls."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from umg_grpc.wire.text_format_interface import BIG_BYTES

Result = TypeVar("Result")


async def run_large(work: Callable[[], Result], size: int) -> Result:
    """Run `work`, and return its result. If the input is large (`size` in bytes), `work` runs in a thread."""
    return work() if size < BIG_BYTES else await asyncio.to_thread(work)
