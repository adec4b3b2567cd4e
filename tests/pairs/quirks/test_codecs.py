"""Requests that a provider would refuse unchanged: the provider's body, and the report for the caller."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.pairs.quirks.requests import CLAUDE_USER, decoded_request, encoded
from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

SHORT = "user-1"
HASHED = 64
FUNCTION = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}


@dataclass(frozen=True)
class Case:
    """A request of a caller of messages (`face`: of another format), as it is encoded for a provider."""

    id: str
    upstream: str
    quirks: Quirks
    fields: dict[str, Any]
    """Fields of the caller's body."""
    sent: dict[str, Any]
    """Fields of the provider's body; None for a field that is absent."""
    report: str = ""
    face: str = "messages"
    more: dict[str, Any] = field(default_factory=dict)


NO_SEARCH = Quirks(web_search=False)
NO_REASONING = Quirks(reasoning=False)
LIMIT = Quirks(max_output_tokens=8192)
BOTH = {"tools": [FUNCTION, SEARCH]}
THINKS = {"thinking": {"type": "enabled", "budget_tokens": 4000}}
CHAT_FUNCTION = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}

CASES = [
    Case("a short user", "chat", Quirks(max_user_characters=64), {"metadata": {"user_id": SHORT}}, {"user": SHORT}),
    Case(
        "no limit of the response",
        "chat",
        LIMIT,
        {"max_tokens": 8192},
        {"max_tokens": 8192},
    ),
    Case("a longer one", "chat", LIMIT, {"max_tokens": 32000}, {"max_tokens": 8192}, "max_tokens=8192"),
    Case("in responses", "responses", LIMIT, {"max_tokens": 9000}, {"max_output_tokens": 8192}, "max_tokens=8192"),
    Case(
        "in native",
        "native",
        LIMIT,
        {"max_tokens": 9000},
        {"generationConfig": {"maxOutputTokens": 8192}},
        "max_tokens=8192",
    ),
    Case(
        "in messages",
        "messages",
        LIMIT,
        {"max_completion_tokens": 9000},
        {"max_tokens": 8192},
        "max_tokens=8192",
        face="chat",
    ),
    Case(
        "of a thread that goes on without new messages",
        "messages",
        LIMIT,
        {"max_tokens": 9000, "messages": [], "thread": {"type": "continue", "previous_message_id": "msg_1"}},
        {"max_tokens": 8192, "messages": []},
        "max_tokens=8192",
    ),
    Case(
        "the longest answer where the caller sets none", "messages", LIMIT, {}, {"max_tokens": 8192}, face="responses"
    ),
    Case("the usual limit of an unknown model", "messages", NO_QUIRKS, {}, {"max_tokens": 4096}, face="responses"),
    Case(
        "an effort within the longest answer",
        "messages",
        LIMIT,
        {"reasoning": {"effort": "high"}},
        {"max_tokens": 8192, "thinking": {"type": "enabled", "budget_tokens": 4096}},
        "reasoning.effort=budget_tokens 4096",
        face="responses",
    ),
    Case(
        "an effort and a limit within it",
        "messages",
        LIMIT,
        {"reasoning": {"effort": "high"}, "max_output_tokens": 1000},
        {"max_tokens": 2025, "thinking": {"type": "enabled", "budget_tokens": 1025}},
        "reasoning.effort=budget_tokens 1025, max_output_tokens=2025",
        face="responses",
    ),
    Case(
        "no room to think",
        "messages",
        Quirks(max_output_tokens=1000),
        {"reasoning": {"effort": "high"}},
        {"max_tokens": 1000, "thinking": {"type": "disabled"}},
        "reasoning.effort=budget_tokens 24576, reasoning=disabled",
        face="responses",
    ),
    Case(
        "search beside a function in chat",
        "chat",
        NO_SEARCH,
        BOTH,
        {"web_search_options": None, "tools": [CHAT_FUNCTION]},
        "web_search",
    ),
    Case(
        "search beside a function in native of generation 2",
        "native",
        Quirks(search_with_functions="drop"),
        BOTH,
        {
            "tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": FUNCTION["input_schema"]}]}],
            "toolConfig": None,
        },
        "web_search",
    ),
    Case(
        "search alone there",
        "native",
        Quirks(search_with_functions="drop"),
        {"tools": [SEARCH]},
        {"tools": [{"googleSearch": {}}]},
    ),
    Case(
        "search beside a function in native of generation 3",
        "native",
        Quirks(search_with_functions="declare"),
        BOTH | {"tool_choice": {"type": "auto"}},
        {
            "tools": [
                {"functionDeclarations": [{"name": "look", "parametersJsonSchema": FUNCTION["input_schema"]}]},
                {"googleSearch": {}},
            ],
            "toolConfig": {
                "includeServerSideToolInvocations": True,
                "functionCallingConfig": {"mode": "VALIDATED"},
            },
        },
    ),
    Case(
        "a function alone there",
        "native",
        Quirks(search_with_functions="declare"),
        {"tools": [FUNCTION]},
        {"toolConfig": None},
    ),
    Case("thinking", "chat", NO_REASONING, THINKS, {"reasoning_effort": None}, "thinking.type, thinking.budget_tokens"),
    Case("thinking that is off", "chat", NO_REASONING, {"thinking": {"type": "disabled"}}, {"reasoning_effort": None}),
    Case(
        "thinking in responses",
        "responses",
        NO_REASONING,
        THINKS,
        {"reasoning": None, "include": None},
        "thinking.type, thinking.budget_tokens",
    ),
    Case(
        "thinking in native",
        "native",
        NO_REASONING,
        THINKS,
        {"generationConfig": {"maxOutputTokens": 5000}},
        "thinking.type, thinking.budget_tokens",
    ),
    Case(
        "an effort in messages",
        "messages",
        NO_REASONING,
        {"reasoning_effort": "high", "max_tokens": 5},
        {"thinking": None, "output_config": None, "max_tokens": 5},
        "reasoning_effort",
        face="chat",
    ),
    Case(
        "an effort of a model that takes no budget",
        "messages",
        Quirks(reasoning_budget=False),
        {"reasoning": {"effort": "high"}, "max_output_tokens": 100},
        {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": "high"},
            "max_tokens": 100,
        },
        face="responses",
    ),
    Case(
        "the least effort",
        "messages",
        Quirks(reasoning_budget=False),
        {"reasoning": {"effort": "minimal"}},
        {"output_config": {"effort": "low"}},
        "reasoning.effort=low",
        face="responses",
    ),
    Case(
        "a budget of a model that takes none",
        "messages",
        Quirks(reasoning_budget=False),
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 20000, "includeThoughts": False}}},
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        "generationConfig.thinkingConfig.thinkingBudget=effort high, generationConfig.thinkingConfig.includeThoughts",
        face="native",
    ),
    Case(
        "a model that takes none, which shall not think",
        "messages",
        Quirks(reasoning_budget=False),
        {"reasoning_effort": "none"},
        {"thinking": {"type": "disabled"}},
        face="chat",
    ),
    Case(
        "sampling",
        "messages",
        Quirks(sampling="never"),
        {"temperature": 0.5, "top_p": 1, "max_tokens": 5},
        {"temperature": None, "top_p": None},
        "temperature",
        face="chat",
    ),
    Case(
        "sampling in native",
        "native",
        Quirks(sampling="never"),
        {"temperature": 0.5, "top_k": 3},
        {"generationConfig": {"maxOutputTokens": 5000}},
        "temperature, top_k",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.id}, {case.upstream}")
