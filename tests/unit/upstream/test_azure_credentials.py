"""Tokens of Entra ID by azure-identity, each from a fake authority, workload issuer or machine."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.providers.azure_issuer import (
    APP_SERVICE_SECRET,
    AUDIENCE,
    CLIENT,
    FEDERATED_TOKEN,
    SECRET,
    TENANT,
    AzureIssuer,
    serve_azure,
)
from tests.support.providers.raw import PATIENT, failed
from umg_grpc.base.errors import Failure
from umg_grpc.config import AzureAuth
from umg_grpc.upstream.http.signing.azure_credentials import AzureCredentials
from umg_grpc.upstream.http.signing.library_connections import LibraryConnections
from umg_grpc.upstream.http.signing.refreshed_credentials import RefreshedSigner
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.request import OutgoingRequest

Variables = Callable[[AzureIssuer, Path], dict[str, str]]
APPLICATION = {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT}


def nothing(issuer: AzureIssuer, folder: Path) -> dict[str, str]:
    return {}


def instance(issuer: AzureIssuer, folder: Path) -> dict[str, str]:
    return {"AZURE_POD_IDENTITY_AUTHORITY_HOST": issuer.url}


@dataclass(frozen=True)
class Way:
    id: str
    read: str
    variables: Variables = nothing
    keys: Callable[[Path], dict[str, str]] = lambda _: {}
    """Keys of `auth`, by the folder."""


WAYS = [
    Way(
        "a secret in the environment",
        "secret",
        lambda issuer, _: APPLICATION | {"AZURE_CLIENT_SECRET": SECRET},
    ),
    Way("a secret in the config", "secret", keys=lambda _: _application(client_secret=SECRET)),
    Way(
        "a workload in the environment",
        "workload",
        lambda issuer, folder: (
            APPLICATION
            | {"AZURE_FEDERATED_TOKEN_FILE": str(folder / "federated"), "AZURE_AUTHORITY_HOST": issuer.authority}
        ),
    ),
    Way("a workload in the config", "workload", keys=lambda folder: _application(token_file=str(folder / "federated"))),
    Way("an instance", "instance", instance),
    Way("an identity of an instance", f"instance {CLIENT}", instance, lambda _: {"client_id": CLIENT}),
    Way(
        "App Service",
        "app service",
        lambda issuer, _: {"IDENTITY_ENDPOINT": f"{issuer.url}/app-service", "IDENTITY_HEADER": APP_SERVICE_SECRET},
    ),
]


def _application(**proof: str) -> dict[str, str]:
    return {"tenant_id": TENANT, "client_id": CLIENT, **proof}


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear the environment of credentials."""
    for name in [name for name in os.environ if name.startswith(("AZURE_", "IDENTITY_", "MSI_", "IMDS_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "federated").write_text(FEDERATED_TOKEN)


def signer(auth: AzureAuth, authorities: str | None = None) -> RefreshedSigner:
    source = AzureCredentials(auth, scope=f"{AUDIENCE}/.default", connections=LibraryConnections(None, authorities))
    return RefreshedSigner(source, channel="a")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.id)
async def test_calls_have_tokens_of_the_identity_that_the_library_finds(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = AzureIssuer()
    async with serve_azure(issuer, tmp_path) as authorities, Client.opened() as client:
        for name, value in way.variables(issuer, tmp_path).items():
            monkeypatch.setenv(name, value)
        by = signer(AzureAuth(**way.keys(tmp_path), authority=issuer.authority), authorities)
        for _ in range(2):
            outgoing = OutgoingRequest(f"{issuer.url}/openai/v1/responses", {}, b"{}", PATIENT)
            headers = await by.headers(outgoing)
            assert (await client.fetch(OutgoingRequest(outgoing.url, headers, b"{}", PATIENT)))[0] == 200
        assert issuer.reads[-1] == way.read, issuer.refusals
        assert len(set(issuer.reads)) == 1


async def test_a_refused_secret_is_a_failure_of_the_channel_and_in_no_message(tmp_path: Path) -> None:
    issuer = AzureIssuer()
    async with serve_azure(issuer, tmp_path) as authorities:
        auth = AzureAuth(tenant_id=TENANT, client_id=CLIENT, client_secret="wrong-secret", authority=issuer.authority)
        error = await failed(signer(auth, authorities).headers(OutgoingRequest(issuer.url, {}, b"", PATIENT)))
    assert error.failure is Failure.NOT_SENT
    assert "channel a: no valid credentials of Azure" in error.message
    assert "AADSTS7000215" in error.cause
    assert "wrong-secret" not in error.cause + error.message
