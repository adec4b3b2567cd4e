"""Breakpoints of chat and responses, and the cache marks of the messages format: each becomes the other where the
provider's model has it.
"""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.pairs.quirks.requests import encoded
from tests.pairs.vendors.gateway import Model, send
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks

EXPLICIT = {"mode": "explicit"}
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
TAKES = Quirks(breakpoints="prompt_cache_breakpoint")
RELAYED = Quirks(breakpoints="cache_control")
MARKING = Quirks(cache_marks=True)


def block(text: str, mark: dict[str, str] | None = None) -> dict[str, Any]:
    return {"type": "text", "text": text} | ({} if mark is None else {"cache_control": mark})


CLAUDE_CODE: dict[str, Any] = {
    "system": [block("You are an agent."), block("Be brief.", MARK)],
    "messages": [
        {"role": "user", "content": [block("Hi")]},
        {"role": "assistant", "content": "Ho"},
        {"role": "user", "content": [block("Go", MARK)]},
    ],
}


def test_marks_become_breakpoints_of_chat() -> None:
    body, report = encoded("messages", "chat", TAKES, **CLAUDE_CODE)
    system = [
        {"type": "text", "text": "You are an agent.\n\n"},
        {"type": "text", "text": "Be brief.", "prompt_cache_breakpoint": EXPLICIT},
    ]
    assert [message["content"] for message in body["messages"]] == [
        system,
        [{"type": "text", "text": "Hi"}],
        "Ho",
        [{"type": "text", "text": "Go", "prompt_cache_breakpoint": EXPLICIT}],
    ]
    assert report == ""


def test_marks_become_breakpoints_of_responses_and_instructions_with_one_an_item() -> None:
    body, report = encoded("messages", "responses", TAKES, **CLAUDE_CODE)
    first, *_, last = body["input"]
    assert first == {
        "type": "message",
        "role": "developer",
        "content": [
            {"type": "input_text", "text": "You are an agent.\n\n"},
            {"type": "input_text", "text": "Be brief.", "prompt_cache_breakpoint": EXPLICIT},
        ],
    }
    assert last["content"] == [{"type": "input_text", "text": "Go", "prompt_cache_breakpoint": EXPLICIT}]
    assert ("instructions" in body, report) == (False, "")


@pytest.mark.parametrize("upstream", ["chat", "responses"])
def test_models_without_breakpoints_get_none(upstream: str) -> None:
    body, report = encoded("messages", upstream, NO_QUIRKS, **CLAUDE_CODE)
    assert "prompt_cache_breakpoint" not in json.dumps(body)
    assert report == "cache_control x2"


@pytest.mark.parametrize("upstream", ["chat", "responses"])
def test_a_breakpoint_keeps_the_text_of_a_prompt_as_it_is(upstream: str) -> None:
    plain = json.loads(json.dumps(CLAUDE_CODE).replace(f', "cache_control": {json.dumps(MARK)}', ""))
    assert plain != CLAUDE_CODE
    texts = [text_of(encoded("messages", upstream, TAKES, **body)[0]) for body in (plain, CLAUDE_CODE)]
    assert texts[0] == texts[1]


def text_of(body: dict[str, Any]) -> str:
    """Return all texts of a prompt, joined."""
    found = [body.get("instructions", "")]
    for message in body.get("messages") or body["input"]:
        content = message["content"]
        found += [content] if isinstance(content, str) else [part["text"] for part in content]
    return "".join(found)


@pytest.mark.parametrize("upstream", ["chat", "responses"])
def test_a_longer_lifetime_is_named_and_no_lifetime_is_sent(upstream: str) -> None:
    body, report = encoded("messages", upstream, TAKES, messages=[{"role": "user", "content": [block("Hi", HOUR)]}])
    assert '"ttl"' not in json.dumps(body)
    assert report == "cache_control=30m"


@pytest.mark.parametrize("upstream", ["chat", "responses"])
def test_the_last_three_marks_become_breakpoints(upstream: str) -> None:
    blocks = [block(str(number), MARK) for number in range(4)]
    body, report = encoded("messages", upstream, TAKES, messages=[{"role": "user", "content": blocks}])
    [turn] = body.get("messages") or body["input"]
    assert ["prompt_cache_breakpoint" in part for part in turn["content"]] == [False, True, True, True]
    assert report == "cache_control"


@pytest.mark.parametrize("upstream", ["chat", "responses"])
def test_results_and_turns_of_the_model_have_no_breakpoint(upstream: str) -> None:
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "x", "cache_control": MARK}
    turns = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [block("Ho", MARK), call]},
        {"role": "user", "content": [result]},
    ]
    body, report = encoded("messages", upstream, TAKES, messages=turns)
    assert "prompt_cache_breakpoint" not in json.dumps(body)
    assert report == "cache_control x2"


def test_a_relay_of_marks_gets_them_with_their_lifetime() -> None:
    body, report = encoded("messages", "chat", RELAYED, messages=[{"role": "user", "content": [block("Hi", HOUR)]}])
    assert body["messages"] == [{"role": "user", "content": [block("Hi", HOUR)]}]
    assert report == ""


