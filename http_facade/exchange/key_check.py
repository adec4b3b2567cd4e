"""Check of the caller's API key before the body of a request is read or decoded."""

import hashlib
import time

import grpc
from aiohttp import hdrs

from http_facade.exchange.caller_credentials import credentials
from http_facade.exchange.grpc_service_calls import check_key
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.server_settings import Settings
from umg_grpc.v1 import rpc

RECENT_SECONDS = 1.0
"""Seconds for which the result of the service for a valid key is reused."""
MAX_RECENT = 4096


class KeyCheck:
    """Checker of the API keys in the requests of one route. A key in the memory of a service in the same process is
    checked without a call (`Settings.find_key`). Any other key is checked by a call of the service: a valid key at most
    once a second.
    """

    def __init__(self, face: str, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face = face
        self._models = rpc.ModelServiceStub(channel)
        self._find_key, self._valid_caller = settings.find_key, settings.valid_caller
        self._recent: dict[bytes, float] = {}  # digest of a valid key -> time of its last check, oldest first

    def is_known(self, exchange: HttpExchange) -> bool:
        """Return whether the request has the same API key as the previous one on its connection, and the key is still
        valid. This fast check mostly suffices, since clients reuse their connections.
        """
        connection, authorization = exchange.connection, exchange.request.headers.get(hdrs.AUTHORIZATION)
        if authorization is None or authorization != connection.authorization:
            return False
        if self._valid_caller(connection.known_key) is None:
            return False
        exchange.authorization, exchange.known_key = authorization, connection.known_key
        return True

    async def check(self, exchange: HttpExchange) -> None:
        """Raise the error of the service, UmgError or an RPC error, if the request has no valid API key."""
        connection = exchange.connection
        authorization = credentials(exchange.request.headers, exchange.request.query, self._face)
        if authorization is None:
            await check_key(self._models, exchange, self._face)
            return
        known = self._find_key(authorization)
        exchange.authorization, exchange.known_key = authorization, known
        connection.authorization, connection.known_key = authorization, known
        if known is not None:
            return
        digest, now = hashlib.blake2b(authorization.encode(), digest_size=16).digest(), time.monotonic()
        checked_at = self._recent.get(digest)
        if checked_at is not None and now - checked_at <= RECENT_SECONDS:
            return
        await check_key(self._models, exchange, self._face)
        self._recent.pop(digest, None)  # keeps the oldest first
        self._recent[digest] = now
        if len(self._recent) > MAX_RECENT:
            del self._recent[next(iter(self._recent))]
