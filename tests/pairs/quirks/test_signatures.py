"""Placeholders for thought signatures are no reasoning state: they reach no provider of another format, and one is set
where a provider requires it.
"""

import base64
import json
from typing import Any

import pytest

from tests.pairs.quirks.requests import decoded_request, encoded
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.reasoning_state_conversion import NO_SIGNATURE, SIGNATURE_PLACEHOLDERS, is_placeholder

REAL = base64.b64encode(b"a signature of the provider's own").decode()
WRITTEN = [
    *sorted(SIGNATURE_PLACEHOLDERS),
    NO_SIGNATURE.replace("_", "/"),
    *(base64.b64encode(text.encode()).decode() for text in sorted(SIGNATURE_PLACEHOLDERS)),
    *(base64.urlsafe_b64encode(text.encode()).decode().rstrip("=") for text in sorted(SIGNATURE_PLACEHOLDERS)),
]


def native(signature: str) -> dict[str, Any]:
    """Return a conversation of native in which the model called a function."""
    call = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": signature}
    return {
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [call]},
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "x"}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "look"}]}],
    }


def chat(signature: str) -> dict[str, Any]:
    """Return the same conversation in chat, as vendor G's endpoint has it."""
    call: dict[str, Any] = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    if signature:
        call["extra_content"] = {"google": {"thought_signature": signature}}
    return {
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
        ],
        "max_tokens": 100,
    }


@pytest.mark.parametrize("signature", WRITTEN)
def test_a_placeholder_is_recognised_in_every_form(signature: str) -> None:
    assert is_placeholder(signature)
    assert not is_placeholder(REAL)
    assert not is_placeholder(signature + REAL)


@pytest.mark.parametrize("upstream", ["chat", "responses", "messages"])
@pytest.mark.parametrize("signature", WRITTEN)
def test_a_placeholder_reaches_no_provider_of_another_format(signature: str, upstream: str) -> None:
    body, report = encoded("native", upstream, NO_QUIRKS, **native(signature))
    assert signature not in json.dumps(body)
    assert "extra_content" not in json.dumps(body)
    assert "state" not in report


@pytest.mark.parametrize("signature", WRITTEN)
def test_a_placeholder_in_chat_is_no_reasoning_state(signature: str) -> None:
    body, report = encoded("chat", "messages", NO_QUIRKS, **chat(signature))
    assert signature not in json.dumps(body)
    assert report == ""


def test_a_placeholder_of_a_grpc_caller_is_left_out() -> None:
    part = pb.Part(
        tool_call=pb.ToolCall(call_id="c", name="look"), state=pb.ReasoningState(data=NO_SIGNATURE, format="native")
    )
    request = pb.GenerateRequest(model="m", messages=[pb.Message(role=pb.ROLE_ASSISTANT, parts=[part])])
    assert NO_SIGNATURE.encode() not in TEXT_FORMATS["chat"].encode_request(request, "m", False).body


@pytest.mark.parametrize("signature", [*WRITTEN, REAL])
def test_a_native_provider_gets_the_placeholder_of_a_native_caller(signature: str) -> None:
    body, report = encoded("native", "native", NO_QUIRKS, **native(signature))
    assert body == native(signature)
    assert report == ""


def test_a_real_signature_is_sent_only_to_providers_of_its_format() -> None:
    body, _ = encoded("native", "chat", NO_QUIRKS, **native(REAL))
    assert body["messages"][1]["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": REAL}}
    body, report = encoded("native", "messages", NO_QUIRKS, **native(REAL))
    assert (REAL in json.dumps(body), "state" in report) == (False, True)


@pytest.mark.parametrize("face", ["responses", "messages", "native"])
def test_the_first_call_of_the_current_turn_is_signed_for_providers_that_need_it(face: str) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "native": native(NO_SIGNATURE),
        "messages": {
            "messages": [
                {"role": "user", "content": "Hi"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "tool_use", "id": "c", "name": "look", "input": {}},
                        {"type": "tool_use", "id": "d", "name": "look", "input": {}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "c"},
                        {"type": "tool_result", "tool_use_id": "d"},
                    ],
                },
            ]
        },
        "responses": {
            "input": [
                {"role": "user", "content": "Hi"},
                {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "x"},
            ]
        },
    }
    body, _ = encoded(face, "chat", Quirks(signatures=True), **bodies[face])
    [calls] = [message["tool_calls"] for message in body["messages"] if "tool_calls" in message]
    placeholder = {"google": {"thought_signature": NO_SIGNATURE}}
    assert [call.get("extra_content") for call in calls] == [placeholder, None][: len(calls)]
    body, _ = encoded(face, "chat", NO_QUIRKS, **bodies[face])
    assert "extra_content" not in json.dumps(body)


