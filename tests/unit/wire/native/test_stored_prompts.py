"""Beginnings of native prompts that a provider stores: their places, their digests and the divided bodies."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.pairs.quirks.requests import decoded_request
from umg_grpc.base.errors import Failure
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.prompt_cache_marks import PromptMark
from umg_grpc.wire.native.stored_prompts import DividedPrompt, place_of

MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
TOOL = {"name": "look", "input_schema": {"type": "object"}}


def text(words: str, mark: dict[str, str] | None = None) -> dict[str, Any]:
    return {"type": "text", "text": words} | ({} if mark is None else {"cache_control": mark})


CALL = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "x"}
TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": [text("Hi")]},
    {"role": "assistant", "content": [CALL]},
    {"role": "user", "content": [RESULT]},
    {"role": "assistant", "content": "Ho"},
    {"role": "user", "content": [text("Go")]},
    {"role": "assistant", "content": [CALL]},
    {"role": "user", "content": [RESULT | {"cache_control": HOUR}]},
]


def divided(seed: bytes = b"key", **fields: Any) -> DividedPrompt:
    """Return the prompt of a caller of messages."""
    request = TEXT_FORMATS["native"].encode_request(decoded_request("messages", **fields), "gemini-3.6-flash", False)
    return DividedPrompt(request.body, request.marks, seed)


def places(prompt: DividedPrompt) -> list[tuple[int, int, bool]]:
    return [(each.content, each.parts, each.is_long) for each in prompt.beginnings]


@dataclass(frozen=True)
class Marked:
    """Request, and the places at which its prompt may be divided: contents, parts of the next one, for an hour."""

    id: str
    fields: dict[str, Any]
    places: list[tuple[int, int, bool]]


MARKED = [
    Marked("no mark", {"system": "Help.", "messages": TURNS[:5]}, []),
    Marked("instructions", {"system": [text("Help.", MARK)], "messages": TURNS[:5]}, [(0, 0, False)]),
    Marked("a tool", {"tools": [TOOL | {"cache_control": HOUR}], "messages": TURNS[:5]}, [(0, 0, True)]),
    Marked("the last result", {"system": "Help.", "messages": TURNS}, [(0, 0, True), (4, 0, True)]),
    Marked("nothing in front", {"messages": TURNS}, [(4, 0, True)]),
    Marked(
        "a document of a question",
        {"messages": [{"role": "user", "content": [text("Long", MARK), text("Why?")]}]},
        [(0, 1, False)],
    ),
    Marked("the whole prompt", {"system": "Help.", "messages": TURNS[:5], "cache_control": MARK}, [(0, 0, False), (4, 0, False)]),
    Marked(
        "two lifetimes",
        {"system": [text("Help.", HOUR)], "messages": [*TURNS[:4], {"role": "user", "content": [text("Go", MARK)]}]},
        [(0, 0, True), (4, 0, False)],
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", MARKED, ids=lambda case: case.id)
def test_a_prompt_is_divided_in_front_of_questions_up_to_the_last_mark(case: Marked) -> None:
    assert places(divided(**case.fields)) == case.places


def test_the_same_beginning_has_the_same_digest_in_a_later_request_of_the_same_owner() -> None:
    first = divided(system="Help.", messages=TURNS)
    later = [*TURNS[:6], {"role": "user", "content": [RESULT]}, {"role": "assistant", "content": "Ho"}]
    later.append({"role": "user", "content": [text("And?", HOUR)]})
    second = divided(system="Help.", messages=later)
    assert [each.digest for each in second.beginnings[:2]] == [each.digest for each in first.beginnings]
    for others in (divided(b"other", system="Help.", messages=TURNS), divided(system="No.", messages=TURNS)):
        assert {each.digest for each in others.beginnings}.isdisjoint(each.digest for each in first.beginnings)


def test_the_stored_beginning_and_the_rest_are_the_whole_prompt() -> None:
    prompt = divided(system="Help.", tools=[TOOL], messages=TURNS, max_tokens=99)
    request = decoded_request("messages", system="Help.", tools=[TOOL], messages=TURNS, max_tokens=99)
    body = json.loads(TEXT_FORMATS["native"].encode_request(request, "gemini-3.6-flash", False).body)
    for beginning in prompt.beginnings:
        stored = json.loads(prompt.stored(beginning, "models/m", 3600))
        rest = json.loads(prompt.rest(beginning, "cachedContents/1"))
        assert (stored.pop("model"), stored.pop("ttl")) == ("models/m", "3600s")
        assert rest.pop("cachedContent") == "cachedContents/1"
        assert rest.keys().isdisjoint({"systemInstruction", "tools", "toolConfig"})
        contents = [*stored.pop("contents", []), *rest.pop("contents")]
        assert {**stored, **rest, "contents": contents} == body


def test_a_question_is_divided_behind_its_document() -> None:
    prompt = divided(messages=[{"role": "user", "content": [text("Long", MARK), text("Why?")]}])
    [beginning] = prompt.beginnings
    assert json.loads(prompt.stored(beginning, "models/m", 300))["contents"] == [
        {"role": "user", "parts": [{"text": "Long"}]}
    ]
    assert json.loads(prompt.rest(beginning, "n"))["contents"] == [{"role": "user", "parts": [{"text": "Why?"}]}]


def test_the_own_body_of_a_caller_has_no_marks() -> None:
    request = decoded_request("native", contents=[{"parts": [{"text": "Hi"}]}], cachedContent="cachedContents/1")
    assert TEXT_FORMATS["native"].encode_request(request, "m", False).marks == []


def test_marks_of_the_models_turns_divide_nothing() -> None:
    request = decoded_request(
        "messages", messages=[TURNS[0], {"role": "assistant", "content": [text("Ho", MARK)]}, TURNS[4]]
    )
    assert TEXT_FORMATS["native"].encode_request(request, "m", False).marks == []
    assert PromptMark(0, 1, is_long=False) < PromptMark(1, 0, is_long=False)


def test_beginnings_are_stored_in_the_project_of_vertex_ai() -> None:
    root = "https://aiplatform.googleapis.com/v1/projects/p/locations/global"
    assert place_of(f"{root}/publishers/google") == (root, "projects/p/locations/global/publishers/google/models/")
    assert place_of("https://generativelanguage.googleapis.com/v1beta") == ("", "models/")


def test_the_error_for_a_cache_of_another_account_names_the_remedy() -> None:
    body = {
        "error": {
            "code": 403,
            "message": "CachedContent not found (or permission denied)",
            "status": "PERMISSION_DENIED",
        }
    }
    error = TEXT_FORMATS["native"].decode_error(403, {}, json.dumps(body).encode())
    assert error.failure is Failure.CALLER  # neither the key nor the channel is at fault
    assert error.message.startswith(
        "CachedContent not found (or permission denied); it has ended, or is of another account"
    )
