"""Reasoning: when, how much, the visible part, and the state that must be sent back."""

import base64
from dataclasses import dataclass, field

import pytest

from tests.unit.umg_sandbox.sandbox_calls import (
    assistant,
    called,
    count,
    function,
    generate,
    make_request,
    refused,
    result,
    text,
    user,
)
from umg_grpc.v1 import pb

ON = pb.ReasoningOptions(mode=pb.REASONING_MODE_ENABLED)
TOOLS = [function("look"), function("listen")]


@dataclass(frozen=True)
class Switch:
    id: str
    options: pb.ReasoningOptions | None
    on: bool
    source: str = "messages"


SWITCHES = [
    Switch(id="no options", options=None, on=False),
    Switch(id="empty options", options=pb.ReasoningOptions(), on=False),
    Switch(id="enabled", options=ON, on=True),
    Switch(id="adaptive", options=pb.ReasoningOptions(mode=pb.REASONING_MODE_ADAPTIVE), on=True),
    Switch(id="disabled", options=pb.ReasoningOptions(mode=pb.REASONING_MODE_DISABLED, budget_tokens=9), on=False),
    Switch(id="between tools, before any", options=pb.ReasoningOptions(mode=pb.REASONING_MODE_BETWEEN_TOOLS), on=False),
    Switch(id="a budget", options=pb.ReasoningOptions(budget_tokens=50), on=True),
    Switch(id="an automatic budget", options=pb.ReasoningOptions(budget_tokens=-1), on=True),
    Switch(id="a budget of 0", options=pb.ReasoningOptions(budget_tokens=0, effort="high"), on=False),
    Switch(id="an effort", options=pb.ReasoningOptions(effort="low"), on=True),
    Switch(id="effort none", options=pb.ReasoningOptions(effort="none", budget_tokens=50), on=False),
    Switch(id="a level", options=pb.ReasoningOptions(level="high"), on=True),
    Switch(id="a summary", options=pb.ReasoningOptions(summary="auto"), on=True),
    Switch(id="no summary", options=pb.ReasoningOptions(summary="none"), on=False),
]


@pytest.mark.parametrize("case", SWITCHES, ids=lambda case: case.id)
def test_reasoning_happens_only_if_requested(case: Switch) -> None:
    answer = generate(make_request("Why?", reasoning=case.options, source=case.source))
    assert (answer.kinds == ["reasoning", "text"]) == case.on
    assert (answer.usage.reasoning_tokens > 0) == case.on


@pytest.mark.parametrize("budget", [1, 5, 17])
def test_reasoning_stays_within_its_budget(budget: int) -> None:
    answer = generate(make_request("Why?", reasoning=pb.ReasoningOptions(budget_tokens=budget)))
    assert answer.usage.reasoning_tokens == budget == count("".join(answer.reasoning.reasoning.texts))
    assert answer.usage.output_tokens == budget + count(answer.text)
    assert answer.finish == "STOP"


def test_reasoning_counts_towards_the_token_limit() -> None:
    answer = generate(make_request("Why?", reasoning=ON, max_output_tokens=10))
    assert (answer.usage.reasoning_tokens, answer.usage.output_tokens, answer.finish) == (10, 10, "LENGTH")
    assert answer.kinds == ["reasoning"]


def test_more_effort_means_more_reasoning_and_the_same_text() -> None:
    low, high = (
        generate(make_request("Why?", reasoning=pb.ReasoningOptions(effort=effort))) for effort in ("low", "high")
    )
    assert low.usage.reasoning_tokens < high.usage.reasoning_tokens
    assert low.text == high.text


@dataclass(frozen=True)
class Visibility:
    id: str
    source: str
    options: pb.ReasoningOptions
    part: bool = True
    texts: bool = False
    summaries: int = 0


def options(**fields: object) -> pb.ReasoningOptions:
    return pb.ReasoningOptions(effort="high", **fields)


