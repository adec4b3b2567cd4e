"""Prompt cache marks in chat, for relays of models that cache prompts up to a mark only (`cache_control`)."""

import json
from typing import Any

import msgspec
import pytest

from tests.pairs.prefixes.conversations import STEPS, growing
from tests.pairs.quirks.requests import encoded
from tests.pairs.quirks.test_cache_breakpoints import EXPLICIT, HOUR, MARK, block
from tests.pairs.quirks.test_cache_marks import CODEX
from tests.pairs.vendors.gateway import Model, send
from umg_grpc.knowledge.model_quirk_definitions import Quirks

TAKES = Quirks(breakpoints="cache_control")
NEEDS = Quirks(breakpoints="cache_control", cache_marks=True)
RELAYED = [
    Model("openrouter", "openrouter/anthropic/claude-sonnet-5", "anthropic/claude-sonnet-5"),
    Model("openrouter", "openrouter/anthropic/claude-zeta-9", "anthropic/claude-zeta-9"),
    Model("vercel", "vercel/anthropic/claude-sonnet-5", "anthropic/claude-sonnet-5"),
]
OTHERS = [
    Model("openrouter", "openrouter/google/gemini-3.6-flash", "google/gemini-3.6-flash"),
    Model("openrouter", "openrouter/deepseek/deepseek-v4-pro", "deepseek/deepseek-v4-pro"),
    Model("deepseek", "deepseek-v4-pro"),
    Model("openai", "gpt-6-sol"),
    Model("groq", "groq/qwen/qwen3-32b", "qwen/qwen3-32b"),
]


def marked(body: dict[str, Any]) -> list[str]:
    """Return the role and the text of each content part with a mark."""
    parts = [
        (message["role"], part)
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    found = [f"{role}: {part['text'].strip()}" for role, part in parts if "cache_control" in part]
    assert json.dumps(body).count('"cache_control"') == len(found)
    return found


def test_an_agent_without_marks_gets_them_at_its_instructions_and_the_end_of_its_prompt() -> None:
    body, report = encoded("responses", "chat", NEEDS, **CODEX)
    assert marked(body) == ["developer: Be brief.", "tool: y"]
    assert report == ""


@pytest.mark.parametrize("quirks", [TAKES, Quirks(cache_marks=True)], ids=["automatic", "no relay"])
def test_no_marks_are_added_at_other_providers(quirks: Quirks) -> None:
    body, _ = encoded("responses", "chat", quirks, **CODEX)
    assert marked(body) == []


def test_the_mark_of_a_result_is_sent_with_its_lifetime() -> None:
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "x", "cache_control": HOUR}
    turns = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [block("Ho", MARK), call]},
        {"role": "user", "content": [result]},
    ]
    body, report = encoded("messages", "chat", NEEDS, messages=turns)
    assert body["messages"][-1]["content"] == [block("x", HOUR)]
    assert (marked(body), report) == (["tool: x"], "cache_control")


def test_the_mark_of_a_whole_prompt_is_one_at_its_end() -> None:
    body, report = encoded("messages", "chat", TAKES, messages=[{"role": "user", "content": "Hi"}], cache_control=HOUR)
    assert (body["messages"], report) == ([{"role": "user", "content": [block("Hi", HOUR)]}], "")


def test_the_breakpoint_that_a_provider_sets_itself_has_the_lifetime_of_the_others() -> None:
    stable = {"type": "input_text", "text": "Help.", "prompt_cache_breakpoint": EXPLICIT | {"ttl": "12h"}}
    given = [{"role": "developer", "content": [stable]}, {"role": "user", "content": "Hi"}]
    body, _ = encoded("responses", "chat", NEEDS, input=given)
    assert json.dumps(body).count(json.dumps(HOUR)) == 2
    body, _ = encoded("responses", "chat", NEEDS, input=given, prompt_cache_options=EXPLICIT)
    assert marked(body) == ["developer: Help."]


MARKED = {"system": [block("Help.", MARK)], "messages": [{"role": "user", "content": [block("Read it.")]}]}
GROWING: list[tuple[str, dict[str, Any], str, Quirks]] = [
    ("messages", MARKED, "chat", Quirks(breakpoints="prompt_cache_breakpoint")),
    ("messages", MARKED, "responses", Quirks(breakpoints="prompt_cache_breakpoint")),
    ("chat", {"messages": [{"role": "user", "content": "Read it."}]}, "messages", Quirks(cache_marks=True)),
    ("responses", {"instructions": "Help.", "input": [{"role": "user", "content": "Read it."}]}, "chat", NEEDS),
    ("messages", {"system": "Help.", "messages": [{"role": "user", "content": "Read it."}]}, "chat", NEEDS),
    ("native", {"contents": [{"role": "user", "parts": [{"text": "Read it."}]}]}, "chat", NEEDS),
]


@pytest.mark.parametrize(("face", "begun", "upstream", "quirks"), GROWING)
def test_a_turn_keeps_its_form_when_its_mark_has_moved_on(
    face: str, begun: dict[str, Any], upstream: str, quirks: Quirks
) -> None:
    before: list[bytes] = []
    for body in growing(face, begun, STEPS):
        sent, _ = encoded(face, upstream, quirks, **body)
        now = [msgspec.json.encode(turn) for turn in sent.get("messages") or sent["input"]]
        for mark in (b',"cache_control":{"type":"ephemeral"}', b',"prompt_cache_breakpoint":{"mode":"explicit"}'):
            now = [turn.replace(mark, b"") for turn in now]
        assert now[: len(before)] == before
        before = now


def sent_marks(model: Model) -> int:
    """Return the number of marks in the request of a caller without any."""
    body = {"systemInstruction": {"parts": [{"text": "Help."}]}, "contents": [{"parts": [{"text": "Hi"}]}]}
    sent = send(model, "native", body, stream=False)
    assert sent.protocol in {"chat", "responses"}
    return sent.body.count(b"cache_control")


@pytest.mark.parametrize("model", RELAYED, ids=lambda model: model.id)
def test_relays_of_claude_get_marks(model: Model) -> None:
    assert sent_marks(model) == 2


@pytest.mark.parametrize("model", OTHERS, ids=lambda model: model.id)
def test_other_models_and_vendors_get_none(model: Model) -> None:
    assert sent_marks(model) == 0
