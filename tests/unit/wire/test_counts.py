"""Counts of one call are int32: larger numbers of callers are refused, larger counts of providers are the maximum."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.unit.wire.test_answers import usages
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.rerank import RERANK_FORMATS

CHAT: dict[str, object] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
MESSAGES: dict[str, object] = {**CHAT, "max_tokens": 9}
RESPONSES: dict[str, object] = {"model": "m", "input": "Hi"}
NATIVE: dict[str, object] = {"contents": [{"parts": [{"text": "Hi"}]}]}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}


@dataclass(frozen=True)
class Limit:
    """Field of a body that limits tokens or calls."""

    id: str
    format: str
    path: str
    canonical: str


LIMITS = [
    Limit("chat: the older limit of tokens", "chat", "max_tokens", "max_output_tokens"),
    Limit("chat: the limit of tokens", "chat", "max_completion_tokens", "max_output_tokens"),
    Limit("chat: a budget", "chat", "thinking.budget_tokens", "reasoning.budget_tokens"),
    Limit("responses: the limit of tokens", "responses", "max_output_tokens", "max_output_tokens"),
    Limit("responses: the limit of calls", "responses", "max_tool_calls", "max_tool_calls"),
    Limit("messages: the limit of tokens", "messages", "max_tokens", "max_output_tokens"),
    Limit("messages: a budget", "messages", "thinking.budget_tokens", "reasoning.budget_tokens"),
    Limit("native: the limit of tokens", "native", "generationConfig.maxOutputTokens", "max_output_tokens"),
    Limit(
        "native: a budget",
        "native",
        "generationConfig.thinkingConfig.thinkingBudget",
        "reasoning.budget_tokens",
    ),
]
BODIES = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES, "native": NATIVE}


def body(case: Limit, number: float) -> bytes:
    """Return a body of the format with the number in the field."""
    *parents, name = case.path.split(".")
    members: dict[str, object] = {name: number}
    if parents[-1:] == ["thinking"]:
        members["type"] = "enabled"
    for parent in reversed(parents):
        members = {parent: members}
    return msgspec.json.encode(BODIES[case.format] | members)


@pytest.mark.parametrize("case", LIMITS, ids=lambda case: case.id)
@pytest.mark.parametrize("number", [MAX_COUNT + 1, 2**32 + 5, float(2**40), 2**70])
def test_a_number_beyond_the_maximum_is_refused_with_its_field(case: Limit, number: float) -> None:
    with pytest.raises(UmgError) as caught:
        TEXT_FORMATS[case.format].decode_request(body(case, number), {})
    assert (caught.value.reason, caught.value.metadata["field"]) == (pb.ERROR_REASON_INVALID_FIELD, case.path)
    assert str(MAX_COUNT) in caught.value.message


@pytest.mark.parametrize("case", LIMITS, ids=lambda case: case.id)
@pytest.mark.parametrize("number", [MAX_COUNT, float(MAX_COUNT)])
def test_the_maximum_itself_is_accepted(case: Limit, number: float) -> None:
    request = TEXT_FORMATS[case.format].decode_request(body(case, number), {}).canonical
    owner, _, name = case.canonical.rpartition(".")
    assert getattr(getattr(request, owner) if owner else request, name) == MAX_COUNT


def test_a_search_has_at_most_the_maximum_of_uses() -> None:
    decode = TEXT_FORMATS["messages"].decode_request
    accepted = decode(msgspec.json.encode(MESSAGES | {"tools": [{**SEARCH, "max_uses": MAX_COUNT}]}), {})
    assert accepted.canonical.tools[0].web_search.max_uses == MAX_COUNT
    with raises_error(metadata={"field": "tools[0].max_uses"}):
        decode(msgspec.json.encode(MESSAGES | {"tools": [{**SEARCH, "max_uses": MAX_COUNT + 1}]}), {})


def test_a_seed_may_have_64_bits() -> None:
    request = TEXT_FORMATS["chat"].decode_request(msgspec.json.encode(CHAT | {"seed": 2**63 - 1}), {}).canonical
    assert request.seed == 2**63 - 1
    for seed, comparison in ((2**63, "larger"), (-(2**63) - 1, "smaller")):
        with pytest.raises(UmgError, match=f"`seed`: the number is {comparison} than"):
            TEXT_FORMATS["chat"].decode_request(msgspec.json.encode(CHAT | {"seed": seed}), {})


HUGE: dict[str, Mapping[str, object]] = {
    "chat": {
        "prompt_tokens": 2**40,
        "completion_tokens": 2**31,
        "total_tokens": 2**50,
        "prompt_tokens_details": {"cached_tokens": 2**31},
        "completion_tokens_details": {"reasoning_tokens": 1e300},
    },
    "responses": {
        "input_tokens": 2**40,
        "output_tokens": "4294967296",
        "input_tokens_details": {"cached_tokens": 2**31},
        "output_tokens_details": {"reasoning_tokens": 2**40},
    },
    "messages": {
        "input_tokens": 2**31 - 5,
        "output_tokens": 2**40,
        "cache_read_input_tokens": 2**40,
        "cache_creation": {"ephemeral_5m_input_tokens": 2**31 - 5, "ephemeral_1h_input_tokens": 2**31 - 5},
        "output_tokens_details": {"thinking_tokens": 2**40},
    },
    "native": {
        "promptTokenCount": 2**31 - 5,
        "toolUsePromptTokenCount": 9,
        "candidatesTokenCount": "2147483643",
        "thoughtsTokenCount": 2**40,
        "cachedContentTokenCount": 2**40,
    },
}


@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "translated"])
@pytest.mark.parametrize("name", HUGE)
def test_an_answer_with_a_huge_usage_is_decoded(name: str, pass_: bool) -> None:
    whole, streamed = usages(name, HUGE[name], pass_)
    for usage in (whole, streamed):
        assert (usage.input_tokens, usage.output_tokens) == (MAX_COUNT, MAX_COUNT)
        assert (usage.cache_read_tokens, usage.reasoning_tokens) == (MAX_COUNT, MAX_COUNT)


def test_vectors_with_a_huge_usage_are_decoded() -> None:
    answer = {"data": [{"index": 0, "embedding": [0.5]}], "usage": {"prompt_tokens": 2**40, "total_tokens": 2**53}}
    request = pb.EmbedRequest(model="m", inputs=[pb.EmbeddingInput(text="Hi")])
    for pass_ in (True, False):
        response = EMBEDDING_FORMATS["embeddings"].decode_response(msgspec.json.encode(answer), request, pass_)
        assert response.usage == pb.EmbeddingUsage(input_tokens=MAX_COUNT, total_tokens=MAX_COUNT)


def test_a_ranking_with_a_huge_usage_is_decoded() -> None:
    units = {"billed_units": {"search_units": 2**40}}
    answer = {"results": [{"index": 0, "relevance_score": 0.5}], "usage": {"total_tokens": 2**31}, "meta": units}
    request = pb.RerankRequest(model="m", query="q", documents=[pb.RerankDocument(text="d")])
    for rerank in RERANK_FORMATS.values():
        response = rerank.decode_response(msgspec.json.encode(answer), request, False)
        assert response.usage == pb.RerankUsage(total_tokens=MAX_COUNT, search_units=MAX_COUNT)
