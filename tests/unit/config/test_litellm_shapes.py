"""Configs of any shape: the import writes a file that loads, or its error states the expected form."""

from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from umg_grpc.config import parse
from umg_grpc.config.importers.converted_config_check import Variables
from umg_grpc.config.importers.from_litellm import from_litellm

NAMES = st.sampled_from(["m", "a/b", "*", "a/*", "*/*", "", "two words", "${X}", "é", "null", "x" * 300])
ARN = "arn:aws:bedrock:us-west-2:1:application-inference-profile/x"
MODELS = st.sampled_from(
    [
        *("openai/gpt-5", "gpt-4o", "openai/*", "*", "azure/x", "azure/", "azure/*", "azure_ai/claude-4", "azure_ai/*"),
        *("bedrock/*", "bedrock/anthropic.claude-4", "vertex_ai/*", "vertex_ai/gemini-3", "huggingface/a/b/c", "groq/"),
        *(
            "vertex_ai/claude-4",
            "vertex_ai/meta/x-maas",
            "bedrock/converse/amazon.x",
            f"bedrock/{ARN}",
            "azure_ai/rerank-x",
        ),
        *("ollama/llama3", "cohere/rerank-v3.5", "openai/responses/x", "heroku/x", "custom_openai/x", "unknown/x", "/"),
    ]
)
ADDRESSES = st.sampled_from(
    [
        *("https://h.example/v1", "http://localhost:1/", "os.environ/BASE", "no url", "https://h.example/?a=b", ""),
        *("https://[", "https://r.openai.azure.com/openai/deployments/d", "https://u:p@h.example", "https://h:99999"),
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**12),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["os.environ/A", "os.environ/", "-1", "1e400", "a: b", "#", "\x85", "2024-10-21"]),
    st.dates(),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALARS, inner, max_size=3), max_leaves=5
)
PARAMETERS = (
    *("api_key", "api_version", "custom_llm_provider", "timeout", "stream_timeout", "weight", "order", "rpm", "tpm"),
    *("max_parallel_requests", "headers", "extra_headers", "organization", "azure_ad_token", "aws_region_name"),
    *("aws_access_key_id", "aws_secret_access_key", "vertex_project", "vertex_location", "vertex_credentials"),
    *("aws_role_name", "aws_profile_name", "aws_web_identity_token", "tenant_id", "client_id", "client_secret"),
    *("model_id", "litellm_credential_name", "input_cost_per_token", "temperature", "base_url"),
)
INFOS = ("mode", "input_cost_per_token", "max_tokens", "max_input_tokens", "supports_vision", "rpm", "base_model")
SETTINGS = {
    "litellm_settings": ("fallbacks", "request_timeout", "num_retries", "cache_params", "callbacks"),
    "router_settings": (
        *("fallbacks", "timeout", "num_retries", "allowed_fails", "cooldown_time", "model_group_alias"),
        *("redis_url", "redis_host", "redis_port", "redis_password"),
    ),
    "general_settings": ("master_key", "coordination_redis"),
}


def some(keys: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """Return mappings with some of the keys, each with any value."""
    return st.dictionaries(st.sampled_from(keys), VALUES, max_size=4)


ENTRIES = st.builds(
    lambda name, model, base, params, info, rates: {
        "model_name": name,
        "litellm_params": {"model": model, **({"api_base": base} if base else {}), **params},
        "model_info": info,
        **rates,
    },
    NAMES,
    MODELS,
    st.none() | ADDRESSES,
    some(PARAMETERS),
    some(INFOS),
    some(("rpm", "tpm")),
)
CONFIGS = st.builds(
    lambda entries, sections, others: {**others, "model_list": entries, **sections},
    st.lists(ENTRIES | VALUES, min_size=1, max_size=4),
    st.fixed_dictionaries({}, optional={name: some(keys) | VALUES for name, keys in SETTINGS.items()}),
    some(("credential_list", "environment_variables", "guardrails", "include")),
)


@given(CONFIGS)
@settings(deadline=None, max_examples=150)
def test_a_config_of_any_shape_loads_or_is_refused(config: dict[str, Any]) -> None:
    assert_loads_or_is_refused(yaml.safe_dump(config, allow_unicode=True))


@given(st.text(max_size=40) | VALUES.map(lambda value: yaml.safe_dump({"model_list": value})))
@settings(deadline=None, max_examples=100)
def test_any_text_is_refused_or_loads(text: str) -> None:
    assert_loads_or_is_refused(text)


def assert_loads_or_is_refused(text: str) -> None:
    """Assert that the converted config loads where its variables are set, or that the error states the expected form."""
    refusal = ""
    try:
        made = from_litellm(text)
    except ValueError as error:
        refusal = str(error)
    if refusal:
        assert refusal.startswith("expected ")
        return
    config = parse(made.text(), "umg.yaml", Variables(made))
    assert len({channel.name for channel in config.channels}) == len(config.channels)
