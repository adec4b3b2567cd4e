"""Model lists as the providers' documents show them, shortened."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from umg_grpc.knowledge.model_list_shapes import list_shapes
from umg_grpc.operations.listed_operations import LISTED_OPERATIONS
from umg_grpc.operations.provider_protocols_by_name import model_list
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_model_lists import (
    ANTHROPIC_LIST,
    GEMINI_LIST,
    OPENAI_LIST,
    ProviderModelList,
    decode_anthropic,
    decode_gemini,
    decode_openai,
)


@dataclass(frozen=True)
class Case:
    id: str
    row: dict[str, Any]
    expected: pb.Model
    source: str
    """Origin of the entry's shape; ours for entries that no provider has sent."""


OURS = "none: written for this test"


def price(unit: str, micro_credits: int) -> pb.Price:
    return pb.Price(unit=f"BILLABLE_UNIT_{unit}_TOKEN", micro_credits_per_million=micro_credits)


def timed(seconds: int, **fields: Any) -> pb.Model:
    model = pb.Model(**fields)
    model.create_time.FromSeconds(seconds)
    return model


def ending(moment: str) -> pb.Model:
    model = pb.Model(id="m", lifecycle=pb.MODEL_LIFECYCLE_DEPRECATED)
    model.retire_time.FromJsonString(moment)
    return model


OPENAI_SOURCE = "https://developers.openai.com/api/docs/deprecations"
OPENROUTER_SOURCE = "ironsparrows/swift-language-models, release 1.2.1, from the list of OpenRouter"
TEXT = [pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_COUNT_TOKENS]
EMBED, RERANK, VIDEO = [pb.MODEL_OPERATION_EMBED], [pb.MODEL_OPERATION_RERANK], [pb.MODEL_OPERATION_CREATE_VIDEO]
IMAGES = [pb.MODEL_OPERATION_GENERATE_IMAGE, pb.MODEL_OPERATION_EDIT_IMAGE]
SPEECH = [pb.MODEL_OPERATION_SPEAK]
NOTHING = [pb.MODEL_OPERATION_UNSPECIFIED]
TEXTS_AND_IMAGES = {"input_modalities": ["text", "image"], "output_modalities": ["text"]}
REASONS = pb.ModelCapabilities(
    **TEXTS_AND_IMAGES, tools=True, structured_output=True, reasoning=pb.REASONING_CONTROL_LEVEL
)
MODELS_DEV = "anomalyco/models.dev, packages/core/src/sync/providers"
ARK_SOURCE = "can1357/oh-my-pi#4201, a whole list; volcengine/veadk-python, frontend/server/model_catalog/service.py"
FIREWORKS_SOURCE = "enricoros/big-AGI, src/modules/llms/server/openai/wiretypes/fireworksai.wiretypes.ts"
DEEPINFRA_SOURCE = "openclaw/openclaw, extensions/deepinfra/provider-models.ts and its tests"
ARK = {
    "created": 1767587883,
    "domain": "VLM",
    "features": {
        "batch": {"batch_chat": False, "batch_job": False},
        "cache": {"prefix_cache": False, "session_cache": False},
        "structured_outputs": {"json_object": True, "json_schema": True},
        "tools": {"function_calling": True},
    },
    "id": "doubao-seed-1-8-251228",
    "modalities": TEXTS_AND_IMAGES,
    "name": "doubao-seed-1-8",
    "object": "model",
    "task_type": ["VisualQuestionAnswering", "TextGeneration"],
    "token_limits": {
        "context_window": 262144,
        "max_input_token_length": 229376,
        "max_output_token_length": 65536,
        "max_reasoning_token_length": 32768,
    },
    "version": "251228",
}
FIREWORKS = {
    "id": "accounts/fireworks/models/a",
    "object": "model",
    "owned_by": "fireworks",
    "created": 1764602280,
    "kind": "HF_BASE_MODEL",
    "supports_chat": True,
    "supports_image_input": False,
    "supports_tools": True,
    "context_length": 163840,
}
FIREWORKS_MODEL = timed(1764602280, id="accounts/fireworks/models/a", input_token_limit=163840)
DEEPINFRA = {
    "description": "gpt-oss-120b",
    "context_length": 131072,
    "max_tokens": 131072,
    "pricing": {"input_tokens": 3, "output_tokens": 15, "cache_read_tokens": 0.3},
    "tags": ["chat", "vlm", "vision", "reasoning_effort", "prompt_cache", "reasoning"],
}
DEEPINFRA_PRICES = [price("INPUT", 3_000_000), price("OUTPUT", 15_000_000), price("CACHE_READ", 300_000)]


