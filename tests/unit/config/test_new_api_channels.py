"""Channels of new-api: their addresses, keys, models and properties, and the list of properties without a counterpart."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from umg_grpc.config.importers.config_text_builder import ImportedConfig
from umg_grpc.config.importers.from_new_api import from_new_api


def imported(*rows: dict[str, Any]) -> ImportedConfig:
    """Return the converted config of channels, by default of type 1 with one model and a key."""
    return from_new_api(json.dumps([{"type": 1, "name": "c", "key": "k", "models": "gpt-5", **row} for row in rows]))


@dataclass(frozen=True)
class Case:
    """Channel of new-api, the keys of each channel that it becomes with the models, and lines of the list."""

    id: str
    row: dict[str, Any]
    keys: dict[str, Any]
    models: list[dict[str, str]] = field(default_factory=lambda: [{"id": "gpt-5"}])
    lost: tuple[str, ...] = ()


def bedrock(region: str, part: str = "anthropic") -> str:
    return f"https://bedrock-runtime.{region}.amazonaws.com/{part}/v1"


VERTEX = "https://{0}-aiplatform.googleapis.com/v1/projects/p/locations/{0}/publishers/google"
KIMI, GLM = {"models": "kimi-k2.5"}, {"models": "glm-5"}
OWN = "https://own.example"
ACCOUNT = json.dumps({"type": "service_account", "project_id": "p"})
SERVICE_ACCOUNT = "key of channel `c`: a service account: write it to a file, and its name to GOOGLE_APPLICATION_CREDENTIALS or `auth: {kind: service_account}`"
PROFILE_ARN = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/x1"
IMPORTED_ARN = "arn:aws:bedrock:eu-west-1:1:imported-model/x2"
CASES = [
    Case("Moonshot, China", {"type": 25, **KIMI}, {"provider": "moonshot-cn", "api_key": "k"}, [{"id": "kimi-k2.5"}]),
    Case("Moonshot, international", {"type": 25, "base_url": "https://api.moonshot.ai/", **KIMI}, {"provider": "moonshot", "api_key": "k"}, [{"id": "kimi-k2.5"}]),
    Case("BigModel", {"type": 26, **GLM}, {"provider": "bigmodel", "api_key": "k"}, [{"id": "glm-5"}]),
    Case("Z.ai", {"type": 26, "base_url": "https://api.z.ai", **GLM}, {"provider": "zai", "api_key": "k"}, [{"id": "glm-5"}]),
    Case("a plan", {"type": 26, "base_url": "glm-coding-plan", **GLM}, {"protocols": ["chat", "messages"], "base_url": "https://open.bigmodel.cn/api/coding/paas/v4", "base_urls": {"messages": "https://open.bigmodel.cn/api/anthropic/v1"}, "api_key": "k"}, [{"id": "glm-5"}]),
    Case("MiniMax, old address", {"type": 35, "base_url": "https://api.minimax.chat", "models": "MiniMax-M2"}, {"provider": "minimax-cn", "api_key": "k"}, [{"id": "MiniMax-M2"}]),
    Case("an address of another provider", {"base_url": "https://api.deepseek.com", "models": "deepseek-chat"}, {"provider": "deepseek", "api_key": "k"}, [{"id": "deepseek-chat"}]),
    Case("an address of nobody", {"base_url": OWN}, {"protocols": ["chat"], "base_url": f"{OWN}/v1", "api_key": "k"}),
    Case("an address with the version", {"base_url": f"{OWN}/v1/"}, {"protocols": ["chat"], "base_url": f"{OWN}/v1", "api_key": "k"}),
    Case("the address of each call", {"type": 8, "base_url": f"{OWN}/x/chat/completions"}, {"protocols": ["chat"], "base_url": f"{OWN}/x", "api_key": "k"}),
    Case("Claude at another address", {"type": 14, "base_url": OWN, "models": "claude-opus-4-6"}, {"protocols": ["messages"], "base_url": f"{OWN}/v1", "api_key": "k"}, [{"id": "claude-opus-4-6"}]),
    Case("Azure before the dots", {"type": 3, "base_url": "https://r.openai.azure.com", "models": "gpt-4.1", "created_time": 1_700_000_000, "other": "2024-10-21"}, {"provider": "azure", "base_url": "https://r.openai.azure.com/openai/v1", "api_key": "k"}, [{"id": "gpt-4.1", "upstream": "gpt-41"}], ("other (2024-10-21) of channel `c`: the address `/openai/v1` needs no version of the API",)),
    Case("AWS", {"type": 33, "key": "id|secret|eu-west-1", "models": "claude-sonnet-4-6,claude-fable-9,gpt-oss-120b"}, {"provider": "bedrock-anthropic", "base_url": bedrock("eu-west-1"), "auth": {"kind": "access_key", "scheme": "aws"}, "api_key": "id:secret"}, [{"id": "claude-sonnet-4-6", "upstream": "eu.anthropic.claude-sonnet-4-6"}, {"id": "claude-fable-9", "upstream": "eu.anthropic.claude-fable-9"}], ("model `gpt-oss-120b` of channel `c`: no id of Bedrock, which begins with its maker, for example `anthropic.`: write that id",)),
    Case("Nova at AWS", {"type": 33, "key": "id|secret|eu-west-1", "models": "nova-pro-v1:0"}, {"provider": "bedrock-converse", "base_url": "https://bedrock-runtime.eu-west-1.amazonaws.com", "auth": {"kind": "access_key", "scheme": "aws"}, "api_key": "id:secret"}, [{"id": "nova-pro-v1:0", "upstream": "amazon.nova-pro-v1:0"}]),
    Case("AWS by an API key", {"type": 33, "key": "token|ca-central-1", "settings": '{"aws_key_type": "api_key"}', "models": "claude-sonnet-4-6"}, {"provider": "bedrock-anthropic", "base_url": bedrock("ca-central-1"), "api_key": "token"}, [{"id": "claude-sonnet-4-6", "upstream": "anthropic.claude-sonnet-4-6"}]),
    Case("Vertex AI", {"type": 41, "key": ACCOUNT, "other": "europe-west4", "models": "gemini-2.5-pro"}, {"provider": "vertex", "base_url": VERTEX.format("europe-west4")}, [{"id": "gemini-2.5-pro"}], ("key of channel `c`: a service account: write it to a file, and its name to GOOGLE_APPLICATION_CREDENTIALS or `auth: {kind: service_account}`",)),
    Case("Vertex AI by an API key", {"type": 41, "settings": {"vertex_key_type": "api_key"}, "models": "gemini-2.5-pro"}, {"provider": "vertex", "base_url": "https://aiplatform.googleapis.com/v1/publishers/google", "auth": {"kind": "query", "parameter": "key"}, "api_key": "k"}, [{"id": "gemini-2.5-pro"}]),
    Case("Claude at Vertex AI", {"type": 41, "key": ACCOUNT, "other": "europe-west4", "models": "claude-opus-4-1-20250805,claude-3-5-sonnet-20241022"}, {"provider": "vertex-anthropic", "base_url": VERTEX.format("europe-west4").replace("publishers/google", "publishers/anthropic")}, [{"id": "claude-opus-4-1-20250805", "upstream": "claude-opus-4-1@20250805"}, {"id": "claude-3-5-sonnet-20241022", "upstream": "claude-3-5-sonnet-v2@20241022"}], (SERVICE_ACCOUNT,)),
    Case("Llama at Vertex AI", {"type": 41, "key": ACCOUNT, "other": "europe-west4", "models": "meta/llama3-405b-instruct-maas"}, {"provider": "vertex-open", "base_url": VERTEX.format("europe-west4").replace("publishers/google", "endpoints/openapi")}, [{"id": "meta/llama3-405b-instruct-maas"}], (SERVICE_ACCOUNT,)),
    Case("Claude at Vertex AI by an API key", {"type": 41, "settings": {"vertex_key_type": "api_key"}, "models": "gemini-2.5-pro,claude-opus-4-6"}, {"provider": "vertex", "base_url": "https://aiplatform.googleapis.com/v1/publishers/google", "auth": {"kind": "query", "parameter": "key"}, "api_key": "k"}, [{"id": "gemini-2.5-pro"}], ("model `claude-opus-4-6` of channel `c`: API keys at Vertex AI call the models of Google alone: use a service account",)),
    Case("a profile at AWS", {"type": 33, "key": "id|secret|eu-west-1", "models": "mine,its", "model_mapping": {"mine": PROFILE_ARN, "its": IMPORTED_ARN}}, {"provider": "bedrock-converse", "base_url": "https://bedrock-runtime.eu-west-1.amazonaws.com", "auth": {"kind": "access_key", "scheme": "aws"}, "api_key": "id:secret"}, [{"id": "mine", "upstream": PROFILE_ARN}], ("model `its` of channel `c`: imported models at Bedrock are called by InvokeModel in a format of their own, which is not served",)),
    Case("Sora", {"type": 55, "base_url": OWN, "models": "sora-2"}, {"protocols": ["vidA"], "base_url": f"{OWN}/v1", "api_key": "k"}, [{"id": "sora-2"}]),
    Case("Kling", {"type": 50, "key": "ak|sk", "models": "kling-v1-6"}, {"provider": "kling", "api_key": "ak:sk"}, [{"id": "kling-v1-6", "family": "vidE"}]),
    Case("Cloudflare", {"type": 39, "other": "acc", "models": "m"}, {"provider": "cloudflare", "base_url": "https://api.cloudflare.com/client/v4/accounts/acc/ai/v1", "api_key": "k"}, [{"id": "m"}]),
    Case("models of other kinds", {"type": 14, "models": "claude-opus-4-6,text-embedding-3-small,whisper-1,claude-opus-4-6-high"}, {"provider": "anthropic", "api_key": "k"}, [{"id": "claude-opus-4-6"}], ("model `text-embedding-3-small` of channel `c`: `Anthropic` serves no embeddings here", "model `whisper-1` of channel `c`: `Anthropic` serves no transcriptions here", "model `claude-opus-4-6-high` of channel `c`: its ending makes new-api set the reasoning or a search: callers name the model without it, and send the setting")),
    Case("a renamed model", {"models": "a,b", "model_mapping": '{"a": "c", "c": "gpt-5", "b": "b"}'}, {"provider": "openai", "api_key": "k"}, [{"id": "a", "upstream": "gpt-5"}, {"id": "b"}]),
    Case("several keys, one disabled", {"key": "k1\nk2\nk3", "channel_info": {"is_multi_key": True, "multi_key_status_list": {"1": 3}, "multi_key_mode": "random"}}, {"provider": "openai", "api_key": ["k1", "k3"]}, lost=("key 2 of channel `c`: new-api has disabled it", "channel_info.multi_key_mode of channel `c`: the keys of a channel are used in turn")),
    Case("headers", {"openai_organization": "org", "header_override": '{"x-a": "b"}'}, {"provider": "openai", "api_key": "k", "headers": {"x-a": "b", "OpenAI-Organization": "org"}}),
    Case("a header of each call", {"header_override": '{"x-a": "{client_header:x-b}", "x-c": "d"}'}, {"provider": "openai", "api_key": "k", "headers": {"x-c": "d"}}, lost=("header_override of channel `c`: a header with a text in it that new-api replaces, or a rule about headers of callers: headers of `headers` are the same for all calls",)),
    Case("a proxy", {"setting": '{"proxy": "http://proxy:3128"}'}, {"provider": "openai", "api_key": "k", "proxy": "http://proxy:3128"}),
    Case("a priority", {"priority": 7, "weight": 3}, {"provider": "openai", "api_key": "k", "priority": -7, "weight": 3}),
    Case("settings without a counterpart", {"tag": "t", "auto_ban": 0, "param_override": '{"a": 1}', "setting": '{"system_prompt": "s", "force_format": false}', "remark": "r"}, {"provider": "openai", "api_key": "k"}, lost=("tag of channel `c`: channels are not grouped by tags: change them in this file", "param_override of channel `c`: fields are not added to requests: callers send them", "setting.system_prompt of channel `c`: no text is added to prompts: callers send it")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_channel_of_new_api_is_converted_with_its_address_and_keys(case: Case) -> None:
    made = imported(case.row)
    assert [(channel.keys, channel.models) for channel in made.channels] == [(case.keys, case.models)]
    assert set(case.lost) <= set(made.lost)
    assert len(made.lost) >= len(case.lost)
    if not case.lost:
        assert made.lost == []


def test_models_of_several_addresses_become_several_channels() -> None:
    made = imported({"type": 17, "name": "Ali", "models": "qwen-max,wan2.5-i2v-preview"})
    assert [(channel.name, channel.keys["provider"]) for channel in made.channels] == [
        ("Ali", "dashscope"),
        ("Ali-dashscope-media", "dashscope-media"),
    ]


def test_a_channel_through_a_socks_proxy_is_not_called_without_it() -> None:
    made = imported({}, {"name": "far", "setting": '{"proxy": "socks5://proxy:1080"}'})
    assert [channel.name for channel in made.used_channels] == ["c"]
    assert "setting.proxy of channel `far`: only HTTP proxies are used: set `proxy` to one" in made.lost


def test_a_channel_without_a_weight_is_called_only_after_those_with_one() -> None:
    made = imported({"name": "a", "weight": 5}, {"name": "b"}, {"name": "c", "priority": 1})
    assert [channel.keys.get("weight") for channel in made.channels] == [5, 0, None]


def test_an_export_without_keys_reads_them_from_variables_that_comments_name() -> None:
    made = imported(
        {"key": ""}, {"name": "Own relay", "key": "", "base_url": OWN}, {"type": 50, "key": "", "models": "kling-v1"}
    )
    assert [channel.keys.get("api_key") for channel in made.channels] == [
        None,
        "${OWN_RELAY_API_KEY}",
        "${KLINGAI_ACCESS_KEY}:${KLINGAI_SECRET_KEY}",
    ]
    assert [channel.comments[0] for channel in made.channels] == [
        "the export has no key: set OPENAI_API_KEY, or `api_key`",
        "the export has no key: set OWN_RELAY_API_KEY, or `api_key`",
        "the export has no key: set KLINGAI_ACCESS_KEY and KLINGAI_SECRET_KEY, or `api_key`",
    ]


def test_a_header_without_a_text_is_listed() -> None:
    made = imported({"header_override": '{"X-A": "a", "X-B": null, "X-C": ["c"]}'})
    assert made.channels[0].keys["headers"] == {"X-A": "a"}
    assert [note for note in made.lost if note.startswith("header_override of channel `c`: ")]


def test_a_channel_whose_keys_are_disabled_has_no_comment_on_a_missing_key() -> None:
    off = {"is_multi_key": True, "multi_key_status_list": {"0": 3}, "multi_key_mode": "polling"}
    made = imported({}, {"name": "off", "key": "k", "channel_info": off})
    assert ([each.name for each in made.used_channels], made.channels[1].comments) == (["c"], [])


def test_a_name_in_another_script_is_replaced_and_kept_in_a_comment() -> None:
    [channel] = imported({"name": "主渠道"}).channels
    assert (channel.name, channel.comments) == ("OpenAI", ["named 主渠道 in new-api"])


@pytest.mark.parametrize("status", [1, 2, 3, None])
def test_only_an_enabled_channel_is_in_use(status: int | None) -> None:
    made = imported({}, {"name": "other", "status": status})
    assert [channel.name for channel in made.used_channels] == (["c", "other"] if status in {1, None} else ["c"])


def test_channels_on_other_pages_of_the_response_are_listed() -> None:
    row = {"type": 1, "name": "c", "key": "k", "models": "gpt-5"}
    made = from_new_api(json.dumps({"data": {"items": [row], "total": 12, "page": 1}}))
    assert made.lost == ["11 further channels: the response is one page: `?p=2` and so on has the others"]