def test_calls_keep_their_placeholder_in_later_turns() -> None:
    bodies = native(NO_SIGNATURE)
    first, _ = encoded("native", "chat", Quirks(signatures=True), **bodies)
    bodies["contents"] += [
        {"role": "model", "parts": [{"text": "Ho"}]},
        {"role": "user", "parts": [{"text": "Hi again"}]},
    ]
    second, _ = encoded("native", "chat", Quirks(signatures=True), **bodies)
    assert NO_SIGNATURE in json.dumps(first)
    assert second["messages"][: len(first["messages"])] == first["messages"]


def test_a_chat_provider_gets_the_placeholder_of_a_chat_caller() -> None:
    request = decoded_request("chat", **chat(NO_SIGNATURE))
    body = json.loads(TEXT_FORMATS["chat"].encode_request(request, "m", False).body)
    assert body["messages"] == chat(NO_SIGNATURE)["messages"]


# --- marks of the gateway in bodies of the provider's own format


def wrapped(state: str) -> str:
    """Return a state as callers of native get it from another format's provider."""
    return base64.b64encode(state.encode()).decode()


def own_body(model: str, *parts: dict[str, Any]) -> tuple[list[Any], str]:
    """Return (contents that a native provider gets from a native caller, report) of a turn of the model."""
    result = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"x": 1}}}]}
    contents = [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": list(parts)}, result]
    body = json.dumps({"contents": contents}).encode()
    request, _, notes = TEXT_FORMATS["native"].decode_request(body, {}, model)
    sent = TEXT_FORMATS["native"].encode_request(request, model, False, NO_QUIRKS, notes)
    decoded = json.loads(sent.body)["contents"]
    assert (decoded[0], decoded[2]) == (contents[0], result)
    return decoded[1]["parts"], sent.report.header()


CALL: dict[str, Any] = {"functionCall": {"name": "look", "args": {}}}
PLACED = CALL | {"thoughtSignature": NO_SIGNATURE}
THOUGHT = {"text": "A", "thought": True}


@pytest.mark.parametrize("model", ["case", "gemini-3-pro-preview"])
def test_a_mark_of_another_provider_is_cut_from_a_native_body_and_the_call_gets_the_placeholder(model: str) -> None:
    mark = {"text": "", "thought": True, "thoughtSignature": wrapped("umg.responses.ENC")}
    assert own_body(model, THOUGHT, mark, CALL) == ([THOUGHT, PLACED], "state")


def test_a_mark_on_the_call_itself_is_replaced_by_the_placeholder() -> None:
    for name in ("thoughtSignature", "thought_signature"):
        assert own_body("gemini-3-flash", CALL | {name: wrapped("umg.messages.SIG")}) == ([PLACED], "state")


def test_no_placeholder_is_set_for_a_model_that_needs_none() -> None:
    assert own_body("gemini-2.5-pro", CALL | {"thoughtSignature": wrapped("umg.messages.SIG")}) == ([CALL], "state")
    assert own_body("gemini-2.5-pro", CALL) == ([CALL], "")
    assert own_body("case", CALL) == ([CALL], "")


def test_a_call_without_a_signature_gets_the_placeholder_where_the_model_rejects_it() -> None:
    assert own_body("gemini-3-pro-preview", CALL, CALL) == ([PLACED, CALL], "state=placeholder")


def test_a_state_of_the_native_format_is_sent_as_its_provider_made_it() -> None:
    wrapped_own = CALL | {"thoughtSignature": wrapped("umg.native.no base64")}
    assert own_body("gemini-3-pro-preview", wrapped_own) == ([CALL | {"thoughtSignature": "no base64"}], "")
    own = CALL | {"thoughtSignature": REAL}
    assert own_body("gemini-3-pro-preview", own) == ([own], "")


def test_a_turn_that_held_nothing_but_a_mark_is_left_out() -> None:
    mark = {"thought": True, "thoughtSignature": wrapped("umg.responses.ENC")}
    turns = [{"role": "user", "parts": {"text": "hi"}}, {"role": "model", "parts": mark}, {"parts": [{"text": "go"}]}]
    request, _, notes = TEXT_FORMATS["native"].decode_request(json.dumps({"contents": turns}).encode(), {}, "m")
    sent = TEXT_FORMATS["native"].encode_request(request, "m", False, NO_QUIRKS, notes)
    assert json.loads(sent.body)["contents"] == [turns[0], turns[2]]


def test_a_call_of_a_chat_body_gets_the_placeholder_where_the_vendor_rejects_its_absence() -> None:
    signed, _ = encoded("chat", "chat", Quirks(signatures=True), **chat(REAL))
    assert signed["messages"] == chat(REAL)["messages"]
    body, report = encoded("chat", "chat", Quirks(signatures=True), **chat(""))
    placed = chat(NO_SIGNATURE)["messages"]
    assert (body["messages"], report) == (placed, "state=placeholder")
    later = [{"role": "assistant", "content": "x"}, {"role": "user", "content": "Go."}]
    next_body, report = encoded("chat", "chat", Quirks(signatures=True), messages=chat("")["messages"] + later)
    assert (next_body["messages"], report) == ([*placed, *later], "state=placeholder")