VISIBILITY = [
    Visibility(id="messages", source="messages", options=options(), texts=True),
    Visibility(id="messages, omitted", source="messages", options=options(display="omitted")),
    Visibility(id="messages, summarized", source="messages", options=options(display="summarized"), texts=True),
    Visibility(id="chat", source="chat", options=options(), texts=True),
    Visibility(id="chat, not shown", source="chat", options=options(include_thoughts=False), part=False),
    Visibility(id="native", source="native", options=options(), part=False),
    Visibility(id="native, shown", source="native", options=options(include_thoughts=True), texts=True),
    Visibility(id="responses", source="responses", options=options()),
    Visibility(id="responses, a summary", source="responses", options=options(summary="auto"), summaries=1),
    Visibility(id="responses, a long summary", source="responses", options=options(summary="detailed"), summaries=2),
    Visibility(id="no source, a summary", source="", options=options(summary="concise"), texts=True, summaries=1),
]


@pytest.mark.parametrize("case", VISIBILITY, ids=lambda case: case.id)
def test_reasoning_is_visible_as_the_format_defines(case: Visibility) -> None:
    answer = generate(make_request("Why?", reasoning=case.options, source=case.source))
    assert answer.usage.reasoning_tokens > 0
    assert ("reasoning" in answer.kinds) == case.part
    if case.part:
        reasoning_part = answer.reasoning.reasoning
        assert (bool(reasoning_part.texts), len(reasoning_part.summaries)) == (case.texts, case.summaries)


@pytest.mark.parametrize("source", ["messages", "chat", "responses", "native", ""])
def test_the_state_is_of_the_callers_format_and_is_base64(source: str) -> None:
    reasoning = pb.ReasoningOptions(effort="high", include_thoughts=True)
    answer = generate(make_request("Why?", reasoning=reasoning, source=source, include=["reasoning.encrypted_content"]))
    assert answer.reasoning.state.format == (source or "messages")
    assert len(base64.b64decode(answer.reasoning.state.data, validate=True)) == 32


def test_responses_shows_state_only_when_it_is_included() -> None:
    assert not generate(make_request("Why?", reasoning=options(), source="responses")).reasoning.HasField("state")


def test_redacted_reasoning_has_only_a_state() -> None:
    answer = generate(make_request("Why? [[redacted]]", reasoning=ON, source="messages"))
    reasoning_part = answer.reasoning
    assert reasoning_part.reasoning == pb.ReasoningPart(redacted=True)
    assert reasoning_part.state.data
    assert answer.usage.reasoning_tokens > 0


def test_native_signs_the_first_call_or_else_the_text() -> None:
    request = make_request("look and listen", reasoning=options(), tools=TOOLS, source="native")
    assert [part.state.format for part in generate(request).parts] == ["native", ""]
    assert [part.state.format for part in generate(make_request("Hi", reasoning=options(), source="native")).parts] == [
        "native"
    ]
    assert [part.HasField("state") for part in generate(make_request("Hi", source="native")).parts] == [False]


@pytest.mark.parametrize("source", ["messages", "chat", "responses", "native", ""])
@pytest.mark.parametrize("words", ["look", "look [[redacted]]"])
def test_a_tool_turn_continues_with_the_returned_parts_unchanged(source: str, words: str) -> None:
    requests = {"reasoning": pb.ReasoningOptions(mode=pb.REASONING_MODE_ENABLED, include_thoughts=True), "tools": TOOLS}
    first = generate(make_request(words, source=source, **requests))
    assert len(first.calls) == 1
    history = [user(words), assistant(*first.parts), user(result("a cat", first.calls[0].call_id))]
    second = generate(make_request(*history, source=source, **requests))
    assert "The tool look gave: a cat" in second.text
    assert second.kinds == ["reasoning", "text"]