def test_a_request_is_adapted_to_the_limits_of_the_provider(case: Case) -> None:
    body, report = encoded(case.face, case.upstream, case.quirks, **case.fields)
    assert {name: body.get(name) for name in case.sent} == case.sent
    assert report == case.report


@dataclass(frozen=True)
class Needed:
    """Request for a search that its provider cannot make, and the path of the search in the caller's body."""

    id: str
    face: str
    upstream: str
    fields: dict[str, Any]
    path: str
    quirks: Quirks = NO_SEARCH


CHOSEN = {"type": "tool", "name": "web_search"}
NEEDED = [
    Needed("a tool", "messages", "chat", {"tools": [SEARCH]}, "tools[0]"),
    Needed("a forced tool", "messages", "chat", {"tools": [SEARCH], "tool_choice": {"type": "any"}}, "tools[0]"),
    Needed("a choice beside a function", "messages", "chat", BOTH | {"tool_choice": CHOSEN}, "tools[1]"),
    Needed("a choice in responses", "messages", "responses", BOTH | {"tool_choice": CHOSEN}, "tools[1]"),
    Needed(
        "a choice in responses' words",
        "responses",
        "chat",
        {
            "tools": [{"type": "web_search_preview"}, {"type": "function", "name": "look", "parameters": None}],
            "tool_choice": {"type": "web_search_preview"},
        },
        "tools[0]",
    ),
    Needed("an option", "chat", "messages", {"web_search_options": {}, "max_tokens": 5}, "web_search_options"),
    Needed("an option in the same format", "chat", "chat", {"web_search_options": {}}, "web_search_options"),
    Needed("a tool in the same format", "responses", "responses", {"tools": [{"type": "web_search"}]}, "tools[0]"),
    Needed(
        "a member that the model refuses",
        "chat",
        "chat",
        {"web_search_options": {}},
        "web_search_options",
        Quirks(rejects=frozenset({"web_search_options"})),
    ),
]


