"""Turns of role `system` between the others, which coding agents send by default."""

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.messages import MESSAGES_FORMAT

CALL = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "42"}
BODY = {
    "model": "m",
    "max_tokens": 90,
    "system": "Help.",
    "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "system", "content": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": [RESULT]},
        {"role": "system", "content": "Be kind."},
    ],
}


def decoded() -> pb.GenerateRequest:
    return MESSAGES_FORMAT.decode_request(msgspec.json.encode(BODY), {}).canonical


def test_system_turns_are_system_messages_at_their_positions() -> None:
    roles = [pb.ROLE_USER, pb.ROLE_SYSTEM, pb.ROLE_ASSISTANT, pb.ROLE_USER, pb.ROLE_SYSTEM]
    assert [message.role for message in decoded().messages] == roles


def test_they_are_forwarded_unchanged_to_a_provider_of_the_format() -> None:
    upstream = MESSAGES_FORMAT.encode_request(decoded(), "m", False)
    assert (msgspec.json.decode(upstream.body), upstream.report.lost) == (BODY, 0)


def test_system_turns_keep_their_positions_when_the_conversation_is_encoded_again() -> None:
    upstream = MESSAGES_FORMAT.encode_request(decoded(), "m", False, notes=RequestNotes(edited=("messages",)))
    sent = msgspec.json.decode(upstream.body)["messages"]
    assert ([as_blocks(turn) for turn in BODY["messages"]], 0) == (sent, upstream.report.lost)  # type: ignore[attr-defined]


def as_blocks(turn: Any) -> Any:
    """Return a turn with its text as a block, the form of all turns beside one with a mark."""
    content = turn["content"]
    return turn | {"content": [{"type": "text", "text": content}]} if isinstance(content, str) else turn


@dataclass(frozen=True)
class Target:
    """The place of the system turns in another format's body."""

    format: str
    found: object
    report: str


TARGETS = [
    Target("chat", ["system", "user", "system", "assistant", "tool", "system"], "cache_control"),
    Target("responses", ["user", "system", "function_call", "function_call_output", "system"], "cache_control"),
    Target("native", ["user", "model", "user"], "role=systemInstruction x2, cache_control"),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.format)
def test_other_formats_get_them_at_their_positions_or_as_instructions(target: Target) -> None:
    upstream = TEXT_FORMATS[target.format].encode_request(decoded(), "m", False)
    body = msgspec.json.decode(upstream.body)
    turns = body.get("messages") or body.get("input") or body["contents"]
    assert [turn.get("role") or turn["type"] for turn in turns] == target.found
    upstream.report.rename(MESSAGES_FORMAT.wire_path)
    assert upstream.report.header().replace("messages.", "") == target.report
    if target.format == "native":
        assert body["systemInstruction"] == {"parts": [{"text": text} for text in ("Help.", "Be brief.", "Be kind.")]}
