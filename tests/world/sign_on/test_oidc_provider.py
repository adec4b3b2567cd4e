"""Sign-on of people, and tokens of programs, with a certified OpenID Connect issuer."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_plus

import aiohttp
import pytest
import pytest_asyncio

from tests.support.gateways import SANDBOX, Running, running
from tests.world.sign_on.browser import Browser, Page
from tests.world.sign_on.issuer_process import (
    CLIENT,
    PROGRAM,
    PROGRAM_SECRET,
    SECRET,
    IssuerProcess,
    running_issuer,
)
from umg_grpc.access.issuer_keys import RETRY_SECONDS
from umg_grpc.access.users import Users

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = {"model": "famO-5", "messages": [{"role": "user", "content": "hello"}]}


@dataclass(frozen=True)
class Setting:
    gateway: Running
    issuer: IssuerProcess

    async def token(self) -> str:
        """Return an access token of a program, by client credentials."""
        form = {"grant_type": "client_credentials", "scope": "call", "resource": "https://gateway.example"}
        credentials = aiohttp.encode_basic_auth(PROGRAM, quote_plus(PROGRAM_SECRET))
        async with (
            aiohttp.ClientSession(headers={"authorization": credentials}) as session,
            session.post(f"{self.issuer.url}/token", data=form) as response,
        ):
            body = await response.json()
            assert response.status == 200, body
            return str(body["access_token"])

    async def call(self, token: str) -> int:
        headers = {"authorization": f"Bearer {token}"}
        async with (
            aiohttp.ClientSession(self.gateway.url, headers=headers) as session,
            session.post("/v1/chat/completions", json=QUESTION) as response,
        ):
            await response.read()
            return response.status


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def setting(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Setting]:
    async with running_issuer() as issuer:
        config = f"""{SANDBOX}
sign_on:
  issuers:
    - name: company
      issuer: {issuer.url}
      client_id: {CLIENT}
      client_secret: {SECRET}
      roles:
        - {{value: admins, role: owner}}
        - {{value: "view-*", role: viewer}}
      callers: {{audiences: [umg-api], models_claim: models}}
"""
        data: Path = tmp_path_factory.mktemp("gateway")
        async with running(config, data) as gateway:
            await issuer.configure(redirect=f"{gateway.url}/auth/callback", groups=["admins"])
            yield Setting(gateway, issuer)


@pytest_asyncio.fixture(loop_scope="module")
async def browser() -> AsyncGenerator[Browser]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield Browser(session)


def roles_of(page: Page) -> list[tuple[str, str]]:
    assert page.status == 200, page
    return [(role["account_id"], role["role"]) for role in json.loads(page.text)["roles"]]


async def test_a_person_signs_in_and_out(setting: Setting, browser: Browser) -> None:
    url = setting.gateway.url
    assert (await browser.get(f"{url}/auth/me")).status == 401
    page = await browser.sign_in(url, "company")
    me = json.loads(page.text)
    assert (me["name"], me["email"], roles_of(page)) == ("Ada", "ada@example.com", [("", "owner")])
    assert (await browser.post(f"{url}/auth/logout", {"csrf_token": "another"})).status == 403
    assert roles_of(await browser.get(f"{url}/auth/me")) == [("", "owner")]
    await browser.post(f"{url}/auth/logout", {"csrf_token": me["csrf_token"]})
    assert (await browser.get(f"{url}/auth/me")).status == 401


async def test_roles_are_those_of_the_groups_at_the_last_sign_in(setting: Setting, browser: Browser) -> None:
    await setting.issuer.configure(groups=["admins"])
    assert roles_of(await browser.sign_in(setting.gateway.url, "company", "ben")) == [("", "owner")]
    await setting.issuer.configure(groups=["view-all"])
    assert roles_of(await browser.sign_in(setting.gateway.url, "company", "ben")) == [("", "viewer")]
    await setting.issuer.configure(groups=["others"])
    page = await browser.sign_in(setting.gateway.url, "company", "ben")
    assert (page.status, "no role" in page.text) == (403, True)
    assert (await browser.get(f"{setting.gateway.url}/auth/me")).status == 401


async def test_a_person_without_a_role_is_not_added(setting: Setting, browser: Browser) -> None:
    await setting.issuer.configure(groups=[])
    page = await browser.sign_in(setting.gateway.url, "company", "eve")
    assert page.status == 403
    users, _ = await Users(setting.gateway.service.store).page("", 100, include_disabled=True)
    assert "eve@example.com" not in {user.email for user in users}


async def test_a_disabled_person_has_no_session(setting: Setting, browser: Browser) -> None:
    await setting.issuer.configure(groups=["admins"])
    page = await browser.sign_in(setting.gateway.url, "company", "cleo")
    await Users(setting.gateway.service.store).update(json.loads(page.text)["user_id"], {"disabled": True})
    assert (await browser.get(f"{setting.gateway.url}/auth/me")).status == 401
    page = await browser.sign_in(setting.gateway.url, "company", "cleo")
    assert (page.status, "disabled" in page.text) == (403, True)


async def test_a_program_calls_with_its_token(setting: Setting) -> None:
    assert await setting.call(await setting.token()) == 200


async def test_a_token_for_another_audience_is_refused(setting: Setting) -> None:
    await setting.issuer.configure(audience="another")
    try:
        assert await setting.call(await setting.token()) == 401
    finally:
        await setting.issuer.configure(audience="umg-api")


async def test_keys_of_the_issuer_are_rotated(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await setting.call(await setting.token()) == 200
    monkeypatch.setattr("umg_grpc.access.issuer_keys.RETRY_SECONDS", min(RETRY_SECONDS, 0.0))
    await setting.issuer.configure(keys=2)
    assert await setting.call(await setting.token()) == 200
