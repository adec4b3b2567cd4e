"""Model lists as the providers' documents show them, shortened."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from umg_grpc.operations.listed_operations import LISTED_OPERATIONS
from umg_grpc.operations.protocols import model_list
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_model_lists import (
    ANTHROPIC_LIST,
    GEMINI_LIST,
    OPENAI_LIST,
    ModelList,
    decode_anthropic,
    decode_gemini,
    decode_openai,
)


@dataclass(frozen=True)
class Case:
    id: str
    row: dict[str, Any]
    expected: pb.Model


def price(unit: str, micro_credits: int) -> pb.Price:
    return pb.Price(unit=f"BILLABLE_UNIT_{unit}_TOKEN", micro_credits_per_million=micro_credits)


def timed(seconds: int, **fields: Any) -> pb.Model:
    model = pb.Model(**fields)
    model.create_time.FromSeconds(seconds)
    return model


TEXT = [pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_COUNT_TOKENS]

CASES = [
    Case(
        "OpenAI",
        {"id": "gpt-5", "object": "model", "created": 1754425777, "owned_by": "system"},
        timed(1754425777, id="gpt-5"),
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
    ),
    Case("a price of another model", {"id": "auto", "pricing": {"prompt": "-1"}}, pb.Model(id="auto")),
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
    ),
    Case(
        "Groq",
        {"id": "llama", "context_window": 131072, "max_completion_tokens": 32768, "active": True},
        pb.Model(id="llama", input_token_limit=131072, output_token_limit=32768),
    ),
    Case("vLLM", {"id": "m", "max_model_len": 4096, "root": "m"}, pb.Model(id="m", input_token_limit=4096)),
    Case(
        "a name of an embedding model",
        {"id": "nomic-embed-text:latest", "owned_by": "library"},
        pb.Model(id="nomic-embed-text:latest", operations=[pb.MODEL_OPERATION_EMBED]),
    ),
    Case(
        "an id with the words of two operations",
        {"id": "Embed-and-Rerank-1"},
        pb.Model(id="Embed-and-Rerank-1", operations=[pb.MODEL_OPERATION_RERANK]),
    ),
    Case(
        "Mistral, a model of texts",
        {"id": "m", "capabilities": {"completion_chat": True, "completion_fim": False, "vision": True}},
        pb.Model(id="m", operations=TEXT),
    ),
    Case(
        "Mistral, another model",
        {"id": "m", "capabilities": {"completion_chat": False, "classification": True}},
        pb.Model(id="m"),
    ),
    Case(
        "Cohere",
        {"id": "m", "endpoints": ["embed", "classify"]},
        pb.Model(id="m", operations=[pb.MODEL_OPERATION_EMBED]),
    ),
    Case(
        "Novita",
        {"id": "m", "model_type": "Reranker"},
        pb.Model(id="m", operations=[pb.MODEL_OPERATION_RERANK]),
    ),
    Case(
        "Vercel",
        {"id": "m", "type": "video"},
        pb.Model(id="m", operations=[pb.MODEL_OPERATION_CREATE_VIDEO]),
    ),
    Case(
        "OpenRouter, texts and images",
        {"id": "m", "architecture": {"output_modalities": ["text", "image"]}},
        pb.Model(id="m", operations=[*TEXT, pb.MODEL_OPERATION_GENERATE_IMAGE, pb.MODEL_OPERATION_EDIT_IMAGE]),
    ),
    Case(
        "OpenRouter, speech",
        {"id": "m", "architecture": {"output_modalities": ["audio"]}},
        pb.Model(id="m"),
    ),
    Case(
        "fields of other types",
        {"id": "m", "created": "soon", "context_length": True, "pricing": [], "architecture": 1, "name": None},
        pb.Model(id="m"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_row_is_read_with_the_fields_of_its_provider(case: Case) -> None:
    page = decode_openai(json.dumps({"object": "list", "data": [case.row]}).encode(), LISTED_OPERATIONS)
    assert (page.models, page.next_query) == ([case.expected], "")


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
def test_a_body_that_is_no_list_is_an_error(listing: ModelList, body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  each library has its own message
        listing.decode(body, LISTED_OPERATIONS)


def test_a_page_of_the_messages_vendor_names_the_next_one() -> None:
    row = {"type": "model", "id": "claude-x", "display_name": "Claude X", "created_at": "2025-05-14T00:00:00Z"}
    page = decode_anthropic(
        json.dumps({"data": [row], "has_more": True, "last_id": "claude-x"}).encode(), LISTED_OPERATIONS
    )
    assert page.models == [timed(1747180800, id="claude-x", display_name="Claude X")]
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
