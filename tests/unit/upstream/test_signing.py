"""Signatures and short-lived tokens of channels, with the worked examples of the reference (6.1 and 7.3)."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from yarl import URL

from tests.support.providers.raw import PATIENT, answering, failed, provider, sized
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider
from tests.support.service_accounts import PUBLIC_KEY, key_file
from umg_grpc.base.errors import Failure
from umg_grpc.upstream.http.provider_call import HttpCall
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.provider_endpoints import ProviderEndpoint, RotatingEndpoints
from umg_grpc.upstream.http.signing.access_key import AccessKeySigner, canonical_request
from umg_grpc.upstream.http.signing.jwt_by_secret import ShortTokenSigner, short_token
from umg_grpc.upstream.http.signing.service_account import ServiceAccountSigner, read_service_account
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.request import OutgoingRequest
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.provider_errors import decode_error
from umg_grpc.wire.text_format_interface import UpstreamRequest

BODY = b'{"req_key":"vidF_vgfm_t2v_l20","prompt":"a lighthouse at dusk"}'
SIGNED = "https://visual.volcengineapi.com/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31"
DIGEST = "ad1b34b0d7ab7710a87bdfee99b2565efbc6b697212f16c67d7a60af6c20729b"
TOKEN = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
    "eyJpc3MiOiJhay1kZW1vIiwiZXhwIjoxNzY3MzI1NDQ1LCJuYmYiOjE3NjczMjM2NDB9."
    "R3m1k82XkHFDlrTQbrPEjumVZMEETOjnHmANU64FHsw"
)
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
short_key = pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")


def outgoing(url: str = SIGNED, body: bytes = BODY, **headers: str) -> OutgoingRequest:
    return OutgoingRequest(url, {"Content-Type": "application/json", **headers}, body, PATIENT)


def signer() -> AccessKeySigner:
    time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    return AccessKeySigner("AKEXAMPLE0001", "c2VjcmV0LWV4YW1wbGU=", region="cn-north-1", service="cv", now=lambda: time)


async def test_the_signature_is_that_of_the_worked_example() -> None:
    names = "content-type;host;x-content-sha256;x-date"
    assert await signer().headers(outgoing()) == {
        "Content-Type": "application/json",
        "X-Date": "20260102T030405Z",
        "X-Content-Sha256": DIGEST,
        "Authorization": "HMAC-SHA256 Credential=AKEXAMPLE0001/20260102/cn-north-1/cv/request, "
        f"SignedHeaders={names}, "
        "Signature=6d61273c62e3d5d95fa10875e1f74a7f8c916d740a4dbbec85a4438baf71901d",
    }


def test_the_canonical_request_is_that_of_the_worked_example() -> None:
    headers = {
        "content-type": "application/json",
        "host": "visual.volcengineapi.com",
        "x-content-sha256": DIGEST,
        "x-date": "20260102T030405Z",
    }
    assert canonical_request("POST", URL(SIGNED), headers, DIGEST).split("\n") == [
        "POST",
        "/",
        "Action=CVSync2AsyncSubmitTask&Version=2022-08-31",
        *(f"{name}:{value}" for name, value in headers.items()),
        "",
        "content-type;host;x-content-sha256;x-date",
        DIGEST,
    ]


async def test_the_host_that_is_called_is_signed_and_the_query_is_sorted() -> None:
    plain = (await signer().headers(outgoing()))["Authorization"]
    for url in ("https://visual.volcengineapi.com:8443/?Action=A", "https://other.example/?Action=A"):
        assert (await signer().headers(outgoing(url)))["Authorization"] != plain
    sorted_ = canonical_request("GET", URL("https://h/a%20b?b=2 3&a=~x/y"), {}, "")
    assert sorted_.split("\n")[1:3] == ["/a%20b", "a=~x%2Fy&b=2%203"]


@short_key
def test_the_short_token_is_that_of_the_worked_example() -> None:
    assert short_token("ak-demo", "sk-demo-secret", 1767323645) == TOKEN


@short_key
async def test_each_request_has_a_token_of_its_own() -> None:
    times = iter([1767323645, 1767323745])
    made = ShortTokenSigner("ak-demo", "sk-demo-secret", lambda: next(times))
    first, second = [(await made.headers(outgoing()))["Authorization"] for _ in range(2)]
    assert (first, second != first) == (f"Bearer {TOKEN}", True)
    header = json.loads(base64.urlsafe_b64decode(TOKEN.split(".", maxsplit=1)[0] + "=="))
    assert header == {"alg": "HS256", "typ": "JWT"}


# --- service accounts


@dataclass(kw_only=True)
class TokenServer(FakeProvider):
    """Server of tokens, which verifies the assertions."""

    claims: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    rejects: set[str] = field(default_factory=set)
    """Tokens that the provider rejects."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if received.path != "/token":
            token = received.headers["authorization"].removeprefix("Bearer ")
            return web.json_response({"token": token}, status=401 if token in self.rejects else 200)
        form = parse_qs(received.body.decode())
        assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        audience = f"{self.url}/token"
        self.claims.append(
            jwt.decode(form["assertion"][0], PUBLIC_KEY, ["RS256"], audience=audience, options={"verify_exp": False})
        )
        if self.statuses:
            return web.json_response({"error": "invalid_grant"}, status=self.statuses.pop(0))
        await asyncio.sleep(0)
        return web.json_response({"access_token": f"token-{len(self.claims)}", "expires_in": 3599})


