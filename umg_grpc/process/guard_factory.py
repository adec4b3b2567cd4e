"""Factory of the guards of a config, with the connections that they share."""

from collections.abc import Iterable
from contextlib import AsyncExitStack

import grpc

from umg_grpc.config.config_values import GuardRow
from umg_grpc.service.guardrails.guard_interface import MAX_RESPONSE_BYTES, Guard
from umg_grpc.service.guardrails.guard_selection import Count, Guards
from umg_grpc.upstream.http1.client import Client

MAX_BACKOFF_SECONDS = 2
"""Maximum seconds between attempts to connect to a service that was away; gRPC waits for up to two minutes."""
GRPC_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_RESPONSE_BYTES),
    ("grpc.max_reconnect_backoff_ms", 1000 * MAX_BACKOFF_SECONDS),
)


class GuardFactory:
    """Factory of guards. Connections to services outlive the configs that name them."""

    def __init__(self, client: Client, count: Count, stack: AsyncExitStack) -> None:
        """Create a factory. `client`: HTTP client of webhooks; `count`: counts checks; `stack`: closes connections."""
        self._client = client
        self._count = count
        self._stack = stack
        self._channels: dict[tuple[str, bool], grpc.aio.Channel] = {}

    def guards(self, rows: Iterable[GuardRow]) -> Guards | None:
        """Return the guards of a config; None if it has none."""
        made = [self._guard(row) for row in rows]
        return Guards(made, self._count) if made else None

    def _guard(self, row: GuardRow) -> Guard:
        match row.kind:  # imported here: most configs have no guards
            case "patterns":
                from umg_grpc.service.guardrails.pattern_guard import PatternGuard

                return PatternGuard(row)
            case "webhook":
                from umg_grpc.service.guardrails.webhook_guard import WebhookGuard

                return WebhookGuard(row, self._client)
            case "grpc":
                from umg_grpc.service.guardrails.grpc_guard import GrpcGuard

                return GrpcGuard(row, self._channel(row.address, tls=row.tls))

    def _channel(self, target: str, *, tls: bool) -> grpc.aio.Channel:
        if (known := self._channels.get((target, tls))) is not None:
            return known
        credentials = grpc.ssl_channel_credentials() if tls else None
        channel = (
            grpc.aio.insecure_channel(target, GRPC_OPTIONS)
            if credentials is None
            else grpc.aio.secure_channel(target, credentials, GRPC_OPTIONS)
        )
        self._channels[target, tls] = channel
        self._stack.push_async_callback(channel.close)
        return channel
