"""Credentials of clouds that expire all the time, under steady calls through a gateway: no call fails, and each credential is
read once.
"""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.support.gateways import Running, channel, running
from tests.support.load import FailedError, Tally, repeating
from tests.support.providers.aws_issuer import CHAT, LONG_LIVED, REGION, ROLE, SERVICE, AwsIssuer
from tests.support.providers.google_issuer import GoogleIssuer, account_file
from tests.support.providers.server import ReceivedRequest, RecordingProvider, serve_provider
from umg_grpc.config import parse
from umg_grpc.upstream.http.signing.refreshed_credentials import RefreshedSigner

CALLERS = 8
SECONDS = 2.0
"""Lifetime of each credential."""
EXPIRIES = 2


@dataclass(kw_only=True)
class FailingIssuer(AwsIssuer):
    """Issuer that fails at times: each read of credentials is answered by the next of `statuses`, after `delay`."""

    delay: float = 0.0
    read: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if received.path == "/" and self.delay:
            await asyncio.sleep(self.delay)  # of the issuer, not of the test
        response = await super().answer(request, received)
        if len(self.issued) > EXPIRIES:
            self.read.set()
        return response


@dataclass(kw_only=True)
class ExpiringTokens(GoogleIssuer):
    read: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        response = await super().answer(request, received)
        if len(self.expiries) > EXPIRIES:
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
    seconds: float = SECONDS
    """Lifetime of each credential. Half of it suffices for the reads of the next one, also on a busy machine."""


@pytest.mark.parametrize(
    "case",
    [
        Case("an issuer that answers"),
        Case("an issuer that fails at times", statuses=(200, 500, 200, 500, 500, 200), seconds=3 * SECONDS),
        Case("a slow issuer", delay=0.4, seconds=2 * SECONDS),
    ],
    ids=lambda case: case.id,
)
async def test_no_call_fails_while_credentials_expire(case: Case, user: pytest.MonkeyPatch, tmp_path: Path) -> None:
    issuer = FailingIssuer(seconds=case.seconds, statuses=[*case.statuses], delay=case.delay)
    async with serve_provider(issuer), gateway(config(issuer), issuer, user, tmp_path / "data") as made:
        calls, seconds = await called_while(issuer.read, made)
    assert issuer.accepted == calls > 10 * len(issuer.issued)
    assert len(issuer.issued) <= 2 + 2 * seconds / case.seconds  # at most one in half a lifetime


@pytest.mark.filterwarnings("ignore:The load_credentials_from_file method is deprecated:DeprecationWarning")
async def test_no_call_fails_while_tokens_expire(tmp_path: Path) -> None:
    issuer = ExpiringTokens(seconds=SECONDS)
    async with serve_provider(issuer):
        (tmp_path / "account.json").write_text(account_file(issuer.url))
        text = f"""
channels:
  - name: vertex
    protocols: [chat]
    base_url: {issuer.url}/v1
    auth: {{kind: google, file: account.json}}
    models: [m]
"""
        async with running(parse(text, str(tmp_path / "umg.yaml"), {}), tmp_path / "data") as made:
            calls, seconds = await called_while(issuer.read, made)
    assert issuer.accepted == calls > 10 * len(issuer.expiries)
    assert len(issuer.expiries) <= 2 + 2 * seconds / SECONDS


async def called_while(event: asyncio.Event, made: Running) -> tuple[int, float]:
    """Call the gateway by several callers until the event is set. Return the number of calls, which all succeeded, and
    the seconds.
    """
    tally, began = Tally(), time.time()
    async with aiohttp.ClientSession() as session:

        async def one() -> None:
            await tally.count("chat", lambda: call(made, session))

        async with repeating([one] * CALLERS), asyncio.timeout(60):
            await event.wait()
            await tally.until_more(["chat"], CALLERS)
    assert tally.failures == []
    return tally.answered["chat"], time.time() - began


async def body_of(made: Running, session: aiohttp.ClientSession) -> tuple[int, str]:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with session.post(f"{made.url}/v1/chat/completions", json=body, headers=made.headers) as response:
        return response.status, await response.text()


async def test_without_credentials_the_next_channel_is_called_and_the_last_one_fails_by_its_name(
    user: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    user.delenv("AWS_ACCESS_KEY_ID")
    user.setenv("AWS_EC2_METADATA_DISABLED", "true")
    issuer, other = AwsIssuer(), RecordingProvider(respond=lambda _: CHAT)
    async with serve_provider(issuer), serve_provider(other), aiohttp.ClientSession() as session:
        beside = channel("other", "chat", f"{other.url}/v1", "m") + "    priority: 1\n"
        async with gateway(config(issuer, beside), issuer, user, tmp_path / "both") as made:
            assert (await body_of(made, session))[0] == 200
        async with gateway(config(issuer), issuer, user, tmp_path / "one") as made:
            status, text = await body_of(made, session)
            assert status == 502
            assert "channel bedrock: no valid credentials of AWS could be got; the operator has to check" in text
            assert (
                b'umg_credential_reads_total{channel="bedrock",outcome="failed"} 1.0'
                in made.service.metrics.exposition()
            )
    assert len(other.received) == 1
    assert issuer.received == []


async def test_rejected_credentials_are_replaced_within_the_call(user: pytest.MonkeyPatch, tmp_path: Path) -> None:
    issuer = AwsIssuer()
    async with (
        serve_provider(issuer),
        gateway(config(issuer), issuer, user, tmp_path / "data") as made,
        aiohttp.ClientSession() as session,
    ):
        await call(made, session)
        issuer.revoked |= {*issuer.issued}
        signer_of(made)._made -= 60  # credentials that are only seconds old are not replaced
        await call(made, session)
    assert issuer.reads == ["AssumeRole umg-bedrock"] * 2


async def test_a_reload_keeps_the_credentials_of_channels_with_the_same_auth(
    user: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    issuer = AwsIssuer()
    async with (
        serve_provider(issuer),
        gateway(config(issuer), issuer, user, tmp_path / "data") as made,
        aiohttp.ClientSession() as session,
    ):
        await call(made, session)
        made.service.reload(parse(config(issuer, "    weight: 2\n"), "umg.yaml", {}))
        await call(made, session)
        assert len(issuer.reads) == 1
        made.service.reload(
            parse(
                config(issuer).replace(f"service: {SERVICE}", f"service: {SERVICE}, external_id: tenant-7"),
                "umg.yaml",
                {},
            )
        )
        await call(made, session)
    assert issuer.reads == ["AssumeRole umg-bedrock", "AssumeRole umg-bedrock tenant-7"]


@dataclass(kw_only=True)
class SilentIssuer(AwsIssuer):
    called: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        self.called.set()
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_gateway_ends_while_an_issuer_does_not_answer(user: pytest.MonkeyPatch, tmp_path: Path) -> None:
    issuer = SilentIssuer()
    async with serve_provider(issuer), aiohttp.ClientSession() as session, asyncio.timeout(60):
        async with gateway(config(issuer), issuer, user, tmp_path / "data") as made:
            waiting = asyncio.create_task(call(made, session))
            await issuer.called.wait()
            waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        [thread] = [each for each in threading.enumerate() if each.name == "credentials bedrock"]
        assert thread.daemon  # the process does not wait for it, either


def signer_of(made: Running) -> RefreshedSigner:
    [endpoint] = made.service._channels.providers["bedrock"]._in_turn.endpoints  # type: ignore[union-attr]
    assert isinstance(endpoint.signer, RefreshedSigner)
    return endpoint.signer
