"""Large responses that are encoded and sent in pieces."""

import asyncio
from collections.abc import Iterator, Mapping
from itertools import chain

from aiohttp import web

from http_facade.exchange import Exchange
from http_facade.response_start import begin_response


async def answer_in_pieces(
    exchange: Exchange, headers: Mapping[str, str], pieces: Iterator[bytes]
) -> web.StreamResponse:
    """Return the response. One piece is its body; of several, each is encoded once the client has read the pieces
    before it.
    """
    body, more = next(pieces), next(pieces, None)
    if more is None:
        return web.Response(headers=headers, body=body)
    response = web.StreamResponse(headers=headers)
    await begin_response(exchange, response)
    for piece in chain([body, more], pieces):
        await response.write(piece)
        await asyncio.sleep(0)  # a write to a client that reads does not wait: let other tasks run
    await response.write_eof()
    return response
