"""Credentials of clouds that expire all the time, under steady calls through a gateway: no call fails, and each credential is
read once.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.support.gateways import Running, running
from tests.support.load import FailedError, Tally, repeating
from tests.support.providers.aws_issuer import LONG_LIVED, REGION, ROLE, SERVICE, AwsIssuer
from tests.support.providers.server import ReceivedRequest, serve_provider
from umg_grpc.config import parse

CALLERS = 8
SECONDS = 2.0
"""Lifetime of each credential."""
EXPIRIES = 3


@dataclass(kw_only=True)
class FailingIssuer(AwsIssuer):
    """Issuer that fails at times: each read of credentials is answered by the next of `statuses`, after `delay`."""

    delay: float = 0.0
    read: asyncio.Event = field(default_factory=asyncio.Event)
    wanted: int = EXPIRIES + 1

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if received.path == "/" and self.delay:
            await asyncio.sleep(self.delay)  # of the issuer, not of the test
        response = await super().answer(request, received)
        if len(self.issued) >= self.wanted:
            self.read.set()
        return response


def config(issuer: AwsIssuer, further: str = "") -> str:
    auth = f"{{kind: aws, role_arn: '{ROLE}', region: {REGION}, service: {SERVICE}}}"
    return f"""
channels:
  - name: bedrock
    protocols: [chat]
    base_url: {issuer.url}/openai/v1
    auth: {auth}
    models: [m]
{further}"""


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", LONG_LIVED[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", LONG_LIVED[1])
    for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    return monkeypatch


@asynccontextmanager
async def gateway(text: str, issuer: AwsIssuer, user: pytest.MonkeyPatch, data: Path) -> AsyncGenerator[Running, None]:
    user.setenv("AWS_ENDPOINT_URL_STS", issuer.url)
    async with running(parse(text, "umg.yaml", {}), data) as made:
        yield made


async def call(made: Running, session: aiohttp.ClientSession) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with session.post(f"{made.url}/v1/chat/completions", json=body, headers=made.headers) as response:
        if response.status != 200:
            raise FailedError(await response.text())


@dataclass(frozen=True)
class Case:
    id: str
    statuses: Iterable[int] = ()
    delay: float = 0.0


@pytest.mark.parametrize(
    "case",
    [
        Case("an issuer that answers"),
        Case("an issuer that fails at times", statuses=(200, 500, 200, 500, 500, 200)),
        Case("a slow issuer", delay=0.4),
    ],
    ids=lambda case: case.id,
)
async def test_no_call_fails_while_credentials_expire(case: Case, user: pytest.MonkeyPatch, tmp_path: Path) -> None:
    issuer = FailingIssuer(seconds=SECONDS, statuses=[*case.statuses], delay=case.delay)
    tally = Tally()
    async with (
        serve_provider(issuer),
        gateway(config(issuer), issuer, user, tmp_path / "data") as made,
        aiohttp.ClientSession() as session,
    ):

        async def one() -> None:
            await tally.count("chat", lambda: call(made, session))

        began = time.time()
        async with repeating([one] * CALLERS), asyncio.timeout(60):
            await issuer.read.wait()
            await tally.until_more(["chat"], CALLERS)
        seconds = time.time() - began
    assert tally.failures == []
    assert issuer.accepted == tally.answered["chat"] > 10 * len(issuer.issued)
    assert len(issuer.issued) <= 2 + 2 * seconds / SECONDS  # at most one in half a lifetime
