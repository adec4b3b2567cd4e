"""Config from the keys in the environment: channels, addresses, comments."""

import re
from dataclasses import dataclass

import pytest

from umg_grpc.config import Auth, AwsAuth, AzureAuth, GoogleAuth, parse
from umg_grpc.config.importers.from_environment import config_text, found_providers
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS

SECRET = "key-that-must-not-be-shown"


def served(environment: dict[str, str]) -> list[str]:
    return [channel.name for channel in parse(config_text(environment), "umg.yaml", environment).channels]


def test_a_provider_with_a_key_is_a_channel_that_refers_to_the_key_by_its_preset() -> None:
    environment = {"OPENAI_API_KEY": SECRET, "GROQ_API_KEY": SECRET}
    assert served(environment) == ["openai", "groq"]
    assert SECRET not in config_text(environment)


def test_without_a_key_the_local_models_are_served() -> None:
    assert served({}) == ["local"]
    assert served({"OPENAI_API_KEY": ""}) == ["local"]


def test_every_other_provider_is_a_comment_that_becomes_a_channel_without_its_mark() -> None:
    text = config_text({})
    names = re.findall(r"^  # - \{?provider: ([\w.-]+)", text, re.MULTILINE)
    assert names == list(PROVIDER_PRESETS)
    active = re.sub(r"^  # - ", "  - ", text, flags=re.MULTILINE).replace("<", "").replace(">", "")
    variables = {
        variable for preset in PROVIDER_PRESETS.values() for names in preset.keys for variable in names.split(":")
    }
    environment = dict.fromkeys(variables, "access:secret")
    environment["GOOGLE_APPLICATION_CREDENTIALS"] = "account.json"
    assert [channel.name for channel in parse(active, "umg.yaml", environment).channels] == ["local", *PROVIDER_PRESETS]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434/v1"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        (":8000", "http://localhost:8000/v1"),
        ("0.0.0.0:11434", "http://localhost:11434/v1"),
        ("http://gpu.example", "http://gpu.example:11434/v1"),
        ("https://gpu.example:443/", "https://gpu.example:443/v1"),
        ("[::1]:9", "http://[::1]:9/v1"),
    ],
)
def test_the_address_of_ollama_is_read_as_its_own_clients_do(host: str, expected: str) -> None:
    [channel] = parse(config_text({"OLLAMA_HOST": host}), "umg.yaml", {}).channels
    assert (channel.name, channel.base_url) == ("ollama", expected)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (
            {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/"},
            ["https://mine.openai.azure.com/openai/v1"],
        ),
        (
            {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/openai/v1/"},
            ["https://mine.openai.azure.com/openai/v1"],
        ),
        (
            {
                "GOOGLE_APPLICATION_CREDENTIALS": "a.json",
                "GOOGLE_CLOUD_PROJECT": "p",
                "GOOGLE_CLOUD_LOCATION": "europe-west4",
            },
            ["https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/publishers/google"],
        ),
        (
            {
                "GOOGLE_APPLICATION_CREDENTIALS": "a.json",
                "ANTHROPIC_VERTEX_PROJECT_ID": "p",
                "CLOUD_ML_REGION": "global",
            },
            ["https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/anthropic"],
        ),
        (
            {"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "us-east-1"},
            [
                "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1",
                "https://bedrock-runtime.us-east-1.amazonaws.com/anthropic/v1",
                "https://bedrock-runtime.us-east-1.amazonaws.com",
                "https://bedrock-runtime.us-east-1.amazonaws.com",
            ],
        ),
    ],
    ids=["azure", "azure with the path of its API", "vertex", "vertex-anthropic", "bedrock"],
)
def test_an_address_of_an_account_is_made_from_its_variables(environment: dict[str, str], expected: list[str]) -> None:
    channels = parse(config_text(environment), "umg.yaml", environment).channels
    assert [channel.base_url for channel in channels] == expected


def test_a_key_of_several_platforms_makes_the_channel_of_one() -> None:
    environment = {"MOONSHOT_API_KEY": "k", "ARK_API_KEY": "k", "GITHUB_TOKEN": "k"}
    assert [found.name for found in found_providers(environment)] == ["moonshot", "ark"]


def test_a_key_in_two_parts_is_found_by_both_variables() -> None:
    assert found_providers({"VOLC_ACCESSKEY": "a"}) == []
    [found] = found_providers({"VOLC_ACCESSKEY": "a", "VOLC_SECRETKEY": "s"})
    assert (found.name, found.variable) == ("jimeng", "VOLC_ACCESSKEY and VOLC_SECRETKEY")


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("global", "aiplatform.googleapis.com"),
        ("us", "aiplatform.us.rep.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
        ("asia-east1", "asia-east1-aiplatform.googleapis.com"),
    ],
)
def test_a_region_of_vertex_has_its_host(region: str, host: str) -> None:
    environment = {
        "GOOGLE_APPLICATION_CREDENTIALS": "a.json",
        "GOOGLE_CLOUD_PROJECT": "p",
        "GOOGLE_CLOUD_LOCATION": region,
    }
    [channel] = parse(config_text(environment), "umg.yaml", environment).channels
    assert channel.base_url == f"https://{host}/v1/projects/p/locations/{region}/publishers/google"


def test_a_key_without_the_address_of_its_account_makes_no_channel() -> None:
    assert found_providers({"AZURE_OPENAI_API_KEY": "k", "AWS_BEARER_TOKEN_BEDROCK": "k"}) == []


def test_a_variable_cannot_add_keys_to_the_config() -> None:
    environment = {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://a/${HOME}\n    weight: 7 #"}
    assert [line for line in config_text(environment).splitlines() if line.strip().startswith("weight")] == []
    assert "$${HOME}" in config_text(environment)


@dataclass(frozen=True)
class CloudCase:
    id: str
    environment: dict[str, str]
    providers: list[str]
    auth: Auth


@pytest.mark.parametrize(
    "case",
    [
        CloudCase(
            "a profile of AWS",
            {"AWS_PROFILE": "p", "AWS_REGION": "us-west-2"},
            ["bedrock", "bedrock-anthropic", "bedrock-converse", "bedrock-vectors"],
            AwsAuth(),
        ),
        CloudCase(
            "keys of AWS",
            {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_DEFAULT_REGION": "us-west-2"},
            ["bedrock", "bedrock-anthropic", "bedrock-converse", "bedrock-vectors"],
            AwsAuth(),
        ),
        CloudCase(
            "a project of Google Cloud",
            {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "global"},
            ["vertex"],
            GoogleAuth(),
        ),
        CloudCase(
            "an application of Entra ID",
            {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com"},
            ["azure"],
            AzureAuth(),
        ),
    ],
    ids=lambda case: case.id,
)
def test_credentials_of_a_cloud_are_found_if_its_library_is_installed(case: CloudCase) -> None:
    channels = parse(config_text(case.environment, ["aws", "google", "azure"]), "umg.yaml", case.environment).channels
    found = [channel.name for channel in channels if channel.name in case.providers]
    assert found == case.providers
    assert {channel.auth for channel in channels} == {case.auth}
    assert found_providers(case.environment) == []
