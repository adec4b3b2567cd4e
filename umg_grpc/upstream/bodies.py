"""The bodies of answers that aiohttp brings: bounded in size, and a refusal's in time."""

import asyncio
from collections.abc import AsyncIterable
from contextlib import suppress

import aiohttp
from aiohttp import hdrs

from umg_grpc.upstream.lean import faults
from umg_grpc.upstream.lean.answer import MAX_ANSWER_BYTES, MAX_REFUSAL_BYTES, REFUSAL_SECONDS, too_large

FAULTS = (faults.ConnectionFaultError, aiohttp.ClientError, TimeoutError, ConnectionError)
"""What may go wrong with a connection."""


async def read(response: aiohttp.ClientResponse) -> bytes:
    """What came of the body since the last read, b"" at its end. Raises what `FAULTS` names."""
    try:
        return await response.content.readany()
    except RuntimeError:
        # the end of a chunk wakes a read that then finds nothing; if the connection is closed before it waits again,
        # aiohttp says so by this, and not by the fault that it has noted
        if (fault := response.content.exception()) is None:
            raise
        raise fault from None


async def read_answer(response: aiohttp.ClientResponse) -> bytes:
    """A good answer's body. Raises as `joined`, and what `FAULTS` names."""
    length = response.content_length
    if length is not None and length <= MAX_ANSWER_BYTES and hdrs.CONTENT_ENCODING not in response.headers:
        return await response.content.read()
    return await joined(response.content.iter_any())


async def joined(chunks: AsyncIterable[bytes]) -> bytes:
    """All of them together. Raises UmgError(UPSTREAM_FAILED) for more than 256 MiB."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise too_large()
    return bytes(body)


async def read_refusal(response: aiohttp.ClientResponse) -> bytes:
    """The body that says why a call was refused. The status is enough: a body that breaks off, or does not come, is
    no failure of its own.
    """
    body = bytearray()
    with suppress(*FAULTS):
        async with asyncio.timeout(REFUSAL_SECONDS):
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > MAX_REFUSAL_BYTES:
                    break
    return bytes(body[:MAX_REFUSAL_BYTES])
