"""Proxy between an agent and the gateway, which records every request with its response."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle

import aiohttp
from aiohttp import web

from tests.support.serving import serving

HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host", "upgrade"})


@dataclass
class Exchange:
    """Request as it reached the gateway, and the gateway's answer."""

    method: str
    path: str  # with its query
    headers: dict[str, str]  # of the request, names in lower case
    body: bytes
    status: int = 0  # 0: none, the agent closed the connection before
    answer: bytes = b""
    began: float = 0.0  # monotonic time at which the request was read
    ended: float = 0.0  # monotonic time at which the last piece of the response was passed on


@dataclass
class Recorder:
    most: int  # requests; a program that sends more is taken to retry without end
    url: str = ""
    exchanges: list[Exchange] = field(default_factory=list)
    exceeded: asyncio.Event = field(default_factory=asyncio.Event)  # there were more than `most`
    refused: int = 0  # connections that the gateway did not take, which are closed as it closed them


async def _forward(
    request: web.Request, recorder: Recorder, session: aiohttp.ClientSession, target: str
) -> web.StreamResponse:
    sent = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
    if upgrade := request.headers.get("upgrade"):  # to a WebSocket, which the gateway refuses in its own way
        sent |= {"connection": "upgrade", "upgrade": upgrade}
    named = {name.lower(): value for name, value in request.headers.items()}
    exchange = Exchange(request.method, request.raw_path, named, await request.read(), began=time.monotonic())
    recorder.exchanges.append(exchange)
    if len(recorder.exchanges) > recorder.most:
        recorder.exceeded.set()
    try:
        answer = await session.request(
            request.method, target + request.raw_path, headers=sent, data=exchange.body or None, allow_redirects=False
        )
    except aiohttp.ClientConnectionError:
        recorder.refused += 1
        assert request.transport is not None
        request.transport.abort()
        return web.Response(status=502)  # has no receiver
    async with answer:
        exchange.status = answer.status
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
        response = web.StreamResponse(status=answer.status, headers=kept)
        await response.prepare(request)
        async for piece in answer.content.iter_any():
            exchange.answer += piece
            await response.write(piece)
            exchange.ended = time.monotonic()
        return response


@asynccontextmanager
async def recording(target: str, most: int, *others: str) -> AsyncGenerator[Recorder, None]:
    """Run the proxy to a gateway on a free port. `others`: further gateways, which get requests in turn."""
    recorder, targets = Recorder(most), cycle((target, *others))
    app = web.Application(client_max_size=1 << 28)
    async with aiohttp.ClientSession(auto_decompress=False) as session:

        async def forward(request: web.Request) -> web.StreamResponse:
            return await _forward(request, recorder, session, next(targets))

        app.router.add_route("*", "/{path:.*}", forward)
        async with serving(app, handler_cancellation=True, shutdown_timeout=0.1) as recorder.url:
            yield recorder
