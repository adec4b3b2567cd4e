"""Tokens of Google Cloud by google-auth, each from a fake issuer: assertions are verified by google-auth's own decoder."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import google.auth.iam
import google.oauth2.credentials
import pytest
from google.auth.compute_engine import _metadata

from tests.support.providers.google_issuer import (
    SCOPE,
    SUBJECT_TOKEN,
    GoogleIssuer,
    account_file,
    user_file,
    workload_file,
)
from tests.support.providers.raw import PATIENT, failed
from tests.support.providers.server import serve_provider
from umg_grpc.base.errors import Failure
from umg_grpc.config import GoogleAuth
from umg_grpc.upstream.http.signing.google_credentials import GoogleCredentials
from umg_grpc.upstream.http.signing.library_connections import LibraryConnections
from umg_grpc.upstream.http.signing.refreshed_credentials import RefreshedSigner
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.request import OutgoingRequest

ENDPOINT = "_GOOGLE_OAUTH2_TOKEN_ENDPOINT"  # of all logins of users
FILE = "GOOGLE_APPLICATION_CREDENTIALS"
pytestmark = pytest.mark.filterwarnings("ignore:The load_credentials_from_file method is deprecated:DeprecationWarning")


@dataclass(frozen=True)
class Way:
    id: str
    content: Callable[[str, Path], str] | None
    """Content of the file with credentials, by the URL of the issuer and the directory; None without a file."""
    read: str
    auth: Callable[[str], GoogleAuth] = lambda _: GoogleAuth()
    """Config, by the name of the file."""
    is_in_environment: bool = True
    project: str | None = None


WAYS = [
    Way("an account", lambda url, _: account_file(url), f"account {SCOPE}"),
    Way(
        "an account in the config",
        lambda url, _: account_file(url),
        "account https://a https://b",
        lambda file: GoogleAuth(file=file, scopes=("https://a", "https://b"), quota_project="mine"),
        is_in_environment=False,
        project="mine",
    ),
    Way("a user", lambda url, _: user_file(url), "user", project="quota-of-the-file"),
    Way("a workload identity", lambda url, folder: workload_file(url, str(folder / "subject")), "workload"),
    Way("a machine", None, "machine"),
]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear the environment of credentials."""
    for name in [name for name in os.environ if name.startswith(("GOOGLE_", "GCE_", "CLOUDSDK_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", True)
    (tmp_path / "subject").write_text(SUBJECT_TOKEN)


def signer(auth: GoogleAuth) -> RefreshedSigner:
    return RefreshedSigner(GoogleCredentials(auth, LibraryConnections()), channel="a")


async def called(issuer: GoogleIssuer, by: RefreshedSigner, client: Client) -> tuple[int, str | None]:
    """Call the service. Return the status, and the project that the call names."""
    outgoing = OutgoingRequest(f"{issuer.url}/v1/m:generateContent", {}, b"{}", PATIENT)
    headers = await by.headers(outgoing)
    status, _, body = await client.fetch(OutgoingRequest(outgoing.url, headers, outgoing.body, PATIENT))
    return status, json.loads(body).get("project")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.id)
async def test_calls_have_tokens_of_the_credentials_that_the_library_finds(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve_provider(GoogleIssuer()) as issuer, Client.opened() as client:
        monkeypatch.setattr(google.oauth2.credentials, ENDPOINT, f"{issuer.url}/token")
        file = tmp_path / "credentials.json"
        if way.content is not None:
            file.write_text(way.content(issuer.url, tmp_path))
            if way.is_in_environment:
                monkeypatch.setenv(FILE, str(file))
        else:
            host = issuer.url.removeprefix("http://")
            monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", False)
            monkeypatch.setattr(
                _metadata, "_GCE_METADATA_HOST", host
            )  # GCE_METADATA_HOST, which it reads at its import
            monkeypatch.setenv("GCE_METADATA_IP", host)
        by = signer(way.auth(str(file)))
        assert [await called(issuer, by, client) for _ in range(2)] == [(200, way.project)] * 2, issuer.refusals
        assert issuer.reads == [way.read]


async def test_the_projects_header_of_a_channel_is_sent_in_place_of_that_of_the_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve_provider(GoogleIssuer()) as issuer:
        monkeypatch.setattr(google.oauth2.credentials, ENDPOINT, f"{issuer.url}/token")
        (tmp_path / "user.json").write_text(user_file(issuer.url))
        by = signer(GoogleAuth(file=str(tmp_path / "user.json")))
        sent = await by.headers(OutgoingRequest(issuer.url, {"x-goog-user-project": "own"}, b"", PATIENT))
        assert [*sent] == ["Authorization"]


async def test_another_account_is_impersonated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve_provider(GoogleIssuer()) as issuer, Client.opened() as client:
        monkeypatch.setattr(google.auth.iam, "_IAM_ENDPOINT", f"{issuer.url}/impersonation")
        (tmp_path / "account.json").write_text(account_file(issuer.url))
        by = signer(GoogleAuth(file=str(tmp_path / "account.json"), impersonate="other@p.example"))
        assert await called(issuer, by, client) == (200, None), issuer.refusals
        assert [each.split()[0] for each in issuer.reads] == ["account", "impersonation"]


async def test_a_replaced_file_is_read_after_a_failure(tmp_path: Path) -> None:
    async with serve_provider(GoogleIssuer(statuses=[400])) as issuer, Client.opened() as client:
        file = tmp_path / "c.json"
        file.write_text(account_file(issuer.url))
        source = GoogleCredentials(GoogleAuth(file=str(file)), LibraryConnections())
        by = RefreshedSigner(source, channel="a", now=iter(range(0, 1000, 10)).__next__)
        error = await failed(by.headers(OutgoingRequest(issuer.url, {}, b"", PATIENT)))
        assert error.failure is Failure.NOT_SENT
        assert "RefreshError" in error.cause
        (tmp_path / "subject").write_text(SUBJECT_TOKEN)
        file.write_text(workload_file(issuer.url, str(tmp_path / "subject")))
        assert (await called(issuer, by, client))[0] == 200
        assert issuer.reads == ["workload"]


@pytest.mark.parametrize("content", ["", "{}", '{"type": "unknown"}'])
async def test_an_unusable_file_is_a_failure_of_the_channel(tmp_path: Path, content: str) -> None:
    (tmp_path / "c.json").write_text(content)
    for auth in (GoogleAuth(file=str(tmp_path / "c.json")), GoogleAuth(file="/missing"), GoogleAuth()):
        error = await failed(signer(auth).headers(OutgoingRequest("http://127.0.0.1:9", {}, b"", PATIENT)))
        assert error.failure is Failure.NOT_SENT
        assert "channel a: no valid credentials of Google Cloud" in error.message
