"""Cuts of a conversation that is too long for the model."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.service.operations.generate.conversation_truncation import cut_after
from umg_grpc.v1 import pb


def user(text: str) -> pb.Message:
    return pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=text))])


def called(*call_ids: str) -> pb.Message:
    calls = [pb.Part(tool_call=pb.ToolCall(call_id=call_id, name="f")) for call_id in call_ids]
    return pb.Message(role=pb.ROLE_ASSISTANT, parts=calls)


def result(call_id: str) -> pb.Message:
    text = pb.Part(text=pb.TextPart(text="x" * 100))
    return pb.Message(role=pb.ROLE_TOOL, parts=[pb.Part(tool_result=pb.ToolResult(call_id=call_id, parts=[text]))])


@dataclass(frozen=True)
class Cut:
    """Conversation, and the number of its messages that are left out for a share of its bytes."""

    id: str
    messages: tuple[pb.Message, ...]
    share: float
    expected: int


CUTS = [
    Cut("turns of one size", tuple(user("x" * 100) for _ in range(6)), 0.5, 3),
    Cut("calls with their results", (user("x"), called("a", "b"), result("a"), result("b"), user("y")), 0.4, 4),
    Cut("the last message stays", (user("x"), user("x" * 1000)), 0.9, 1),
    Cut("results of the last call stay with it", (user("x" * 300), called("a"), result("a")), 0.9, 1),
    Cut("a call without a result", (called("a"), user("x" * 100), user("y")), 0.5, 0),
    Cut("one message", (user("x"),), 0.5, 0),
    Cut("none", (), 0.5, 0),
]


@pytest.mark.parametrize("case", CUTS, ids=lambda case: case.id)
def test_the_oldest_turns_are_left_out(case: Cut) -> None:
    assert cut_after(case.messages, case.share) == case.expected


@given(st.lists(st.integers(0, 3), max_size=20), st.floats(0, 1))
def test_no_call_is_separated_from_its_result(calls: list[int], share: float) -> None:
    messages = [user("begin")]
    for turn, count in enumerate(calls):
        ids = [f"{turn}_{number}" for number in range(count)]
        messages += [called(*ids), *map(result, ids)] if ids else [user("on")]
    rest = messages[cut_after(messages, share) :]
    assert rest
    made = {part.tool_call.call_id for message in rest for part in message.parts if part.HasField("tool_call")}
    answered = {part.tool_result.call_id for message in rest for part in message.parts if part.HasField("tool_result")}
    assert made == answered
