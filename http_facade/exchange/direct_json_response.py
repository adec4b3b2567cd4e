"""Successful JSON responses of model calls, written directly to the connection for speed."""

from typing import ClassVar

import msgspec
from aiohttp import hdrs

from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.response_head import SentResponse, encode_head

JSON_TYPE = "application/json"


class WholeResponse(msgspec.Struct, eq=False):
    """Successful JSON response to a model call, with its headers and its complete body."""

    headers: dict[str, str]
    """Headers of its own, without the common ones of all responses."""
    body: bytes
    status: ClassVar[int] = 200

    async def send(self, exchange: HttpExchange) -> SentResponse:
        """Send the response until the client has read nearly all of it or left. Return the placeholder for aiohttp."""
        head, sent = encode_head(exchange, {hdrs.CONTENT_TYPE: JSON_TYPE, **self.headers}, len(self.body))
        exchange.is_begun = True
        await exchange.connection.write(head, self.body)
        return sent
