"""Proxies and certificate authorities of a channel, as the libraries of clouds use them for issuers of credentials."""

from pathlib import Path

import pytest

from tests.support.connect_proxy import connect_proxy
from tests.support.providers.aws_issuer import LONG_LIVED, REGION, ROLE, SERVICE, AwsIssuer
from tests.support.providers.azure_issuer import AUDIENCE, CLIENT, SECRET, TENANT, AzureIssuer, serve_azure
from tests.support.providers.google_issuer import GoogleIssuer, account_file
from tests.support.providers.raw import PATIENT, failed
from tests.support.providers.server import serve_provider
from umg_grpc.config import AwsAuth, AzureAuth, GoogleAuth
from umg_grpc.upstream.http.signing.aws_credentials import AwsCredentials
from umg_grpc.upstream.http.signing.azure_credentials import AzureCredentials
from umg_grpc.upstream.http.signing.google_credentials import GoogleCredentials
from umg_grpc.upstream.http.signing.library_connections import LibraryConnections
from umg_grpc.upstream.http.signing.refreshed_credentials import CredentialSource, RefreshedSigner
from umg_grpc.upstream.http1.request import OutgoingRequest

DEAD_ADDRESS = "http://127.0.0.1:9"
REQUEST = OutgoingRequest("https://provider.example/", {}, b"", PATIENT)
pytestmark = pytest.mark.filterwarnings("ignore:The load_credentials_from_file method is deprecated:DeprecationWarning")


@pytest.fixture
def dead_proxy(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Name a proxy in the environment that does not answer."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, DEAD_ADDRESS)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


async def headers(source: CredentialSource) -> list[str]:
    """Return the names of the headers of a request that the credentials authenticate."""
    return [*await RefreshedSigner(source, channel="a").headers(REQUEST)]


def azure(issuer: AzureIssuer, connections: LibraryConnections) -> AzureCredentials:
    auth = AzureAuth(tenant_id=TENANT, client_id=CLIENT, client_secret=SECRET, authority=issuer.authority)
    return AzureCredentials(auth, scope=f"{AUDIENCE}/.default", connections=connections)


async def test_a_direct_channel_leaves_out_the_proxy_of_the_environment(
    dead_proxy: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entra = AzureIssuer()
    async with (
        serve_provider(AwsIssuer()) as sts,
        serve_provider(GoogleIssuer()) as tokens,
        serve_azure(entra, tmp_path) as authorities,
    ):
        dead_proxy.setenv("AWS_ACCESS_KEY_ID", LONG_LIVED[0])
        dead_proxy.setenv("AWS_SECRET_ACCESS_KEY", LONG_LIVED[1])
        dead_proxy.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        (tmp_path / "account.json").write_text(account_file(tokens.url))
        direct = LibraryConnections("", authorities)
        role = AwsAuth(role_arn=ROLE)
        sources = [
            AwsCredentials(role, region=REGION, service=SERVICE, session_name="umg", connections=direct),
            GoogleCredentials(GoogleAuth(file=str(tmp_path / "account.json")), direct),
            azure(entra, direct),
        ]
        for source in sources:
            assert "Authorization" in await headers(source)
        assert (len(sts.reads), len(tokens.reads), len(entra.reads)) == (1, 1, 1)
        assert "ProxyError" in (await failed(headers(GoogleCredentials(sources[1]._auth, LibraryConnections())))).cause


async def test_the_proxy_of_a_channel_is_used_for_issuers_with_tls(tmp_path: Path) -> None:
    entra = AzureIssuer()
    async with serve_azure(entra, tmp_path) as authorities, connect_proxy(tmp_path, needs_credentials=True) as proxy:
        assert await headers(azure(entra, LibraryConnections(proxy.with_credentials(), authorities))) == [
            "Authorization"
        ]
    host = entra.authority.removeprefix("https://")
    assert {call for call in proxy.calls() if call.startswith("CONNECT")} == {f"CONNECT {host} 200"}


async def test_an_issuer_with_an_unknown_certificate_gets_no_secret(tmp_path: Path) -> None:
    entra = AzureIssuer()
    async with serve_azure(entra, tmp_path):
        error = await failed(headers(azure(entra, LibraryConnections())))
    assert "CERTIFICATE_VERIFY_FAILED" in error.cause
    assert entra.received == []


async def test_the_authorities_of_the_environment_hold_for_issuers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entra = AzureIssuer()
    async with serve_azure(entra, tmp_path) as authorities:
        monkeypatch.setenv("SSL_CERT_FILE", authorities)
        assert await headers(azure(entra, LibraryConnections())) == ["Authorization"]
