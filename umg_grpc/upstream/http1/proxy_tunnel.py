"""Tunnels through HTTP proxies (CONNECT), for connections to providers with TLS."""

import asyncio
import re

from umg_grpc.upstream.http1.connection_errors import refused_by_proxy, unreachable
from umg_grpc.upstream.http1.response import MAX_HEAD_BYTES
from umg_grpc.wire.errors.failure_kinds import PROXY_FAULT
from umg_grpc.wire.errors.secret_masking import without_secrets

HEAD_END = b"\r\n\r\n"
SHOWN_CHARACTERS = 80
"""Characters of a proxy's response that the log shows."""


class TunnelProtocol(asyncio.Protocol):
    """Receiver of a proxy's response to CONNECT, the request for a tunnel to a provider."""

    def __init__(self) -> None:
        self._head = b""
        self._received = asyncio.get_running_loop().create_future()

    async def connected(self) -> None:
        """Wait for the proxy's response. Raise UmgError(UPSTREAM_UNREACHABLE) if the proxy opened no tunnel."""
        await self._received
        line = re.match(rb"HTTP/1\.[01] (\d{3})[ \r]", self._head)
        status = 0 if line is None else int(line[1])
        if status in {401, 403, 407}:
            raise refused_by_proxy(f"the proxy answered CONNECT with status {status}")
        if status != 200 or not self._head.endswith(HEAD_END) or self._head.count(HEAD_END) > 1:
            head = without_secrets(self._head.decode("latin-1"))[:SHOWN_CHARACTERS]
            raise unreachable(f"the proxy did not connect: {head!r}", fault=PROXY_FAULT)

    def data_received(self, data: bytes) -> None:
        self._head += data
        if (HEAD_END in self._head or len(self._head) > MAX_HEAD_BYTES) and not self._received.done():
            self._received.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._received.done():
            self._received.set_result(None)
