"""Conversations for chat providers with rules of their own: roles, the place of instructions, the order of turns, the
end of the conversation, and ids of tool calls; translated, and in bodies of chat callers.
"""

import itertools
import json
import re
from dataclasses import dataclass
from typing import Any

import pytest

from tests.pairs.quirks.requests import encoded
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.knowledge.provider_quirks import known

DEVELOPER = Quirks(developer=False)
FIRST = Quirks(system_place="first")
NINE = Quirks(call_ids="nine")
NO_PREFILL = Quirks(prefill=False)
PREFIX = Quirks(prefill=True, prefix=True)
ORDER = Quirks(user_after_tool=False)
REASONING = Quirks(reasoning_required=True, thinking="on")
ALL = Quirks(
    developer=False, system_place="first", call_ids="nine", prefill=True, prefix=True, user_after_tool=False
)  # Mistral


def turn(role: str, text: str, **more: object) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


USER, ANSWER, AGAIN = turn("user", "Hi."), turn("assistant", "Hello."), turn("user", "Go on.")
MARKED = "<system-message>\nBe brief.\n</system-message>"
CALL = {"id": "call_0123456789", "type": "function", "function": {"name": "look", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "call_0123456789", "content": "5"}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}


@dataclass(frozen=True)
class Case:
    id: str
    quirks: Quirks
    face: str
    fields: dict[str, Any]
    """Members of the caller's body."""
    messages: list[dict[str, Any]]
    """Messages that the provider gets."""
    report: str = ""


def claude(*messages: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"messages": list(messages), **more}


CASES = [
    Case(
        "a developer's message of Codex",
        DEVELOPER,
        "responses",
        {"instructions": "sys", "input": [turn("developer", "permissions"), USER]},
        [turn("system", "sys"), turn("system", "permissions"), USER],
    ),
    Case(
        "a developer's message in a chat body",
        DEVELOPER,
        "chat",
        claude(turn("developer", "permissions"), {**USER, "name": "Ann"}),
        [turn("system", "permissions"), {**USER, "name": "Ann"}],
        "messages.role=system",
    ),
    Case(
        "two instructions before the first turn",
        FIRST,
        "responses",
        {"instructions": "sys", "input": [turn("system", "permissions"), USER]},
        [turn("system", "sys\n\npermissions"), USER],
    ),
    Case(
        "two instructions in a chat body",
        FIRST,
        "chat",
        claude(turn("system", "sys"), turn("developer", "permissions"), USER),
        [turn("system", "sys\n\npermissions"), USER],
        "messages.role=one system message",
    ),
    Case(
        "instructions of Claude Code between turns",
        FIRST,
        "messages",
        claude(USER, turn("system", "Be brief."), ANSWER, AGAIN, system="You are an agent"),
        [turn("system", "You are an agent"), USER, turn("user", MARKED), ANSWER, AGAIN],
        "messages.role=user",
    ),
    Case(
        "instructions between turns of a chat body",
        FIRST,
        "chat",
        claude(USER, ANSWER, turn("system", "Be brief."), AGAIN),
        [USER, ANSWER, turn("user", MARKED), AGAIN],
        "messages.role=user",
    ),
    Case("a chat body that needs no change", ALL, "chat", claude(turn("system", "sys"), USER), [turn("system", "sys"), USER]),
    Case("nothing but instructions", FIRST, "chat", claude(turn("system", "Hi."), turn("developer", "Go.")), [turn("user", "Hi.\n\nGo.")], "messages.role=user"),
    Case("reasoning that the caller left out", REASONING, "chat", claude(USER, CALLS, RESULT), [USER, {**CALLS, "reasoning_content": " "}, RESULT], "messages.reasoning=blank"),
    Case("reasoning that is empty", REASONING, "chat", claude(USER, {**CALLS, "reasoning_content": ""}, RESULT), [USER, {**CALLS, "reasoning_content": " "}, RESULT], "messages.reasoning=blank"),
    Case("reasoning of the caller", REASONING, "chat", claude(USER, {**CALLS, "reasoning_content": "Hm."}, RESULT), [USER, {**CALLS, "reasoning_content": "Hm."}, RESULT]),
    Case("reasoning that is off", REASONING, "chat", claude(USER, CALLS, RESULT, thinking={"type": "disabled"}), [USER, CALLS, RESULT]),
    Case("no prefill", NO_PREFILL, "messages", claude(USER, ANSWER), [USER, ANSWER, turn("user", "Continue.")], "messages=a user's turn last"),
    Case("no prefill in a chat body", NO_PREFILL, "chat", claude(USER, ANSWER), [USER, ANSWER, turn("user", "Continue.")], "messages=a user's turn last"),
    Case("a prefix", PREFIX, "messages", claude(USER, ANSWER), [USER, turn("assistant", "Hello.", prefix=True)]),
    Case("a prefix in a chat body", PREFIX, "chat", claude(USER, ANSWER), [USER, turn("assistant", "Hello.", prefix=True)], "messages.prefix=true"),
    Case("a prefix of the caller", PREFIX, "chat", claude(USER, {**ANSWER, "prefix": True}), [USER, {**ANSWER, "prefix": True}]),
    Case(
        "a user's turn after a result in a chat body",
        ORDER,
        "chat",
        claude(USER, CALLS, RESULT, AGAIN),
        [USER, CALLS, RESULT, turn("assistant", "OK."), AGAIN],
        "messages=an assistant's turn between",
    ),
    Case(
        "text beside a result of Claude Code",
        ORDER,
        "messages",
        claude(
            USER,
            {"role": "assistant", "content": [{"type": "tool_use", "id": CALL["id"], "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": CALL["id"], "content": "5"}, {"type": "text", "text": "Go on."}]},
        ),
        [USER, CALLS, RESULT, turn("assistant", "OK."), AGAIN],
        "messages=an assistant's turn between",
    ),
    Case(
        "instructions after a result",
        ALL,
        "chat",
        claude(USER, {**CALLS, "tool_calls": [{**CALL, "id": "abcdefghi"}]}, {**RESULT, "tool_call_id": "abcdefghi"}, turn("developer", "Be brief.")),
        [USER, {**CALLS, "tool_calls": [{**CALL, "id": "abcdefghi"}]}, {**RESULT, "tool_call_id": "abcdefghi"}, turn("assistant", "OK."), turn("user", MARKED)],
        "messages.role=user, messages=an assistant's turn between",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_conversation_has_the_form_that_the_provider_accepts(case: Case) -> None:
    body, report = encoded(case.face, "chat", case.quirks, **case.fields)
    assert (body["messages"], report) == (case.messages, case.report)


ID_OWNERS = [("chat", claude(USER, CALLS, RESULT)), ("responses", {"input": [USER, {"type": "function_call", "call_id": CALL["id"], "name": "look", "arguments": "{}"}, {"type": "function_call_output", "call_id": CALL["id"], "output": "5"}]})]  # fmt: skip


@pytest.mark.parametrize(("face", "fields"), ID_OWNERS, ids=["own body", "translated"])
def test_an_id_has_nine_characters_in_the_call_and_in_its_result(face: str, fields: dict[str, Any]) -> None:
    body, report = encoded(face, "chat", NINE, **fields)
    sent = body["messages"][1]["tool_calls"][0]["id"]
    assert re.fullmatch("[a-zA-Z0-9]{9}", sent)
    assert body["messages"][2]["tool_call_id"] == sent
    assert report == ("call_id=nine characters" if face == "chat" else "")


def test_ids_without_a_call_id_of_the_caller_have_nine_characters() -> None:
    body, _ = encoded(
        "native",
        "chat",
        NINE,
        contents=[
            {"role": "user", "parts": [{"text": "Hi."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"x": 1}}}]},
        ],
    )
    sent = body["messages"][1]["tool_calls"][0]["id"]
    assert (len(sent), body["messages"][2]["tool_call_id"]) == (9, sent)


