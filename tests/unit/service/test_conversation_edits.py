"""Edits that shorten a conversation: which results and reasoning are removed, and the report."""

import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.service.conversations.conversation_edits import CLEARED_RESULT, edited_conversation, may_edit
from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb
from umg_grpc.wire.core.context_management_edits import ClearThinking, ClearToolUses, Compact, ContextEdit
from umg_grpc.wire.core.sealed_summaries import summary_text

COUNTER = TokenCounter()
LONG = "It is sunny. " * 40
TOOLS, THINKING = "clear_tool_uses_20250919", "clear_thinking_20251015"


def question(text: str = "Go on.") -> pb.Message:
    return pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=text))])


def thought(text: str = "Hm.") -> pb.Part:
    return pb.Part(reasoning=pb.ReasoningPart(texts=[text]))


def called(number: int, name: str = "look", result: str = LONG, *, thinks: bool = False) -> list[pb.Message]:
    call = pb.Part(tool_call=pb.ToolCall(call_id=f"c{number}", name=name, arguments_json='{"path": "a long path"}'))
    answer = pb.ToolResult(call_id=f"c{number}", parts=[pb.Part(text=pb.TextPart(text=result))], is_error=False)
    parts = [thought(), call] if thinks else [call]
    return [
        pb.Message(role=pb.ROLE_ASSISTANT, parts=parts),
        pb.Message(role=pb.ROLE_USER, parts=[pb.Part(tool_result=answer)]),
    ]


def conversation(*turns: list[pb.Message]) -> pb.GenerateRequest:
    return pb.GenerateRequest(messages=[question("Look."), *(message for turn in turns for message in turn)])


def cleared(request: pb.GenerateRequest) -> list[str]:
    """Return the ids of the calls whose results were removed."""
    results = [part.tool_result for message in request.messages for part in message.parts]
    return [result.call_id for result in results if result.parts and result.parts[0].text.text == CLEARED_RESULT]


def uses(trigger: int, **options: object) -> ClearToolUses:
    return ClearToolUses(type=TOOLS, trigger_tokens=None, trigger_uses=trigger, **options)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Case:
    id: str
    edit: ClearToolUses
    cleared: list[str]
    turns: list[list[pb.Message]] = field(default_factory=lambda: [called(number) for number in range(5)])


