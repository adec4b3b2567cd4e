"""Reading of large response bodies in parts, with pauses, so that they do not occupy the event loop."""

import asyncio
from collections.abc import Awaitable, Callable

from umg_grpc.upstream.event_loop_budget import ROUND_BYTES
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.connection import ProviderExchange
from umg_grpc.upstream.http1.connection_errors import too_large
from umg_grpc.upstream.http1.response import MAX_RESPONSE_BYTES
from umg_grpc.wire.core.undecoded_base64_files import TURN_ITERATIONS

READ_BYTES = 64 << 10
"""Maximum size of one read, and of the reads of all whole bodies in one iteration of the event loop."""


async def read_rest(
    exchange: ProviderExchange,
    beginning: bytes,
    client: Client,
    hold: Callable[[int], Awaitable[None]] | None = None,
    feed: Callable[[bytes], None] | None = None,
) -> list[bytes]:
    """Return the parts of a response body, of which `beginning` was read before. `client`: limits the bytes that all
    its calls read in one iteration of the event loop. `hold`: awaited with the size so far, to reserve memory. `feed`:
    called with each part. Raise UmgError(UPSTREAM_FAILED) for a body above the size limit of the exchange.
    """
    parts, size = [beginning], len(beginning)
    if feed is not None:
        feed(beginning)
    while chunk := await exchange.read(READ_BYTES):
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_RESPONSE_BYTES:
            parts.clear()  # the traceback of the error references this frame
            raise too_large(MAX_RESPONSE_BYTES)
        if hold is not None:
            await hold(size)
        if len(chunk) > READ_BYTES // 2:
            async with client.reads:
                for _ in range(TURN_ITERATIONS - 1):
                    await asyncio.sleep(0)
        await client.streams.take(len(chunk) * ROUND_BYTES // READ_BYTES)
        if feed is not None:
            feed(chunk)
    return parts