@pytest.mark.parametrize("face", ["chat", "messages"])
def test_the_beginning_of_a_conversation_stays_the_same_from_call_to_call(face: str) -> None:
    turns = [USER, turn("system", "Be brief."), ANSWER, AGAIN, turn("system", "Be kind."), ANSWER, AGAIN]
    calls = [encoded(face, "chat", ALL, messages=turns[:count])[0]["messages"] for count in (1, 4, 7)]
    for earlier, later in itertools.pairwise(calls):
        assert later[: len(earlier)] == earlier


def test_members_that_need_no_change_stay_byte_for_byte() -> None:
    odd = {"role": "user", "content": [{"type": "text", "text": "Hi."}], "zork": {"b": 1.50, "a": 2}}
    body, _ = encoded("chat", "chat", ALL, messages=[odd, turn("system", "Be brief.")])
    assert json.dumps(body["messages"][0]) == json.dumps(odd)
    assert body["messages"][1]["content"] == MARKED


def test_members_of_messages_that_mistral_refuses_are_left_out_of_a_chat_callers_body() -> None:
    answer = turn("assistant", "Hello.", refusal=None, annotations=[], audio=None, reasoning_content="Greet.")
    quirks = known("mistral-large-4", "", "https://api.mistral.ai/v1", "chat", certain=True)
    body, report = encoded("chat", "chat", quirks, messages=[turn("user", "Hi.", name="bob"), answer, AGAIN])
    assert body["messages"] == [USER, ANSWER, AGAIN]
    assert report == "reasoning, messages.name"


def test_an_empty_list_of_tools_is_left_out_for_a_strict_vendor() -> None:
    quirks = known("mistral-large-4", "", "https://api.mistral.ai/v1", "chat", certain=True)
    body, report = encoded("chat", "chat", quirks, messages=[USER], tools=[])
    assert ("tools" in body, report) == (False, "")
    assert encoded("chat", "chat", NO_QUIRKS, messages=[USER], tools=[])[0]["tools"] == []


def test_a_whole_top_k_is_an_integer_in_chat() -> None:
    native = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "generationConfig": {"topK": 64}}
    body, _ = encoded("native", "chat", Quirks(top_k=True), **native)
    assert str(body["top_k"]) == "64"