CASES = [
    Case("fewer calls than the trigger", uses(5), []),
    Case("more calls than the trigger", uses(4), ["c0", "c1"]),
    Case("each call but the kept ones", uses(1, keep=1), ["c0", "c1", "c2", "c3"]),
    Case("none is kept", uses(1, keep=0), ["c0", "c1", "c2", "c3"]),
    Case("more are kept than there are", uses(1, keep=9), []),
    Case("too little to remove", uses(1, keep=1, clear_at_least=100_000), []),
    Case("enough to remove, at the request before", uses(1, keep=1, clear_at_least=400), ["c0", "c1", "c2"]),
    Case("results shorter than their note", uses(1, keep=0), [], [called(number, result="ok") for number in range(5)]),
    Case(
        "an excluded tool",
        uses(2, keep=1, excluded=frozenset({"remember"})),
        ["c1", "c2"],
        [called(0, "remember"), called(1), called(2), called(3)],
    ),
    Case("tokens below the trigger", ClearToolUses(type=TOOLS, trigger_tokens=2000), []),
    Case("tokens above the trigger", ClearToolUses(type=TOOLS, trigger_tokens=700), ["c0", "c1"]),
    Case("a prompt above the trigger, of few calls", ClearToolUses(type=TOOLS, trigger_tokens=1), [], [called(0)]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_results_of_the_oldest_calls_are_removed(case: Case) -> None:
    request = conversation(*case.turns)
    edited, management = edited_conversation(request, [case.edit], COUNTER)
    assert cleared(edited) == case.cleared
    if not case.cleared:
        assert edited is request
        assert not management.applied_edits
        return
    (applied,) = management.applied_edits
    saved = COUNTER.count_request(request) - COUNTER.count_request(edited)
    assert (applied.type, applied.cleared_tool_uses) == (TOOLS, len(case.cleared))
    assert applied.cleared_input_tokens == pytest.approx(saved, abs=len(case.cleared))
    assert len(edited.messages) == len(request.messages)


def test_arguments_are_removed_where_the_caller_requests_it() -> None:
    request = conversation(called(0), called(1, "write"), called(2))
    for edit, expected in (
        (uses(2, keep=1), 0),
        (uses(2, keep=1, clears_all_inputs=True), 2),
        (uses(2, keep=1, cleared_inputs=frozenset({"write"})), 1),
    ):
        edited, _ = edited_conversation(request, [edit], COUNTER)
        calls = [part.tool_call for message in edited.messages for part in message.parts if part.HasField("tool_call")]
        assert [call.arguments_json for call in calls].count("{}") == expected
        assert calls[-1].arguments_json != "{}"


def test_the_reasoning_of_earlier_turns_is_removed() -> None:
    first, second = called(0, thinks=True), called(1, thinks=True)
    only = pb.Message(role=pb.ROLE_ASSISTANT, parts=[thought("Alone.")])
    request = conversation(first, second, [only, question()], called(2, thinks=True), called(3, thinks=True))
    edited, management = edited_conversation(request, [ClearThinking(type=THINKING, keep=1)], COUNTER)
    texts = [part.reasoning.texts[0] for message in edited.messages for part in message.parts if part.reasoning.texts]
    assert texts == ["Alone.", "Hm.", "Hm."]
    (applied,) = management.applied_edits
    tokens = 2 * COUNTER.count_text("Hm.")
    assert (applied.type, applied.cleared_thinking_turns, applied.cleared_input_tokens) == (THINKING, 1, tokens)


@pytest.mark.parametrize(
    "edit",
    [
        ClearThinking(type=THINKING, keep=None),
        ClearThinking(type=THINKING, keep=2),
        Compact(type="compact_20260112"),
    ],
)
def test_an_edit_without_effect_leaves_the_request(edit: ClearThinking | Compact) -> None:
    request = conversation(called(0, thinks=True), [question()], called(1, thinks=True))
    edited, management = edited_conversation(request, [edit], COUNTER)
    assert (edited is request, len(management.applied_edits)) == (True, 0)


def test_tokens_are_counted_only_for_edits_that_may_remove_something() -> None:
    request = conversation(called(0, thinks=True), called(1, thinks=True))
    everything = ClearThinking(type=THINKING, keep=None)
    assert not may_edit(request, [everything, Compact(type="compact_20260112"), uses(9, keep=2)])
    assert may_edit(request, [everything, uses(9, keep=1)])
    assert may_edit(request, [ClearThinking(type=THINKING, keep=9)])


def test_both_edits_are_reported_in_the_order_of_the_request() -> None:
    request = conversation(*(called(number, thinks=True) for number in range(3)), [question()], called(3, thinks=True))
    edits: list[ContextEdit] = [ClearThinking(type=THINKING), uses(2, keep=1, clears_all_inputs=True)]
    edited, management = edited_conversation(request, edits, COUNTER)
    assert [applied.type for applied in management.applied_edits] == [THINKING, TOOLS]
    assert cleared(edited) == ["c0", "c1"]
    calls = [part.tool_call for message in edited.messages for part in message.parts if part.HasField("tool_call")]
    assert [call.arguments_json == "{}" for call in calls] == [True, True, False, False]


def summarized(content: str | None, *texts: str) -> pb.Message:
    """Return a turn of the model with a summary that its vendor made, and texts behind it."""
    block = json.dumps({"type": "compaction", "content": content})
    parts = [pb.Part(opaque=pb.OpaquePart(format="messages", type="compaction", json=block))]
    parts += [pb.Part(text=pb.TextPart(text=text)) for text in texts]
    return pb.Message(role=pb.ROLE_ASSISTANT, parts=parts)


@dataclass(frozen=True)
class Summarized:
    id: str
    messages: list[pb.Message]
    texts: list[str]
    """Texts of the conversation after the edit."""


INSTRUCTION = pb.Message(role=pb.ROLE_SYSTEM, parts=[pb.Part(text=pb.TextPart(text="Be brief."))])
SUMMARIZED = [
    Summarized(
        "a summary with a response", [question("Old."), summarized("S.", "A."), question()], ["S.", "A.", "Go on."]
    ),
    Summarized("a summary alone", [question("Old."), summarized("S."), question()], ["S.", "Go on."]),
    Summarized("two summaries", [summarized("S."), question("Old."), summarized("T."), question()], ["T.", "Go on."]),
    Summarized("a failed summary", [question("Old."), summarized(None), question()], ["Old.", "Go on."]),
    Summarized("a failed one behind another", [summarized("S."), summarized(None, "A.")], ["S.", "A."]),
    Summarized("instructions before it", [INSTRUCTION, question("Old."), summarized("S.")], ["Be brief.", "S."]),
]


@pytest.mark.parametrize("case", SUMMARIZED, ids=lambda case: case.id)
def test_the_newest_summary_of_the_vendor_replaces_the_messages_before_it(case: Summarized) -> None:
    request = pb.GenerateRequest(messages=case.messages)
    edited, management = edited_conversation(request, [Compact(type="compact_20260112")], COUNTER)
    texts = [part.text.text.removeprefix(summary_text("")) for message in edited.messages for part in message.parts]
    assert texts == case.texts
    assert all(message.parts for message in edited.messages)
    assert not management.applied_edits


@given(
    st.lists(st.integers(0, 400), min_size=2, max_size=12),
    st.integers(1, 900),
    st.integers(0, 3),
    st.integers(0, 300),
    st.booleans(),
)
def test_a_request_repeats_the_edits_of_the_requests_before_it(
    sizes: list[int], trigger: int, keep: int, at_least: int, thinks: bool
) -> None:
    edit = ClearToolUses(type=TOOLS, trigger_tokens=trigger, keep=keep, clear_at_least=at_least)
    edits: list[ContextEdit] = [ClearThinking(type=THINKING, keep=None), edit]
    turns = [called(number, result="a " * size, thinks=thinks) for number, size in enumerate(sizes)]
    before: list[str] = []
    for length in range(1, len(turns) + 1):
        edited, _ = edited_conversation(conversation(*turns[:length]), edits, COUNTER)
        now = cleared(edited)
        assert now[: len(before)] == before
        before = now
