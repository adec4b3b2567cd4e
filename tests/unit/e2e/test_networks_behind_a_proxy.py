"""Gateways in a network whose only way out is an HTTP proxy, a program of others, which inspects no TLS."""

import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme
from aiohttp import ClientSession, web

from tests.support.connect_proxy import connect_proxy
from tests.support.gateways import running
from tests.support.processes import serve
from tests.support.providers.server import Json, ReceivedRequest, RecordingProvider, response_of
from tests.support.proxies import program
from tests.support.service_accounts import key_file
from tests.support.serving import serving
from umg_grpc.config import parse

pytestmark = pytest.mark.skipif(program("envoy") is None, reason="Envoy is not installed")
NAME = socket.gethostname()
"""Name of this machine that is not recognized as loopback, and that the proxy and the gateway resolve."""
LISTED = "[lists, 'listed-*']"
KEY = "sk-umg-behind-a-proxy"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
ANSWER: Json = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


@dataclass
class Vendor(RecordingProvider):
    """Vendor with a model list, tokens for service accounts, chat, and images that it returns as addresses."""

    authority: trustme.CA = field(default_factory=trustme.CA)
    files: str = ""
    """Address of the images; "" for its own."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        match received.path:
            case "/v1/models":
                return response_of({"object": "list", "data": [{"id": "listed-1", "object": "model"}]})
            case "/token":
                return response_of({"access_token": "ya29.token", "expires_in": 3599})
            case "/v1/images/generations":
                return response_of({"created": 1, "data": [{"url": f"{self.files or self.url}/files/a.png"}]})
            case "/files/a.png":
                return web.Response(body=PNG, content_type="image/png")
            case _:
                return response_of(ANSWER)

    @property
    def place(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def paths(self) -> list[str]:
        return [each.path for each in self.received]


@asynccontextmanager
async def vendor(authority: trustme.CA | None = None) -> AsyncGenerator[Vendor, None]:
    """Serve a vendor by the name of this machine; with an authority over TLS, with its certificate."""
    made, app, context = Vendor(), web.Application(), None
    if authority is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(NAME, "localhost").configure_cert(context)
    app.router.add_route("*", "/{path:.*}", made.handle)
    async with serving(app, ssl_context=context, handler_cancellation=True, shutdown_timeout=0.1) as url:
        parts = urlsplit(url)
        made.url = f"{parts.scheme}://{NAME}:{parts.port}"
        yield made


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """Return an authority that no system trusts, and that SSL_CERT_FILE names."""
    made, file = trustme.CA(), tmp_path / "authority.pem"
    made.cert_pem.write_to_path(str(file))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    return made


async def call(url: str, headers: dict[str, str], model: str) -> tuple[int, Json]:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
    async with (
        ClientSession() as session,
        session.post(f"{url}/v1/chat/completions", json=body, headers=headers) as answer,
    ):
        return answer.status, await answer.json()


async def image(url: str, headers: dict[str, str], model: str) -> int:
    body = {"model": model, "prompt": "a cat", "response_format": "b64_json"}
    async with (
        ClientSession() as session,
        session.post(f"{url}/v1/images/generations", json=body, headers=headers) as answer,
    ):
        return answer.status


def channel(name: str, base_url: str, more: str = "") -> str:
    return f"  - {{name: {name}, protocols: [chat], base_url: '{base_url}', api_key: k, models: [{name}]{more}}}\n"


async def test_calls_of_providers_go_through_the_proxy_of_the_environment(
    tmp_path: Path, authority: trustme.CA
) -> None:
    """Call by each row of the table of egress, with credentials, and compare the finished requests of the proxy."""
    async with (
        connect_proxy(tmp_path, needs_credentials=True) as proxy,
        vendor(authority) as secure,
        vendor() as plain,
        vendor(authority) as lists,
        vendor(authority) as tokens,
        vendor(authority) as inside,
        vendor(authority) as files,
    ):
        (tmp_path / "account.json").write_text(key_file(tokens.url))
        config = (
            f"egress: {{allow: ['{NAME}']}}\nchannels:\n"
            f"{channel('secure', f'{secure.url}/v1')}"
            f"{channel('lists', f'{lists.url}/v1', ', discover: true').replace('[lists]', LISTED)}"
            f"{channel('plain', f'{plain.url}/v1')}"
            f"{channel('inside', f'{inside.url}/v1')}"
            f"{channel('direct', f'{secure.url}/v1', ', proxy: direct')}"
            f"{channel('here', f'{secure.url}/v1'.replace(NAME, 'localhost'))}"
            f"  - {{name: account, protocols: [chat], base_url: '{plain.url}/v1', models: [account],"
            " auth: {kind: service_account, file: account.json}}\n"
            f"  - {{name: images, protocols: [images], base_url: '{secure.url}/v1', api_key: k, models: [image]}}\n"
        )
        environment = {
            "HTTPS_PROXY": proxy.with_credentials(),
            "http_proxy": proxy.with_credentials(),
            "NO_PROXY": f"other.example,{inside.place}",
        }
        parsed = parse(config, str(tmp_path / "umg.yaml"), environment)
        async with running(parsed, tmp_path / "data") as made:
            for model in ("secure", "plain", "inside", "direct", "here", "account"):
                assert (await call(made.url, made.headers, model))[0] == 200, model
            assert await image(made.url, made.headers, "image") == 200
            secure.files = files.url
            assert await image(made.url, made.headers, "image") == 200
    assert (lists.paths, tokens.paths) == (["/v1/models"], ["/token"])
    assert (inside.paths, files.paths) == (["/v1/chat/completions"], ["/files/a.png"])
    tunnels = {f"CONNECT {each.place} 200" for each in (secure, lists, tokens)}
    assert set(proxy.calls()) == {*tunnels, f"POST {plain.place} 200"}


async def test_a_proxy_without_its_credentials_is_a_failure_of_the_proxy(tmp_path: Path, authority: trustme.CA) -> None:
    async with connect_proxy(tmp_path, needs_credentials=True) as proxy, vendor(authority) as secure, vendor() as plain:
        config = f"channels:\n{channel('secure', f'{secure.url}/v1')}{channel('plain', f'{plain.url}/v1')}"
        wrong = proxy.url.replace("://", "://umg:wrong-password@")
        parsed = parse(config, "umg.yaml", {"ALL_PROXY": wrong})
        async with running(parsed, tmp_path / "data") as made:
            status, answer = await call(made.url, made.headers, "secure")
            assert (status, "wrong-password" in str(answer)) == (502, False)
            assert answer["error"]["message"].startswith("the proxy to the provider refused the gateway")
            assert (await call(made.url, made.headers, "plain"))[0] != 200
    assert not secure.received
    assert not plain.received
    assert set(proxy.calls()) == {f"CONNECT {secure.place} 401", f"POST {plain.place} 401"}


async def test_files_elsewhere_go_through_the_proxy_that_the_config_names(
    tmp_path: Path, authority: trustme.CA
) -> None:
    async with connect_proxy(tmp_path) as proxy, vendor(authority) as secure, vendor(authority) as files:
        secure.files = files.url
        config = (
            f"egress: {{allow: ['{NAME}'], proxy: '{proxy.url}'}}\nchannels:\n"
            f"  - {{name: images, protocols: [images], base_url: '{secure.url}/v1', api_key: k, models: [image]}}\n"
        )
        async with running(parse(config, "umg.yaml", {}), tmp_path / "data") as made:
            assert await image(made.url, made.headers, "image") == 200
    assert set(proxy.calls()) == {f"CONNECT {files.place} 200"}
    assert files.paths == ["/files/a.png"]


async def test_a_gateway_in_a_process_of_its_own_takes_both_from_its_environment(
    tmp_path: Path, authority: trustme.CA
) -> None:
    file = tmp_path / "umg.yaml"
    async with connect_proxy(tmp_path) as proxy, vendor(authority) as secure:
        file.write_text(f"channels:\n{channel('secure', f'{secure.url}/v1')}")
        environment = {"https_proxy": proxy.url, "SSL_CERT_FILE": str(tmp_path / "authority.pem"), "UMG_API_KEY": KEY}
        async with serve(tmp_path / "data", "--config", str(file), environment=environment) as served:
            assert served.printed(r"proxy +(\S.*)") == f"{proxy.url} (https_proxy): secure"
            assert (await call(served.url, served.headers, "secure"))[0] == 200
    assert set(proxy.calls()) == {f"CONNECT {secure.place} 200"}
