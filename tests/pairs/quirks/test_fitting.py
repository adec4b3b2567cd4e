"""Reasoning, sampling and forced tools of a request, as the models of real vendors accept them."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.pairs.quirks.requests import encoded
from umg_grpc.knowledge.model_quirk_definitions import Quirks

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
OWN_TOOL = {"name": "look", "input_schema": {"type": "object"}}
LEVELS = {"minimal": "low", "medium": "high", "xhigh": "high"}

# models by their vendors' rules, with the sources in `knowledge/data`
SWITCHED = Quirks(
    thinking="on",
    efforts=("low", "high", "max"),
    nearest_efforts=LEVELS,
    reasoning_form="thinking",
    tool_choices="without_reasoning",
)
EFFORTS = Quirks(thinking="on", efforts=("none", "low", "medium", "high"), sampling="without_reasoning")
ALWAYS = Quirks(
    thinking="always",
    efforts=("low", "medium", "high", "xhigh", "max"),
    reasoning_budget=False,
    sampling="never",
    tool_choices="none",
)
TWO_WORDS = Quirks(efforts=("none", "high"))
NO_EFFORTS = Quirks(thinking="never", efforts=())
ALWAYS_WITHOUT_EFFORTS = Quirks(thinking="always", efforts=())
ONE_WORD = Quirks(efforts=("none", "default"))
BOOLEAN = Quirks(thinking="on", efforts=(), reasoning_form="enable_thinking")
ROUTER = Quirks(reasoning_form="reasoning")
BUDGETS = Quirks(thinking="always", reasoning_budget=True, budget_range=(128, 32_768))
STRICT = Quirks(
    accepts=frozenset({"model", "messages", "max_tokens", "random_seed", "temperature"}),
    renames={"max_completion_tokens": "max_tokens", "seed": "random_seed"},
)
NO_PENALTIES = Quirks(rejects=frozenset({"generationConfig.presencePenalty", "presence_penalty"}))
TIERS = Quirks(service_tiers=("auto", "flex"))
BESIDE = Quirks(thinking="on", rejects_beside_reasoning=frozenset({"logprobs", "top_logprobs"}))
FUNCTIONS_WITHOUT_EFFORT = Quirks(efforts=("none", "low"), thinking="on", chat_tools="effort_none")
ONLY_REQUIRED = Quirks(thinking="always", tool_choices="required")
SWITCH_AND_EFFORTS = Quirks(thinking="on", efforts=("none", "low"), reasoning_form="enable_thinking")
NEEDS_REASONING = Quirks(reasoning_content=True, reasoning_required=True)
CALL_IN_CHAT = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}
RESULT_IN_CHAT = {"role": "tool", "tool_call_id": "c1", "content": "5 C"}
CALLED = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "5 C"}]},
]
WITH_BLANK = [{"role": "user", "content": "Hi"}, {**CALL_IN_CHAT, "reasoning_content": " "}, RESULT_IN_CHAT]
HASHED = Quirks(max_user_characters=64, rejects=frozenset({"user"}))
DOCUMENTS = Quirks(file_form="document_url")
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK"}}
NO_REQUIRED = Quirks(thinking="always", tool_choices="named")
ONE_OF_TWO = Quirks(sampling="one")
OFF_BELOW_HIGH = Quirks(
    thinking="on", efforts=("low", "medium", "high", "xhigh"), max_effort_when_off="high", reasoning_budget=False
)


@dataclass(frozen=True)
class Case:
    """Fields of a caller's body, and the members of the provider's body that express them."""

    id: str
    face: str
    upstream: str
    quirks: Quirks
    fields: dict[str, Any]
    sent: dict[str, Any]
    """Members of the provider's body; None for one that is absent."""
    report: str = ""


def thinks(budget: int) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def effort(value: str) -> dict[str, Any]:
    return {"reasoning_effort": value}


OFF = {"thinking": {"type": "disabled"}}
REQUIRED = {"tools": [TOOL], "tool_choice": "required"}
NAMED = {"type": "function", "function": {"name": "look"}}