# --- the other way


@dataclass(frozen=True)
class Case:
    """Breakpoint of a caller, and the mark that a messages provider gets."""

    id: str
    breakpoint: Any
    mark: dict[str, str]


MARKS = [
    Case("the default", {"mode": "explicit"}, MARK),
    Case("30 minutes", {"mode": "explicit", "ttl": "30m"}, MARK),
    Case("12 hours", {"mode": "explicit", "ttl": "12h"}, HOUR),
    Case("a form of a later day", {"ttl": 1}, MARK),
]


@pytest.mark.parametrize("case", MARKS, ids=lambda case: case.id)
@pytest.mark.parametrize("face", ["chat", "responses"])
def test_a_breakpoint_becomes_a_mark(face: str, case: Case) -> None:
    kind, member = ("text", "messages") if face == "chat" else ("input_text", "input")
    part = {"type": kind, "text": "Hi", "prompt_cache_breakpoint": case.breakpoint}
    body, report = encoded(face, "messages", NO_QUIRKS, **{member: [{"role": "user", "content": [part]}]})
    assert body["messages"] == [{"role": "user", "content": [block("Hi", case.mark)]}]
    assert report == ""


def chat(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": list(parts)}, {"role": "user", "content": "Hi"}], **more}


STABLE = {"type": "text", "text": "Help.", "prompt_cache_breakpoint": EXPLICIT}


def test_the_breakpoint_that_a_provider_sets_itself_becomes_a_mark_too() -> None:
    body, _ = encoded("chat", "messages", MARKING, **chat(STABLE))
    assert (body["system"], body["messages"][0]["content"]) == ([block("Help.", MARK)], [block("Hi", MARK)])


def test_explicit_breakpoints_alone_get_no_others() -> None:
    options = {"prompt_cache_options": EXPLICIT}
    body, _ = encoded("chat", "messages", MARKING, **chat(STABLE, **options))
    assert (body["system"], body["messages"][0]["content"]) == ([block("Help.", MARK)], "Hi")
    body, _ = encoded("chat", "messages", MARKING, **chat({"type": "text", "text": "Help."}, **options))
    assert "cache_control" not in json.dumps(body)


def test_a_longer_lifetime_never_follows_a_shorter_one() -> None:
    long = STABLE | {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}
    body, report = encoded("chat", "messages", NO_QUIRKS, **chat(STABLE, long))
    assert body["system"] == [block("Help.", MARK), block("Help.", MARK)]
    assert report == "cache_control=5m"
    body, _ = encoded("chat", "messages", NO_QUIRKS, **chat(long, STABLE))
    assert body["system"] == [block("Help.", HOUR), block("Help.", MARK)]


# --- vendors


BODY = {"max_tokens": 99, **CLAUDE_CODE}


@pytest.mark.parametrize("model", ["gpt-5.6-terra", "gpt-6-sol", "gpt-6.3-nova"])
def test_newer_models_get_breakpoints(model: str) -> None:
    assert send(Model("openai", model), "messages", BODY, stream=False).body.count(b"prompt_cache_breakpoint") == 2


@pytest.mark.parametrize("model", ["gpt-5.5", "gpt-5-mini", "gpt-4.1", "o3"])
def test_older_models_get_neither_breakpoints_nor_options(model: str) -> None:
    assert b"prompt_cache" not in send(Model("openai", model), "messages", BODY, stream=False).body
    options = {"input": "Hi", "prompt_cache_options": EXPLICIT}
    sent = send(Model("openai", model), "responses", options, stream=False)
    assert b"prompt_cache" not in sent.body
    assert "prompt_cache_options" in sent.dropped


MARKED_CHAT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief.", "cache_control": HOUR},
        {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": MARK}]},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "x", "cache_control": MARK},
    ],
    "tools": [{"type": "function", "function": {"name": "f"}, "cache_control": HOUR}],
}
"""Marks as callers of relays of Claude write them in chat."""


def test_marks_of_chat_are_those_of_messages() -> None:
    body, report = encoded("chat", "messages", MARKING, **MARKED_CHAT)
    assert body["system"] == [block("Be brief.", HOUR)]
    assert [turn["content"][-1].get("cache_control") for turn in body["messages"]] == [MARK, None, MARK]
    assert (body["tools"][-1]["cache_control"], report) == (HOUR, "")


def test_marks_of_chat_become_breakpoints_of_responses() -> None:
    body, _ = encoded("chat", "responses", TAKES, **MARKED_CHAT)
    assert [item["content"][-1].get("prompt_cache_breakpoint") for item in body["input"][:2]] == [EXPLICIT, EXPLICIT]


def test_marks_of_chat_reach_a_relay_as_they_came() -> None:
    body, report = encoded("chat", "chat", RELAYED, **MARKED_CHAT)
    assert (body["messages"], body["tools"], report) == (MARKED_CHAT["messages"], MARKED_CHAT["tools"], "")
