"""Sign-on of people over HTTP: responses of issuers that are refused, keys, links, cookies, sessions as credentials."""

import base64
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import grpc
import pytest
import pytest_asyncio

from http_facade.exchange.browser_sessions import MAX_FAILURES
from tests.support.gateways import SANDBOX, Running, running
from tests.support.issuers import AUDIENCE, TestIssuer, serving_issuer
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.users import Users
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb, rpc

pytestmark = pytest.mark.asyncio(loop_scope="module")

ME, LOGIN, LOGOUT, CALLBACK = "/auth/me", "/auth/login", "/auth/logout", "/auth/callback"


@dataclass
class Client:
    """Browser of one person at the gateway, which follows no redirect."""

    gateway: Running
    issuer: TestIssuer
    session: aiohttp.ClientSession
    origin: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.origin = {"origin": self.gateway.url}

    async def get(self, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
        url = f"{self.gateway.url}{path}"
        async with self.session.get(url, headers=headers, allow_redirects=False) as response:
            return response.status, await response.text(), dict(response.headers)

    async def post(self, path: str, form: dict[str, str], **headers: str) -> tuple[int, str]:
        url, sent = f"{self.gateway.url}{path}", headers or self.origin
        async with self.session.post(url, data=form, headers=sent, allow_redirects=False) as response:
            return response.status, await response.text()

    async def begin(self) -> dict[str, str]:
        """Begin a sign-in. Return the parameters of the request to the issuer."""
        status, _, headers = await self.get(f"{LOGIN}?issuer=main&return=/docs")
        assert status == 303
        return {name: values[0] for name, values in parse_qs(urlsplit(headers["Location"]).query).items()}

    async def complete(self, sent: dict[str, str], query: dict[str, str] | None = None, **claims: Any) -> int:
        """Return from the issuer with a token of these claims. Return the status."""
        found = {"aud": "umg", "nonce": sent["nonce"], "groups": ["admins"], **claims}
        self.issuer.id_token = self.issuer.token(time.time(), **found)
        url, wanted = f"{self.gateway.url}{CALLBACK}", {"code": "c", "state": sent["state"], **(query or {})}
        async with self.session.get(url, params=wanted, allow_redirects=False) as response:
            return response.status

    async def me(self) -> dict[str, Any] | None:
        status, text, _ = await self.get(ME)
        return json.loads(text) if status == 200 else None

    @property
    def token(self) -> str:
        [cookie] = [each for each in self.session.cookie_jar if each.key == "umg_session"]
        return cookie.value


def config_of(issuer: TestIssuer, extra: str = "") -> str:
    return f"""{SANDBOX}{extra}
sign_on:
  issuers:
    - name: main
      title: The <Company>
      issuer: {issuer.url}
      client_id: umg
      client_secret: secret
      roles: [{{value: admins, role: owner}}]
      callers: {{audiences: [{AUDIENCE}]}}
"""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[Running, TestIssuer]]:
    async with serving_issuer() as issuer, running(config_of(issuer), tmp_path_factory.mktemp("gateway")) as served:
        yield served, issuer


@pytest_asyncio.fixture(loop_scope="module")
async def client(gateway: tuple[Running, TestIssuer]) -> AsyncGenerator[Client]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield Client(*gateway, session)


async def test_the_page_leads_to_the_issuer_with_pkce(client: Client) -> None:
    status, text, headers = await client.get(LOGIN)
    assert (status, "The &lt;Company&gt;" in text, headers["Cache-Control"]) == (200, True, "no-store")
    sent = await client.begin()
    assert sent["redirect_uri"] == f"{client.gateway.url}{CALLBACK}"
    assert (sent["response_type"], sent["scope"], sent["client_id"]) == ("code", "openid profile email", "umg")
    assert await client.complete(sent) == 303
    verifier = client.issuer.forms[-1]["code_verifier"]
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    assert (sent["code_challenge"], sent["code_challenge_method"]) == (digest, "S256")
    me = await client.me()
    assert me is not None
    assert me["roles"] == [{"account_id": "", "role": "owner"}]


@dataclass(frozen=True)
class Refused:
    id: str
    status: int
    query: dict[str, str] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)


REFUSED = [
    Refused("another state", 400, {"state": "another"}),
    Refused("no state", 400, {"state": ""}),
    Refused("another issuer", 401, {"iss": "https://another.example"}),
    Refused("an error of the issuer", 401, {"error": "access_denied"}),
    Refused("another nonce", 401, claims={"nonce": "another"}),
    Refused("no nonce", 401, claims={"nonce": None}),
    Refused("another audience", 401, claims={"aud": AUDIENCE}),
    Refused("a token for several clients", 401, claims={"aud": ["umg", "other"], "azp": "other"}),
    Refused("a token of another issuer", 401, claims={"iss": "https://another.example"}),
    Refused("an expired token", 401, claims={"exp": 1_000}),
    Refused("no role", 403, claims={"sub": "eve", "groups": []}),
    Refused("too many groups", 403, claims={"sub": "eve", "groups": None, "_claim_names": {"groups": "src1"}}),
]


