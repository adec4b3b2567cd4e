"""Receivers of alerts, as operators have them: a webhook that verifies signatures, Slack's shape, and an SMTP server."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import trustme
from aiohttp import web
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from google.protobuf import json_format
from standardwebhooks import Webhook

from tests.support.serving import serving
from umg_grpc.v1 import pb

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
USER, PASSWORD = "gateway", "correct horse"


@dataclass
class WebhookServer:
    """Server of an operator, which verifies each notification with the package of Standard Webhooks."""

    url: str = ""
    statuses: list[int] = field(default_factory=lambda: [200])
    """Statuses of the responses in turn; the last one stays."""
    received: list[pb.AlertNotification] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a request has arrived."""
    hangs: bool = False
    """Whether responses wait for `released`."""

    async def receive(self, request: web.Request) -> web.Response:
        body = await request.read()
        Webhook(SECRET).verify(body, dict(request.headers))
        sent = json_format.Parse(body, pb.AlertNotification())
        assert request.headers["webhook-id"] == sent.notification_id
        self.received.append(sent)
        self.arrived.set()
        if self.hangs:
            await self.released.wait()
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return web.Response(status=status)

    @property
    def events(self) -> list[tuple[str, str, int]]:
        """Event, rule and threshold of each notification."""
        return [
            (
                pb.AlertEvent.Name(sent.event).removeprefix("ALERT_EVENT_").lower(),
                pb.AlertRule.Name(sent.alert.rule).removeprefix("ALERT_RULE_").lower(),
                sent.alert.threshold_percent,
            )
            for sent in self.received
        ]

    def config(self, name: str = "ops") -> str:
        """Return the entry of a config."""
        return f"    {name}: {{kind: webhook, url: '{self.url}', secret: {SECRET}}}\n"


@asynccontextmanager
async def webhook_server() -> AsyncGenerator[WebhookServer, None]:
    server, app = WebhookServer(), web.Application()
    app.router.add_post("/alerts", server.receive)
    async with serving(app) as url:
        server.url = f"{url}/alerts"
        try:
            yield server
        finally:
            server.released.set()


def check_slack(body: Any) -> None:
    """Check a message by the limits in Slack's documentation of blocks and texts. Raise AssertionError."""
    assert set(body) <= {"text", "blocks"}
    assert 1 <= len(body["text"]) <= 40_000
    assert 1 <= len(body["blocks"]) <= 50
    for block in body["blocks"]:
        match block["type"]:
            case "header":
                assert set(block) == {"type", "text"}
                check_text(block["text"], 150, "plain_text")
            case "section":
                assert ("text" in block) != ("fields" in block)
                if "text" in block:
                    check_text(block["text"], 3000)
                fields = block.get("fields", [{"type": "mrkdwn", "text": "x"}])
                assert 1 <= len(fields) <= 10
                for each in fields:
                    check_text(each, 2000)
            case "context":
                assert 1 <= len(block["elements"]) <= 10
                for each in block["elements"]:
                    check_text(each, 3000)
            case other:
                raise AssertionError(other)


def check_text(text: Any, limit: int, kind: str = "mrkdwn") -> None:
    assert set(text) == {"type", "text"}
    assert text["type"] == kind
    assert 1 <= len(text["text"]) <= limit
    if kind == "mrkdwn":  # no links and mentions, and the three characters of the markup are escaped
        assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", text["text"])


@dataclass
class SlackServer:
    """Server of incoming webhooks in the shape of Slack's."""

    url: str = ""
    received: list[dict[str, Any]] = field(default_factory=list)

    async def receive(self, request: web.Request) -> web.Response:
        assert request.content_type == "application/json"
        body = json.loads(await request.read())
        check_slack(body)
        self.received.append(body)
        return web.Response(text="ok")


@asynccontextmanager
async def slack_server() -> AsyncGenerator[SlackServer, None]:
    server, app = SlackServer(), web.Application()
    app.router.add_post("/services/T0/B0/secret", server.receive)
    async with serving(app) as url:
        server.url = f"{url}/services/T0/B0/secret"
        yield server


@dataclass
class MailServer:
    """SMTP server that takes mails of a user after STARTTLS only."""

    port: int
    ca_file: Path
    received: list[EmailMessage] = field(default_factory=list)
    refuses: str = "-"
    """Beginning of the addresses that it refuses."""

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address.startswith(self.refuses):
            return "550 there is no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert session.ssl is not None
        assert session.authenticated
        assert isinstance(envelope.content, bytes)
        parsed = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(parsed, EmailMessage)
        self.received.append(parsed)
        return "250 OK"

    def config(self, name: str = "mail") -> str:
        """Return the entry of a config."""
        return (
            f"    {name}: {{kind: email, host: localhost, port: {self.port}, ca_file: {self.ca_file}, username: {USER},"
            f" password: {PASSWORD}, sender: umg@example.com, to: [ops@example.com, on-call@example.com]}}\n"
        )


@asynccontextmanager
async def mail_server(folder: Path) -> AsyncGenerator[MailServer, None]:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    (ca_file := folder / "mail-ca.crt").write_bytes(authority.cert_pem.bytes())
    mails = MailServer(0, ca_file)

    def authenticate(_server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, given: Any) -> AuthResult:
        is_known = isinstance(given, LoginPassword) and given.login == USER.encode()
        return AuthResult(success=is_known and given.password == PASSWORD.encode(), handled=False)

    make: Callable[[], SMTP] = lambda: SMTP(  # noqa: E731
        mails,
        hostname="localhost",
        tls_context=context,
        require_starttls=True,
        authenticator=authenticate,
        auth_required=True,
    )
    server = await asyncio.get_running_loop().create_server(make, "localhost", 0)
    mails.port = server.sockets[0].getsockname()[1]
    async with server:
        yield mails
