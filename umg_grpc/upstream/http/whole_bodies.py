"""Whole bodies of responses that are read in parts."""

from collections.abc import Awaitable, Callable

from umg_grpc.upstream.http1.connection import Exchange
from umg_grpc.upstream.http1.faults import too_large
from umg_grpc.upstream.http1.response import MAX_RESPONSE_BYTES
from umg_grpc.upstream.round_budget import ROUND_BYTES, RoundBudget

READ_BYTES = 256 << 10
"""Maximum size of one read, and of the reads of all whole bodies in one iteration of the event loop."""


async def read_rest(
    exchange: Exchange, beginning: bytes, reads: RoundBudget, hold: Callable[[int], Awaitable[None]] | None = None
) -> list[bytes]:
    """Return a body in parts, the first of which was read before. `reads`: budget of the event loop. `hold`: waits for
    the memory of a body of a size. Raise UmgError(UPSTREAM_FAILED) if it is too large.
    """
    parts, size = [beginning], len(beginning)
    while chunk := await exchange.read(READ_BYTES):
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_RESPONSE_BYTES:
            parts.clear()  # the traceback of the error references this frame
            raise too_large(MAX_RESPONSE_BYTES)
        if hold is not None:
            await hold(size)
        await reads.take(len(chunk) * ROUND_BYTES // READ_BYTES)
    return parts
