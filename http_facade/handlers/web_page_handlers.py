"""Handlers of the web pages (playground, API reference), of their scripts and styles, and of the OpenAPI document."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache

from aiohttp import hdrs, web

from http_facade.exchange.browser_forms import is_browser
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.page_files import StaticFile, file_response, named_response
from http_facade.exchange.request_bodies import JSON_TYPE
from http_facade.routes import Shape
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import echo

PLAYGROUND_PATH = "/playground"


class PageHandlers:
    """Handlers of the web pages, their assets and the OpenAPI document."""

    def __init__(self, *, pages: bool) -> None:
        """Create handlers. `pages`: whether browsers get web pages; if not, `/` is only a health check in JSON."""
        self._pages = pages

    async def home(self, exchange: HttpExchange) -> web.StreamResponse:
        """Lead a browser to the playground; return a JSON state of the process to any other client."""
        if not self._pages:
            return web.json_response({"status": "alive"})
        if not is_browser(exchange.request):
            return web.json_response({"status": "alive"}, headers={hdrs.VARY: hdrs.ACCEPT})
        return web.Response(status=302, headers={hdrs.LOCATION: PLAYGROUND_PATH, hdrs.VARY: hdrs.ACCEPT})

    async def playground(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return the page of the playground."""
        return await self._send(exchange, "playground.html")

    async def docs(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return the web page of the API reference."""
        return await self._send(exchange, "docs.html")

    async def asset(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return a script, style or icon of the web pages. Raise UmgError(PATH_NOT_FOUND) for an unknown file name."""
        return await self._send(exchange, exchange.parameters["name"])

    async def openapi(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return the OpenAPI document, which is generated at its first request."""
        return await asyncio.to_thread(lambda: file_response(exchange.request, _document()))

    async def _send(self, exchange: HttpExchange, name: str) -> web.Response:
        """Return a file. Its first request reads and compresses it, which takes a thread."""
        if (response := await asyncio.to_thread(named_response, exchange.request, name)) is None:
            message = f"the pages have no part {echo(name)}; they begin at {PLAYGROUND_PATH}"
            raise UmgError(pb.ERROR_REASON_PATH_NOT_FOUND, message, path=exchange.request.path)
        return response

    def handler(self, shape: Shape) -> Callable[[HttpExchange], Awaitable[web.StreamResponse]]:
        """Return the handler method for a web page, an asset or the OpenAPI document."""
        return {
            Shape.HOME: self.home,
            Shape.PLAYGROUND: self.playground,
            Shape.DOCS: self.docs,
            Shape.ASSET: self.asset,
            Shape.OPENAPI: self.openapi,
        }[shape]


@cache
def _document() -> StaticFile:
    from http_facade.openapi.openapi_document import (
        document_json,  # it takes half a second, which the start does not have
    )

    return StaticFile(document_json(), JSON_TYPE)