@pytest.mark.parametrize("case", NEEDED, ids=lambda case: case.id)
def test_a_search_that_the_provider_cannot_make_is_refused(case: Needed) -> None:
    with pytest.raises(UmgError, match="cannot search the web") as caught:
        encoded(case.face, case.upstream, case.quirks, **case.fields)
    assert caught.value.reason == pb.ERROR_REASON_UNTRANSLATABLE
    assert TEXT_FORMATS[case.face].wire_path(caught.value.metadata["field"]) == case.path


@pytest.mark.parametrize("upstream", ["chat", "responses"])
def test_equal_long_user_ids_have_equal_hashes(upstream: str) -> None:
    quirks = Quirks(max_user_characters=64)
    hashed = []
    for user in (CLAUDE_USER, CLAUDE_USER, CLAUDE_USER + "x"):
        body, report = encoded("messages", upstream, quirks, metadata={"user_id": user})
        assert (len(body["user"]), report) == (HASHED, "metadata.user_id=hashed")
        hashed.append(body["user"])
    assert hashed[0] == hashed[1] != hashed[2]


@pytest.mark.parametrize(
    ("quirks", "user", "characters"),
    [
        (Quirks(max_user_characters=128, min_user_characters=6), CLAUDE_USER, HASHED),
        (Quirks(max_user_characters=128, min_user_characters=6), "bob", HASHED),
        (Quirks(max_user_characters=32), CLAUDE_USER, 32),
        (Quirks(min_user_characters=6), "b", HASHED),
    ],
)
def test_the_hash_of_a_user_id_has_the_maximum_length_of_the_provider(
    quirks: Quirks, user: str, characters: int
) -> None:
    body, report = encoded("chat", "messages", quirks, user=user, max_tokens=5)
    assert (len(body["metadata"]["user_id"]), report) == (characters, "user=hashed")


WITH_REASONING = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Ho", "reasoning_content": "Hm"},
    {"role": "user", "content": "Hi again"},
]