def fireworks(kind: str, operations: list[Any], *, chats: bool = False) -> Case:
    expected = pb.Model(operations=operations)
    expected.MergeFrom(FIREWORKS_MODEL)
    named = f"Fireworks, {kind}" if chats else f"Fireworks, {kind} without chats"
    return Case(named, FIREWORKS | {"kind": kind, "supports_chat": chats}, expected, FIREWORKS_SOURCE)


def deepinfra(tag: str, operations: list[Any]) -> Case:
    row = {"id": "m", "metadata": {"pricing": {}, "tags": [tag]}}
    return Case(f"DeepInfra, {tag}", row, pb.Model(id="m", operations=operations), DEEPINFRA_SOURCE)


def ark(task: str, operations: list[Any]) -> Case:
    expected = pb.Model(id="m", operations=operations)
    return Case(f"Ark, {task}", {"id": "m", "task_type": [task]}, expected, ARK_SOURCE)


CASES = [
    Case(
        "OpenAI",
        {"id": "gpt-5", "object": "model", "created": 1754425777, "owned_by": "system"},
        timed(1754425777, id="gpt-5"),
        "openai 3.57.0, types/model.py",
    ),
    Case(
        "OpenRouter",
        {
            "id": "vendor/large",
            "name": "Vendor: Large",
            "created": 1750000000,
            "context_length": 200000,
            "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
            "pricing": {
                "prompt": "0.000003",
                "completion": "0.000015",
                "request": "0",
                "input_cache_read": "0.0000003",
                "internal_reasoning": "0",
            },
            "top_provider": {"context_length": 200000, "max_completion_tokens": 64000},
            "supported_parameters": ["tools", "reasoning", "structured_outputs"],
        },
        timed(
            1750000000,
            id="vendor/large",
            operations=TEXT,
            display_name="Vendor: Large",
            input_token_limit=200000,
            output_token_limit=64000,
            prices=[price("INPUT", 3000000), price("OUTPUT", 15000000), price("CACHE_READ", 300000)],
            capabilities=pb.ModelCapabilities(
                input_modalities=["text", "image"],
                output_modalities=["text"],
                tools=True,
                structured_output=True,
                reasoning=pb.REASONING_CONTROL_LEVEL,
            ),
        ),
        "https://openrouter.ai/docs/overview/models",
    ),
    Case(
        "a price of another model",
        {"id": "auto", "pricing": {"prompt": "-1"}},
        pb.Model(id="auto"),
        "https://openrouter.ai/docs/overview/models",
    ),
    Case(
        "Together AI",
        {
            "id": "vendor/chat",
            "type": "chat",
            "created": 0,
            "display_name": "Chat",
            "context_length": 8192,
            "pricing": {"hourly": 0, "input": 0.18, "output": 0.59, "base": 0, "finetune": 0},
        },
        pb.Model(
            id="vendor/chat",
            display_name="Chat",
            input_token_limit=8192,
            operations=[pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_COUNT_TOKENS],
            prices=[price("INPUT", 180000), price("OUTPUT", 590000)],
        ),
        "https://docs.together.ai/reference/models",
    ),
    Case(
        "Groq",
        {"id": "llama", "context_window": 131072, "max_completion_tokens": 32768, "active": True},
        pb.Model(id="llama", input_token_limit=131072, output_token_limit=32768),
        "https://console.groq.com/docs/api-reference#models-list",
    ),
    Case(
        "vLLM",
        {"id": "m", "max_model_len": 4096, "root": "m"},
        pb.Model(id="m", input_token_limit=4096),
        "vllm-project/vllm, vllm/entrypoints/openai/protocol.py: ModelCard",
    ),
    Case(
        "a name of an embedding model",
        {"id": "nomic-embed-text:latest", "owned_by": "library"},
        pb.Model(id="nomic-embed-text:latest", operations=[pb.MODEL_OPERATION_EMBED]),
        "ollama/ollama, openai/openai.go: Model",
    ),
    Case(
        "an id with the words of two operations",
        {"id": "Embed-and-Rerank-1"},
        pb.Model(id="Embed-and-Rerank-1", operations=[pb.MODEL_OPERATION_RERANK]),
        OURS,
    ),
    Case(
        "Mistral, a model of texts",
        {"id": "m", "capabilities": {"completion_chat": True, "completion_fim": False, "vision": True}},
        pb.Model(id="m", operations=TEXT),
        "mistralai 3.7.0, client/models/modelcapabilities.py",
    ),
    Case(
        "Mistral, another model",
        {"id": "m", "capabilities": {"completion_chat": False, "classification": True}},
        pb.Model(id="m", operations=NOTHING),
        "mistralai 3.7.0, client/models/modelcapabilities.py",
    ),
    Case(
        "Cohere",
        {"id": "m", "endpoints": ["embed", "classify"]},
        pb.Model(id="m", operations=[pb.MODEL_OPERATION_EMBED]),
        "https://docs.cohere.com/reference/list-models",
    ),
    Case(
        "Novita",
        {"id": "m", "model_type": "Reranker"},
        pb.Model(id="m", operations=[pb.MODEL_OPERATION_RERANK]),
        "https://novita.ai/docs/api-reference/model-apis-llm-list-models",
    ),
    Case(
        "Vercel",
        {"id": "m", "type": "video"},
        pb.Model(id="m", operations=[pb.MODEL_OPERATION_CREATE_VIDEO]),
        f"{MODELS_DEV}/vercel.ts",
    ),
    Case(
        "OpenRouter, texts and images",
        {"id": "m", "architecture": {"output_modalities": ["text", "image"]}},
        pb.Model(id="m", operations=[*TEXT, pb.MODEL_OPERATION_GENERATE_IMAGE, pb.MODEL_OPERATION_EDIT_IMAGE]),
        "https://openrouter.ai/docs/overview/models",
    ),
    Case(
        "OpenRouter, speech",
        {"id": "m", "architecture": {"output_modalities": ["audio"]}},
        pb.Model(id="m", operations=NOTHING),
        "https://openrouter.ai/docs/overview/models",
    ),
    Case(
        "Together, speech",
        {"id": "m", "type": "audio"},
        pb.Model(id="m", operations=[pb.MODEL_OPERATION_SPEAK]),
        "https://docs.together.ai/reference/models",
    ),
    Case(
        "Together, transcription",
        {"id": "m", "type": "transcribe"},
        pb.Model(id="m", operations=[pb.MODEL_OPERATION_TRANSCRIBE]),
        "https://docs.together.ai/reference/models",
    ),
    Case(
        "DeepInfra, transcription",
        {"id": "m", "metadata": {"tags": ["stt"]}},
        pb.Model(id="m", operations=[pb.MODEL_OPERATION_TRANSCRIBE]),
        "openclaw/openclaw, extensions/deepinfra/provider-models.ts",
    ),
    Case(
        "fields of other types",
        {"id": "m", "created": "soon", "context_length": True, "pricing": [], "architecture": 1, "name": None},
        pb.Model(id="m"),
        OURS,
    ),
    Case(
        "Vercel, prices of one token",
        {
            "id": "google/g",
            "type": "language",
            "context_window": 1048576,
            "max_tokens": 65536,
            "pricing": {"input": "0.00000125", "output": "0.00001", "input_cache_read": "0.00000031"},
        },
        pb.Model(
            id="google/g",
            operations=TEXT,
            input_token_limit=1048576,
            output_token_limit=65536,
            prices=[price("CACHE_READ", 310_000), price("INPUT", 1_250_000), price("OUTPUT", 10_000_000)],
        ),
        f"{MODELS_DEV}/vercel.ts",
    ),
    Case(
        "Chutes, prices of a million tokens",
        {"id": "m", "pricing": {"prompt": 0.05, "completion": 0.25}, "max_output_length": 4096},
        pb.Model(id="m", output_token_limit=4096, prices=[price("INPUT", 50_000), price("OUTPUT", 250_000)]),
        "sosyz/models.dev, packages/core/src/sync/providers/chutes.ts",
    ),
    Case("a price of no model", {"id": "m", "pricing": {"prompt": 50_000}}, pb.Model(id="m"), OURS),
    Case(
        "Ark",
        ARK,
        timed(
            1767587883,
            id="doubao-seed-1-8-251228",
            display_name="doubao-seed-1-8",
            operations=TEXT,
            input_token_limit=262144,
            output_token_limit=65536,
            capabilities=REASONS,
        ),
        ARK_SOURCE,
    ),
    Case(
        "Ark, without the length of a reasoning",
        {**ARK, "status": "Retiring", "token_limits": {"context_window": 32768, "max_output_token_length": 12288}},
        timed(
            1767587883,
            id="doubao-seed-1-8-251228",
            display_name="doubao-seed-1-8",
            operations=TEXT,
            input_token_limit=32768,
            output_token_limit=12288,
            lifecycle=pb.MODEL_LIFECYCLE_DEPRECATED,
        ),
        ARK_SOURCE,
    ),
    Case(
        "Ark, a domain",
        {"id": "m", "domain": "Embedding", "token_limits": {}},
        pb.Model(id="m", operations=EMBED),
        ARK_SOURCE,
    ),
    ark("TextEmbedding", EMBED),
    ark("TextToImage", IMAGES[:1]),
    ark("ImageToImage", IMAGES[1:]),
    ark("MultimodalToVideo", VIDEO),
    ark("ImageTo3D", NOTHING),
    fireworks("HF_BASE_MODEL", TEXT, chats=True),
    fireworks("HF_BASE_MODEL", NOTHING),
    fireworks("EMBEDDING_MODEL", EMBED),
    fireworks("FLUMINA_BASE_MODEL", IMAGES[:1]),
    fireworks("DRAFT_ADDON", NOTHING),
    Case(
        "DeepInfra",
        {"id": "openai/gpt-oss-120b", "object": "model", "metadata": DEEPINFRA},
        pb.Model(id="openai/gpt-oss-120b", operations=TEXT, input_token_limit=131072, prices=DEEPINFRA_PRICES),
        DEEPINFRA_SOURCE,
    ),
    Case("DeepInfra, without metadata", {"id": "m", "metadata": None}, pb.Model(id="m"), DEEPINFRA_SOURCE),
    deepinfra("embed", EMBED),
    deepinfra("image-gen", IMAGES),
    deepinfra("video-gen", VIDEO),
    deepinfra("tts", SPEECH),
    Case("OpenAI, with its end", {"id": "m", "shutdown_date": "2026-12-11"}, ending("2026-12-11T00:00:00Z"), OPENAI_SOURCE),
    Case("OpenAI, without an end", {"id": "m", "shutdown_date": None}, pb.Model(id="m"), OPENAI_SOURCE),
    Case("OpenRouter, with its end", {"id": "m", "expiration_date": "2026-12-31"}, ending("2026-12-31T00:00:00Z"), OPENROUTER_SOURCE),
    Case("Mistral, with its end", {"id": "m", "deprecation": "2026-12-11T12:00:00Z"}, ending("2026-12-11T12:00:00Z"), "mistralai 3.7.0, models/basemodelcard.py"),
    Case("an end that is no time", {"id": "m", "deprecation": "next year"}, pb.Model(id="m"), OURS),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_row_is_read_with_the_fields_of_its_provider(case: Case) -> None:
    page = decode_openai(json.dumps({"object": "list", "data": [case.row]}).encode(), LISTED_OPERATIONS)
    assert (page.models, page.next_query) == ([case.expected], "")


def test_a_model_that_its_provider_has_shut_down_is_left_out() -> None:
    rows = [ARK, ARK | {"id": "doubao-gone", "status": "Shutdown"}, {"id": "gone-at-groq", "active": False}]
    page = decode_openai(json.dumps({"object": "list", "data": rows}).encode(), LISTED_OPERATIONS)
    assert [model.id for model in page.models] == [ARK["id"]]


def test_each_shape_has_members_and_a_source_and_each_case_too() -> None:
    for shape in list_shapes():
        assert shape.source, shape.provider
        assert shape.kinds or shape.input_tokens or shape.prices or shape.ends, shape.provider
    assert all(case.source for case in CASES)


def test_a_bare_array_is_a_list_and_rows_without_an_id_are_left_out() -> None:
    assert [
        model.id
        for model in decode_openai(b'[{"id": "a"}, {"id": 1}, 5, {"id": ""}, {"id": "b"}]', LISTED_OPERATIONS).models
    ] == [
        "a",
        "b",
    ]


@pytest.mark.parametrize("body", [b"", b"{}", b'{"data": {}}', b"<html>", b"null", b'"a"'])
@pytest.mark.parametrize("listing", [OPENAI_LIST, ANTHROPIC_LIST, GEMINI_LIST], ids=["chat", "messages", "native"])
def test_a_body_that_is_no_list_is_an_error(listing: ProviderModelList, body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  each library has its own message
        listing.decode(body, LISTED_OPERATIONS)


def test_a_page_of_the_messages_vendor_names_the_next_one() -> None:
    row = {"type": "model", "id": "claude-x", "display_name": "Claude X", "created_at": "2025-05-14T00:00:00Z"}
    limits = {"max_input_tokens": 1000000, "max_tokens": 128000}
    page = decode_anthropic(
        json.dumps({"data": [row | limits], "has_more": True, "last_id": "claude-x"}).encode(), LISTED_OPERATIONS
    )
    assert page.models == [
        timed(1747180800, id="claude-x", display_name="Claude X", input_token_limit=1000000, output_token_limit=128000)
    ]
    assert page.next_query == "?limit=1000&after_id=claude-x"
    assert decode_anthropic(b'{"data": [], "has_more": false, "last_id": "x"}', LISTED_OPERATIONS).next_query == ""


def test_a_page_of_the_native_vendor_has_operations_and_names_the_next_one() -> None:
    row = {
        "name": "models/gemini-x",
        "displayName": "Gemini X",
        "inputTokenLimit": 1048576,
        "outputTokenLimit": 65536,
        "supportedGenerationMethods": ["generateContent", "countTokens", "bidiGenerateContent"],
    }
    page = decode_gemini(json.dumps({"models": [row], "nextPageToken": "a b"}).encode(), LISTED_OPERATIONS)
    assert page.models == [
        pb.Model(
            id="gemini-x",
            display_name="Gemini X",
            input_token_limit=1048576,
            output_token_limit=65536,
            operations=[pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_COUNT_TOKENS],
        )
    ]
    assert page.next_query == "?pageSize=1000&pageToken=a+b"


def test_the_first_protocol_with_a_list_counts() -> None:
    assert model_list(("vidB", "native")) is GEMINI_LIST
    assert model_list(("vidE",)) is None
