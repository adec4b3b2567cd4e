"""Prompt cache marks: messages providers cache up to them, and the gateway sets some where the caller's format has
none.
"""

import json
from typing import Any

import pytest

from tests.pairs.quirks.requests import decoded_request, encoded
from tests.pairs.vendors.gateway import Model, send
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

MARK = {"type": "ephemeral"}
MARKING = Quirks(cache_marks=True)
FUNCTION = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}


def marked(body: dict[str, Any]) -> list[str]:
    """Return the paths of the cache marks."""
    found = [f"tools[{index}]" for index, tool in enumerate(body.get("tools", [])) if "cache_control" in tool]
    system = body.get("system", "")
    found += [
        f"system[{index}]" for index, block in enumerate(system) if isinstance(block, dict) and "cache_control" in block
    ]
    for index, message in enumerate(body["messages"]):
        blocks = message["content"] if isinstance(message["content"], list) else []
        found += [f"messages[{index}][{place}]" for place, block in enumerate(blocks) if "cache_control" in block]
    assert json.dumps(body).count('"cache_control"') == len(found)
    return found


CODEX = {
    "instructions": "You are an agent.",
    "tools": [FUNCTION, FUNCTION | {"name": "run"}],
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "run", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "x"},
        {"type": "function_call_output", "call_id": "b", "output": "y"},
    ],
    "prompt_cache_key": "session",
}


def test_an_agents_prompt_is_marked_at_its_tools_its_instructions_and_the_last_user_turn() -> None:
    body, report = encoded("responses", "messages", MARKING, **CODEX)
    assert marked(body) == ["tools[1]", "system[1]", "messages[2][1]"]
    assert body["tools"][1]["cache_control"] == MARK
    assert report == "prompt_cache_key"


@pytest.mark.parametrize(
    ("face", "fields"),
    [
        ("chat", {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]}),
        ("native", {"systemInstruction": {"parts": [{"text": "Be brief."}]}}),
    ],
)
def test_a_prompt_of_one_text_is_marked_as_a_block(face: str, fields: dict[str, Any]) -> None:
    body, report = encoded(face, "messages", MARKING, **fields)
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": MARK}]
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": MARK}]}]
    assert report == ""


def test_a_begun_answer_of_the_assistant_is_not_marked() -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    body, _ = encoded("chat", "messages", MARKING, messages=messages)
    assert marked(body) == ["messages[0][0]"]


def test_nothing_is_marked_where_prompt_caching_is_off() -> None:
    body, _ = encoded("responses", "messages", Quirks(cache_marks=False), **CODEX)
    assert marked(body) == []


def test_no_marks_are_added_beside_those_of_the_caller() -> None:
    mark = pb.CacheControl()
    request = pb.GenerateRequest(
        model="m",
        instructions=[pb.Part(text=pb.TextPart(text="Be brief."), cache_control=mark)],
        messages=[pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="Hi"))])],
    )
    body = json.loads(TEXT_FORMATS["messages"].encode_request(request, "m", False, MARKING).body)
    assert marked(body) == ["system[0]"]
    request.instructions[0].ClearField("cache_control")
    request.cache_control.CopyFrom(mark)
    body = json.loads(TEXT_FORMATS["messages"].encode_request(request, "m", False, MARKING).body)
    assert (list(body["cache_control"]), body["system"]) == (["type"], "Be brief.")
    request.ClearField("cache_control")
    body = json.loads(TEXT_FORMATS["messages"].encode_request(request, "m", False, MARKING).body)
    assert marked(body) == ["system[0]", "messages[0][0]"]


def test_a_turn_of_an_unknown_role_is_never_marked() -> None:
    turn = {"role": "tool_changes", "content": [{"type": "text", "text": "x"}]}
    kept = pb.OpaquePart(format="messages", type="tool_changes", json=json.dumps(turn))
    messages = [
        pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="Hi"))]),
        pb.Message(parts=[pb.Part(opaque=kept)]),
    ]
    request = pb.GenerateRequest(model="m", messages=messages)
    body = json.loads(TEXT_FORMATS["messages"].encode_request(request, "m", False, MARKING).body)
    assert (marked(body), body["messages"][1]) == (["messages[0][0]"], turn)


def test_a_callers_own_body_is_never_marked() -> None:
    request = decoded_request(
        "messages", system="Be brief.", tools=[{"name": "look", "input_schema": {"type": "object"}}]
    )
    assert b"cache_control" not in TEXT_FORMATS["messages"].encode_request(request, "m", False, MARKING).body


SCOPED = {"type": "ephemeral", "scope": "global"}
SCOPES: dict[str, Any] = {
    "system": [{"type": "text", "text": "Be brief.", "cache_control": SCOPED}],
    "tools": [{"name": "scope", "input_schema": {"type": "object", "scope": 1}, "cache_control": SCOPED}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": '"scope"', "cache_control": SCOPED}]}],
    "cache_control": SCOPED,
}


def test_scopes_of_marks_are_left_out_for_providers_that_refuse_them() -> None:
    body, report = encoded("messages", "messages", NO_QUIRKS, **SCOPES)
    without = json.loads(json.dumps(SCOPES).replace(', "scope": "global"', ""))
    assert {name: body[name] for name in SCOPES} == without
    assert report == "cache_control.scope"
    kept, report = encoded("messages", "messages", Quirks(cache_scopes=True), **SCOPES)
    assert ({name: kept[name] for name in SCOPES}, report) == (SCOPES, "")


def test_scopes_reach_their_vendor_alone() -> None:
    body = {"max_tokens": 99, **SCOPES}
    assert b"global" in send(Model("anthropic", "claude-opus-5"), "messages", body, stream=False).body
    relay = Model("openrouter", "openrouter/anthropic/claude-sonnet-5", "anthropic/claude-sonnet-5")
    for model in (relay, Model("openai", "gpt-6-sol"), Model("deepseek", "deepseek-v4-pro")):
        assert b"global" not in send(model, "messages", body, stream=False).body
