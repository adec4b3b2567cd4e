"""Protocols of a channel at other addresses than its `base_url`: written in the file, or by a preset."""

from dataclasses import dataclass

import pytest

from umg_grpc.config import Channel, parse
from umg_grpc.config.yaml_document import ConfigError

ANTHROPIC = "https://api.deepseek.com/anthropic/v1"

VARIABLES = {"DEEPSEEK_API_KEY": "k", "DATABRICKS_TOKEN": "k", "HOST": "https://host.example/"}


def channel(text: str) -> Channel:
    return parse(f"channels:\n- {text}", "umg.yaml", VARIABLES).channels[0]


@dataclass(frozen=True)
class Written:
    id: str
    text: str
    protocols: tuple[str, ...]
    addresses: tuple[str, ...]


WRITTEN = [
    Written(
        "a preset's own",
        "{provider: deepseek}",
        ("chat", "messages", "responses"),
        ("https://api.deepseek.com/v1", ANTHROPIC, "https://api.deepseek.com/v1"),
    ),
    Written(
        "a variable that ends in a slash",
        "{name: a, protocols: [chat], models: [m], base_url: '${HOST}/openai/v1'}",
        ("chat",),
        ("https://host.example/openai/v1",),
    ),
    Written("one protocol of a preset", "{provider: deepseek, protocols: [messages]}", ("messages",), (ANTHROPIC,)),
    Written(
        "none beside the URL of another server",
        "{provider: deepseek, base_url: https://relay.example/v1}",
        ("chat", "responses"),
        ("https://relay.example/v1",) * 2,
    ),
    Written(
        "one protocol of another server",
        "{provider: deepseek, protocols: [messages], base_url: https://relay.example/v1}",
        ("messages",),
        ("https://relay.example/v1",),
    ),
    Written(
        "beside the URL of another server",
        "{provider: deepseek, base_url: https://relay.example/v1, base_urls: {messages: https://relay.example/m/v1}}",
        ("chat", "messages", "responses"),
        ("https://relay.example/v1", "https://relay.example/m/v1", "https://relay.example/v1"),
    ),
    Written(
        "with the parts of an account",
        "{provider: databricks, base_url: https://acme.cloud.databricks.com/serving-endpoints, protocols: [messages]}",
        ("messages",),
        ("https://acme.cloud.databricks.com/serving-endpoints/anthropic/v1",),
    ),
    Written(
        "without a preset",
        "{name: a, protocols: [chat, messages], models: [m], base_url: https://a/v1, base_urls: {messages: https://a/m/}}",
        ("chat", "messages"),
        ("https://a/v1", "https://a/m"),
    ),
]


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case.id)
def test_a_protocol_has_its_address(case: Written) -> None:
    made = channel(case.text)
    assert made.protocols == case.protocols
    assert tuple(map(made.address, made.protocols)) == case.addresses


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        ("{embeddings: https://a/v1}", "base_urls.embeddings: expected one of the channel's protocols: chat, messages"),
        ("{messages: https://a/v1/messages}", "base_urls.messages: expected https://a/v1: `messages` adds /messages"),
        ("{messages: a}", "base_urls.messages: expected"),
    ],
)
def test_an_unusable_address_of_a_protocol_is_named(urls: str, expected: str) -> None:
    text = f"{{name: a, protocols: [chat, messages], models: [m], base_url: https://a/v1, base_urls: {urls}}}"
    with pytest.raises(ConfigError, match=expected.replace("[", r"\[")):
        channel(text)


def test_the_list_of_models_is_that_of_the_protocols_at_the_base_url() -> None:
    urls = "{chat: https://a/v1}"
    made = channel(f"{{name: a, protocols: [chat, messages], models: [m], base_url: https://a, base_urls: {urls}}}")
    assert made.listing_protocols == ("messages",)