def test_reasoning_of_earlier_turns_is_sent_to_providers_that_accept_it() -> None:
    fields = {
        "messages": [
            {"role": "user", "content": "Hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm", "signature": "c2ln"},
                    {"type": "text", "text": "Ho"},
                ],
            },
            {"role": "user", "content": "Hi again"},
        ]
    }
    body, report = encoded("messages", "chat", Quirks(reasoning_content=True), **fields)
    assert (body["messages"], report) == (WITH_REASONING, "state")
    body, report = encoded("messages", "chat", Quirks(reasoning_content=False), **fields)
    assert "reasoning_content" not in json.dumps(body)
    assert report == "state, thinking"


# --- the caller's own body


@dataclass(frozen=True)
class Own:
    """A body in the provider's own format, with the quirks in the channel's config."""

    id: str
    format: str
    written: Quirks
    fields: dict[str, Any]
    changed: dict[str, Any]
    """Fields with another value for the provider; None for a field that is left out."""
    report: str


EARLIER = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Ho"},
    {"role": "user", "content": "Hi again"},
]
NATIVE_TOOLS = [{"functionDeclarations": [{"name": "look"}]}, {"googleSearch": {}}]

OWN = [
    Own("a user in chat", "chat", Quirks(max_user_characters=16), {"user": "x" * 20}, {"user": 16}, "user=hashed"),
    Own(
        "a user in messages",
        "messages",
        Quirks(max_user_characters=64),
        {"metadata": {"user_id": CLAUDE_USER}},
        {"metadata": {"user_id": 64}},
        "metadata.user_id=hashed",
    ),
    Own(
        "a user in responses",
        "responses",
        Quirks(max_user_characters=64),
        {"user": CLAUDE_USER},
        {"user": 64},
        "user=hashed",
    ),
    Own(
        "a limit in chat",
        "chat",
        LIMIT,
        {"max_completion_tokens": 9000},
        {"max_completion_tokens": 8192},
        "max_tokens=8192",
    ),
    Own("a limit in responses", "responses", LIMIT, {"max_output_tokens": 9000}, {"max_output_tokens": 8192}, "max_output_tokens=8192"),
    Own("a limit in messages", "messages", LIMIT, {"max_tokens": 9000}, {"max_tokens": 8192}, "max_tokens=8192"),
    Own(
        "a limit in native",
        "native",
        LIMIT,
        {"generationConfig": {"maxOutputTokens": 9000, "topK": 3}},
        {"generationConfig": {"maxOutputTokens": 8192, "topK": 3}},
        "generationConfig.maxOutputTokens=8192",
    ),
    Own("an effort in chat", "chat", NO_REASONING, {"reasoning_effort": "high"}, {"reasoning_effort": None}, "reasoning_effort"),
    Own("an effort in responses", "responses", NO_REASONING, {"reasoning": {"effort": "high"}}, {"reasoning": None}, "reasoning.effort"),
    Own("thinking in messages", "messages", NO_REASONING, THINKS, {"thinking": None}, "thinking.type, thinking.budget_tokens"),
    Own(
        "a budget in messages",
        "messages",
        Quirks(reasoning_budget=False),
        THINKS,
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
        "thinking.budget_tokens=effort low",
    ),
    Own(
        "thinking in native",
        "native",
        NO_REASONING,
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 100}, "topK": 3}},
        {"generationConfig": {"topK": 3}},
        "generationConfig.thinkingConfig.thinkingBudget",
    ),
    Own(
        "thoughts in chat",
        "chat",
        Quirks(reasoning_content=False),
        {"messages": WITH_REASONING},
        {"messages": EARLIER},
        "reasoning",
    ),
    Own("search in messages", "messages", NO_SEARCH, {"tools": [FUNCTION, SEARCH]}, {"tools": [FUNCTION]}, "web_search"),
    Own(
        "search in native",
        "native",
        Quirks(search_with_functions="drop"),
        {"tools": NATIVE_TOOLS},
        {"tools": NATIVE_TOOLS[:1]},
        "web_search",
    ),
    Own(
        "search beside functions in native",
        "native",
        Quirks(search_with_functions="declare"),
        {"tools": NATIVE_TOOLS},
        {"toolConfig": {"includeServerSideToolInvocations": True}},
        "",
    ),
    Own(
        "search beside functions in native, with more beside the choice",
        "native",
        Quirks(search_with_functions="declare"),
        {"tools": NATIVE_TOOLS, "toolConfig": {"retrievalConfig": {"languageCode": "de"}}},
        {"toolConfig": {"includeServerSideToolInvocations": True}},
        "toolConfig.retrievalConfig",
    ),
    Own("sampling in chat", "chat", Quirks(sampling="never"), {"temperature": 0.5, "top_k": 3}, {"temperature": None, "top_k": None}, "temperature, top_k"),
    Own("sampling in messages", "messages", Quirks(sampling="never"), {"top_k": 3}, {"top_k": None}, "top_k"),
]  # fmt: skip


