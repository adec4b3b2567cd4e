"""Presets of providers: the values of `provider`, and their replacement by values of the file."""

import re
from typing import Any

import pytest

from umg_grpc.config import (
    AccessKeyAuth,
    AwsAuth,
    AzureAuth,
    BearerAuth,
    Channel,
    GoogleAuth,
    HeaderAuth,
    JwtAuth,
    NoAuth,
    parse,
)
from umg_grpc.config.channel_section import served_protocols
from umg_grpc.config.value_parsers import PRINTABLE_TEXT
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS, SERVICE_ACCOUNT_FILE, Provider

BEDROCK = "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1"
KEY = "access:secret"


def channel(text: str, **environment: str) -> Channel:
    return parse(f"channels:\n- {text}", "umg.yaml", environment).channels[0]


def filled(url: str) -> str:
    return url.replace("<", "my-").replace(">", "")


def minimal(name: str, preset: Provider) -> tuple[str, dict[str, str]]:
    """Return the shortest channel with the preset, and the environment that it needs."""
    url = "" if preset.is_complete else f", base_url: '{filled(preset.base_url)}'"
    environment: dict[str, str] = {SERVICE_ACCOUNT_FILE: "account.json"} if preset.uses_service_account else {}
    if preset.needs_key:
        environment |= dict(
            zip(preset.keys[-1].split(":"), KEY.split(":") if ":" in preset.keys[-1] else [KEY], strict=True)
        )
    return f"{{provider: {name}{url}}}", environment


@pytest.mark.parametrize("name", PROVIDER_PRESETS)
def test_a_preset_and_its_key_in_the_environment_are_a_complete_channel(name: str) -> None:
    preset = PROVIDER_PRESETS[name]
    text, environment = minimal(name, preset)
    made = channel(text, **environment)
    assert made.name == name
    assert made.protocols == preset.protocols
    assert [(each.id, each.upstream, each.family) for each in made.models] == [
        (each.id, each.upstream, each.family) for each in preset.models
    ]
    assert made.base_url == filled(preset.base_url)
    assert made.base_urls == {protocol: filled(url) for protocol, url in preset.base_urls.items()}
    assert made.api_keys == ((KEY,) if preset.needs_key else ())
    assert made.max_inputs == preset.max_inputs


@pytest.mark.parametrize("name", PROVIDER_PRESETS)
def test_a_preset_is_consistent(name: str) -> None:
    preset = PROVIDER_PRESETS[name]
    assert set(preset.protocols) <= set(served_protocols())
    assert re.fullmatch(r"https?://[^/]+(/.*[^/])?", preset.base_url)
    assert set(preset.base_urls) <= set(preset.protocols)
    assert all(re.fullmatch(r"https?://[^/]+(/.*[^/])?", url) for url in preset.base_urls.values())
    assert preset.source.startswith("https://")
    assert PRINTABLE_TEXT.fullmatch(preset.source)
    assert preset.uses_service_account or preset.keys or not preset.needs_key
    assert preset.vendor != name
    assert not preset.vendor or preset.vendor in PROVIDER_PRESETS


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("{provider: openai, api_key: k}", {"OPENAI_API_KEY": "other"}, {"api_keys": ("k",)}),
        ("{provider: openai, name: mine}", {"OPENAI_API_KEY": "k"}, {"name": "mine"}),
        ("{provider: openai, protocols: [chat]}", {"OPENAI_API_KEY": "k"}, {"protocols": ("chat",)}),
        (
            "{provider: openai, base_url: https://proxy.example/v1}",
            {"OPENAI_API_KEY": "k"},
            {"base_url": "https://proxy.example/v1"},
        ),
        ("{provider: gemini}", {"GEMINI_API_KEY": "a", "GOOGLE_API_KEY": "b"}, {"api_keys": ("b",)}),
        ("{provider: jimeng}", {"VOLC_ACCESSKEY": "a", "VOLC_SECRETKEY": "s"}, {"api_keys": ("a:s",)}),
        ("{provider: sglang}", {}, {"api_keys": (), "auth": NoAuth()}),
        ("{provider: sglang}", {"SGLANG_API_KEY": "k"}, {"api_keys": ("k",), "auth": BearerAuth()}),
        ("{provider: cohere, max_inputs: 5}", {"CO_API_KEY": "k"}, {"max_inputs": 5}),
        ("{provider: cohere, protocols: [chat]}", {"CO_API_KEY": "k"}, {"max_inputs": None}),
        ("{provider: vllm, api_key: k}", {}, {"api_keys": ("k",)}),
        ("{provider: ollama, auth: {kind: none}}", {}, {"api_keys": ()}),
        ("{provider: azure, base_url: https://a}", {"AZURE_OPENAI_API_KEY": "k"}, {"auth": HeaderAuth("api-key")}),
        ("{provider: kling}", {"KLING_API_KEY": KEY}, {"auth": JwtAuth()}),
        ("{provider: kling}", {"KLINGAI_API_KEY": "static"}, {"auth": JwtAuth(), "api_keys": ("static",)}),
        ("{provider: kling, auth: {kind: bearer}}", {"KLING_API_KEY": "k"}, {"api_keys": ("k",)}),
        (
            "{provider: vertex, base_url: https://a}",
            {SERVICE_ACCOUNT_FILE: "/keys/account.json"},
            {"auth": GoogleAuth("/keys/account.json")},
        ),
        ("{provider: vertex, base_url: https://a}", {}, {"auth": GoogleAuth()}),
        ("{provider: vertex, base_url: https://a, api_key: k}", {}, {"auth": BearerAuth(), "api_keys": ("k",)}),
        (f"{{provider: bedrock, base_url: {BEDROCK}}}", {"AWS_PROFILE": "p"}, {"auth": AwsAuth(), "api_keys": ()}),
        (
            f"{{provider: bedrock-anthropic, base_url: {BEDROCK}}}",
            {"AWS_PROFILE": "p", "AWS_BEARER_TOKEN_BEDROCK": "k"},
            {"auth": BearerAuth(), "api_keys": ("k",)},
        ),
        (
            "{provider: azure, base_url: 'https://r.openai.azure.com/openai/v1'}",
            {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c"},
            {"auth": AzureAuth(), "api_keys": ()},
        ),
        (
            "{provider: ark, protocols: [vidF], auth: {kind: access_key}}",
            {"ARK_API_KEY": KEY},
            {"auth": AccessKeyAuth(), "protocols": ("vidF",)},
        ),
    ],
)
def test_a_value_of_the_file_precedes_that_of_the_preset(
    text: str, environment: dict[str, str], expected: dict[str, Any]
) -> None:
    made = channel(text, **environment)
    assert {name: getattr(made, name) for name in expected} == expected


def test_models_of_the_file_replace_those_of_the_preset() -> None:
    made = channel("{provider: openai, models: [{id: best, upstream: gpt-5}]}", OPENAI_API_KEY="k")
    assert [(model.id, model.upstream) for model in made.models] == [("best", "gpt-5")]
