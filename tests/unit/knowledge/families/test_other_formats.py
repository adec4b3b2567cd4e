"""Requests of other formats than chat, or of gRPC callers, under the rules of the families."""

from dataclasses import dataclass

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.text_model_rules import apply, family_model, family_of, split_suffix
from umg_grpc.v1 import pb

ENABLED, DISABLED, ADAPTIVE = pb.REASONING_MODE_ENABLED, pb.REASONING_MODE_DISABLED, pb.REASONING_MODE_ADAPTIVE
FLASH, PRO, LEVELS = "famG-2.5-flash", "famG-2.5-pro", "famG-3-pro"


def admitted(
    model: str,
    source: str,
    reasoning: pb.ReasoningOptions | None,
    hints: pb.FaceHints | None = None,
    *,
    stream: bool = False,
) -> tuple[pb.GenerateRequest, bool]:
    base, suffix = split_suffix(model) or (model, None)
    request = pb.GenerateRequest(model=model, reasoning=reasoning, face_hints=hints)
    if source:
        request.source.format = source
    return apply(request, (), family_model(family_of(base), base), suffix, stream=stream)


def options(**fields: object) -> pb.ReasoningOptions:
    return pb.ReasoningOptions(**fields)


@dataclass(frozen=True)
class Case:
    id: str
    model: str
    source: str
    reasoning: pb.ReasoningOptions | None
    converted: pb.ReasoningOptions | None
    edited: bool = False
    """Whether the body has to be encoded again for a provider of the same format."""
    hints: pb.FaceHints | None = None


