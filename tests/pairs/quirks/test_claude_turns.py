"""Turns of conversations for models of messages: instructions between turns, the end of the conversation, and media
that a model does not accept; translated, and in bodies of messages callers.
"""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.pairs.quirks.requests import decoded_request, encoded
from tests.pairs.table import every_upstream
from tests.support.error_checks import raises_error
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

FIRST = Quirks(system_place="first")
ANYWHERE = Quirks(system_place="anywhere")
NO_PREFILL = Quirks(prefill=False)
MARKED = "<system-message>\nBe brief.\n</system-message>"


def turn(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


USER, ANSWER, SYSTEM, AGAIN = turn("user", "Hi."), turn("assistant", "Hello."), turn("system", "Be brief."), turn("user", "Go.")  # fmt: skip
BOTH = {"role": "user", "content": [{"type": "text", "text": "Hi."}, {"type": "text", "text": MARKED}]}


@dataclass(frozen=True)
class Case:
    id: str
    quirks: Quirks
    face: str
    turns: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    report: str = ""
    system: object = None


CASES = [
    Case("between turns", FIRST, "chat", [USER, SYSTEM, ANSWER, AGAIN], [BOTH, ANSWER, AGAIN], "role=user"),
    Case("before the first turn", FIRST, "chat", [SYSTEM, USER], [USER], system="Be brief."),
    Case("where the model takes them", ANYWHERE, "chat", [USER, SYSTEM, ANSWER, AGAIN], [USER, SYSTEM, ANSWER, AGAIN]),
    Case("of a developer", ANYWHERE, "responses", [USER, turn("developer", "Be brief.")], [USER, SYSTEM]),
    Case("before a turn of the user", ANYWHERE, "chat", [USER, SYSTEM, AGAIN], [{**BOTH, "content": [*BOTH["content"], {"type": "text", "text": "Go."}]}], "role=user"),
    Case("after a response", ANYWHERE, "chat", [USER, ANSWER, SYSTEM], [USER, ANSWER, turn("user", MARKED)], "role=user"),
    Case("for a model of unknown rules", NO_QUIRKS, "chat", [USER, SYSTEM], [USER], "role=system prompt", "Be brief."),
    Case("in a body of the format", FIRST, "messages", [USER, SYSTEM, ANSWER, AGAIN], [USER, turn("user", MARKED), ANSWER, AGAIN], "messages.role=user"),
    Case("in a body of the format where the model takes them", ANYWHERE, "messages", [USER, SYSTEM], [USER, SYSTEM]),
    Case("no prefill", NO_PREFILL, "chat", [USER, ANSWER], [USER, ANSWER, turn("user", "Continue.")], "messages=a user's turn last"),
    Case("no prefill in a body of the format", NO_PREFILL, "messages", [USER, ANSWER], [USER, ANSWER, turn("user", "Continue.")], "messages=a user's turn last"),
    Case("a prefill", Quirks(prefill=True), "chat", [USER, ANSWER], [USER, ANSWER]),
    Case("a prefill that ends in white space", Quirks(prefill=True), "chat", [USER, turn("assistant", "{ \n")], [USER, turn("assistant", "{")], "messages=no white space last"),
    Case("no prefill, and a turn of the user last", NO_PREFILL, "messages", [USER, ANSWER, AGAIN], [USER, ANSWER, AGAIN]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_turns_have_the_form_that_the_model_accepts(case: Case) -> None:
    body, report = encoded(
        case.face, "messages", case.quirks, **{"input" if case.face == "responses" else "messages": case.turns}
    )
    assert (body["messages"], report, body.get("system")) == (case.messages, case.report, case.system)


@pytest.mark.parametrize("quirks", [FIRST, ANYWHERE], ids=["first", "anywhere"])
@pytest.mark.parametrize("face", ["chat", "messages"])
def test_the_beginning_of_a_conversation_stays_the_same_in_its_next_request(face: str, quirks: Quirks) -> None:
    conversation = [USER, SYSTEM, ANSWER, AGAIN]
    first, _ = encoded(face, "messages", quirks, messages=conversation[:2])
    second, _ = encoded(face, "messages", quirks, messages=conversation)
    assert second["messages"][: len(first["messages"])] == first["messages"]


def test_instructions_between_turns_of_native_stay_in_their_place() -> None:
    turns = [USER, SYSTEM, ANSWER, AGAIN]
    body, report = encoded("chat", "native", FIRST, messages=[turn("developer", "Be kind."), *turns])
    assert body["systemInstruction"] == {"parts": [{"text": "Be kind."}]}
    assert body["contents"][:2] == [
        {"role": "user", "parts": [{"text": "Hi."}, {"text": MARKED}]},
        {"role": "model", "parts": [{"text": "Hello."}]},
    ]
    assert report == "messages.role=user"
    other, report = encoded("chat", "native", NO_QUIRKS, messages=turns)
    assert (other["systemInstruction"], report) == (
        {"parts": [{"text": "Be brief."}]},
        "messages.role=systemInstruction",
    )


IMAGE = {"type": "image", "source": {"type": "url", "url": "https://a.example/a.png"}}
TEXT_FILE = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Hi"}}


@every_upstream
def test_a_picture_for_a_model_without_pictures_is_refused_by_the_path_of_its_field(upstream: str) -> None:
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [IMAGE]}]}
    for messages, field in (
        ([{"role": "user", "content": [IMAGE]}], "messages[0].parts[0]"),
        ([USER, call, result], "messages[2].parts[0].tool_result.parts[0]"),
    ):
        with raises_error(reason=pb.ERROR_REASON_UNTRANSLATABLE, field=field):
            encoded("messages", upstream, Quirks(inputs=frozenset({"file"})), messages=messages)