@dataclass
class Account:
    server: TokenServer
    signer: ServiceAccountSigner
    client: Client
    now: list[float]

    async def token(self) -> str:
        return (await self.signer.headers(outgoing()))["Authorization"]


@asynccontextmanager
async def account(directory: Path, **server: Any) -> AsyncGenerator[Account, None]:
    async with serve_provider(TokenServer(**server)) as made, Client.opened() as client:
        file = directory / "account.json"
        file.write_text(key_file(made.url))
        now = [1767323645.0]
        signer = ServiceAccountSigner(read_service_account(str(file)), client, scope=SCOPE, now=lambda: now[0])
        yield Account(made, signer, client, now)


async def test_a_token_is_requested_once_for_concurrent_calls_and_renewed_before_its_end(tmp_path: Path) -> None:
    async with account(tmp_path) as made:
        assert set(await asyncio.gather(*(made.token() for _ in range(5)))) == {"Bearer token-1"}
        made.now[0] += 3598 - 300
        assert await made.token() == "Bearer token-1"
        made.now[0] += 2
        assert await made.token() == "Bearer token-2"
        issued = 1767323645
        assert made.server.claims[0] == {
            "iss": "umg@p.example",
            "scope": SCOPE,
            "aud": f"{made.server.url}/token",
            "iat": issued,
            "exp": issued + 3600,
        }


async def test_a_caller_that_leaves_does_not_end_the_wait_of_the_others(tmp_path: Path) -> None:
    async with account(tmp_path) as made:
        first, second = asyncio.create_task(made.token()), asyncio.create_task(made.token())
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).startswith("Bearer token-")


@pytest.mark.parametrize(("status", "failure"), [(400, Failure.DOWN), (401, Failure.DOWN), (503, Failure.NOT_SENT)])
async def test_without_a_token_nothing_is_sent_to_the_provider(tmp_path: Path, status: int, failure: Failure) -> None:
    async with account(tmp_path, statuses=[status]) as made:
        error = await failed(made.token())
        assert error.failure is failure
        assert "umg@p.example" not in error.message
        assert await made.token() == "Bearer token-2"


async def test_a_server_of_tokens_that_is_down_is_not_sent(tmp_path: Path) -> None:
    file = tmp_path / "account.json"
    file.write_text(key_file("http://127.0.0.1:9"))
    async with Client.opened() as client:
        error = await failed(
            ServiceAccountSigner(read_service_account(str(file)), client, scope=SCOPE).headers(outgoing())
        )
    assert error.failure is Failure.NOT_SENT


class Unchanged:
    """Format whose decoded responses are their bodies."""

    key_header = "authorization"
    decode_error = staticmethod(decode_error)

    @staticmethod
    def decode_response(body: bytes, request: pb.GenerateRequest, passes: bool) -> bytes:
        return body


async def test_a_token_that_the_provider_rejects_is_discarded_unless_it_is_new(tmp_path: Path) -> None:
    async with account(tmp_path, rejects={"token-1"}) as made:
        endpoint = ProviderEndpoint(made.server.url, {}, key_in_headers="k1", signer=made.signer)
        channel = HttpChannel(made.client, RotatingEndpoints([endpoint]), PATIENT)
        request = UpstreamRequest("/x", b"{}", {}, Report())

        async def call() -> bytes:
            return await HttpCall(channel, Unchanged(), pb.GenerateRequest(), request, passes=True).send(10)

        assert (await failed(call())).failure is Failure.DOWN
        made.now[0] += 60
        assert (await failed(call())).failure is Failure.OTHER_KEY
        assert await call() == b'{"token": "token-2"}'


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        '{"client_email": 1}',
        key_file("https://x", pem="no key"),
        key_file("ftp://x"),
        key_file(
            "https://x",
            pem=ec.generate_private_key(ec.SECP256R1())
            .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            .decode(),
        ),
    ],
)
def test_a_file_that_is_no_service_account_is_refused_without_its_content(tmp_path: Path, content: str) -> None:
    file = tmp_path / "account.json"
    file.write_text(content)
    with pytest.raises(OSError, match="expected the JSON key of a service account"):
        read_service_account(str(file))


async def test_a_signed_call_has_the_signature_of_its_body() -> None:
    async with provider(answering(sized(b"{}"))) as made, Client.opened() as client:
        endpoint = ProviderEndpoint(made.url.removesuffix("/v1/x"), {}, key_in_headers="AK:SK", signer=signer())
        channel = HttpChannel(client, RotatingEndpoints([endpoint]), PATIENT)
        request = UpstreamRequest("/?Action=A", BODY, {}, Report())
        _, signed = await channel.outgoing(request, "authorization", 10)
        assert signed.headers["X-Content-Sha256"] == DIGEST
        assert "SK" not in str(signed.headers)
        assert (await client.fetch(signed)).status == 200