@pytest.mark.parametrize("case", OWN, ids=lambda case: case.id)
def test_a_same_format_body_is_changed_only_by_configured_quirks(case: Own) -> None:
    request = decoded_request(case.format, **case.fields)
    as_it_came = json.loads(TEXT_FORMATS[case.format].encode_request(request, "m", False).body)
    body, report = encoded(case.format, case.format, case.written, **case.fields)
    assert report == case.report
    for name, value in case.changed.items():
        if value is None:
            assert name not in body
        elif isinstance(value, int) and isinstance(body[name], str):
            assert len(body[name]) == value
        elif name == "metadata":
            assert len(body[name]["user_id"]) == value["user_id"]
        else:
            assert body[name] == value
    assert {name: body.get(name) for name in as_it_came.keys() - case.changed.keys()} == {
        name: as_it_came[name] for name in as_it_came.keys() - case.changed.keys()
    }


@pytest.mark.parametrize("case", OWN, ids=lambda case: case.id)
def test_a_same_format_body_is_unchanged_without_configured_quirks(case: Own) -> None:
    encode, request = TEXT_FORMATS[case.format].encode_request, decoded_request(case.format, **case.fields)
    assert encode(request, "m", False, NO_QUIRKS).body == encode(request, "m", False).body
    assert TEXT_FORMATS[case.format].encode_request(request, "m", False).report.lost == 0


PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Changes files",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: LINE+"},
}
SCHEMA = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "Text that fits this lark grammar:\nstart: LINE+"}},
    "required": ["input"],
}
PATCHED = [
    {"role": "user", "content": "Mend it"},
    {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "+a"},
    {"type": "custom_tool_call_output", "call_id": "c1", "output": "Done"},
]


def test_a_custom_tool_becomes_a_function_with_its_grammar_for_providers_without_custom_tools() -> None:
    choice = {"type": "custom", "name": "apply_patch"}
    fields = {"tools": [PATCH], "tool_choice": choice, "input": PATCHED}
    body, report = encoded("responses", "chat", Quirks(custom_tools=False), **fields)
    function = {"name": "apply_patch", "description": "Changes files", "parameters": SCHEMA}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "apply_patch"}}
    call = {"id": "c1", "type": "function", "function": {"name": "apply_patch", "arguments": '{"input":"+a"}'}}
    assert body["messages"][1]["tool_calls"] == [call]
    assert report == "custom=a function with one text"


def test_the_grammar_of_a_custom_tool_is_one_level_deeper_in_chat() -> None:
    body, report = encoded("responses", "chat", NO_QUIRKS, tools=[PATCH], input=PATCHED)
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: LINE+"}}
    custom = {"name": "apply_patch", "description": "Changes files", "format": grammar}
    assert body["tools"] == [{"type": "custom", "custom": custom}]
    assert body["messages"][1]["tool_calls"][0]["custom"] == {"name": "apply_patch", "input": "+a"}
    assert report == ""
