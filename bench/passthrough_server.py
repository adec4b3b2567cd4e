"""Bare pass-through with which the gateway is compared: an aiohttp server and client on uvloop, which parse no bodies.

`python -m bench.passthrough_server UPSTREAM CREDENTIAL` prints its address.
"""

import asyncio
import sys

import aiohttp
import uvloop
from aiohttp import hdrs, web


async def main(upstream: str, credential: str) -> None:
    """Run the pass-through until the process is killed."""
    headers = {hdrs.CONTENT_TYPE: "application/json", hdrs.AUTHORIZATION: f"Bearer {credential}"}

    async def forward(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        async with session.post(upstream + request.path, data=body, headers=headers) as answer:
            kind = {hdrs.CONTENT_TYPE: answer.headers[hdrs.CONTENT_TYPE]}
            if answer.content_length is not None:
                return web.Response(status=answer.status, headers=kind, body=await answer.read())
            response = web.StreamResponse(status=answer.status, headers=kind)
            await response.prepare(request)
            async for data in answer.content.iter_any():
                await response.write(data)
            return response

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        app = web.Application()
        app.router.add_post("/{path:.*}", forward)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        host, port = runner.addresses[0][:2]
        print(f"http://{host}:{port}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
