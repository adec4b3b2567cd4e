"""Reasoning: when, how much, the visible part, and the state that must be sent back."""

import base64
from dataclasses import dataclass, field

import pytest

from tests.upstream.sandbox.asking import ask, assistant, called, count, function, hear, refused, result, text, user
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
    Switch(id="nothing said", options=None, on=False),
    Switch(id="nothing in it", options=pb.ReasoningOptions(), on=False),
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
def test_it_thinks_only_when_it_is_asked_to(case: Switch) -> None:
    heard = hear(ask("Why?", reasoning=case.options, source=case.source))
    assert (heard.kinds == ["reasoning", "text"]) == case.on
    assert (heard.usage.reasoning_tokens > 0) == case.on


@pytest.mark.parametrize("budget", [1, 5, 17])
def test_thoughts_keep_their_budget(budget: int) -> None:
    heard = hear(ask("Why?", reasoning=pb.ReasoningOptions(budget_tokens=budget)))
    assert heard.usage.reasoning_tokens == budget == count("".join(heard.reasoning.reasoning.texts))
    assert heard.usage.output_tokens == budget + count(heard.text)
    assert heard.finish == "STOP"


def test_thoughts_count_towards_the_limit() -> None:
    heard = hear(ask("Why?", reasoning=ON, max_output_tokens=10))
    assert (heard.usage.reasoning_tokens, heard.usage.output_tokens, heard.finish) == (10, 10, "LENGTH")
    assert heard.kinds == ["reasoning"]


def test_more_effort_thinks_more_and_says_the_same() -> None:
    low, high = (hear(ask("Why?", reasoning=pb.ReasoningOptions(effort=effort))) for effort in ("low", "high"))
    assert low.usage.reasoning_tokens < high.usage.reasoning_tokens
    assert low.text == high.text


@dataclass(frozen=True)
class Shown:
    id: str
    source: str
    options: pb.ReasoningOptions
    part: bool = True
    texts: bool = False
    summaries: int = 0


def options(**fields: object) -> pb.ReasoningOptions:
    return pb.ReasoningOptions(effort="high", **fields)


SHOWN = [
    Shown(id="messages", source="messages", options=options(), texts=True),
    Shown(id="messages, omitted", source="messages", options=options(display="omitted")),
    Shown(id="messages, summarized", source="messages", options=options(display="summarized"), texts=True),
    Shown(id="chat", source="chat", options=options(), texts=True),
    Shown(id="chat, not shown", source="chat", options=options(include_thoughts=False), part=False),
    Shown(id="native", source="native", options=options(), part=False),
    Shown(id="native, shown", source="native", options=options(include_thoughts=True), texts=True),
    Shown(id="responses", source="responses", options=options()),
    Shown(id="responses, a summary", source="responses", options=options(summary="auto"), summaries=1),
    Shown(id="responses, a long summary", source="responses", options=options(summary="detailed"), summaries=2),
    Shown(id="no source, a summary", source="", options=options(summary="concise"), texts=True, summaries=1),
]


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: case.id)
def test_what_is_seen_of_the_thoughts_is_what_the_format_shows(case: Shown) -> None:
    heard = hear(ask("Why?", reasoning=case.options, source=case.source))
    assert heard.usage.reasoning_tokens > 0
    assert ("reasoning" in heard.kinds) == case.part
    if case.part:
        thought = heard.reasoning.reasoning
        assert (bool(thought.texts), len(thought.summaries)) == (case.texts, case.summaries)


@pytest.mark.parametrize("source", ["messages", "chat", "responses", "native", ""])
def test_the_state_is_of_the_callers_format_and_is_base64(source: str) -> None:
    reasoning = pb.ReasoningOptions(effort="high", include_thoughts=True)
    heard = hear(ask("Why?", reasoning=reasoning, source=source, include=["reasoning.encrypted_content"]))
    assert heard.reasoning.state.format == (source or "messages")
    assert len(base64.b64decode(heard.reasoning.state.data, validate=True)) == 32


def test_responses_shows_state_only_when_it_is_included() -> None:
    assert not hear(ask("Why?", reasoning=options(), source="responses")).reasoning.HasField("state")


def test_hidden_thoughts_are_nothing_but_state() -> None:
    heard = hear(ask("Why? [[redacted]]", reasoning=ON, source="messages"))
    thought = heard.reasoning
    assert thought.reasoning == pb.ReasoningPart(redacted=True)
    assert thought.state.data
    assert heard.usage.reasoning_tokens > 0


