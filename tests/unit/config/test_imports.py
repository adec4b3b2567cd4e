"""Conversion of the configs of other gateways: `umg check` accepts each result, and lost settings are listed."""

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from umg_grpc.config import Channel, Config, Fallbacks, parse
from umg_grpc.config.fallback_section import FALLBACK_CAUSES
from umg_grpc.config.importers.config_text_builder import ImportedConfig
from umg_grpc.config.importers.from_litellm import from_litellm
from umg_grpc.config.importers.from_new_api import from_new_api


class Everything(dict[str, str]):
    """Environment in which each variable is set."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return name.lower().replace("_", "-")

    def get(self, name: str, default: Any = None) -> Any:
        return self[name]


def converted(text: str) -> tuple[ImportedConfig, Config]:
    made = from_litellm(text)
    return made, parse(made.text(), "umg.yaml", Everything())


def summary(channel: Channel) -> tuple[str, str, list[tuple[str, str]]]:
    return channel.name, channel.base_url, [(model.id, model.upstream) for model in channel.models]


@dataclass(frozen=True)
class Case:
    """Config in the forms of the documentation of LiteLLM."""

    id: str
    text: str
    channels: list[tuple[str, str, list[tuple[str, str]]]]
    lost: tuple[str, ...] = ()


OPENAI, AZURE = "https://api.openai.com/v1", "https://europe.openai.azure.com/openai/v1"


def every(*names: str) -> Fallbacks:
    """Return fallbacks for every cause."""
    return Fallbacks(**dict.fromkeys(FALLBACK_CAUSES, names))


CASES = [
    Case(
        "one model",
        "model_list: [{model_name: gpt-4o, litellm_params: {model: openai/gpt-4o, api_key: os.environ/OPENAI_API_KEY}}]",
        [("openai", OPENAI, [("gpt-4o", "gpt-4o")])],
    ),
    Case(
        "load balancing over Azure and OpenAI",
        """
model_list:
  - model_name: gpt-4o
    litellm_params: {model: azure/gpt-eu, api_base: "https://europe.openai.azure.com/", api_key: "os.environ/AZURE_EU", api_version: "2024-10-21", rpm: 6}
  - model_name: gpt-4o
    litellm_params: {model: azure/gpt-ca, api_base: "https://canada.openai.azure.com", api_key: "os.environ/AZURE_CA", rpm: 4}
  - model_name: gpt-4o
    litellm_params: {model: gpt-4o, api_key: os.environ/OPENAI_API_KEY, rpm: 10, weight: 3}
router_settings: {routing_strategy: simple-shuffle, num_retries: 2, timeout: 30, redis_host: os.environ/REDIS_HOST, redis_password: os.environ/REDIS_PASSWORD, redis_port: 1992}
litellm_settings: {drop_params: true, request_timeout: 600}
general_settings: {master_key: sk-1234, database_url: "postgresql://a"}
""",
        [
            ("azure-europe", AZURE, [("gpt-4o", "gpt-eu")]),
            ("azure-canada", "https://canada.openai.azure.com/openai/v1", [("gpt-4o", "gpt-ca")]),
            ("openai", OPENAI, [("gpt-4o", "gpt-4o")]),
        ],
        (
            "router_settings.routing_strategy: channels share by `priority` and `weight`, and failing ones are left out",
            "general_settings.master_key: set UMG_API_KEY, or make keys by `umg keys create`",
        ),
    ),
    Case(
        "many vendors, one channel for each",
        """
model_list:
  - {model_name: claude, litellm_params: {model: anthropic/claude-sonnet-4-5, api_key: os.environ/ANTHROPIC_API_KEY}}
  - {model_name: claude-opus, litellm_params: {model: claude-opus-4-5, api_key: os.environ/ANTHROPIC_API_KEY}}
  - {model_name: gemini, litellm_params: {model: gemini/gemini-2.5-flash}}
  - {model_name: llama, litellm_params: {model: groq/llama-3.3-70b-versatile}}
  - {model_name: large, litellm_params: {model: together_ai/meta-llama/Llama-3-70b}}
  - {model_name: local, litellm_params: {model: ollama_chat/llama3, api_base: "http://gpu:11434"}}
  - {model_name: mine, litellm_params: {model: hosted_vllm/facebook/opt-125m, api_base: "http://gpu:8000/v1"}}
  - {model_name: sonar, litellm_params: {model: perplexity/sonar-pro}}
  - {model_name: ranker, litellm_params: {model: jina_ai/jina-reranker-v2}, model_info: {mode: rerank}}
