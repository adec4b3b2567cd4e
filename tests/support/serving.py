"""Servers of aiohttp applications, for tests that need a provider."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


@asynccontextmanager
async def serving(
    app: web.Application, *, ssl_context: ssl.SSLContext | None = None, **options: Any
) -> AsyncGenerator[str, None]:
    """Serve the application on a free port. Yield its base URL, without a path. `options`: of `web.AppRunner`."""
    runner = web.AppRunner(app, **options)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl_context).start()
        port = runner.addresses[0][1]
        yield f"https://localhost:{port}" if ssl_context else f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()