VERTEX = {"GOOGLE_APPLICATION_CREDENTIALS": "account.json"}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (
            "{provider: vertex-anthropic, account: {project: p-1, region: eu}}",
            "https://aiplatform.eu.rep.googleapis.com/v1/projects/p-1/locations/eu/publishers/anthropic",
        ),
        (
            "{provider: vertex, account: {project: p-1, region: europe-west4}}",
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4/publishers/google",
        ),
        ("{provider: azure, api_key: k, account: {resource: mine}}", "https://mine.openai.azure.com/openai/v1"),
    ],
)
def test_an_account_fills_in_the_parts_of_an_address(text: str, address: str) -> None:
    [made] = parse(f"channels:\n- {text}", "umg.yaml", VERTEX).channels
    assert made.base_url == address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{provider: vertex, account: {region: eu}}", "account: expected `project`, too"),
        (
            "{provider: vertex, account: {project: p, region: eu, zone: a}}",
            "account.zone: expected region or project",
        ),
        ("{provider: azure, api_key: k, account: {resource: a/b}}", "account.resource: expected letters, digits"),
        ("{provider: azure, api_key: k, account: {resource: 'a@b'}}", "account.resource: expected letters, digits"),
        (
            "{provider: azure, api_key: k, account: {resource: r.openai.azure.com}}",
            "account.resource: expected one label of the host, r",
        ),
        (
            "{provider: azure, api_key: k, account: {resource: a}, base_url: https://a}",
            "account: expected either `account` or `base_url`",
        ),
        ("{provider: openai, api_key: k, account: {region: eu}}", "account: expected no account"),
        (
            "{name: a, protocols: [chat], models: [m], base_url: https://a, account: {b: c}}",
            "account: expected only with",
        ),
    ],
)
def test_an_unusable_account_is_named(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(f"channels:\n- {text}", "umg.yaml", VERTEX)
    assert expected in str(caught.value)


INCOMPLETE = {
    "an endpoint of Azure": ("azure", "https://r.openai.azure.com/", "https://r.openai.azure.com/openai/v1"),
    "another host of Azure": ("azure", "https://r.cognitiveservices.azure.com", "https://r.cognitiveservices.azure.com/openai/v1"),
    "half of a path": ("azure", "https://r.openai.azure.com/openai", "https://r.openai.azure.com/openai/v1"),
    "Claude at Bedrock": ("bedrock-anthropic", "https://bedrock-runtime.us-east-1.amazonaws.com", "https://bedrock-runtime.us-east-1.amazonaws.com/anthropic/v1"),
    "a host of Vertex AI": ("vertex-anthropic", "https://us-east5-aiplatform.googleapis.com", "https://us-east5-aiplatform.googleapis.com/v1/projects/<project>/locations/<region>/publishers/anthropic"),
    "the global host of Vertex AI": ("vertex", "https://aiplatform.googleapis.com/v1", "https://aiplatform.googleapis.com/v1/projects/<project>/locations/<region>/publishers/google"),
}  # fmt: skip


@pytest.mark.parametrize(("provider", "written", "expected"), INCOMPLETE.values(), ids=INCOMPLETE)
def test_an_address_without_the_path_of_its_api_is_named(provider: str, written: str, expected: str) -> None:
    text = f"channels:\n- {{provider: {provider}, base_url: '{written}', api_key: k, models: [m]}}"
    with pytest.raises(ConfigError) as caught:
        parse(text, "umg.yaml", VERTEX)
    assert f"base_url: expected {expected}, below which" in str(caught.value)


PATHS = {
    "a relay": ("azure", "https://relay.example"),
    "deployments": ("azure", "https://r.openai.azure.com/openai/deployments"),
    "all makers at Bedrock": ("bedrock-converse", "https://bedrock-runtime.us-east-1.amazonaws.com"),
    "a vendor without an account": ("deepseek", "https://api.deepseek.com"),
}


@pytest.mark.parametrize(("provider", "written"), PATHS.values(), ids=PATHS)
def test_an_address_with_another_path_is_taken(provider: str, written: str) -> None:
    text = f"channels:\n- {{provider: {provider}, base_url: '{written}', api_key: k, models: [m], query: {{api-version: 2024-10-21}}}}"
    [made] = parse(text, "umg.yaml", {}).channels
    assert made.base_url == written


@pytest.mark.parametrize(("host", "is_named"), [("r.openai.azure.com", True), ("relay.example", False)])
def test_deployments_of_azure_need_a_version(host: str, is_named: bool) -> None:
    text = f"channels:\n- {{provider: azure, base_url: 'https://{host}/openai/deployments', api_key: k, protocols: [chat], models: [m]}}"
    if not is_named:
        assert parse(text, "umg.yaml", {}).channels
        return
    with pytest.raises(ConfigError) as caught:
        parse(text, "umg.yaml", {})
    assert "channels[0].query: expected `api-version` with a version, for example 2024-10-21" in str(caught.value)