@pytest.mark.parametrize("upstream", ["chat", "messages"])
def test_a_text_document_is_text_for_a_model_without_files(upstream: str) -> None:
    body, _ = encoded("messages", upstream, Quirks(inputs=frozenset()), messages=[{"role": "user", "content": [TEXT_FILE]}])  # fmt: skip
    assert "Hi" in str(body["messages"])


def test_calls_that_have_one_id_get_different_ids_with_their_results() -> None:
    def call(city: str) -> dict[str, Any]:
        return {"id": "call_0", "type": "function", "function": {"name": "look", "arguments": f'{{"city":"{city}"}}'}}

    def result(text: str) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": "call_0", "content": text}

    turns = [
        USER,
        {"role": "assistant", "tool_calls": [call("Oslo")]},
        result("5"),
        {"role": "assistant", "tool_calls": [call("Rome"), call("Bonn")]},
        result("20"),
        result("10"),
    ]
    body, _ = encoded("chat", "messages", NO_QUIRKS, messages=turns)
    blocks = [block for message in body["messages"][1:] for block in message["content"]]
    cities = {block["id"]: block["input"]["city"] for block in blocks if block["type"] == "tool_use"}
    results = {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}
    assert {cities[call_id]: text for call_id, text in results.items()} == {"Oslo": "5", "Rome": "20", "Bonn": "10"}


def test_thinking_is_off_where_the_model_continues_a_text_without_it() -> None:
    quirks = Quirks(thinking="off", efforts=(), adaptive=False, prefill=True)
    body, report = encoded("chat", "messages", quirks, messages=[USER, ANSWER], reasoning_effort="high")
    assert body["thinking"] == {"type": "disabled"}
    assert "reasoning=disabled" in report
    body, _ = encoded("chat", "messages", quirks, messages=[USER, ANSWER, AGAIN], reasoning_effort="high")
    assert body["thinking"]["type"] == "enabled"


def test_the_gateway_ends_the_text_at_stop_sequences_of_white_space() -> None:
    request = decoded_request("chat", stop=["\n", "END", " "])
    sent = TEXT_FORMATS["messages"].encode_request(request, "m", False)
    assert json.loads(sent.body)["stop_sequences"] == ["END"]
    assert (sent.local_stops, sent.report.header()) == (("\n", " "), "stop_sequences=by the gateway")
    assert list(request.stop_sequences) == ["\n", "END", " "]
