"""Handlers of the descriptions of the gateway: the OpenAPI document."""

import asyncio
import hashlib

from aiohttp import hdrs, web

from http_facade.exchange import Exchange
from http_facade.request_bodies import JSON

CACHE_CONTROL = "no-cache"
"""Caches keep the document, and check before each use whether it has changed."""


async def openapi(exchange: Exchange) -> web.StreamResponse:
    """Return the OpenAPI document, which is made at its first request."""
    body = await asyncio.to_thread(_document)
    return with_etag(exchange, web.Response(headers={hdrs.CONTENT_TYPE: JSON}, body=body), body)


def with_etag(exchange: Exchange, response: web.Response, body: bytes) -> web.Response:
    """Return the response with a validator, or 304 if the client has the same body."""
    etag = hashlib.blake2b(body, digest_size=16).hexdigest()
    if any(tag.value in (etag, "*") for tag in exchange.request.if_none_match or ()):
        response = web.Response(status=304)
    response.headers[hdrs.CACHE_CONTROL] = CACHE_CONTROL
    response.etag = etag
    return response


def _document() -> bytes:
    from http_facade.openapi.document import document_json  # it takes half a second, which the start does not have

    return document_json()
