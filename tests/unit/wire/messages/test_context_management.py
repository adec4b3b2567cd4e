"""Edits of conversations in messages bodies, and the report of them in responses."""

import json
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from tests.support.error_checks import raises_error
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.context_management_edits import ClearThinking, ClearToolUses, Compact, ContextEdit, UnknownEdit
from umg_grpc.wire.messages import MESSAGES_FORMAT
from umg_grpc.wire.messages.stream_encoder import StreamEncoder

TOOLS, THINKING, COMPACT = "clear_tool_uses_20250919", "clear_thinking_20251015", "compact_20260112"


def decoded(*edits: Any) -> tuple[ContextEdit, ...] | None:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    body["context_management"] = {"edits": list(edits)}
    return MESSAGES_FORMAT.decode_request(msgspec.json.encode(body), {}).notes.context_edits


@dataclass(frozen=True)
class Decoding:
    id: str
    edit: dict[str, Any]
    decoded: ContextEdit


DECODINGS = [
    Decoding("the defaults", {"type": TOOLS}, ClearToolUses(type=TOOLS)),
    Decoding("nulls", {"type": TOOLS, "clear_at_least": None, "exclude_tools": None}, ClearToolUses(type=TOOLS)),
    Decoding(
        "all options",
        {
            "type": TOOLS,
            "trigger": {"type": "input_tokens", "value": 5},
            "keep": {"type": "tool_uses", "value": 0},
            "clear_at_least": {"type": "input_tokens", "value": 7},
            "exclude_tools": ["a"],
            "clear_tool_inputs": True,
        },
        ClearToolUses(
            type=TOOLS,
            trigger_tokens=5,
            keep=0,
            clear_at_least=7,
            excluded=frozenset({"a"}),
            clears_all_inputs=True,
        ),
    ),
    Decoding(
        "a number of calls, and inputs of one tool",
        {"type": TOOLS, "trigger": {"type": "tool_uses", "value": 5}, "clear_tool_inputs": ["a"]},
        ClearToolUses(type=TOOLS, trigger_tokens=None, trigger_uses=5, cleared_inputs=frozenset({"a"})),
    ),
    Decoding("reasoning", {"type": THINKING}, ClearThinking(type=THINKING, keep=1)),
    Decoding("all reasoning", {"type": THINKING, "keep": "all"}, ClearThinking(type=THINKING, keep=None)),
    Decoding("all turns", {"type": THINKING, "keep": {"type": "all"}}, ClearThinking(type=THINKING, keep=None)),
    Decoding(
        "some turns",
        {"type": THINKING, "keep": {"type": "thinking_turns", "value": 2}},
        ClearThinking(type=THINKING, keep=2),
    ),
    Decoding("a summary", {"type": COMPACT, "instructions": "Short."}, Compact(type=COMPACT, instructions="Short.")),
    Decoding(
        "a newer edit", {"type": "new", "x": 1}, UnknownEdit(type="new", field="context_management.edits[0].type")
    ),
]


@pytest.mark.parametrize("case", DECODINGS, ids=lambda case: case.id)
def test_an_edit_is_decoded_with_the_defaults_of_its_vendor(case: Decoding) -> None:
    assert decoded(case.edit) == (case.decoded,)


@dataclass(frozen=True)
class Rejection:
    id: str
    edit: Any
    field: str
    """Path below the edit."""