CASES = [
    # native
    Case("generationConfig: a budget with its thoughts", FLASH, "native", options(budget_tokens=5, include_thoughts=True), options(budget_tokens=5, include_thoughts=True)),
    Case("generationConfig: a level with its thoughts", LEVELS, "native", options(level="low", include_thoughts=True), options(level="low", include_thoughts=True)),
    Case("generationConfig: thoughts alone", FLASH, "native", options(include_thoughts=True), options(include_thoughts=True)),
    Case("model-id suffixes: -thinking", FLASH + "-thinking", "native", None, options(budget_tokens=-1, include_thoughts=True), edited=True),
    Case("model-id suffixes: -thinking on the level tier", LEVELS + "-thinking", "native", None, options(include_thoughts=True), edited=True),
    Case("model-id suffixes: -thinking beside a level", LEVELS + "-thinking", "native", options(level="low", include_thoughts=True), options(level="low", include_thoughts=True)),
    Case("model-id suffixes: -thinking-<n>", FLASH + "-thinking-77", "native", options(budget_tokens=5), options(budget_tokens=77, include_thoughts=True), edited=True),
    Case("model-id suffixes: -thinking-<n> without thoughts", FLASH + "-thinking-77", "native", options(include_thoughts=False), options(budget_tokens=77, include_thoughts=False), edited=True),
    Case("model-id suffixes: -nothinking", FLASH + "-nothinking", "native", None, options(effort="none", budget_tokens=0, include_thoughts=False), edited=True),
    Case("model-id suffixes: -nothinking on the level tier", LEVELS + "-nothinking", "native", options(level="high"), options(effort="none", mode=DISABLED, include_thoughts=False), edited=True),
    Case("model-id suffixes: -thinking-low, budgets", PRO + "-thinking-low", "native", None, options(effort="low", budget_tokens=6553, include_thoughts=True), edited=True),
    Case("model-id suffixes: -thinking-high, levels", LEVELS + "-thinking-high", "native", None, options(level="high", include_thoughts=True), edited=True),
    # messages
    Case("messages: a budget", FLASH, "messages", options(mode=ENABLED, budget_tokens=2048), options(mode=ENABLED, budget_tokens=2048)),
    Case("messages: a small budget as a level", LEVELS, "messages", options(mode=ENABLED, budget_tokens=16384), options(mode=ENABLED, level="low")),
    Case("messages: a large budget as a level", LEVELS, "messages", options(mode=ENABLED, budget_tokens=16385), options(mode=ENABLED, level="high")),
    Case("messages: adaptive", FLASH, "messages", options(mode=ADAPTIVE), options(mode=ADAPTIVE, budget_tokens=-1)),
    Case("messages: adaptive with levels", LEVELS, "messages", options(mode=ADAPTIVE), options(mode=ADAPTIVE)),
    Case("messages: disabled", FLASH, "messages", options(mode=DISABLED), options(mode=DISABLED, budget_tokens=0)),
    Case("messages: disabled with levels", LEVELS, "messages", options(mode=DISABLED), options(effort="none", mode=DISABLED)),
    Case("messages: a suffix", FLASH + "-thinking-low", "messages", options(mode=ENABLED, budget_tokens=2048), options(effort="low", budget_tokens=4915, include_thoughts=True), edited=True),
    # responses
    Case("responses: effort as a budget", FLASH, "responses", options(effort="medium"), options(effort="medium", budget_tokens=12288)),
    Case("responses: effort as a level", LEVELS, "responses", options(effort="minimal"), options(effort="minimal", level="low")),
    Case("responses: effort none as a budget", FLASH, "responses", options(effort="none"), options(effort="none", budget_tokens=0)),
    Case("responses: effort none with levels", LEVELS, "responses", options(effort="none"), options(effort="none", mode=DISABLED)),
    Case("responses: effort beside -thinking", FLASH + "-thinking", "responses", options(effort="low"), options(effort="low", budget_tokens=4915, include_thoughts=True), edited=True),
    Case("responses: an unknown effort", FLASH, "responses", options(effort="ultra"), options(effort="ultra", budget_tokens=24576)),
    Case("responses: no options on a family that does not reason", "famC-1", "responses", options(effort="low"), options(effort="low")),
    # gRPC
    Case("gRPC: a level on the budget tier", FLASH, "", options(level="high"), options(budget_tokens=19660)),
    Case("gRPC: a budget on the level tier", LEVELS, "", options(budget_tokens=0), options(effort="none", mode=DISABLED)),
    Case("gRPC: an effort", PRO, "", options(effort="low"), options(effort="low", budget_tokens=6553)),
    Case("gRPC: no options", PRO, "", None, None),
    Case("gRPC: enable_thinking of famQ without a stream (chat rule 3)", "famQ-3-max", "", options(mode=ENABLED), options(mode=DISABLED), edited=True, hints=pb.FaceHints(enable_thinking=True)),
    # famQ's switch is only a chat field
    Case("chat rule 3: thinking of messages on famQ", "famQ-3-max", "messages", options(mode=ENABLED, budget_tokens=2048), options(mode=ENABLED, budget_tokens=2048)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_reasoning_options_are_converted_for_the_model(case: Case) -> None:
    request, edited = admitted(case.model, case.source, case.reasoning, case.hints)
    assert request.HasField("reasoning") == (case.converted is not None)
    assert request.reasoning == (case.converted or pb.ReasoningOptions())
    assert edited == case.edited
    assert request.HasField("source") == bool(case.source)


@pytest.mark.parametrize(
    ("model", "source", "reasoning", "field"),
    [
        (LEVELS, "native", options(budget_tokens=5), "reasoning.budget_tokens"),
        (LEVELS, "native", options(budget_tokens=-1, level="low"), "reasoning.budget_tokens"),
        (FLASH, "native", options(level="low"), "reasoning.level"),
        (LEVELS + "-thinking-5", "native", None, "model"),
        (LEVELS + "-thinking-5", "messages", None, "model"),
        (LEVELS + "-thinking-5", "", None, "model"),
    ],
)
def test_generation_config_options_of_the_other_tier_are_refused(
    model: str, source: str, reasoning: pb.ReasoningOptions | None, field: str
) -> None:
    with pytest.raises(UmgError) as caught:
        admitted(model, source, reasoning)
    assert caught.value.metadata == {"field": field}


def test_readings_8_thinking_tokens_of_an_effort_stay_within_the_largest_budget() -> None:
    for effort in ("none", "minimal", "low", "medium", "high", "xhigh", "max"):
        assert 0 <= admitted(FLASH, "responses", options(effort=effort))[0].reasoning.budget_tokens <= 24576


def test_chat_rule_6_applies_to_grpc_callers() -> None:
    searching = pb.GenerateRequest(model="famC-1", search=pb.SearchOptions())
    with pytest.raises(UmgError) as caught:
        apply(searching, (), family_model("famC", "famC-1"), None, stream=False)
    assert caught.value.metadata == {"field": "search"}
    searching.tools.add().function.name = "web"
    apply(searching, (), family_model("famC", "famC-1"), None, stream=False)


def test_the_rules_applied_twice_give_the_same_request() -> None:
    request, _ = admitted(FLASH + "-thinking-low", "native", None)
    before = request.SerializeToString(deterministic=True)
    suffix = split_suffix(FLASH + "-thinking-low")[1]
    again, _ = apply(request, (), family_model("famG", FLASH), suffix, stream=False)  # another channel
    assert again.SerializeToString(deterministic=True) == before
    assert request.SerializeToString(deterministic=True) == before


def test_the_callers_request_is_not_edited() -> None:
    request = pb.GenerateRequest(model=FLASH, reasoning=options(effort="low"))
    applied, _ = apply(request, (), family_model("famG", FLASH), None, stream=False)
    assert applied.reasoning.budget_tokens
    assert request == pb.GenerateRequest(model=FLASH, reasoning=options(effort="low"))