def reasoning_part(words: str, data: str, state_format: str = "messages") -> pb.Part:
    state = pb.ReasoningState(data=data, format=state_format) if data else None
    return pb.Part(reasoning=pb.ReasoningPart(texts=[words]), state=state)


GOOD = generate(make_request("Why?", reasoning=ON)).reasoning
FORGED = base64.b64encode(b"0" * 32).decode()


@dataclass(frozen=True)
class State:
    id: str
    turn: list[pb.Part]
    accepted: bool
    source: str = "messages"
    reasoning: pb.ReasoningOptions | None = field(default_factory=lambda: ON)
    path: str = "messages[1].parts[0].state"


STATES = [
    State(id="as it was made", turn=[GOOD, called("look")], accepted=True),
    State(id="forged", turn=[reasoning_part("a", FORGED), called("look")], accepted=False),
    State(id="forged, thinking off", turn=[reasoning_part("a", FORGED), called("look")], accepted=False, reasoning=None),
    State(id="no base64", turn=[reasoning_part("a", "???"), called("look")], accepted=False),
    State(id="with other thoughts", turn=[reasoning_part("a", GOOD.state.data), called("look")], accepted=False),
    State(id="with omitted thoughts", turn=[reasoning_part("", GOOD.state.data), called("look")], accepted=True),
    State(id="lost", turn=[called("look")], accepted=True),
    State(id="lost, with the thoughts kept", turn=[reasoning_part("a", ""), called("look")], accepted=True),
    State(id="behind a text", turn=[text("Hm"), called("look")], accepted=True),
    State(id="lost, thinking off", turn=[called("look")], accepted=True, reasoning=None),
    State(id="lost, adaptive", turn=[called("look")], accepted=True, reasoning=pb.ReasoningOptions(mode=pb.REASONING_MODE_ADAPTIVE)),
    State(id="lost in another format", turn=[called("look")], accepted=True, source="chat"),
    State(id="forged for native", turn=[reasoning_part("a", FORGED, "native"), called("look")], accepted=False, source="native"),
    State(id="a placeholder on native", turn=[reasoning_part("a", "skip_thought_signature_validator", "native"), called("look")], accepted=True, source="native"),
    State(id="an encoded placeholder on native", turn=[reasoning_part("a", base64.b64encode(b"context_engineering_is_the_way_to_go").decode(), "native"), called("look")], accepted=True, source="native"),
    State(id="in the URL alphabet, without padding", turn=[reasoning_part("", GOOD.state.data.replace("+", "-").replace("/", "_").rstrip("="), "native"), called("look")], accepted=True, source="native"),
    State(id="of an unknown format", turn=[GOOD, pb.Part(text=pb.TextPart(text="a"), state=pb.ReasoningState(data="?", format="other")), called("look")], accepted=True),
]  # fmt: skip


@pytest.mark.parametrize("case", STATES, ids=lambda case: case.id)
def test_a_reasoning_state_is_verified_as_its_provider_does(case: State) -> None:
    request = make_request(
        "look", assistant(*case.turn), user(result("a cat")), reasoning=case.reasoning, source=case.source, tools=TOOLS
    )
    if case.accepted:
        assert "a cat" in generate(request).text
    else:
        error = refused(request)
        assert (error.reason, error.metadata["field"]) == (pb.ERROR_REASON_INVALID_FIELD, case.path)


def test_a_state_of_an_unknown_format_is_reported() -> None:
    strange = pb.Part(text=pb.TextPart(text="a"), state=pb.ReasoningState(data="?", format="other"))
    assert generate(make_request("Hi", assistant(strange), user("Go on"))).dropped == "state"


def test_interleaved_reasoning_begins_after_the_first_result() -> None:
    between = pb.ReasoningOptions(mode=pb.REASONING_MODE_BETWEEN_TOOLS)
    answer = generate(make_request("look", assistant(called("look")), user(result("a cat")), reasoning=between))
    assert answer.kinds == ["reasoning", "text"]