@pytest.fixture(autouse=True)
def _no_failures(gateway: tuple[Running, TestIssuer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("http_facade.exchange.browser_sessions.FAILURE_SECONDS", 0.0)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
async def test_a_response_of_the_issuer_is_refused(client: Client, case: Refused) -> None:
    sent = await client.begin()
    assert await client.complete(sent, case.query, **case.claims) == case.status
    assert await client.me() is None


async def test_a_code_that_the_issuer_refuses_opens_no_session(client: Client) -> None:
    sent = await client.begin()
    client.issuer.id_token = None
    status, text, _ = await client.get(f"{CALLBACK}?code=c&state={sent['state']}")
    assert (status, "gave no token" in text) == (401, True)


async def test_a_sign_in_completes_once_and_in_its_browser(client: Client, gateway: tuple[Running, TestIssuer]) -> None:
    sent = await client.begin()
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        assert await Client(*gateway, session).complete(sent) == 400
    assert await client.complete(sent) == 303
    assert await client.complete(sent) == 400


async def test_a_sign_in_replaces_the_session_of_its_browser(client: Client) -> None:
    assert await client.complete(await client.begin()) == 303
    first = client.token
    assert await client.complete(await client.begin()) == 303
    assert client.token != first
    assert await client.gateway.service.sign_on.session(first) is None


async def test_the_browser_is_led_to_own_paths_only(client: Client) -> None:
    form = {"key": client.gateway.key, "return": "//another.example"}
    async with client.session.post(
        f"{client.gateway.url}{LOGIN}", data=form, headers=client.origin, allow_redirects=False
    ) as response:
        assert (response.status, response.headers["Location"]) == (303, "/")


async def test_an_administrators_key_opens_a_session(client: Client) -> None:
    assert (await client.post(LOGIN, {"key": client.gateway.key}))[0] == 303
    me = await client.me()
    assert me is not None
    assert (me["name"], me["roles"]) == ("bootstrap", [{"account_id": "", "role": "owner"}])
    cookie = next(each for each in client.session.cookie_jar if each.key == "umg_session")
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")


async def test_the_key_of_a_holder_opens_a_session_without_a_role(client: Client) -> None:
    key, secret = await ApiKeys(client.gateway.service.store).create("holder")
    assert (await client.post(LOGIN, {"key": secret}))[0] == 303
    me = await client.me()
    assert me is not None
    assert (me["key_id"], me["roles"]) == (key.key_id, [])


async def test_unknown_keys_open_no_session(client: Client) -> None:
    assert (await client.post(LOGIN, {"key": "sk-umg-unknown"}))[0] == 401
    assert (await client.post(LOGIN, {"key": ""}))[0] == 401


async def test_a_session_ends_with_its_key(client: Client) -> None:
    keys = ApiKeys(client.gateway.service.store)
    key, secret = await keys.create("operator", administrator=True)
    assert (await client.post(LOGIN, {"key": secret}))[0] == 303
    assert await client.me() is not None
    await keys.revoke(key.key_id)
    assert await client.me() is None


SITES: list[tuple[dict[str, str], int]] = [
    ({"sec-fetch-site": "same-origin"}, 303),
    ({"sec-fetch-site": "cross-site"}, 403),
    ({"sec-fetch-site": "same-site"}, 403),
    ({"origin": "https://another.example"}, 403),
    ({"origin": "null"}, 403),
    ({"x-nothing": ""}, 403),
]


@pytest.mark.parametrize(("headers", "status"), SITES)
async def test_posts_come_from_pages_of_the_gateway(client: Client, headers: dict[str, str], status: int) -> None:
    assert (await client.post(LOGIN, {"key": client.gateway.key}, **headers))[0] == status


async def test_five_failures_a_minute_of_an_address_are_allowed(
    gateway: tuple[Running, TestIssuer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("http_facade.exchange.browser_sessions.FAILURE_SECONDS", 60.0)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(local_addr=("127.0.0.9", 0))) as session:
        client = Client(*gateway, session)
        for _ in range(MAX_FAILURES):
            assert (await client.post(LOGIN, {"key": "sk-umg-unknown"}))[0] == 401
        status, text = await client.post(LOGIN, {"key": client.gateway.key})
    assert (status, "5 sign-ins" in text) == (429, True)


async def test_a_link_of_the_start_opens_one_session(client: Client) -> None:
    key = await ApiKeys(client.gateway.service.store).get("bootstrap")
    code = await client.gateway.service.sign_on.new_code(key.key_id)
    assert (await client.post(LOGIN, {"code": code}))[0] == 303
    me = await client.me()
    assert me is not None
    assert me["key_id"] == key.key_id
    status, text = await client.post(LOGIN, {"code": code})
    assert (status, "used" in text) == (401, True)
    assert await client.gateway.service.sign_on.session(code) is None


@pytest.mark.parametrize("host", ["gateway.example", "localhost.example", "[::1"])
async def test_without_tls_people_sign_in_at_loopback_only(client: Client, host: str) -> None:
    for path in (LOGIN, ME, CALLBACK):
        status, text, _ = await client.get(path, host=host)
        assert (status, "`tls`" in text) == (403, True)


async def test_behind_tls_cookies_are_bound_to_the_host(tmp_path: Path) -> None:
    async with (
        serving_issuer() as issuer,
        running(config_of(issuer, "public_url: https://gateway.example\n"), tmp_path) as served,
        aiohttp.ClientSession() as session,
        session.post(
            f"{served.url}{LOGIN}",
            data={"key": served.key},
            headers={"sec-fetch-site": "same-origin"},
            allow_redirects=False,
        ) as response,
    ):
        cookie = response.cookies["__Host-umg_session"]
        assert (bool(cookie["secure"]), bool(cookie["httponly"]), cookie["path"]) == (True, True, "/")


Method = Callable[[grpc.aio.Channel], Any]


@dataclass(frozen=True)
class Accepts:
    id: str
    call: Method
    accepted: bool


ACCEPTS = [
    Accepts("administration", lambda c: (rpc.AdminServiceStub(c).ListKeys, pb.ListKeysRequest()), True),
    Accepts("models", lambda c: (rpc.ModelServiceStub(c).ListModels, pb.ListModelsRequest()), True),
    Accepts("text", lambda c: (rpc.GenerationServiceStub(c).Generate, pb.GenerateRequest(model="famO-5")), False),
    Accepts("images", lambda c: (rpc.ImageServiceStub(c).GenerateImage, pb.GenerateImageRequest(model="m")), False),
]


@pytest.mark.parametrize("case", ACCEPTS, ids=lambda case: case.id)
async def test_a_session_is_a_credential_of_administration_alone(client: Client, case: Accepts) -> None:
    assert await client.complete(await client.begin()) == 303
    async with grpc.aio.insecure_channel(client.gateway.grpc) as channel:
        method, request = case.call(channel)
        metadata = (("authorization", f"Session {client.token}"),)
        if case.accepted:
            await method(request, metadata=metadata)
            return
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(request, metadata=metadata)
    assert (caught.value.code(), "session" in (caught.value.details() or "")) == (
        grpc.StatusCode.UNAUTHENTICATED,
        True,
    )


async def administers(client: Client, token: str) -> bool:
    headers = {"authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(client.gateway.url, headers=headers) as session:
        async with session.get("/v1/models") as response:
            assert response.status == 200
        async with session.get("/admin/v1/keys") as response:  # any caller sees itself
            return "bootstrap" in {key["settings"]["name"] for key in (await response.json())["keys"]}


async def test_a_token_administers_by_the_roles_of_its_claims(client: Client) -> None:
    assert await administers(client, client.issuer.token(time.time(), sub="robot", groups=["admins"]))
    assert not await administers(client, client.issuer.token(time.time(), sub="other robot"))


async def test_a_token_administers_as_the_user_of_a_sign_in(client: Client) -> None:
    before = client.issuer.token(time.time(), sub="dora")
    assert not await administers(client, before)
    assert await client.complete(await client.begin(), sub="dora") == 303
    me = await client.me()
    assert me is not None
    token = client.issuer.token(time.time(), sub="dora", jti="after the sign-in")
    authenticator, store = client.gateway.service.authenticator, client.gateway.service.store
    await authenticator.authenticate(token)
    [row] = [key for key in await ApiKeys(store).list() if key.name == "main:dora"]
    assert row.user_id == me["user_id"]
    await authenticator._request_lookup(row.key_id)
    assert await administers(client, token)
    await Users(store).update(me["user_id"], {"disabled": True})
    await authenticator._request_lookup(row.key_id)
    with pytest.raises(UmgError):
        await authenticator.authenticate(token)
    assert await client.me() is None


async def test_cookies_are_no_credentials_of_calls(client: Client) -> None:
    assert await client.complete(await client.begin()) == 303
    for path in ("/v1/models", "/admin/v1/keys"):
        assert (await client.get(path))[0] == 401


async def test_an_unknown_session_is_refused(client: Client) -> None:
    for token in ("unknown", ""):
        async with grpc.aio.insecure_channel(client.gateway.grpc) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                metadata = (("authorization", f"Session {token}"),)
                await rpc.ModelServiceStub(channel).ListModels(pb.ListModelsRequest(), metadata=metadata)
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
