"""Credentials of AWS by botocore's chain, each from a fake issuer: the signatures of calls are verified by botocore."""

import asyncio
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from pathlib import Path

import pytest
from botocore.credentials import SSOProvider
from botocore.tokens import SSOTokenProvider

from tests.support.providers.aws_issuer import (
    CHAT,
    CONTAINER_TOKEN,
    LOGIN,
    LONG_LIVED,
    REGION,
    ROLE,
    SERVICE,
    AwsIssuer,
)
from tests.support.providers.raw import PATIENT, failed
from tests.support.providers.server import serve_provider
from umg_grpc.base.errors import Failure
from umg_grpc.config import AwsAuth
from umg_grpc.upstream.http.signing.aws_credentials import AwsCredentials
from umg_grpc.upstream.http.signing.library_connections import LibraryConnections
from umg_grpc.upstream.http.signing.refreshed_credentials import RefreshedSigner
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.request import OutgoingRequest

START_URL = "https://company.example/start"
SHARED = f"""
[profile role]
role_arn = {ROLE}
source_profile = user
role_session_name = by-profile
[profile user]
aws_access_key_id = {LONG_LIVED[0]}
aws_secret_access_key = {LONG_LIVED[1]}
[profile login]
sso_start_url = {START_URL}
sso_region = {REGION}
sso_account_id = 123456789012
sso_role_name = Developer
[profile session]
sso_session = company
sso_account_id = 123456789012
sso_role_name = Developer
[sso-session company]
sso_start_url = {START_URL}
sso_region = {REGION}
sso_registration_scopes = sso:account:access
"""
PROGRAM = f"""#!/bin/sh
if mkdir "$0.first" 2> /dev/null; then cat "$0.fifo"; exit 1; fi
echo '{{"Version": 1, "AccessKeyId": "{LONG_LIVED[0]}", "SecretAccessKey": "{LONG_LIVED[1]}"}}'
"""
"""Program of a profile that does not return at its first start until the test lets it end."""
USER = {"AWS_ACCESS_KEY_ID": LONG_LIVED[0], "AWS_SECRET_ACCESS_KEY": LONG_LIVED[1]}


OF_THE_ENVIRONMENT = AwsAuth()


@dataclass(frozen=True)
class Way:
    id: str
    variables: Callable[[str, Path], dict[str, str]]
    """Variables of the environment, by the URL of the issuer and the home directory."""
    auth: AwsAuth = OF_THE_ENVIRONMENT
    reads: tuple[str, ...] = ()