""",
        [
            (
                "anthropic",
                "https://api.anthropic.com/v1",
                [("claude", "claude-sonnet-4-5"), ("claude-opus", "claude-opus-4-5")],
            ),
            ("gemini", "https://generativelanguage.googleapis.com/v1beta", [("gemini", "gemini-2.5-flash")]),
            ("groq", "https://api.groq.com/openai/v1", [("llama", "llama-3.3-70b-versatile")]),
            ("together", "https://api.together.xyz/v1", [("large", "meta-llama/Llama-3-70b")]),
            ("ollama", "http://gpu:11434/v1", [("local", "llama3")]),
            ("vllm", "http://gpu:8000/v1", [("mine", "facebook/opt-125m")]),
            ("perplexity", "https://api.perplexity.ai", [("sonar", "sonar-pro")]),
            ("jina", "https://api.jina.ai/v1", [("ranker", "jina-reranker-v2")]),
        ],
    ),
    Case(
        "an address that is compatible with OpenAI",
        """
model_list:
  - {model_name: m, litellm_params: {model: openai/served-model, api_base: "https://llm.example/v1/chat/completions", api_key: none}}
  - {model_name: e, litellm_params: {model: openai/bge, api_base: "https://llm.example/v1", api_key: none}, model_info: {mode: embedding}}
""",
        [
            ("llm.example", "https://llm.example/v1", [("m", "served-model")]),
            ("llm.example-embeddings", "https://llm.example/v1", [("e", "bge")]),
        ],
    ),
    Case(
        "wildcards",
        """
model_list:
  - {model_name: "anthropic/*", litellm_params: {model: "anthropic/*", api_key: os.environ/ANTHROPIC_API_KEY}}
  - {model_name: "*", litellm_params: {model: "*"}}
""",
        [
            ("anthropic", "https://api.anthropic.com/v1", [("anthropic/*", "*")]),
            ("openai", OPENAI, [("*", "*")]),
        ],
    ),
    Case(
        "fallbacks and aliases",
        """
model_list:
  - {model_name: big, litellm_params: {model: openai/gpt-5}}
  - {model_name: small, litellm_params: {model: openai/gpt-5-mini}}
  - {model_name: other, litellm_params: {model: anthropic/claude-opus-4-5}}
litellm_settings: {fallbacks: [{big: [small, other, gone]}], context_window_fallbacks: [{small: [big]}]}
router_settings: {model_group_alias: {gpt-4: big, hidden: {model: small, hidden: true}}, allowed_fails: 3, cooldown_time: 30}
""",
        [
            ("openai", OPENAI, [("big", "gpt-5"), ("small", "gpt-5-mini")]),
            ("anthropic", "https://api.anthropic.com/v1", [("other", "claude-opus-4-5")]),
        ],
        ("fallback of `big` to `gone`: no converted entry of model_list has this name",),
    ),
    Case(
        "clouds",
        """
model_list:
  - {model_name: oss, litellm_params: {model: bedrock/openai.gpt-oss-20b-1:0, aws_access_key_id: os.environ/AWS_ID, aws_secret_access_key: os.environ/AWS_SECRET, aws_region_name: us-west-2}}
  - {model_name: claude, litellm_params: {model: bedrock/us.anthropic.claude-opus-4-5-v1:0, aws_region_name: us-west-2}}
  - {model_name: g, litellm_params: {model: vertex_ai/gemini-2.5-pro, vertex_project: p1, vertex_location: europe-west4, vertex_credentials: /keys/a.json}}
  - {model_name: c, litellm_params: {model: vertex_ai/claude-sonnet-4, vertex_project: p1}}
""",
        [
            (
                "bedrock",
                "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1",
                [("oss", "openai.gpt-oss-20b-1:0")],
            ),
            (
                "bedrock-anthropic",
                "https://bedrock-runtime.us-west-2.amazonaws.com/anthropic/v1",
                [("claude", "us.anthropic.claude-opus-4-5-v1:0")],
            ),
            (
                "vertex",
                "https://europe-west4-aiplatform.googleapis.com/v1/projects/p1/locations/europe-west4/publishers/google",
                [("g", "gemini-2.5-pro")],
            ),
            (
                "vertex-anthropic",
                "https://us-central1-aiplatform.googleapis.com/v1/projects/p1/locations/us-central1/publishers/anthropic",
                [("c", "claude-sonnet-4")],
            ),
        ],
    ),
    Case(
        "settings and modes without a counterpart",
        """
model_list:
  - {model_name: m, litellm_params: {model: openai/gpt-5, temperature: 0.2}, model_info: {tier: free}}
  - {model_name: whisper, litellm_params: {model: openai/whisper-1}, model_info: {mode: audio_transcription}}
  - {model_name: odd, litellm_params: {model: sagemaker/endpoint}}
  - {model_name: rare, litellm_params: {model: mistralai/m}}
  - {litellm_params: {model: openai/gpt-5}}