CASES = [
    Case("off by the vendor's switch", "chat", "chat", SWITCHED, effort("none"), {**OFF, "reasoning_effort": None}),
    Case("off of another format", "messages", "chat", SWITCHED, OFF, OFF),
    Case("an effort beside the switch", "chat", "chat", SWITCHED, effort("max"), effort("max")),
    Case("the vendor's own equivalent", "chat", "chat", SWITCHED, effort("medium"), effort("high"), "reasoning_effort=high"),
    Case("a budget as an effort", "messages", "chat", SWITCHED, thinks(2000), effort("low"), "thinking.budget_tokens=effort low"),
    Case("the nearest effort", "chat", "chat", EFFORTS, effort("max"), effort("high"), "reasoning_effort=high"),
    Case("an effort that exists", "chat", "chat", EFFORTS, effort("none"), effort("none")),
    Case("never off for an effort", "chat", "chat", TWO_WORDS, effort("low"), effort("high"), "reasoning_effort=high"),
    Case("a word for all efforts", "chat", "chat", ONE_WORD, effort("low"), effort("default"), "reasoning_effort=default"),
    Case("no reasoning to switch off", "chat", "chat", NO_EFFORTS, effort("none"), effort(None)),  # type: ignore[arg-type]
    Case("no reasoning", "responses", "chat", NO_EFFORTS, {"reasoning": {"effort": "low"}}, {"reasoning_effort": None}, "reasoning.effort"),
    Case("always on, no effort", "responses", "chat", ALWAYS_WITHOUT_EFFORTS, {"reasoning": {"effort": "none"}}, {"reasoning_effort": None}, "reasoning.effort"),
    Case("a boolean off", "chat", "chat", BOOLEAN, effort("none"), {"enable_thinking": False, "reasoning_effort": None}),
    Case("a boolean and a budget", "messages", "chat", BOOLEAN, thinks(4000), {"enable_thinking": True, "thinking_budget": 4000}),
    Case("a router's effort", "messages", "chat", ROUTER, {"output_config": {"effort": "low"}}, {"reasoning": {"effort": "low"}}),
    Case("a router's budget", "messages", "chat", ROUTER, thinks(4000), {"reasoning": {"max_tokens": 4000}}),
    Case("a router off", "messages", "chat", ROUTER, OFF, {"reasoning": {"enabled": False}}),
    Case("never off", "chat", "messages", ALWAYS, effort("none"), {"thinking": None, "output_config": {"effort": "low"}}, "reasoning_effort=low"),
    Case("never off in its own format", "messages", "messages", ALWAYS, OFF, {"thinking": None, "output_config": {"effort": "low"}}, "thinking.type=effort low"),
    Case("an effort of responses", "responses", "responses", ALWAYS, {"reasoning": {"effort": "minimal"}}, {"reasoning": {"effort": "low"}}, "reasoning.effort=low"),
    Case("the highest effort without thinking", "messages", "messages", OFF_BELOW_HIGH, {**OFF, "output_config": {"effort": "xhigh"}}, {**OFF, "output_config": {"effort": "high"}}, "output_config.effort=high"),
    Case("a level", "responses", "native", ALWAYS, {"reasoning": {"effort": "none"}}, {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}, "reasoning.effort=low"),
    Case("the least budget", "chat", "native", BUDGETS, effort("none"), {"generationConfig": {"thinkingConfig": {"thinkingBudget": 128}}}, "reasoning_effort=budget 128"),
    Case("sampling while it reasons", "chat", "chat", EFFORTS, {"temperature": 0.2, "top_p": 0.9}, {"temperature": None, "top_p": None}, "temperature, top_p"),
    Case("sampling without reasoning", "chat", "chat", EFFORTS, {"temperature": 0.2, **effort("none")}, {"temperature": 0.2}),
    Case("one of two", "chat", "messages", ONE_OF_TWO, {"temperature": 0.2, "top_p": 0.9}, {"temperature": 0.2, "top_p": None}, "top_p"),
    Case("one of two in its own format", "messages", "messages", ONE_OF_TWO, {"temperature": 0.2, "top_p": 0.9}, {"temperature": 0.2, "top_p": None}, "top_p"),
    Case("one alone", "messages", "messages", ONE_OF_TWO, {"top_p": 0.9}, {"top_p": 0.9}),
    Case("a forced tool without reasoning", "chat", "chat", SWITCHED, REQUIRED, {"tool_choice": "required", **OFF}),
    Case("a forced tool instead of reasoning", "chat", "chat", SWITCHED, {**REQUIRED, **effort("high")}, {"tool_choice": "required", **OFF}, "reasoning=disabled"),
    Case("no forced tool", "chat", "messages", ALWAYS, REQUIRED, {"tool_choice": {"type": "auto"}}, "tool_choice=auto"),
    Case("no forced tool in its own format", "messages", "messages", ALWAYS, {"tools": [OWN_TOOL], "tool_choice": {"type": "any"}}, {"tool_choice": {"type": "auto"}}, "tool_choice=auto"),
    Case("the only tool by its name", "chat", "chat", NO_REQUIRED, REQUIRED, {"tool_choice": NAMED}),
    Case("a named tool", "chat", "chat", NO_REQUIRED, {"tools": [TOOL], "tool_choice": NAMED}, {"tool_choice": NAMED}),
    Case("required instead of the only tool's name", "chat", "chat", ONLY_REQUIRED, {"tools": [TOOL], "tool_choice": NAMED}, {"tool_choice": "required"}),
    Case("members that the provider has not", "chat", "chat", STRICT, {"store": False, "user": "u", "seed": 3, "max_completion_tokens": 5}, {"store": None, "user": None, "seed": None, "random_seed": 3, "max_tokens": 5}, "user"),
    Case("members of another format", "responses", "chat", STRICT, {"store": False, "safety_identifier": "u"}, {"store": None, "safety_identifier": None}, "safety_identifier"),
    Case("a member inside another", "native", "native", NO_PENALTIES, {"generation_config": {"presence_penalty": 1, "seed": 2}}, {"generation_config": {"seed": 2}}, "generationConfig.presencePenalty"),
    Case("a value without effect", "chat", "chat", NO_PENALTIES, {"presence_penalty": 0}, {"presence_penalty": None}),
    Case("a tier of another provider", "chat", "chat", TIERS, {"service_tier": "priority"}, {"service_tier": None}, "service_tier"),
    Case("an own tier", "responses", "chat", TIERS, {"service_tier": "flex"}, {"service_tier": "flex"}),
    Case("log probabilities while it reasons", "chat", "chat", BESIDE, {"logprobs": True, "top_logprobs": 2}, {"logprobs": None, "top_logprobs": None}, "logprobs, top_logprobs"),
    Case("log probabilities without reasoning", "chat", "chat", BESIDE, {"logprobs": True, **effort("none")}, {"logprobs": True}),
    Case("log probabilities of responses", "chat", "responses", BESIDE, {"logprobs": True}, {"include": None}, "logprobs"),
    Case("functions without an effort", "messages", "chat", FUNCTIONS_WITHOUT_EFFORT, {"tools": [OWN_TOOL]}, {"reasoning_effort": "none"}, "thinking=effort none"),
    Case("a file as a part of its own", "messages", "chat", DOCUMENTS, {"messages": [{"role": "user", "content": [PDF]}]}, {"messages": [{"role": "user", "content": [{"type": "document_url", "document_url": "data:application/pdf;base64,JVBERi0xLjQK"}]}]}),
    Case("a member whose value was changed before", "messages", "chat", HASHED, {"metadata": {"user_id": "u" * 99}}, {"user": None}, "metadata.user_id"),
    Case("sampling that the format has not, either", "messages", "responses", EFFORTS, {"top_k": 3}, {"top_k": None}, "top_k"),
    Case("a vendor's own sampling", "messages", "chat", Quirks(top_k=True), {"top_k": 3}, {"top_k": 3}),
    Case("a boolean off in place of an effort", "chat", "chat", SWITCH_AND_EFFORTS, effort("none"), {"enable_thinking": False, "reasoning_effort": None}),
    Case("reasoning that the caller has not", "messages", "chat", NEEDS_REASONING, {"messages": CALLED}, {"messages": WITH_BLANK}),
    Case("reasoning that the caller has not, in its own format", "chat", "chat", NEEDS_REASONING, {"messages": [{"role": "user", "content": "Hi"}, CALL_IN_CHAT, RESULT_IN_CHAT]}, {"messages": WITH_BLANK}, "messages.reasoning=blank"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_request_is_fitted_to_the_model(case: Case) -> None:
    body, report = encoded(case.face, case.upstream, case.quirks, **case.fields)
    assert {name: body.get(name) for name in case.sent} == case.sent
    assert report == case.report