REJECTIONS = [
    Rejection("no object", "x", ""),
    Rejection("no type", {}, ".type"),
    Rejection("a type that is no text", {"type": 1}, ".type"),
    Rejection("a trigger of another kind", {"type": TOOLS, "trigger": {"type": "turns", "value": 1}}, ".trigger.type"),
    Rejection("a trigger of nothing", {"type": TOOLS, "trigger": {"type": "tool_uses", "value": 0}}, ".trigger.value"),
    Rejection("a trigger as text", {"type": TOOLS, "trigger": {"type": "tool_uses", "value": "9"}}, ".trigger.value"),
    Rejection("a trigger without a value", {"type": TOOLS, "trigger": {"type": "tool_uses"}}, ".trigger.value"),
    Rejection("tokens to keep", {"type": TOOLS, "keep": {"type": "input_tokens", "value": 1}}, ".keep.type"),
    Rejection("fewer than no calls", {"type": TOOLS, "keep": {"type": "tool_uses", "value": -1}}, ".keep.value"),
    Rejection("calls to clear", {"type": TOOLS, "clear_at_least": {"type": "tool_uses", "value": 1}}, ".clear_at_least.type"),
    Rejection("tools by number", {"type": TOOLS, "exclude_tools": [1]}, ".exclude_tools[0]"),
    Rejection("inputs by text", {"type": TOOLS, "clear_tool_inputs": "all"}, ".clear_tool_inputs"),
    Rejection("some reasoning", {"type": THINKING, "keep": "some"}, ".keep"),
    Rejection("no turns", {"type": THINKING, "keep": {"type": "thinking_turns", "value": 0}}, ".keep.value"),
    Rejection("turns without a number", {"type": THINKING, "keep": {"type": "thinking_turns"}}, ".keep.value"),
    Rejection("a summary of a short prompt", {"type": COMPACT, "trigger": {"type": "input_tokens", "value": 9}}, ".trigger.value"),
    Rejection("a summary after calls", {"type": COMPACT, "trigger": {"type": "tool_uses", "value": 9}}, ".trigger.type"),
]  # fmt: skip


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_malformed_edit_is_rejected_by_the_path_of_its_field(case: Rejection) -> None:
    with raises_error(field=f"context_management.edits[1]{case.field}"):
        decoded({"type": "any"}, case.edit)


@pytest.mark.parametrize("body", ["x", 1, [], {"edits": {}}], ids=str)
def test_a_member_of_another_form_is_rejected(body: object) -> None:
    whole = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "context_management": body}
    for decode in (MESSAGES_FORMAT.decode_request, MESSAGES_FORMAT.decode_count):
        assert decode is not None
        with pytest.raises(UmgError, match="context_management"):
            decode(msgspec.json.encode(whole), {})


REPORT = pb.ContextManagement(
    applied_edits=[
        pb.AppliedEdit(type=THINKING, cleared_thinking_turns=0, cleared_input_tokens=0),
        pb.AppliedEdit(type=TOOLS, cleared_tool_uses=2, cleared_input_tokens=70),
    ]
)
REPORTED = {
    "applied_edits": [
        {"type": THINKING, "cleared_thinking_turns": 0, "cleared_input_tokens": 0},
        {"type": TOOLS, "cleared_tool_uses": 2, "cleared_input_tokens": 70},
    ]
}


def test_a_response_has_the_report_of_its_edits() -> None:
    response = pb.GenerateResponse(context_management=REPORT)
    body = json.loads(MESSAGES_FORMAT.encode_response(response, pb.GenerateRequest()))
    assert body["context_management"] == REPORTED
    empty = pb.GenerateResponse(context_management=pb.ContextManagement())
    body = json.loads(MESSAGES_FORMAT.encode_response(empty, pb.GenerateRequest()))
    assert body["context_management"] == {"applied_edits": []}
    body = json.loads(MESSAGES_FORMAT.encode_response(pb.GenerateResponse(), pb.GenerateRequest()))
    assert "context_management" not in body


def test_the_last_event_of_a_stream_has_the_report_of_its_edits() -> None:
    encoder = StreamEncoder(pb.GenerateRequest(model="m"))
    started = pb.GenerateEvent(started=pb.GenerationStarted(context_management=REPORT))
    frames = encoder.feed(pb.StreamGenerateResponse(events=[started])) + encoder.close()
    data = [json.loads(line.removeprefix(b"data: ")) for line in frames.split(b"\n") if line.startswith(b"data: ")]
    assert [event["type"] for event in data if "context_management" in event] == ["message_delta"]
    assert data[-2]["context_management"] == REPORTED


def test_a_token_count_has_the_tokens_before_the_edits() -> None:
    assert MESSAGES_FORMAT.encode_count is not None
    assert json.loads(MESSAGES_FORMAT.encode_count(5, 9)) == {
        "input_tokens": 5,
        "context_management": {"original_input_tokens": 9},
    }
