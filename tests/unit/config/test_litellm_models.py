"""Deployments of LiteLLM: provider, address, credentials and id of each spelling, and the reasons of deployments without
a counterpart.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml

from umg_grpc.config import Channel, Config, parse
from umg_grpc.config.file_sections import AccessKeyAuth, Auth, AwsAuth, AzureAuth, BearerAuth, GoogleAuth, HeaderAuth
from umg_grpc.config.importers.config_text_builder import ImportedConfig
from umg_grpc.config.importers.converted_config_check import Variables
from umg_grpc.config.importers.from_litellm import from_litellm
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS

CHAT, EMBEDDINGS = ("chat",), ("embeddings",)
SERVER = "https://a.example/v1"
NO_PROVIDER = "its id names no provider that is known here; write a channel with `protocols` and `base_url`"


def imported(*params: dict[str, Any], **sections: Any) -> tuple[ImportedConfig, Config]:
    """Convert a config with a deployment `m` for each of the parameters, in which `info` is `model_info`."""
    entries = [
        {"model_name": "m", "litellm_params": {key: value for key, value in each.items() if key != "info"}}
        | ({"model_info": each["info"]} if "info" in each else {})
        for each in params
    ]
    made = from_litellm(yaml.safe_dump({"model_list": entries, **sections}))
    return made, parse(made.text(), "umg.yaml", Variables(made))


def channel(**params: Any) -> Channel:
    _, config = imported(params)
    assert len(config.channels) == 1
    return config.channels[0]


@dataclass(frozen=True)
class Spelling:
    """Deployment with the id of its model at the provider and the address that it becomes."""

    id: str
    model: str
    upstream: str
    base_url: str
    params: dict[str, Any] = field(default_factory=dict)


BEDROCK_MODEL = "bedrock/anthropic.claude-sonnet-4-v1:0"
AZURE_BASE = "https://r.openai.azure.com"
BEDROCK_HOST, BEDROCK_PLACE = "https://bedrock-runtime.us-west-2.amazonaws.com", {"aws_region_name": "us-west-2"}
PROFILE_ARN = "arn:aws:bedrock:us-west-2:888602223428:application-inference-profile/x1"
VERTEX_PLACE = {"vertex_project": "p", "vertex_location": "us-east5"}


def vertex(path: str) -> str:
    """Return the address of an API at Vertex AI for the project and region of the examples."""
    return f"https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/{path}"


SPELLINGS = [
    Spelling("a Responses API by prefix", "openai/responses/gpt-5", "gpt-5", "https://api.openai.com/v1"),
    Spelling("a series of Azure", "azure/o_series/x", "x", f"{AZURE_BASE}/openai/v1", {"api_base": AZURE_BASE}),
    Spelling("GPT-5 at Azure", "azure/gpt5_series/x", "x", f"{AZURE_BASE}/openai/v1", {"api_base": AZURE_BASE}),
    Spelling("Responses at Azure", "azure/responses/x", "x", f"{AZURE_BASE}/openai/v1", {"api_base": AZURE_BASE}),
    Spelling(
        "a deployment that only the address names",
        "azure/",
        "gpt-eu",
        f"{AZURE_BASE}/openai/v1",
        {"api_base": f"{AZURE_BASE}/openai/deployments/gpt-eu/chat/completions"},
    ),
    Spelling(
        "Databricks",
        "databricks/dbrx",
        "dbrx",
        "https://h.cloud.databricks.com/serving-endpoints",
        {"api_base": "https://h.cloud.databricks.com/serving-endpoints"},
    ),
    Spelling("Zhipu", "zhipu/glm-5", "glm-5", "https://open.bigmodel.cn/api/paas/v4"),
    Spelling("a provider behind Hugging Face", "huggingface/together/a/b", "a/b:together", "https://router.huggingface.co/v1"),
    Spelling("a model of Hugging Face", "huggingface/a/b", "a/b", "https://router.huggingface.co/v1"),
    Spelling("a model of OpenAI at GitHub", "github/gpt-4o-mini", "openai/gpt-4o-mini", "https://models.github.ai/inference"),
    Spelling("a model of Meta at GitHub", "github/Llama-3.3-70B-Instruct", "meta/Llama-3.3-70B-Instruct", "https://models.github.ai/inference"),
    Spelling("a whole id at GitHub", "github/openai/gpt-5", "openai/gpt-5", "https://models.github.ai/inference"),
    Spelling("a short id of Fireworks", "fireworks_ai/glm-5", "accounts/fireworks/models/glm-5", "https://api.fireworks.ai/inference/v1"),
    Spelling("a whole id of Fireworks", "fireworks_ai/accounts/a/models/b", "accounts/a/models/b", "https://api.fireworks.ai/inference/v1"),
    Spelling("no prefix, of Cohere", "command-r-plus", "command-r-plus", "https://api.cohere.ai/compatibility/v1"),
    Spelling("no prefix, of OpenAI's images", "dall-e-3", "dall-e-3", "https://api.openai.com/v1"),
    Spelling("no prefix, newer than the table", "claude-opus-9-1", "claude-opus-9-1", "https://api.anthropic.com/v1"),
    Spelling("no prefix, of Vertex AI", "gemini-2.5-pro", "gemini-2.5-pro", "https://us-central1-aiplatform.googleapis.com/v1/projects/us-east-1/locations/us-central1/publishers/google"),
    Spelling("no prefix, but a known address", "some-model", "some-model", "https://api.groq.com/openai/v1", {"api_base": "https://api.groq.com/openai/v1"}),
    Spelling("no prefix, but an address", "a/b", "a/b", "https://llm.example/v1", {"api_base": "https://llm.example/v1"}),
    Spelling("a provider by parameter", "deepseek-chat", "deepseek-chat", "https://api.deepseek.com/v1", {"custom_llm_provider": "deepseek"}),
    Spelling("a compatible server of a vendor with a preset", "openai/x", "x", "https://api.mistral.ai/v1", {"api_base": "https://api.mistral.ai/v1/chat/completions"}),
    Spelling("a region of OpenAI", "openai/gpt-5", "gpt-5", "https://eu.api.openai.com/v1", {"api_base": "https://eu.api.openai.com/v1"}),
    Spelling("a version that LiteLLM adds", "anthropic/claude-opus-4-5", "claude-opus-4-5", "https://relay.example/v1", {"api_base": "https://relay.example"}),
    Spelling("a region in the id of Bedrock", "bedrock/eu-west-3/anthropic.claude-sonnet-4-v1:0", "anthropic.claude-sonnet-4-v1:0", "https://bedrock-runtime.eu-west-3.amazonaws.com/anthropic/v1"),
    Spelling("all regions of Vertex AI", "vertex_ai/gemini-3-pro", "gemini-3-pro", "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google", {"vertex_project": "p", "vertex_location": "global"}),
    Spelling("a multi-region of Vertex AI", "vertex_ai/gemini-3-pro", "gemini-3-pro", "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/google", {"vertex_project": "p", "vertex_location": "eu"}),
    Spelling("a Chinese account by its address", "moonshot/kimi-k3", "kimi-k3", "https://api.moonshot.cn/v1", {"api_base": "https://api.moonshot.cn/v1"}),
    Spelling("a preset that is no provider of LiteLLM", "siliconflow/a/b", "a/b", "https://api.siliconflow.cn/v1", {"api_base": "https://api.siliconflow.cn/v1"}),
    Spelling("an alias of the newest model", "claude-opus-latest", "claude-opus-5-5", "https://api.anthropic.com/v1"),
    Spelling("an alias at a provider", "together_ai/kimi-latest", "moonshotai/Kimi-K3", PROVIDER_PRESETS["together"].base_url),
    Spelling("an endpoint of an account at Hugging Face", "huggingface/a/b", "a/b", "https://e.endpoints.example/v1", {"api_base": "https://e.endpoints.example"}),
    Spelling("another proxy of LiteLLM", "litellm_proxy/gpt-5", "gpt-5", "http://proxy.example:4000/v1", {"api_base": "http://proxy.example:4000"}),
    Spelling("another endpoint of Bedrock", "bedrock/us.anthropic.claude-opus-4-8", "us.anthropic.claude-opus-4-8", "https://vpce-1.bedrock.example/anthropic/v1", {"aws_bedrock_runtime_endpoint": "https://vpce-1.bedrock.example/"}),
    Spelling("Claude at Vertex AI", "vertex_ai/claude-3-5-sonnet@20240620", "claude-3-5-sonnet@20240620", vertex("publishers/anthropic"), VERTEX_PLACE),
    Spelling("Mistral at Vertex AI", "vertex_ai/mistral-large@2407", "mistral-large@2407", vertex("publishers/mistralai"), VERTEX_PLACE),
    Spelling("Mistral at Vertex AI with its maker", "vertex_ai/mistralai/mistral-medium-3@001", "mistral-medium-3@001", vertex("publishers/mistralai"), VERTEX_PLACE),
    Spelling("Codestral at Vertex AI", "vertex_ai/codestral@2405", "codestral@2405", vertex("publishers/mistralai"), VERTEX_PLACE),
    Spelling("Llama at Vertex AI", "vertex_ai/meta/llama3-405b-instruct-maas", "meta/llama3-405b-instruct-maas", vertex("endpoints/openapi"), VERTEX_PLACE),
    Spelling("GPT-OSS at Vertex AI", "vertex_ai/openai/gpt-oss-20b-maas", "openai/gpt-oss-20b-maas", vertex("endpoints/openapi"), VERTEX_PLACE),
    Spelling("an alias of Grok at Vertex AI", "vertex_ai/grok-latest", "xai/grok-4.7", vertex("endpoints/openapi"), VERTEX_PLACE),
    Spelling("embeddings at Vertex AI", "vertex_ai/text-embedding-004", "text-embedding-004", vertex("publishers/google"), VERTEX_PLACE),
    Spelling("embeddings at Bedrock", "bedrock/amazon.titan-embed-text-v2:0", "amazon.titan-embed-text-v2:0", BEDROCK_HOST, BEDROCK_PLACE),
    Spelling("Cohere's embeddings at Bedrock", "bedrock/cohere.embed-english-v3", "cohere.embed-english-v3", BEDROCK_HOST, BEDROCK_PLACE),
    Spelling("rankings at Bedrock", "bedrock/arn:aws:bedrock:us-west-2::foundation-model/amazon.rerank-v1:0", "amazon.rerank-v1:0", BEDROCK_HOST),
    Spelling("the route of Converse", "bedrock/converse/us.amazon.nova-pro-v1:0", "us.amazon.nova-pro-v1:0", BEDROCK_HOST, BEDROCK_PLACE),
    Spelling("Claude by the route of Converse", "bedrock/converse/us.anthropic.claude-opus-4-8", "us.anthropic.claude-opus-4-8", BEDROCK_HOST, BEDROCK_PLACE),
    Spelling("the route of InvokeModel", "bedrock/invoke/us.anthropic.claude-opus-4-8", "us.anthropic.claude-opus-4-8", f"{BEDROCK_HOST}/anthropic/v1", BEDROCK_PLACE),
    Spelling("a profile of Bedrock by its ARN", "bedrock/arn:aws:bedrock:us-west-2:888602223428:inference-profile/us.anthropic.claude-opus-4-8", "us.anthropic.claude-opus-4-8", f"{BEDROCK_HOST}/anthropic/v1"),
    Spelling("a profile of an account at Bedrock", f"bedrock/converse/{PROFILE_ARN}", PROFILE_ARN, BEDROCK_HOST),
    Spelling("a provisioned model of Bedrock", "bedrock/anthropic.claude-instant-v1", PROFILE_ARN, BEDROCK_HOST, {"model_id": PROFILE_ARN}),
    Spelling("an API of OpenAI at Bedrock", "bedrock/openai/openai.gpt-oss-20b-1:0", "openai.gpt-oss-20b-1:0", f"{BEDROCK_HOST}/openai/v1", BEDROCK_PLACE),
    Spelling("rankings at Foundry", "azure_ai/cohere-rerank-v4.0-pro", "cohere-rerank-v4.0-pro", "https://r.services.ai.azure.com/providers/cohere/v2", {"api_base": "https://r.services.ai.azure.com"}),
    Spelling("rankings at a host of a model", "azure_ai/Cohere-rerank-v3-english", "Cohere-rerank-v3-english", "https://c.eastus.models.ai.azure.com/v1", {"api_base": "https://c.eastus.models.ai.azure.com"}),
    Spelling("an address of IPv6", "openai/m", "m", "http://[2001:db8::1]:8000/v1", {"api_base": "http://[2001:db8::1]:8000/v1"}),
    Spelling("a list of compatible providers", "xiaomi_mimo/mimo-v2", "mimo-v2", "https://api.xiaomimimo.com/v1"),
]  # fmt: skip


@pytest.mark.parametrize("case", SPELLINGS, ids=lambda case: case.id)
def test_a_model_keeps_no_prefix_and_goes_to_the_address_of_its_provider(case: Spelling) -> None:
    found = channel(model=case.model, **case.params)
    assert ([model.upstream for model in found.models], found.base_url) == ([case.upstream], case.base_url)


@dataclass(frozen=True)
class Unconverted:
    """Deployment, or parameters of one, without a counterpart, with the reason in the list or its beginning."""

    id: str
    params: dict[str, Any]
    reason: str


REFUSED = [
    Unconverted("embeddings at a provider without", {"model": "groq/x", "info": {"mode": "embedding"}}, "`groq` serves no embeddings here"),
    Unconverted("speech at a provider without", {"model": "cerebras/x", "info": {"mode": "audio_speech"}}, "`cerebras` serves no speech here"),
    Unconverted("transcription at a provider without", {"model": "cerebras/x", "info": {"mode": "audio_transcription"}}, "`cerebras` serves no transcriptions here"),
    Unconverted("text completions", {"model": "text-completion-openai/davinci-002"}, "text completions (`/v1/completions`) are not served; use a chat model of the provider"),
    Unconverted("a tuned model at Vertex AI", {"model": "vertex_ai/gemini/4965075652664360960"}, "endpoints of an account at Vertex AI have an address of their own, which is not called"),
    Unconverted("a deployed model at Vertex AI", {"model": "vertex_ai/openai/5464397967697903616"}, "endpoints of an account at Vertex AI have an address of their own, which is not called"),
    Unconverted("another maker at Vertex AI", {"model": "vertex_ai/jamba-1.5-mini@001"}, "of the models at Vertex AI those of Google, Anthropic and Mistral and open models are served"),
    Unconverted("an imported model at Bedrock", {"model": "bedrock/deepseek_r1/arn:aws:bedrock:us-east-1:086734376398:imported-model/r4c4kewx2s0n"}, "imported models at Bedrock are called by InvokeModel in a format of their own, which is not served"),
    Unconverted("a throughput of vectors of an unknown model", {"model": "bedrock/amazon.titan-embed-text-v1", "model_id": "arn:aws:bedrock:us-east-1:1:provisioned-model/x"}, "an ARN does not show the maker of its model: let the public id contain the id of the model"),
    Unconverted("vectors of another maker at Bedrock", {"model": "bedrock/twelvelabs.marengo-embed-2-7-v1:0"}, "`bedrock` serves no embeddings of this model here"),
    Unconverted("images at Bedrock", {"model": "bedrock/stability.sd3-large-v1:0"}, "`bedrock` serves no images of this model here"),
    Unconverted("no id of Bedrock", {"model": "bedrock/gpt-oss-120b"}, "no id of Bedrock, which begins with its maker, for example `anthropic.`: write that id"),
    Unconverted("Meta's former API", {"model": "meta_llama/Llama-4-Scout"}, "Meta has shut the Llama API down on 2026-07-06"),
    Unconverted("Lambda's former API", {"model": "lambda_ai/x"}, "Lambda has shut its Inference API down on 2025-09-25"),
    Unconverted("images of another method", {"model": "gemini/imagen-9", "info": {"mode": "image_generation"}}, "`gemini` serves no images of this model here"),
    Unconverted("a model in a variable", {"model": "os.environ/MODEL"}, "its id is in an environment variable, by which no provider is found: write the id"),
    Unconverted("sessions behind a name of the account", {"model": "azure/a", "api_base": AZURE_BASE, "info": {"base_model": "azure/gpt-realtime"}}, "it has no operation that is served: texts, embeddings, rankings, moderations, speech, transcriptions, images, videos"),
    Unconverted("no deployment of Azure", {"model": "azure/", "api_base": AZURE_BASE}, "`azure/` names no deployment"),
    Unconverted("no model", {"model": "groq/"}, "`groq/` names no model"),
    Unconverted("an unknown prefix", {"model": "mistralai/m"}, NO_PROVIDER),
    Unconverted("a pattern of videos at another address", {"model": "kling/*", "api_base": SERVER}, "`kling` serves no texts or embeddings at another address than its own here"),
    Unconverted("a router", {"model": "auto_router/complexity_router"}, "LiteLLM chooses another model for each call; callers name the model here, or `aliases` does"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_a_model_that_its_provider_cannot_serve_is_listed_with_the_reason(case: Unconverted) -> None:
    made, config = imported(case.params, {"model": "openai/gpt-5"})
    assert [note for note in made.lost if note.startswith(f"model `m` ({case.params['model']}): {case.reason}")]
    assert [model.upstream for each in config.channels for model in each.models] == ["gpt-5"]


def test_images_of_a_compatible_server_are_called_by_its_protocol_of_images() -> None:
    found = channel(model="openai/x", api_base=SERVER, info={"mode": "image_generation"})
    assert found.protocols == ("images",)


NAMED: dict[str, tuple[dict[str, object], list[str]]] = {
    "embeddings by their mode": ({"model": "azure/x", "info": {"mode": "embedding"}}, ["embed"]),
    "embeddings by the model behind the name": ({"model": "azure/x", "info": {"base_model": "azure/text-embedding-3-large"}}, ["embed"]),
    "images by their mode": ({"model": "azure/x", "info": {"mode": "image_generation"}}, ["images"]),
    "embeddings by their id": ({"model": "azure/text-embedding-3-small", "info": {"mode": "embedding"}}, []),
    "texts": ({"model": "azure/x", "info": {"mode": "chat"}}, []),
}  # fmt: skip


@pytest.mark.parametrize(("deployment", "operations"), NAMED.values(), ids=NAMED)
def test_a_name_of_the_account_keeps_the_operation_of_its_model(
    deployment: dict[str, object], operations: list[str]
) -> None:
    made, _ = imported({"api_base": AZURE_BASE, "api_key": "k", **deployment})
    models = made.sections.get("models", {})
    assert isinstance(models, dict)
    assert models.get("m", {}).get("capabilities", {}).get("operations", []) == operations
    is_listed = any("model_info.mode" in note for note in made.lost)
    assert is_listed == (not operations and "mode" in str(deployment))


def test_foundry_has_two_addresses_and_its_own_header_of_keys() -> None:
    params = {"api_base": "https://r.services.ai.azure.com", "api_key": "k"}
    claude, other = channel(model="azure_ai/claude-opus-4-5", **params), channel(model="azure_ai/grok-4", **params)
    assert (claude.protocols, claude.base_url) == (("messages",), "https://r.services.ai.azure.com/anthropic/v1")
    assert (other.protocols, other.base_url) == (CHAT, "https://r.services.ai.azure.com/openai/v1")
    assert not other.query
    assert claude.auth == other.auth == HeaderAuth(header="api-key")
    elsewhere = channel(model="azure_ai/m", api_base="https://m.eastus2.models.ai.azure.com", api_key="k")
    assert (elsewhere.base_url, elsewhere.auth) == ("https://m.eastus2.models.ai.azure.com", BearerAuth())


def test_models_of_foundry_leave_the_address_that_has_been_shut_down() -> None:
    base = "https://r.services.ai.azure.com/models/chat/completions?api-version=2025-01-01"
    made, config = imported({"model": "azure_ai/grok-4", "api_base": base, "api_key": "k", "api_version": "2025-01-01"})
    (found,) = config.channels
    assert (found.base_url, dict(found.query)) == ("https://r.services.ai.azure.com/openai/v1", {})
    assert made.lost == ["litellm_params.api_version of `m`: the address needs no version"]


def test_a_token_of_entra_is_a_credential() -> None:
    found = channel(model="azure/x", api_base=AZURE_BASE, azure_ad_token="os.environ/AD_TOKEN")
    assert (found.auth, found.api_keys) == (BearerAuth(), ("us-east-1",))
    made, _ = imported({"model": "azure/x", "api_base": AZURE_BASE, "azure_ad_token": "t", "api_key": "k"})
    assert [note for note in made.lost if "azure_ad_token" in note and "renew" in note]


def test_static_keys_of_aws_sign_requests() -> None:
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_region_name": "eu-west-1"}
    found = channel(model="bedrock/anthropic.claude-sonnet-4-v1:0", **keys)
    assert (found.auth, found.api_keys) == (AccessKeyAuth(scheme="aws"), ("a:b",))


@dataclass(frozen=True)
class CloudLogin:
    id: str
    params: dict[str, str]
    auth: Auth


@pytest.mark.parametrize(
    "case",
    [
        CloudLogin("a profile of AWS", {"model": BEDROCK_MODEL, "aws_profile_name": "p"}, AwsAuth(profile="p")),
        CloudLogin(
            "a role of AWS",
            {"model": BEDROCK_MODEL, "aws_role_name": "r", "aws_session_name": "s", "aws_external_id": "e"},
            AwsAuth(role_arn="r", role_session_name="s", external_id="e"),
        ),
        CloudLogin(
            "a web identity at AWS",
            {"model": BEDROCK_MODEL, "aws_role_name": "r", "aws_web_identity_token": "oidc/file//var/token"},
            AwsAuth(role_arn="r", web_identity_token_file="/var/token"),
        ),
        CloudLogin(
            "a file of Google",
            {"model": "vertex_ai/gemini-3-pro", "vertex_project": "p", "vertex_credentials": "/keys/a.json"},
            GoogleAuth(file="/keys/a.json"),
        ),
        CloudLogin(
            "an application of Entra ID",
            {"model": "azure/x", "api_base": AZURE_BASE, "tenant_id": "t", "client_id": "c", "client_secret": "s"},
            AzureAuth(tenant_id="t", client_id="c", client_secret="s"),
        ),
        CloudLogin(
            "an application at another host",
            {
                "model": "azure/x",
                "api_base": "https://a.example",
                "tenant_id": "t",
                "client_id": "c",
                "client_secret": "s",
            },
            AzureAuth(
                tenant_id="t", client_id="c", client_secret="s", scope="https://cognitiveservices.azure.com/.default"
            ),
        ),
    ],
    ids=lambda case: case.id,
)
def test_logins_at_clouds_are_those_of_their_libraries(case: CloudLogin) -> None:
    region = {"aws_region_name": "eu-west-1"} if case.params["model"] == BEDROCK_MODEL else {}
    made, config = imported({**case.params, **region})
    assert ([found.auth for found in config.channels], made.lost) == ([case.auth], [])


def test_an_identity_that_is_no_file_is_listed_with_its_role() -> None:
    params = {"model": BEDROCK_MODEL, "aws_role_name": "r", "aws_web_identity_token": "oidc/google/a", "api_key": "k"}
    made, _ = imported(params)
    assert len([note for note in made.lost if "`auth: {kind: aws}`" in note]) == 2


def test_fractions_of_weights_become_whole_numbers() -> None:
    made, _ = imported({"model": "openai/a", "weight": 0.25}, {"model": "openai/b", "weight": 0.75})
    assert [each.keys["weight"] for each in made.channels] == [25, 75]


def test_a_model_that_no_table_has_is_of_the_kind_of_the_pattern_that_it_fits() -> None:
    found = channel(model="dashscope/wan2.99-t2v")
    assert found.protocols == PROVIDER_PRESETS["dashscope-media"].protocols


@dataclass(frozen=True)
class Kind:
    """Id without a mode, with the protocols of the channel."""

    id: str
    params: dict[str, Any]
    protocols: tuple[str, ...]


KINDS = [
    Kind("words of embeddings", {"model": "openai/BAAI/bge-m3", "api_base": SERVER}, EMBEDDINGS),
    Kind("an id of the table", {"model": "openai/text-embedding-3-small", "api_base": SERVER}, EMBEDDINGS),
    Kind("no word", {"model": "openai/a", "api_base": SERVER}, CHAT),
    Kind("a provider of vectors alone", {"model": "infinity/a", "api_base": SERVER}, EMBEDDINGS),
    Kind("words of rankings", {"model": "infinity/BAAI/bge-reranker-v2-m3", "api_base": SERVER}, ("rerank",)),
]


@pytest.mark.parametrize("case", KINDS, ids=lambda case: case.id)
def test_a_model_without_a_mode_has_that_of_its_id_or_provider(case: Kind) -> None:
    assert channel(**case.params).protocols == case.protocols


@dataclass(frozen=True)
class Pattern:
    """Pattern of models, with the patterns of the channels that it becomes by their provider, and the listed rest."""

    id: str
    model: str
    channels: dict[str, list[tuple[str, str]]]
    lost: list[str] = field(default_factory=list)


PATTERNS = [
    Pattern(
        "rankings at another address",
        "cohere/*",
        {
            "cohere": [("cohere/*", "*")],
            "cohere-rerank": [(f"cohere/{each.id}", each.id) for each in PROVIDER_PRESETS["cohere-rerank"].models],
        },
    ),
    Pattern(
        "videos in another format",
        "minimax/*",
        {
            "minimax": [("minimax/*", "*")],
            "minimax-video": [(f"minimax/{each.id}", each.id) for each in PROVIDER_PRESETS["minimax-video"].models],
        },
    ),
    Pattern("a part of the models", "cohere/command-*", {"cohere": [("cohere/command-*", "command-*")]}),
    Pattern(
        "any provider",
        "*",
        {"openai": [("*", "*")]},
        ["further models of `*`: LiteLLM reads the provider in a prefix of each id: add a pattern of each provider"],
    ),
]


@pytest.mark.parametrize("case", PATTERNS, ids=lambda case: case.id)
def test_a_pattern_becomes_a_channel_for_each_address_of_its_provider(case: Pattern) -> None:
    entry = {"model_name": case.model, "litellm_params": {"model": case.model}}
    made = from_litellm(yaml.safe_dump({"model_list": [entry]}))
    config = parse(made.text(), "umg.yaml", Variables(made))
    found = {each.provider: [(model.id, model.upstream) for model in each.models] for each in config.channels}
    assert (found, made.lost) == (case.channels, case.lost)


def test_the_query_of_an_address_is_sent_with_each_call() -> None:
    found = channel(model="openai/m", api_base="https://a.example/v1/chat/completions?api-version=2&x=y")
    assert (found.base_url, dict(found.query)) == ("https://a.example/v1", {"api-version": "2", "x": "y"})


def test_the_variable_of_the_key_is_that_which_litellm_reads() -> None:
    made, _ = imported({"model": "volcengine/doubao-seed-1-6"})
    assert made.channels[0].keys == {"provider": "ark", "api_key": "${VOLCENGINE_API_KEY}"}
    made, _ = imported({"model": "groq/x"})
    assert made.channels[0].keys == {"provider": "groq"}


def test_named_credentials_are_those_of_the_deployments_that_name_them() -> None:
    credentials = [
        {"credential_name": "a", "credential_values": {"api_key": "os.environ/A", "api_base": "https://a.example/v1"}},
        {"credential_name": "b", "credential_values": {"api_key": "b"}},
    ]
    made, config = imported({"model": "openai/x", "litellm_credential_name": "a"}, credential_list=credentials)
    assert (config.channels[0].base_url, made.channels[0].keys["api_key"]) == ("https://a.example/v1", "${A}")
    assert made.lost == ["credential_list: `b`: no deployment names it"]


EXPLAINED = [
    Unconverted("tags", {"tags": ["a"]}, "LiteLLM selects deployments by the tags of a call"),
    Unconverted("region_name", {"region_name": "eu"}, "LiteLLM selects deployments by the region that a key allows"),
    Unconverted("mock_timeout", {"mock_timeout": True}, "a simulation of LiteLLM"),
    Unconverted("max_retries", {"max_retries": 3}, "set `retries`"),
    Unconverted("aws_role_name", {"aws_role_name": "r"}, "roles and profiles of AWS are used without keys beside them"),
    Unconverted("max_budget", {"max_budget": 1}, "budgets are those of keys"),
    Unconverted("guardrails", {"guardrails": ["a"]}, "name the model in `models` of a row of `guards`"),
    Unconverted(
        "model_id",
        {"model_id": "arn:aws:x"},
        "the model is called by its own id, not by a profile or provisioned model",
    ),
    Unconverted("temperature", {"temperature": 0}, "callers send it in their requests"),
    Unconverted("extra_body", {"extra_body": {"a": 1}}, "callers send these fields in their requests"),
    Unconverted("weight", {"weight": "heavy"}, "expected a number"),
]


@pytest.mark.parametrize("case", EXPLAINED, ids=lambda case: case.id)
def test_a_setting_without_a_counterpart_has_its_own_reason(case: Unconverted) -> None:
    made, _ = imported({"model": "openai/gpt-5", **case.params})
    (note,) = made.lost
    assert note.startswith(f"litellm_params.{case.id} of `m`: {case.reason}")


def test_rates_beside_the_parameters_are_limits() -> None:
    text = "model_list: [{model_name: m, litellm_params: {model: openai/gpt-5}, rpm: 3, tpm: 20_000}]"
    config = parse(from_litellm(text).text(), "umg.yaml", {"OPENAI_API_KEY": "k"})
    limits = config.models["m"].limits
    assert limits is not None
    assert (limits.rpm, limits.tpm) == (3, 20_000)


@dataclass(frozen=True)
class Redis:
    id: str
    sections: dict[str, Any]
    url: str


REDIS = [
    Redis("a URL of the router", {"router_settings": {"redis_url": "os.environ/R"}}, "${R}"),
    Redis("host and port", {"router_settings": {"redis_host": "h", "redis_port": 1, "redis_password": "a/b"}}, "redis://:a%2Fb@h:1"),
    Redis("of the cache", {"litellm_settings": {"cache_params": {"type": "redis", "host": "h", "ttl": 3}}}, "redis://h:6379"),
    Redis("of the proxy", {"general_settings": {"coordination_redis": {"host": "h", "port": 2, "ssl": True}}}, "rediss://h:2"),
]  # fmt: skip


@pytest.mark.parametrize("case", REDIS, ids=lambda case: case.id)
def test_a_server_of_redis_is_kept_from_each_place(case: Redis) -> None:
    made, _ = imported({"model": "openai/gpt-5"}, **case.sections)
    assert made.sections["redis"] == case.url


NAMED = [
    {"model_name": "a", "litellm_params": {"model": "openai/gpt-5", "api_key": "os.environ/OPENAI_API_KEY_SALES"}},
    {"model_name": "b", "litellm_params": {"model": "openai/gpt-5", "api_key": "os.environ/OPENAI_API_KEY_LABS"}},
    {"model_name": "c", "litellm_params": {"model": "azure/c", "api_base": "https://east.openai.azure.com"}},
    {"model_name": "d", "litellm_params": {"model": "azure/d", "api_base": "https://west.openai.azure.com"}},
    {"model_name": "e", "litellm_params": {"model": "openai/e", "api_base": "https://gpu.example/v1"}},
    {"model_name": "f", "litellm_params": {"model": "openai/f", "api_base": "https://gpu.example/v1"}, "model_info": {"mode": "embedding"}},
    {"model_name": "g", "litellm_params": {"model": "groq/x", "timeout": 5}},
    {"model_name": "h", "litellm_params": {"model": "groq/y", "timeout": 6}},
]  # fmt: skip


def test_channels_are_named_after_their_provider_and_their_role() -> None:
    made = from_litellm(yaml.safe_dump({"model_list": NAMED}))
    assert [each.name for each in made.channels] == [
        *("openai-sales", "openai-labs", "azure-east", "azure-west"),
        *("gpu.example", "gpu.example-embeddings", "groq-g", "groq-h"),
    ]


def test_the_preset_of_an_address_is_used_for_compatible_servers_and_other_platforms_of_a_vendor() -> None:
    base = "https://api.moonshot.cn/v1"
    made, _ = imported({"model": "moonshot/kimi-k3", "api_base": base}, {"model": "openai/kimi-k2", "api_base": base})
    assert [each.keys["provider"] for each in made.channels] == ["moonshot-cn", "moonshot-cn"]
    assert all("base_url" not in each.keys for each in made.channels)
