"""Large JSON responses that are encoded and sent in pieces, so that memory and the event loop stay free."""

import asyncio
from collections.abc import Iterator

from aiohttp import hdrs, web

from http_facade.exchange.direct_json_response import JSON_TYPE, WholeResponse
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.response_head import begin_response
from umg_grpc.wire.core.undecoded_base64_files import TURN_ITERATIONS


async def response_in_pieces(
    exchange: HttpExchange, headers: dict[str, str], pieces: Iterator[bytes | memoryview], turns: asyncio.Semaphore
) -> web.StreamResponse | WholeResponse:
    """Return a response whose JSON body is the joined `pieces`. A single piece is sent whole. Of several, each is
    encoded after the client has read the earlier ones, while the semaphore `turns` of all large responses is held.
    """
    body, more = bytes(next(pieces)), next(pieces, None)
    if more is None:
        return WholeResponse(headers, body)
    response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: JSON_TYPE, **headers})
    await begin_response(exchange, response)
    await response.write(body + more)
    while True:
        async with turns:
            for _ in range(TURN_ITERATIONS):  # a write to a client that reads does not wait: let other tasks run
                await asyncio.sleep(0)
            piece = next(pieces, None)
        if piece is None:
            break
        await response.write(piece)
    await response.write_eof()
    return response