WAYS = [
    Way("keys in the environment", lambda url, home: USER),
    Way("a profile with keys", lambda url, home: {"AWS_PROFILE": "user"}),
    Way(
        "a profile with a role",
        lambda url, home: {"AWS_PROFILE": "role"},
        reads=("AssumeRole by-profile",),
    ),
    Way("a profile of the config", lambda url, home: {}, AwsAuth(profile="role"), ("AssumeRole by-profile",)),
    Way(
        "a role of the config",
        lambda url, home: USER,
        AwsAuth(role_arn=ROLE, external_id="customer-7"),
        ("AssumeRole umg-a customer-7",),
    ),
    Way(
        "a web identity (IRSA)",
        lambda url, home: {
            "AWS_ROLE_ARN": ROLE,
            "AWS_ROLE_SESSION_NAME": "pod",
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(home / "token"),
        },
        reads=("AssumeRoleWithWebIdentity pod",),
    ),
    Way(
        "a container",
        lambda url, home: {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/container",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": CONTAINER_TOKEN,
        },
        reads=("container",),
    ),
    Way(
        "an instance (IMDSv2)",
        lambda url, home: {"AWS_EC2_METADATA_SERVICE_ENDPOINT": url, "AWS_EC2_METADATA_DISABLED": "false"},
        reads=("instance",),
    ),
    Way("single sign-on", lambda url, home: {"AWS_PROFILE": "login"}, reads=("sso 123456789012 Developer",)),
    Way(
        "single sign-on by a session",
        lambda url, home: {"AWS_PROFILE": "session"},
        reads=("sso 123456789012 Developer",),
    ),
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home directory with shared files, an identity's token and the token of a login; clear the environment."""
    (tmp_path / ".aws/sso/cache").mkdir(parents=True)
    (tmp_path / ".aws/config").write_text(SHARED)
    (tmp_path / "token").write_text("web-identity-token")
    until = (datetime.now(UTC) + timedelta(hours=8)).isoformat()
    login = {"startUrl": START_URL, "region": REGION, "accessToken": LOGIN, "expiresAt": until}
    for name in (START_URL, "company"):
        file = sha1(name.encode()).hexdigest()
        (tmp_path / f".aws/sso/cache/{file}.json").write_text(json.dumps(login))
    clear(monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(SSOProvider, "_SSO_TOKEN_CACHE_DIR", str(tmp_path / ".aws/sso/cache"))  # by the home at import
    monkeypatch.setattr(SSOTokenProvider, "_SSO_TOKEN_CACHE_DIR", str(tmp_path / ".aws/sso/cache"))
    return tmp_path


def clear(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def at(issuer: AwsIssuer, monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    """Set the variables, and those by which the library calls the fake issuer."""
    for name, value in {"AWS_ENDPOINT_URL_STS": issuer.url, "AWS_ENDPOINT_URL_SSO": issuer.url, **variables}.items():
        monkeypatch.setenv(name, value)


def signer(auth: AwsAuth, now: Callable[[], float] = time.time) -> RefreshedSigner:
    source = AwsCredentials(
        auth, region=REGION, service=SERVICE, session_name="umg-a", connections=LibraryConnections()
    )
    return RefreshedSigner(source, channel="a", now=now)


async def called(issuer: AwsIssuer, by: RefreshedSigner, client: Client) -> int:
    url = f"{issuer.url}/openai/v1/chat/completions"
    outgoing = OutgoingRequest(url, {"Content-Type": "application/json"}, json.dumps(CHAT).encode(), PATIENT)
    headers = {**outgoing.headers, **await by.headers(outgoing)}
    status, _, _ = await client.fetch(OutgoingRequest(url, headers, outgoing.body, PATIENT))
    return status


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.id)
async def test_calls_are_signed_with_the_credentials_that_the_library_finds(
    way: Way, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve_provider(AwsIssuer()) as issuer, Client.opened() as client:
        at(issuer, monkeypatch, **way.variables(issuer.url, home))
        by = signer(way.auth)
        assert [await called(issuer, by, client) for _ in range(3)] == [200] * 3, issuer.refusals
        assert issuer.reads == [*way.reads]
        assert by.token == ("" if not issuer.issued else next(iter(issuer.issued.values())).token)


async def test_a_web_identity_of_the_config_assumes_its_role(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve_provider(AwsIssuer()) as issuer, Client.opened() as client:
        at(issuer, monkeypatch)
        by = signer(AwsAuth(role_arn=ROLE, role_session_name="ci", web_identity_token_file=str(home / "token")))
        assert await called(issuer, by, client) == 200, issuer.refusals
        assert issuer.reads == ["AssumeRoleWithWebIdentity ci"]


async def test_without_credentials_nothing_is_sent(home: Path) -> None:
    for auth in (AwsAuth(), AwsAuth(role_arn=ROLE), AwsAuth(profile="missing")):
        error = await failed(signer(auth).headers(OutgoingRequest("http://127.0.0.1:9", {}, b"", PATIENT)))
        assert error.failure is Failure.NOT_SENT
        assert "channel a: no valid credentials of AWS" in error.message


async def test_a_program_that_hangs_is_started_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = home / "program"
    program.write_text(PROGRAM)
    program.chmod(0o700)
    os.mkfifo(home / "program.fifo")
    with (home / ".aws/config").open("a") as config:
        config.write(f"[profile program]\ncredential_process = {program}\n")
    late = [0.0]
    async with serve_provider(AwsIssuer()) as issuer, Client.opened() as client:
        at(issuer, monkeypatch)
        by = signer(AwsAuth(profile="program"), lambda: time.time() + late[0])
        short = Deadlines(connect=60, first_byte=60, idle=60, total=0.01)
        assert (await failed(by.headers(OutgoingRequest(issuer.url, {}, b"", short)))).failure is Failure.NOT_SENT
        fifo = await asyncio.to_thread(os.open, home / "program.fifo", os.O_WRONLY)  # once the program reads it
        late[0] = 31.0
        assert await called(issuer, by, client) == 200, issuer.refusals
        os.close(fifo)
