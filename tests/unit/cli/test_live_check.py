"""`umg check --live` at providers that fail in the usual ways: a line for each channel that mends it, and no key."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import trustme
from aiohttp import web
from structlog.testing import capture_logs

from tests.support.providers.scripted import Scripted, succeed
from tests.support.providers.server import ReceivedRequest, serve_provider
from tests.support.providers.strict_vendor import KEY, StrictVendor
from tests.support.serving import serving
from umg_grpc.cli.live_check import check_live
from umg_grpc.config import parse


@dataclass(frozen=True)
class Case:
    id: str
    line: str
    """The channel's keys, in which URL stands for the provider's address."""
    expected: str
    """Part of the line that is printed."""
    fails: bool = True


CASES = [
    Case("right", f"base_url: URL/v1, api_key: {KEY}, models: [gpt-large]", "2 models listed", fails=False),
    Case("patterns", f"base_url: URL/v1, api_key: {KEY}, models: ['gpt-*']", "2 models listed", fails=False),
    Case(
        "not in the list",
        f"base_url: URL/v1, api_key: {KEY}, models: [gpt-hidden]",
        "`gpt-hidden` answers",
        fails=False,
    ),
    Case("no `/v1`", f"base_url: URL, api_key: {KEY}, models: [gpt-large]", "set `base_url: URL/v1`"),
    Case("`/v1` twice", f"base_url: URL/v1/v1, api_key: {KEY}, models: ['*']", "set `base_url: URL/v1`"),
    Case("another path", f"base_url: URL/api/v3, api_key: {KEY}, models: ['*']", "correct `base_url`"),
    Case("wrong key", "base_url: URL/v1, api_key: sk-wrong-key-abcd, models: ['*']", "refuses the key ...abcd"),
    Case(
        "no key", "base_url: URL/v1, models: ['*']", "refuses the key: replace `api_key`, or check `auth` (status 401"
    ),
    Case(
        "no such model",
        f"base_url: URL/v1, api_key: {KEY}, models: [gtp-large]",
        "no model `gtp-large`: correct `upstream` of the model (status 404: The model `gtp-large` does not exist; the"
        " provider lists `gpt-large`",
    ),
    Case(
        "no such host", f"base_url: 'http://absent.invalid/v1', api_key: {KEY}, models: ['*']", "absent.invalid has no"
    ),
    Case(
        "refused", f"base_url: 'http://127.0.0.1:9/v1', api_key: {KEY}, models: ['*']", "no connection to 127.0.0.1:9"
    ),
    Case("TLS", f"base_url: TLS/v1, api_key: {KEY}, models: ['*']", "is not trusted: set `ca_file`"),
    Case("quota", f"base_url: QUOTA/v1, api_key: {KEY}, models: [m]", "no credit or quota left"),
    Case("a web page", f"base_url: PAGE/v1, api_key: {KEY}, models: ['*']", "no response of the API (text/html)"),
    Case(
        "a program without a token",
        "base_url: URL/v1, auth: {kind: command, command: ['false']}, models: ['*']",
        "check `auth` (auth.command: exit code 1)",
    ),
    Case(
        "patterns of Bedrock without credentials",
        "protocols: [converse], base_url: URL, auth: {kind: command, command: ['false']}, models: ['amazon.*']",
        "the channel has no credentials: check `auth` (auth.command: exit code 1)",
    ),
    Case(
        "patterns of Bedrock",
        "protocols: [converse], base_url: URL, auth: {kind: command, command: [echo, token]}, models: ['amazon.*']",
        "credentials found; not called: none of its models",
        fails=False,
    ),
    Case("the sandbox", "models: [famO-5]", "part of the gateway", fails=False),
]


@dataclass
class Unpaid(Scripted):
    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        error = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
        return web.json_response({"error": error}, status=429)


@dataclass
class Page(Scripted):
    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        return web.Response(text="<html>Welcome</html>", content_type="text/html")


@asynccontextmanager
async def addresses() -> AsyncGenerator[dict[str, str], None]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    async with (
        serve_provider(StrictVendor(name="vendor", scripts=[succeed])) as vendor,
        serve_provider(Page(name="page", scripts=[])) as page,
        serve_provider(Unpaid(name="unpaid", scripts=[])) as unpaid,
        serving(web.Application(), ssl_context=context) as secure,
    ):
        yield {"URL": vendor.url, "PAGE": page.url, "QUOTA": unpaid.url, "TLS": secure}


async def test_each_channel_has_a_line_that_mends_it(capsys: pytest.CaptureFixture[str]) -> None:
    async with addresses() as found:
        lines = []
        for number, case in enumerate(CASES):
            protocol = "chat" if "base_url" in case.line or "auth" in case.line else "sandbox"
            protocols = "" if "protocols" in case.line else f"protocols: [{protocol}], "
            lines.append(f"- {{name: c{number}, {protocols}{case.line}}}")
        text = "channels:\n" + "\n".join(lines)
        for name, url in found.items():
            text = text.replace(f"{name}/", f"{url}/").replace(f"{name},", f"{url},")
        with capture_logs():
            code = await check_live(parse(text, "umg.yaml", {}))
    printed = capsys.readouterr().out
    rows = {line.split()[0]: line for line in printed.splitlines() if line.split()[0] != "channel"}
    assert code == 1
    assert len(rows) == len(CASES)
    for number, case in enumerate(CASES):
        row = rows[f"c{number}"]
        assert case.expected.replace("URL", found["URL"]) in row, case.id
        assert row.split()[1] == ("FAILED" if case.fails else "fine"), case.id
    assert "sk-" not in printed


async def test_without_a_failure_the_exit_code_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert await check_live(parse("channels: [{name: a, protocols: [sandbox], models: [famO-5]}]", "umg.yaml", {})) == 0
