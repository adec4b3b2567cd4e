"""Facts about models by their ids."""

from dataclasses import dataclass, field

import pytest

from umg_grpc.knowledge.model_fact_types import FACT_NAMES, ModelFacts, in_common
from umg_grpc.knowledge.model_facts_by_id import find

LOW_TO_MAX = ("low", "medium", "high", "xhigh", "max")
MINIMAL_TO_MAX = ("minimal", "low", "medium", "high", "xhigh", "max")
NONE_TO_XHIGH = ("none", "low", "medium", "high", "xhigh")


@dataclass(frozen=True)
class Case:
    id: str
    vendor: str
    facts: dict[str, object]
    sure: frozenset[str] = field(default=frozenset())


KNOWN = [
    Case("gpt-4o", "openai", {"efforts": (), "thinking": "never", "sampling": "all"}, frozenset({"efforts"})),
    Case("gpt-5-mini", "openai", {"efforts": ("minimal", "low", "medium", "high"), "sampling": "never"}),
    Case("gpt-5.2-2025-12-11", "azure", {"efforts": NONE_TO_XHIGH, "chat_tools": "without_effort"}),
    Case(
        "gpt-5.6-sol",
        "openai",
        {"efforts": (*NONE_TO_XHIGH, "max"), "chat_tools": "effort_none", "output_tokens": 128_000},
    ),
    Case("openai/gpt-6-astra", "openrouter", {"efforts": LOW_TO_MAX, "thinking": "always", "chat_tools": "never"}),
    Case("claude-haiku-4-5-20251001", "anthropic", {"efforts": (), "sampling": "one", "budgets": True}),
    Case("claude-opus-4-7", "anthropic", {"sampling": "never", "budgets": False}, frozenset({"sampling", "budgets"})),
    Case("us.anthropic.claude-opus-5-5-v1:0", "bedrock-anthropic", {"thinking": "always", "forced_tools": "none"}),
    Case("claude-sonnet-4-5@20250929", "vertex", {"retired": "2026-11-30", "prefill": True}),
    Case("anthropic/claude-opus-4.8", "openrouter", {"adaptive": True, "system_anywhere": True}),
    Case("claude-opus-5", "anthropic", {"thinking": "on", "max_effort_when_off": "high"}),
    Case("gemini-2.5-pro", "gemini", {"budget_range": (128, 32_768), "thinking": "always", "efforts": ()}),
    Case("models/gemini-3.6-flash", "gemini", {"efforts": ("minimal", "low", "medium", "high"), "budgets": False}),
    Case("gemini-4-hydrogen", "vertex", {"efforts": ("low", "medium", "high", "xhigh"), "output_tokens": 1_048_576}),
    Case("grok-4.20-0309-reasoning", "xai", {"efforts": (), "thinking": "always"}),
    Case("grok-4.6", "xai", {"efforts": ("low", "medium", "high", "xhigh"), "default_effort": "high"}),
    Case("deepseek-v4-pro", "deepseek", {"efforts": MINIMAL_TO_MAX, "json_schema": False}),
    Case("mistral-large-4", "mistral", {"efforts": ("none", "high"), "thinking": "on"}),
    Case("mistral-small-2603", "mistral", {"efforts": ("none", "high")}),
    Case("mistral-large-2512", "mistral", {"efforts": (), "retired": "2027-04-30"}),
    Case("kimi-k3", "moonshot", {"efforts": ("low", "high", "max"), "sampling": "never"}),
    Case("accounts/fireworks/models/glm-5p3", "fireworks", {"efforts": MINIMAL_TO_MAX}),
    Case("GLM-4.6", "zai", {"efforts": None, "thinking": "on", "json_schema": False}),
    Case("qwen3.8-max", "dashscope", {"json_schema": True, "thinking": "on"}),
]


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: f"{case.id} at {case.vendor}")
def test_a_known_model_has_its_facts(case: Case) -> None:
    facts = find(case.id, case.vendor).facts
    assert {name: getattr(facts, name) for name in case.facts} == case.facts
    assert case.sure <= facts.sure


NEWER = [
    Case("gpt-6.3-x", "openai", {"efforts": LOW_TO_MAX, "sampling": "never", "thinking": "always"}),
    Case("gpt-6.2-luna", "openai", {"efforts": LOW_TO_MAX, "chat_tools": "never", "prefill": False}),
    Case("gpt-7-sol-2027-02-01", "openai", {"efforts": LOW_TO_MAX, "sampling": "never"}),
    Case("gpt-daybreak-red", "openai", {"efforts": LOW_TO_MAX, "sampling": "never"}),
    Case("claude-opus-5-7", "anthropic", {"efforts": LOW_TO_MAX, "sampling": "never", "prefill": False}),
    Case("claude-haiku-6", "anthropic", {"budgets": False, "adaptive": True, "max_effort_when_off": "high"}),
    Case("claude-saga-1", "anthropic", {"efforts": LOW_TO_MAX, "sampling": "never", "thinking": "always"}),
    Case("gemini-3.9-flash", "gemini", {"efforts": ("low", "medium", "high"), "sampling": "never", "budgets": False}),
    Case("grok-5", "xai", {"efforts": ("low", "medium", "high"), "thinking": "always"}),
    Case("kimi-k4", "moonshot", {"efforts": ("low", "high", "max"), "sampling": "never"}),
    Case("glm-5.4", "zai", {"efforts": MINIMAL_TO_MAX, "thinking": "always"}),
    Case("deepseek-v5", "deepseek", {"efforts": MINIMAL_TO_MAX, "json_schema": False}),
]


