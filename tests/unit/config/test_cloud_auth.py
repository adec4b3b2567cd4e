"""Kinds of `auth` with credentials of a cloud's own library: their keys, and the packages that they need."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.service_accounts import key_file
from umg_grpc.cli.commands import app
from umg_grpc.config import AwsAuth, AzureAuth, Channel, ConfigError, GoogleAuth, parse
from umg_grpc.config.channel_credentials import signature_scope
from umg_grpc.knowledge.cloud_credentials import rejects_credential, token_scope
from umg_grpc.process.channel_file_checks import check_files, installed_clouds
from umg_grpc.process.exposure_checks import unencrypted_host

AWS = "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1"
OPENAI = "https://r.openai.azure.com/openai/v1"


def channel(auth: str, base_url: str = AWS, further: str = "") -> Channel:
    text = f"channels: [{{name: a, protocols: [chat], base_url: '{base_url}', models: [m], auth: {auth}{further}}}]"
    [made] = parse(text, "/etc/umg/umg.yaml", {}).channels
    return made


@dataclass(frozen=True)
class Valid:
    id: str
    auth: str
    expected: AwsAuth | GoogleAuth | AzureAuth
    base_url: str = AWS


@pytest.mark.parametrize(
    "case",
    [
        Valid("AWS", "{kind: aws}", AwsAuth()),
        Valid(
            "another host, with a role",
            "{kind: aws, role_arn: r, external_id: e, web_identity_token_file: token, region: eu-west-1, service: bedrock}",
            AwsAuth(
                role_arn="r",
                external_id="e",
                web_identity_token_file="/etc/umg/token",
                region="eu-west-1",
                service="bedrock",
            ),
            "https://vpce.example/openai/v1",
        ),
        Valid("Google", "{kind: google}", GoogleAuth()),
        Valid(
            "a file",
            "{kind: google, file: adc.json, impersonate: a@b.example, scopes: [x]}",
            GoogleAuth(file="/etc/umg/adc.json", impersonate="a@b.example", scopes=("x",)),
        ),
        Valid("Azure", "{kind: azure}", AzureAuth(), OPENAI),
        Valid("a scope", "{kind: azure, scope: api://gateway/.default}", AzureAuth(scope="api://gateway/.default")),
        Valid(
            "a workload",
            "{kind: azure, tenant_id: t, client_id: c, token_file: token}",
            AzureAuth(tenant_id="t", client_id="c", token_file="/etc/umg/token"),
            OPENAI,
        ),
    ],
    ids=lambda case: case.id,
)
def test_no_key_is_needed(case: Valid) -> None:
    made = channel(case.auth, case.base_url)
    assert (made.auth, made.api_keys) == (case.expected, ())
    if not isinstance(case.expected, GoogleAuth) or case.expected.file is None:
        check_files(made)


@dataclass(frozen=True)
class Invalid:
    id: str
    auth: str
    problem: str
    base_url: str = AWS
    further: str = ""


@pytest.mark.parametrize(
    "case",
    [
        Invalid("a key", "{kind: aws}", "api_key: expected no key beside `auth: {kind: aws}`", further=", api_key: k"),
        Invalid("an unknown key", "{kind: aws, role: x}", "auth.role: `role` is not known here"),
        Invalid("a host without a region", "{kind: aws}", "auth: expected `region` and `service`", "https://a.example"),
        Invalid("no role", "{kind: aws, external_id: e}", "auth.external_id: expected only beside `role_arn`"),
        Invalid("a host without a scope", "{kind: azure}", "auth: expected `scope`, e.g. https://cognitiveservices"),
        Invalid(
            "a secret alone",
            "{kind: azure, client_secret: s}",
            "auth.client_secret: expected with `tenant_id` and `client_id` beside it",
            OPENAI,
        ),
        Invalid(
            "two proofs",
            "{kind: azure, tenant_id: t, client_id: c, client_secret: s, token_file: f}",
            "auth.token_file: expected only one of",
            OPENAI,
        ),
        Invalid(
            "an authority without TLS",
            "{kind: azure, authority: 'http://login.example'}",
            "auth.authority: expected a URL with https",
            OPENAI,
        ),
        Invalid("no scopes", "{kind: google, scopes: []}", "auth.scopes: expected"),
    ],
    ids=lambda case: case.id,
)
def test_unusable_keys_are_reported_by_their_path(case: Invalid) -> None:
    with pytest.raises(ConfigError) as caught:
        channel(case.auth, case.base_url, case.further)
    assert case.problem in str(caught.value)


@pytest.mark.parametrize(
    ("auth", "package", "base_url"),
    [("aws", "botocore", AWS), ("google", "google.auth", AWS), ("azure", "azure.identity", OPENAI)],
)
def test_a_missing_package_is_named_with_the_channel(
    auth: str, package: str, base_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    made = channel(f"{{kind: {auth}}}", base_url)
    with pytest.raises(OSError, match=rf"channel a: .*pip install 'unified-model-gateway\[{auth}\]'"):
        check_files(made)


def test_tokens_without_tls_are_warned_of() -> None:
    assert unencrypted_host(channel("{kind: google}", "http://vertex.example/v1")) == "vertex.example"


def test_the_scope_of_a_token_is_that_of_its_host() -> None:
    assert token_scope("r.openai.azure.com") == "https://cognitiveservices.azure.com/.default"
    assert token_scope("r.services.ai.azure.com") == "https://ai.azure.com/.default"
    assert token_scope("openai.azure.com.example") is None


def test_only_rejections_of_a_credential_replace_it() -> None:
    assert rejects_credential(401, "")
    assert rejects_credential(403, "ExpiredTokenException:http://internal.amazon.com/coral/")
    assert not rejects_credential(403, "AccessDeniedException")
    assert not rejects_credential(400, "ExpiredTokenException")


def test_files_are_relative_to_the_config(tmp_path: Path) -> None:
    text = (
        f"channels: [{{name: a, protocols: [chat], base_url: '{AWS}', models: [m], auth: {{kind: google, file: f}}}}]"
    )
    [made] = parse(text, str(tmp_path / "umg.yaml"), {}).channels
    assert made.auth == GoogleAuth(file=str(tmp_path / "f"))


def test_a_file_that_has_no_credentials_is_named_without_its_content(tmp_path: Path) -> None:
    made = channel(f"{{kind: google, file: {tmp_path}/c.json}}")
    with pytest.raises(OSError, match=r"channel a: auth\.file .*c\.json: No such file"):
        check_files(made)
    (tmp_path / "c.json").write_text('{"private_key": "secret"}')
    with pytest.raises(OSError, match=r"expected the JSON file of credentials, with `type`") as caught:
        check_files(made)
    assert "secret" not in str(caught.value)


def test_the_file_of_a_service_account_needs_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.auth", None)
    (tmp_path / "c.json").write_text(key_file("https://oauth2.googleapis.com"))
    check_files(channel(f"{{kind: google, file: {tmp_path}/c.json}}"))
    for more in ("impersonate: a@b.example", "quota_project: p"):
        with pytest.raises(OSError, match="pip install"):
            check_files(channel(f"{{kind: google, file: {tmp_path}/c.json, {more}}}"))


def test_check_names_the_channel_whose_library_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore", None)
    file = tmp_path / "umg.yaml"
    file.write_text(f"channels: [{{provider: bedrock, base_url: '{AWS}'}}]")
    result = CliRunner().invoke(app, ["check", str(file)], env={"AWS_PROFILE": "p", "AWS_BEARER_TOKEN_BEDROCK": ""})
    assert result.exit_code == 2
    command = "pip install 'unified-model-gateway[aws]'"
    expected = f"channel bedrock: auth {{kind: aws}} needs a package that is not installed: {command}"
    assert result.output == f"{file}: {expected}\n"


def test_providers_of_a_cloud_without_its_library_are_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    assert installed_clouds() == ("aws", "google")


@pytest.mark.parametrize("service", ["bedrock-runtime", "bedrock-runtime-fips", "bedrock-agent-runtime"])
def test_services_of_bedrock_have_one_name_in_signatures(service: str) -> None:
    host = f"https://{service}.us-gov-west-1.amazonaws.com"
    assert signature_scope(AwsAuth(), host) == ("us-gov-west-1", "bedrock")