def test_native_signs_the_first_call_or_else_the_text() -> None:
    request = ask("look and listen", reasoning=options(), tools=TOOLS, source="native")
    assert [part.state.format for part in hear(request).parts] == ["native", ""]
    assert [part.state.format for part in hear(ask("Hi", reasoning=options(), source="native")).parts] == ["native"]
    assert [part.HasField("state") for part in hear(ask("Hi", source="native")).parts] == [False]


@pytest.mark.parametrize("source", ["messages", "chat", "responses", "native", ""])
@pytest.mark.parametrize("words", ["look", "look [[redacted]]"])
def test_a_tool_turn_goes_on_with_what_it_returned_unchanged(source: str, words: str) -> None:
    asked = {"reasoning": pb.ReasoningOptions(mode=pb.REASONING_MODE_ENABLED, include_thoughts=True), "tools": TOOLS}
    first = hear(ask(words, source=source, **asked))
    assert len(first.calls) == 1
    history = [user(words), assistant(*first.parts), user(result("a cat", first.calls[0].call_id))]
    second = hear(ask(*history, source=source, **asked))
    assert "The tool look gave: a cat" in second.text
    assert second.kinds == ["reasoning", "text"]


def thought(words: str, data: str, state_format: str = "messages") -> pb.Part:
    state = pb.ReasoningState(data=data, format=state_format) if data else None
    return pb.Part(reasoning=pb.ReasoningPart(texts=[words]), state=state)


GOOD = hear(ask("Why?", reasoning=ON)).reasoning
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
    State(id="forged", turn=[thought("a", FORGED), called("look")], accepted=False),
    State(id="forged, thinking off", turn=[thought("a", FORGED), called("look")], accepted=False, reasoning=None),
    State(id="no base64", turn=[thought("a", "???"), called("look")], accepted=False),
    State(id="with other thoughts", turn=[thought("a", GOOD.state.data), called("look")], accepted=False),
    State(id="with omitted thoughts", turn=[thought("", GOOD.state.data), called("look")], accepted=True),
    State(id="lost", turn=[called("look")], accepted=True),
    State(id="lost, with the thoughts kept", turn=[thought("a", ""), called("look")], accepted=True),
    State(id="behind a text", turn=[text("Hm"), called("look")], accepted=True),
    State(id="lost, thinking off", turn=[called("look")], accepted=True, reasoning=None),
    State(id="lost, adaptive", turn=[called("look")], accepted=True, reasoning=pb.ReasoningOptions(mode=pb.REASONING_MODE_ADAPTIVE)),
    State(id="lost in another format", turn=[called("look")], accepted=True, source="chat"),
    State(id="forged for native", turn=[thought("a", FORGED, "native"), called("look")], accepted=False, source="native"),
    State(id="a placeholder on native", turn=[thought("a", "skip_thought_signature_validator", "native"), called("look")], accepted=True, source="native"),
    State(id="an encoded placeholder on native", turn=[thought("a", base64.b64encode(b"context_engineering_is_the_way_to_go").decode(), "native"), called("look")], accepted=True, source="native"),
    State(id="in the URL alphabet, without padding", turn=[thought("", GOOD.state.data.replace("+", "-").replace("/", "_").rstrip("="), "native"), called("look")], accepted=True, source="native"),
    State(id="of an unknown format", turn=[GOOD, pb.Part(text=pb.TextPart(text="a"), state=pb.ReasoningState(data="?", format="other")), called("look")], accepted=True),
]  # fmt: skip


@pytest.mark.parametrize("case", STATES, ids=lambda case: case.id)
def test_state_is_checked_as_its_maker_would(case: State) -> None:
    request = ask(
        "look", assistant(*case.turn), user(result("a cat")), reasoning=case.reasoning, source=case.source, tools=TOOLS
    )
    if case.accepted:
        assert "a cat" in hear(request).text
    else:
        error = refused(request)
        assert (error.reason, error.metadata["field"]) == (pb.ERROR_REASON_INVALID_FIELD, case.path)


def test_a_state_of_an_unknown_format_is_reported() -> None:
    strange = pb.Part(text=pb.TextPart(text="a"), state=pb.ReasoningState(data="?", format="other"))
    assert hear(ask("Hi", assistant(strange), user("Go on"))).dropped == "state"


def test_thinking_between_tools_begins_after_the_first_result() -> None:
    between = pb.ReasoningOptions(mode=pb.REASONING_MODE_BETWEEN_TOOLS)
    heard = hear(ask("look", assistant(called("look")), user(result("a cat")), reasoning=between))
    assert heard.kinds == ["reasoning", "text"]
