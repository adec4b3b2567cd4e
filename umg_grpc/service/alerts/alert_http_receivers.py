"""Receivers of alerts at URLs of the operator: signed webhooks, and incoming webhooks of Slack.

The URLs are in the config, like those of providers and guards, and may therefore lead to hosts of the operator's own
network: the rules for URLs of callers (`egress`) do not apply. Redirects are not followed, and of a response only the
status is read, so that no caller can learn anything from one.
"""

from collections.abc import Callable, Mapping

import msgspec
from google.protobuf import json_format

from umg_grpc.access.callback_signatures import signature_headers
from umg_grpc.base.errors import UmgError
from umg_grpc.base.proxy_rules import ProxyRules
from umg_grpc.config.alert_section import webhook_key
from umg_grpc.config.alert_settings import SlackReceiver, WebhookReceiver
from umg_grpc.service.alerts.alert_receiver_interface import ReceiverFailedError
from umg_grpc.service.alerts.slack_alert_message import slack_message
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.request import OutgoingRequest
from umg_grpc.v1 import pb

JSON_HEADERS = {"content-type": "application/json", "user-agent": "umg-alerts"}
GONE_STATUS = 410
"""HTTP status by which a receiver refuses all further attempts (Standard Webhooks specification)."""
MAX_RESPONSE_BYTES = 64 * 1024


class HttpPoster:
    """Client of one URL, which gets JSON by POST."""

    def __init__(self, client: Client, proxies: ProxyRules, url: str, seconds: float) -> None:
        proxy = proxies.of_url(url)
        self._client = client
        self._url = url
        self._proxy = proxy.url if proxy is not None else None
        self._deadlines = Deadlines.all_of(seconds)

    async def post(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a body. Raise ReceiverFailedError unless the status is one of success."""
        call = OutgoingRequest(
            self._url, headers, body, self._deadlines, proxy=self._proxy, reuses=False, max_bytes=MAX_RESPONSE_BYTES
        )
        try:
            fetched = await self._client.fetch(call)
        except UmgError as error:
            raise ReceiverFailedError(f"no response: {error.name}") from None
        if not 200 <= fetched.status < 300:
            reason = f"the receiver answered with status {fetched.status}"
            raise ReceiverFailedError(reason, is_final=fetched.status == GONE_STATUS)


class WebhookReceiverClient:
    """Client of a webhook, whose bodies are signed as Standard Webhooks describe it."""

    def __init__(
        self, receiver: WebhookReceiver, client: Client, proxies: ProxyRules, now: Callable[[], float]
    ) -> None:
        self._poster = HttpPoster(client, proxies, receiver.url, receiver.timeout)
        self._key = webhook_key(receiver.secret)
        self._now = now

    async def send(self, sent: pb.AlertNotification) -> None:
        body = json_format.MessageToJson(sent, preserving_proto_field_name=True, indent=None, sort_keys=True).encode()
        signature = signature_headers([self._key], sent.notification_id, int(self._now()), body)
        await self._poster.post(body, {**JSON_HEADERS, **signature})


class SlackReceiverClient:
    """Client of an incoming webhook of Slack."""

    def __init__(self, receiver: SlackReceiver, client: Client, proxies: ProxyRules) -> None:
        self._poster = HttpPoster(client, proxies, receiver.url, receiver.timeout)

    async def send(self, sent: pb.AlertNotification) -> None:
        await self._poster.post(msgspec.json.encode(slack_message(sent)), JSON_HEADERS)
