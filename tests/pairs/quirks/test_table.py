"""The table of fields that providers refuse: each row has its source, and each known provider gets its own row."""

from dataclasses import asdict, dataclass
from typing import Any

import pytest

from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.knowledge.provider_quirks import PROVIDER_QUIRKS, DialectRow, known

UNKNOWN_ELSEWHERE = frozenset(
    {
        *("store", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
        *("verbosity", "service_tier", "safety_identifier", "moderation"),
    }
)
REFUSED_BY_GPT_5 = frozenset(
    {
        *("audio", "modalities", "prediction", "logit_bias", "web_search_options"),
        *("logprobs", "top_logprobs", "presence_penalty", "frequency_penalty"),
    }
)
ANYWHERE = "https://provider.example/v1"


@dataclass(frozen=True)
class Case:
    """A model of a provider, and its known quirks."""

    id: str
    model: str
    protocol: str
    known: dict[str, Any]
    base_url: str = ANYWHERE
    family: str = ""


CASES = [
    Case("a user's id in chat", "m", "chat", {"max_user_characters": 64, "min_user_characters": None}),
    Case("a user's id in responses", "m", "responses", {"max_user_characters": 64}),
    Case("a user's id in messages", "m", "messages", {"max_user_characters": None}),
    Case("a longer one", "m", "chat", {"max_user_characters": 128}, "https://openrouter.ai/api/v1"),
    Case("one that may be too short", "glm-4.6", "messages", {"min_user_characters": 6, "max_user_characters": 128}, "https://open.bigmodel.cn/api/anthropic/v1"),
    Case("another host of a like name", "m", "chat", {"max_user_characters": 64}, "https://notopenrouter.ai/v1"),
    Case("members of OpenAI alone", "our-own", "chat", {"rejects": UNKNOWN_ELSEWHERE}),
    Case("members of OpenAI alone at its model", "openai/gpt-5", "chat", {"rejects": REFUSED_BY_GPT_5}),
    Case(
        "members of OpenAI alone at a known host",
        "llama-3",
        "chat",
        {"rejects": frozenset({"logit_bias", "logprobs", "prompt_cache_key", "top_logprobs"})},
        "https://api.groq.com/openai/v1",
    ),
    Case("instructions of a strict template", "unsloth/Qwen3.8-27B", "chat", {"system_place": "first"}),
    Case("instructions at its vendor", "qwen3.8-max", "chat", {"system_place": "anywhere"}, "https://dashscope.aliyuncs.com/v1"),
    Case("a relay of a vendor without schemas", "deepseek-chat", "chat", {"schema_dialect": "json_object"}),
    Case("search in chat", "gpt-5", "chat", {"web_search": False}),
    Case("a model for searching", "openai/gpt-4o-mini-search-preview", "chat", {"web_search": True}),
    Case("a newer one", "gpt-5-search-api", "chat", {"web_search": True}),
    Case("a family that searches", "famX-4", "chat", {"web_search": True}),
    Case("search in messages", "claude-sonnet-4-5", "messages", {"web_search": None}),
    Case("search beside functions, 2.5", "gemini-2.5-pro", "native", {"search_with_functions": "drop"}),
    Case("search beside functions, famG-2.5", "famG-2.5-flash", "native", {"search_with_functions": "drop"}),
    Case("search beside functions, 1.5", "models/gemini-1.5-pro", "native", {"search_with_functions": "drop"}),
    Case("search beside functions, 3", "gemini-3-pro-preview", "native", {"search_with_functions": "declare"}),
    Case("search beside functions, famG-3", "famG-3-pro", "native", {"search_with_functions": "declare"}),
    Case(
        "search beside functions, 3 at the vendor's cloud",
        "gemini-3-flash",
        "native",
        {"search_with_functions": "send"},
        "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google",
    ),
    Case("search beside functions, no generation", "gemma-3", "native", {"search_with_functions": None}),
    Case("thoughts of earlier turns", "m", "chat", {"reasoning_content": False}),
    Case("thoughts of earlier turns, famR", "famR-1", "chat", {"reasoning_content": True}),
    Case("thoughts of earlier turns, by the family", "our-own", "chat", {"reasoning_content": True}, family="famR"),
    Case("thoughts of earlier turns, deepseek", "deepseek-ai/DeepSeek-V3.2", "chat", {"reasoning_content": True}),
    Case("thoughts of earlier turns, qwen", "qwen3-max", "chat", {"reasoning_content": True}),
    Case("thoughts of earlier turns, kimi", "kimi-k2-thinking", "chat", {"reasoning_content": True}),
    Case("thoughts of earlier turns, glm", "zai-org/GLM-4.6", "chat", {"reasoning_content": True}),
    Case("thoughts of earlier turns, minimax", "MiniMax-M2", "chat", {"reasoning_content": True}),
    Case("a strict host of such a model", "qwen/qwen3-32b", "chat", {"reasoning_content": False}, "https://api.groq.com/openai/v1"),
    Case("another strict host", "magistral-medium-latest", "chat", {"reasoning_content": False}, "https://api.mistral.ai/v1"),
    Case("a model that does not reason", "gpt-4o-2024-11-20", "responses", {"reasoning": False}),
    Case("the next", "gpt-4.1-mini", "chat", {"reasoning": False, "max_output_tokens": 32_768}),
    Case("a model that does", "gpt-5-codex", "chat", {"reasoning": None, "max_output_tokens": 128_000}),
    Case("a model that samples by itself", "o3-mini", "chat", {"sampling": "never", "reasoning": None}),
    Case("the next", "gpt-5", "responses", {"sampling": "never"}),
    Case("not one to chat with", "gpt-5-chat-latest", "chat", {"sampling": "all", "max_output_tokens": 16_384}),
    Case("an open model of the same vendor", "gpt-oss-120b", "chat", {"reasoning": None, "max_output_tokens": None}),
    Case("an old model of messages", "claude-3-5-haiku-20241022", "messages", {"reasoning": False}),
    Case("one that reasons", "claude-3-7-sonnet-latest", "messages", {"reasoning": None, "reasoning_budget": True}),
    Case("one that thinks as much as it likes", "claude-sonnet-5", "messages", {"reasoning": None, "reasoning_budget": False, "sampling": "never"}),
    Case("its predecessor, with a dot", "anthropic/claude-opus-4.8", "messages", {"reasoning_budget": False}),
    Case("a grok without efforts", "grok-4-0709", "responses", {"reasoning": False}),
    Case("a grok with efforts", "grok-4.3", "responses", {"reasoning": None}),
    Case("gemini without thoughts", "gemini-2.0-flash", "native", {"reasoning": False, "max_output_tokens": 8192}),
    Case("gemini with thoughts", "gemini-2.5-flash", "native", {"reasoning": None, "max_output_tokens": 65_535}),
    Case("the longest answer of an old model", "claude-3-opus-20240229", "messages", {"max_output_tokens": 4096}),
    Case("behind a vendor's name", "us.anthropic.claude-3-5-sonnet-v2:0", "messages", {"max_output_tokens": 8192}),
    Case("by its date", "claude-opus-4-20250514", "messages", {"max_output_tokens": 32_000}),
    Case("a usual one", "claude-sonnet-4-5-20250929", "messages", {"max_output_tokens": 64_000}),
    Case("one with a default below its longest answer", "claude-opus-5", "messages", {"max_output_tokens": 128_000, "default_output_tokens": 64_000}),
    Case("an unknown one", "m", "messages", {"max_output_tokens": None, "default_output_tokens": None}),
    Case("a prefix at the address that has it", "deepseek-v4-pro", "chat", {"prefix": True}, "https://api.deepseek.com/beta"),
    Case("no prefix at another address", "deepseek-v4-pro", "chat", {"prefix": None}, "https://api.deepseek.com/v1"),
    Case("a limit of one host", "deepseek-chat", "chat", {"max_output_tokens": 8192}, "https://api.deepseek.com/v1"),
    Case("not of another", "deepseek-chat", "chat", {"max_output_tokens": None}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_model_of_a_provider_has_its_quirks(case: Case) -> None:
    found = asdict(known(case.model, case.family, case.base_url, case.protocol))
    assert {name: found[name] for name in case.known} == case.known


@pytest.mark.parametrize("row", PROVIDER_QUIRKS, ids=lambda row: f"{row.models}@{row.hosts}/{','.join(row.protocols)}")
def test_every_row_has_a_quirk_and_its_source(row: DialectRow) -> None:
    assert row.quirks != NO_QUIRKS
    assert len(row.source) > 20


def test_a_configured_quirk_takes_precedence_over_the_table() -> None:
    written = Quirks(web_search=True, max_user_characters=128)
    assert written.over(known("gpt-4o", "", ANYWHERE, "chat")) == Quirks(
        web_search=True,
        max_user_characters=128,
        reasoning_content=False,
        custom_tools=False,
        developer=True,
        reasoning=False,
        max_output_tokens=16_384,
        thinking="never",
        efforts=(),
        reasoning_budget=False,
        sampling="all",
        chat_tools="always",
        prefill=True,
    )


def test_members_that_an_operator_lists_replace_those_of_the_table() -> None:
    known_quirks = known("our-own", "", ANYWHERE, "chat")
    assert Quirks(rejects=frozenset()).first(known_quirks).rejects == frozenset()
    assert Quirks(developer=True).first(known_quirks).rejects == UNKNOWN_ELSEWHERE
    assert Quirks(rejects=frozenset({"a"})).over(known_quirks).rejects == UNKNOWN_ELSEWHERE | {"a"}
