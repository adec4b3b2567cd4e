"""Handlers of the web pages (playground, API reference), of their scripts and styles, and of the OpenAPI document."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from aiohttp import hdrs, web

from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.page_headers import HTML_TYPE, SAFE_HEADERS
from http_facade.exchange.request_bodies import JSON_TYPE
from http_facade.routes import Shape
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import echo

DISTRIBUTION_NAME = "unified-model-gateway"
PLAYGROUND_PATH = "/playground"
CACHE_CONTROL = "no-cache"
"""Caches keep a page, and check before each use whether it has changed."""
FILE_TYPES = {
    ".html": HTML_TYPE,
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": JSON_TYPE,
    ".txt": "text/plain; charset=utf-8",
}


class StaticFile(NamedTuple):
    """Static file of the web pages, with its content type and entity tag."""

    body: bytes
    content_type: str
    etag: str


class PageHandlers:
    """Handlers of the web pages, their assets and the OpenAPI document."""

    def __init__(self, *, pages: bool) -> None:
        """Create handlers. `pages`: whether browsers get web pages; if not, `/` is only a health check in JSON."""
        self._pages = pages

    async def home(self, exchange: HttpExchange) -> web.StreamResponse:
        """Lead a browser to the playground; return a JSON state of the process to any other client."""
        if not self._pages:
            return web.json_response({"status": "alive"})
        if "text/html" not in exchange.request.headers.get(hdrs.ACCEPT, ""):
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
        return _respond(exchange, await asyncio.to_thread(_document))

    async def _send(self, exchange: HttpExchange, name: str) -> web.Response:
        file = (await asyncio.to_thread(_read)).get(name)
        if file is None:
            message = f"the pages have no part {echo(name)}; they begin at {PLAYGROUND_PATH}"
            raise UmgError(pb.ERROR_REASON_PATH_NOT_FOUND, message, path=exchange.request.path)
        return _respond(exchange, file)

    def handler(self, shape: Shape) -> Callable[[HttpExchange], Awaitable[web.StreamResponse]]:
        """Return the handler method for a web page, an asset or the OpenAPI document."""
        return {
            Shape.HOME: self.home,
            Shape.PLAYGROUND: self.playground,
            Shape.DOCS: self.docs,
            Shape.ASSET: self.asset,
            Shape.OPENAPI: self.openapi,
        }[shape]


def _respond(exchange: HttpExchange, file: StaticFile) -> web.Response:
    """Return a static file, or 304 if the client's copy is current."""
    headers = {hdrs.CACHE_CONTROL: CACHE_CONTROL, **SAFE_HEADERS}
    if any(tag.value in (file.etag, "*") for tag in exchange.request.if_none_match or ()):
        response = web.Response(status=304, headers=headers)
    else:
        response = web.Response(headers={hdrs.CONTENT_TYPE: file.content_type, **headers}, body=file.body)
    response.etag = file.etag
    return response


def _file(body: bytes, content_type: str) -> StaticFile:
    return StaticFile(body, content_type, hashlib.blake2b(body, digest_size=16).hexdigest())


@cache
def _read() -> Mapping[str, StaticFile]:
    """Read the static files of the web pages, insert the gateway's version, and return them by their path below the
    folder of the files.
    """
    return dict(_files_in(files("http_facade").joinpath("assets"), ""))


def _files_in(folder: Traversable, prefix: str) -> Iterator[tuple[str, StaticFile]]:
    for entry in folder.iterdir():
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _files_in(entry, f"{path}/")
        else:
            body = entry.read_bytes().replace(b"{{version}}", version(DISTRIBUTION_NAME).encode())
            yield path, _file(body, FILE_TYPES[path[path.rfind(".") :]])


@cache
def _document() -> StaticFile:
    from http_facade.openapi.openapi_document import (
        document_json,  # it takes half a second, which the start does not have
    )

    return _file(document_json(), JSON_TYPE)
