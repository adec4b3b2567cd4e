"""Clients of the receivers in the config, each made at its first use: few configs have receivers of all kinds."""

import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Self, assert_never

from umg_grpc.base.proxy_rules import ProxyRules
from umg_grpc.config.alert_settings import AlertReceiver, AlertSettings, EmailReceiver, SlackReceiver, WebhookReceiver
from umg_grpc.service.alerts.alert_receiver_interface import AlertReceiverClient
from umg_grpc.upstream.http1.client import Client


class ReceiverClients:
    """Clients of the receivers of the current config, by name."""

    def __init__(self, client: Client, settings: AlertSettings, proxies: ProxyRules, now: Callable[[], float]) -> None:
        """Create no client yet. `client`: HTTP client of webhooks; `now`: Unix seconds, for signatures."""
        self._client = client
        self._now = now
        self.configure(settings, proxies)

    @classmethod
    def of_command(cls, settings: AlertSettings, proxies: ProxyRules, stack: AsyncExitStack) -> Self:
        """Return the clients for a command, with an HTTP client of their own, which the exit stack closes."""
        client = Client()
        stack.push_async_callback(client.close)
        return cls(client, settings, proxies, time.time)

    def configure(self, settings: AlertSettings, proxies: ProxyRules) -> None:
        """Use the receivers and proxies of another config for later notifications."""
        self._receivers, self._proxies = settings.receivers, proxies
        self._made: dict[str, AlertReceiverClient] = {}

    def find(self, name: str) -> AlertReceiverClient | None:
        """Return the client of a receiver; None for a name that the config does not have."""
        if name not in self._receivers:
            return None
        if name not in self._made:
            self._made[name] = self._client_of(self._receivers[name])
        return self._made[name]

    def _client_of(self, receiver: AlertReceiver) -> AlertReceiverClient:
        match receiver:  # imported here, as most processes need none of them
            case WebhookReceiver():
                from umg_grpc.service.alerts.alert_http_receivers import WebhookReceiverClient

                return WebhookReceiverClient(receiver, self._client, self._proxies, self._now)
            case SlackReceiver():
                from umg_grpc.service.alerts.alert_http_receivers import SlackReceiverClient

                return SlackReceiverClient(receiver, self._client, self._proxies)
            case EmailReceiver():
                from umg_grpc.service.alerts.alert_mail import MailReceiverClient

                return MailReceiverClient(receiver)
            case unhandled:
                assert_never(unhandled)