litellm_settings: {success_callback: [langfuse], cache: true}
environment_variables: {REDIS_HOST: a}
guardrails: []
""",
        [("openai", OPENAI, [("m", "gpt-5"), ("whisper", "whisper-1")])],
        (
            "litellm_params.temperature of `m`: callers send it in their requests",
            "model_info.tier of `m`: set `weight` or `priority` of the channel",
            "model `odd` (sagemaker/endpoint): endpoints of SageMaker have a format of their own for each model",
            "model `rare` (mistralai/m): its id names no provider that is known here; write a channel with `protocols` and"
            " `base_url`",
            "model_list: an entry without `model_name`",
            "litellm_settings.cache: set `cache` of a model",
            "litellm_settings.success_callback: telemetry is exported by OpenTelemetry, metrics at /metrics",
            "environment_variables.REDIS_HOST: set this variable for the process",
            "guardrails: write a row of `guards`, with `kind: patterns` for secrets, cards, e-mail addresses, words and regular"
            " expressions, else with a webhook or a gRPC service",
        ),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_config_of_litellm_becomes_a_config_of_this_gateway(case: Case) -> None:
    made, config = converted(case.text)
    assert [summary(channel) for channel in config.channels] == case.channels
    assert set(case.lost) <= set(made.lost)
    for note in made.lost:
        assert f"# - {note}" in made.text()


def test_settings_with_a_counterpart_are_converted() -> None:
    _, config = converted(CASES[1].text)
    assert config.retries.repeats == 2
    assert config.redis == "redis://:redis-password@redis-host:1992"
    assert [channel.timeout.total for channel in config.channels] == [30] * 3
    assert config.channels[2].weight == 3
    limits = config.models["gpt-4o"].limits
    assert limits is not None
    assert (limits.rpm, limits.tpm) == (20, None)
    _, config = converted(CASES[5].text)
    assert dict(config.aliases) == {"gpt-4": "big", "hidden": "small"}
    assert (config.breaker.failures, config.breaker.rest) == (3, 30)
    small, others = ("big",), ("small", "other")
    assert config.fallbacks == {
        "big": Fallbacks(content=others, unavailable=others, quota=others),
        "small": Fallbacks(context=small),
    }


FALLBACKS = """
model_list:
  - {model_name: big, litellm_params: {model: openai/gpt-5}}
  - {model_name: small, litellm_params: {model: openai/gpt-5-mini}}
  - {model_name: "openai/*", litellm_params: {model: openai/*}}
"""


@pytest.mark.parametrize(
    ("settings", "expected", "lost"),
    [
        (
            "router_settings: {fallbacks: [{big: [small, openai/gpt-4.1]}]}",
            {"big": every("small", "openai/gpt-4.1")},
            (),
        ),
        ("litellm_settings: {default_fallbacks: [small]}", {"*": every("small")}, ()),
        (
            "litellm_settings: {default_fallbacks: [small, big], context_window_fallbacks: [{big: [openai/x]}]}",
            {
                "*": Fallbacks(content=("small", "big"), unavailable=("small", "big"), quota=("small", "big")),
                "big": Fallbacks(context=("openai/x",), content=("small",), unavailable=("small",), quota=("small",)),
            },
            (),
        ),
        (
            "litellm_settings: {fallbacks: [{big: [small]}], content_policy_fallbacks: [{big: [openai/x]}]}",
            {"big": Fallbacks(context=("small",), content=("openai/x",), unavailable=("small",), quota=("small",))},
            (),
        ),
        (
            "router_settings: {model_group_alias: {best: big}, fallbacks: [{best: [small, big]}]}",
            {"big": every("small")},
            ("fallback of `best` to `big`: a model is no fallback of its own",),
        ),
        (
            "litellm_settings: {context_window_fallbacks: [{gone: [small]}, {big: [nobody]}]}",
            {},
            (
                "litellm_settings.context_window_fallbacks.gone: fallback to `small`",
                "litellm_settings.context_window_fallbacks.big: fallback to `nobody`",
            ),
        ),
        ("litellm_settings: {fallbacks: big}", {}, ("litellm_settings.fallbacks: expected lists of models",)),
    ],
)
def test_fallbacks_of_litellm_are_converted_by_cause(
    settings: str, expected: dict[str, Fallbacks], lost: tuple[str, ...]
) -> None:
    made, config = converted(FALLBACKS + settings)
    assert config.fallbacks == expected
    for note in lost:
        assert any(each.startswith(note) for each in made.lost), made.lost


def test_prices_and_limits_of_a_model_are_converted() -> None:
    text = """
model_list:
  - model_name: m
    litellm_params: {model: openai/gpt-5, input_cost_per_token: 0.00000125, timeout: 300, stream_timeout: 60}
    model_info: {output_cost_per_token: 1e-05, max_input_tokens: 400000, max_tokens: 128000, supports_vision: true}
"""
    made, config = converted(text)
    assert not [note for note in made.lost if "supports_vision" not in note]
    described = config.models["m"].described
    assert [price.micro_credits_per_million for price in described.prices] == [1_250_000, 10_000_000]
    assert (described.input_token_limit, described.output_token_limit) == (400000, 128000)
    assert (config.channels[0].timeout.total, config.channels[0].timeout.first_byte) == (300, 60)


def test_variables_stay_variables_and_other_text_stays_text() -> None:
    text = "model_list: [{model_name: m, litellm_params: {model: openai/m, api_key: 'a${b}', headers: {x-a: os.environ/X}}}]"
    made = from_litellm(text)
    assert 'api_key: "a$${b}"' in made.text()
    channel = parse(made.text(), "umg.yaml", {"X": "x"}).channels[0]
    assert (channel.api_keys, dict(channel.headers)) == (("a${b}",), {"x-a": "x"})


@pytest.mark.parametrize("text", ["", "a: [", "model_list: 5", "[]", "channels: []"])
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        from_litellm(text)


NEW_API: list[dict[str, Any]] = [
    {"type": 1, "key": "sk-a\nsk-b", "name": "OpenAI main", "models": "gpt-4o,gpt-4", "status": 1, "priority": 5,
     "model_mapping": '{"gpt-4": "gpt-4o"}', "group": "default", "weight": 2, "base_url": ""},
    {"type": 1, "key": "sk-c", "name": "compatible", "base_url": "https://llm.example", "models": "m", "status": 2},
    {"type": 14, "key": "k", "name": "claude", "base_url": None, "models": "claude-opus-4-5", "group": "vip,default"},
    {"type": 24, "key": "", "name": "gemini", "models": "gemini-2.5-flash", "status": 1},
    {"type": 3, "key": "k", "name": "azure", "base_url": "https://r.openai.azure.com", "models": "gpt-4o", "status": 1},
    {"type": 50, "key": "ak|sk", "name": "kling", "models": "kling-v2", "status": 1},
    {"type": 36, "key": "k", "name": "suno", "models": "suno", "param_override": '{"a": 1}'},
]  # fmt: skip


@pytest.mark.parametrize(
    "wrap", [lambda rows: rows, lambda rows: {"data": rows}, lambda rows: {"data": {"items": rows}}]
)
def test_channels_of_new_api_become_channels(wrap: Any) -> None:
    made = from_new_api(json.dumps(wrap(NEW_API)))
    config = parse(made.text(), "umg.yaml", Everything())
    assert [summary(channel) for channel in config.channels] == [
        ("OpenAI-main", OPENAI, [("gpt-4o", "gpt-4o"), ("gpt-4", "gpt-4o")]),
        ("claude", "https://api.anthropic.com/v1", [("claude-opus-4-5", "claude-opus-4-5")]),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta", [("gemini-2.5-flash", "gemini-2.5-flash")]),
        ("azure", "https://r.openai.azure.com/openai/v1", [("gpt-4o", "gpt-4o")]),
        ("kling", "https://api-singapore.klingai.com", [("kling-v2", "kling-v2")]),
    ]
    first, *_, kling = config.channels
    assert (first.api_keys, first.priority, first.weight) == (("sk-a", "sk-b"), -5, 2)
    assert kling.api_keys == ("ak:sk",)
    assert made.lost == [
        "channel `suno` of type 36 (SunoAPI): songs of Suno are not served",
        "group of channel `claude`: channels are not restricted to groups of users: restrict keys by `umg keys create --channels`",
    ]


def test_a_disabled_channel_of_new_api_is_in_comments_that_can_be_removed() -> None:
    text = from_new_api(json.dumps(NEW_API)).text()
    assert (
        """
  # disabled by hand in new-api; to use it, remove the `# ` of its lines
  # - name: compatible
  #   protocols: [chat]
  #   base_url: https://llm.example/v1
  #   api_key: sk-c
  #   models:
  #     - m
"""
        in text
    )
    used = re.sub(r"(?m)^  # (?=[ -] )", "  ", text)
    channels = parse(used, "umg.yaml", Everything()).channels
    assert summary(channels[1]) == ("compatible", "https://llm.example/v1", [("m", "m")])
    with pytest.raises(ValueError, match="expected a channel in use; all that can be converted are disabled"):
        from_new_api(json.dumps(NEW_API[1:2]))


@pytest.mark.parametrize("text", ["", "[]", "{}", '[{"name": "a"}]', '{"data": {"items": []}}', "channels: []"])
def test_another_file_than_of_new_api_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        from_new_api(text)


def test_the_converted_text_is_yaml_with_each_note_in_a_comment() -> None:
    text = from_litellm(CASES[1].text).text()
    assert isinstance(yaml.safe_load(text), dict)
    assert re.match(r"# Converted from a config of LiteLLM\. Check this file with `umg check FILE`\.\n#\n# Not", text)