@pytest.mark.parametrize("case", NEWER, ids=lambda case: case.id)
def test_a_newer_model_of_a_series_has_the_facts_that_the_newest_have_in_common(case: Case) -> None:
    found = find(case.id, case.vendor)
    assert found.like
    assert {name: getattr(found.facts, name) for name in case.facts} == case.facts


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: f"{case.id} at {case.vendor}")
def test_a_known_model_inherits_nothing(case: Case) -> None:
    assert not find(case.id, case.vendor).like


def test_a_model_between_two_known_versions_is_as_the_older_one() -> None:
    assert find("gpt-5.8", "openai").facts.efforts == find("gpt-5.6-sol", "openai").facts.efforts


def test_a_listed_model_without_a_fact_about_reasoning_is_as_the_others_of_its_version() -> None:
    found = find("gpt-6-cyber", "openai")
    assert "gpt-6-astra" in found.like
    assert found.facts.efforts == LOW_TO_MAX


@pytest.mark.parametrize("model", ["llama-9", "my-model", "acme/brain-2", "", "gpt", "claude"])
def test_a_model_of_an_unknown_series_has_no_facts(model: str) -> None:
    found = find(model, "groq")
    assert not any(getattr(found.facts, name) for name in ("efforts", "thinking", "output_tokens", "sampling"))


def test_facts_are_certain_only_at_vendors_that_apply_the_rules_of_the_maker() -> None:
    sure = {vendor: find("claude-opus-5", vendor).facts.sure for vendor in ("anthropic", "vertex", "openrouter", "")}
    assert "sampling" in sure["anthropic"]
    assert sure["vertex"] == sure["anthropic"]
    assert sure["openrouter"] == sure[""] == frozenset()


@dataclass(frozen=True)
class Elsewhere:
    id: str
    vendor: str
    output_tokens: int | None


ELSEWHERE = [
    Elsewhere("deepseek-r1", "deepseek", 8192),
    Elsewhere("deepseek-r1", "", None),
    Elsewhere("deepseek-ai/DeepSeek-V4-Pro", "", None),
    Elsewhere("zai-org/GLM-4.5", "openrouter", None),
    Elsewhere("gemma-3-27b-it", "", None),
    Elsewhere("gpt-4.1", "", 32_768),
    Elsewhere("anthropic/claude-opus-5", "openrouter", 128_000),
]


@pytest.mark.parametrize("case", ELSEWHERE, ids=lambda case: f"{case.id} at {case.vendor or 'an unknown vendor'}")
def test_limits_of_a_maker_apply_elsewhere_only_to_models_without_open_weights(case: Elsewhere) -> None:
    assert find(case.id, case.vendor).facts.output_tokens == case.output_tokens


def test_inherited_facts_are_certain_only_where_they_are_certain_and_equal_for_all() -> None:
    sure = find("claude-opus-5-7", "anthropic").facts.sure
    assert "sampling" in sure
    assert "thinking" not in sure  # always or on


def test_every_fact_can_be_inherited_except_those_of_one_model() -> None:
    values: dict[str, object] = {
        "efforts": ("low",),
        "default_effort": "low",
        "thinking": "on",
        "budgets": True,
        "budget_range": (1, 2),
        "adaptive": True,
        "max_effort_when_off": "high",
        "nearest_efforts": {"max": "high"},
        "sampling": "all",
        "forced_tools": "all",
        "prefill": True,
        "system_anywhere": True,
        "json_schema": True,
        "rejects": frozenset({"stop"}),
        "rejects_beside_reasoning": frozenset({"logprobs"}),
        "chat_tools": "always",
        "endpoints": frozenset({"chat"}),
        "inputs": frozenset({"image"}),
        "abilities": frozenset({"tools"}),
        "input_tokens": 1,
        "output_tokens": 1,
        "cache_min_tokens": 1,
        "retired": "2026-01-01",
        "successor": "m",
    }
    assert set(values) == set(FACT_NAMES)
    facts = ModelFacts(**values)  # type: ignore[arg-type]
    common = in_common([facts, facts])
    assert {name for name in FACT_NAMES if getattr(common, name) is None} == {"retired", "successor"}
