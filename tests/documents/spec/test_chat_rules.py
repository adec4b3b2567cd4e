"""Text document, rules 1 to 8 of "POST /v1/chat/completions"."""

import json
from typing import Any

import pytest

from tests.documents.spec.callers import PDF, Chat, Frame, lasting
from tests.documents.spec.test_chat import (
    TOOL_QUESTION,
    TOOLS,
    addresses,
    message_of,
    reasoning_tokens,
    searched,
    streamed_reasoning_tokens,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

USAGE = {"stream_options": {"include_usage": True}}
CONFIG = "extra_body.vendorg.thinking_config"
SEARCH = [{"type": "function", "function": {"name": "vendorgSearch", "description": "Search"}}]


async def test_chat_rule_1_tool_use_is_two_stage(chat: Chat) -> None:
    for model in ("famO-5", "famG-2.5-pro", "famC-sonnet-4-5", "famQ-3-max", "famR-1", "famX-4"):
        first = message_of(await chat.answer({"tools": TOOLS, "tool_choice": "auto"}, text=TOOL_QUESTION, model=model))
        (call,) = first["tool_calls"]
        for result in ("17 degrees", "error: the weather station is closed"):
            tool_message = {"role": "tool", "tool_call_id": call["id"], "content": result}
            history = [*chat.prompt(TOOL_QUESTION), first, tool_message]
            second = await chat.answer({"tools": TOOLS, "messages": history}, model=model)
            assert result in chat.text(second)
            assert second["choices"][0]["finish_reason"] == "stop"


async def test_chat_rule_1_stage_2_may_be_streamed(chat: Chat) -> None:
    first = message_of(await chat.answer({"tools": TOOLS}, text=TOOL_QUESTION))
    tool_message = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "17 degrees"}
    fields = {"tools": TOOLS, "messages": [*chat.prompt(TOOL_QUESTION), first, tool_message]}
    assert chat.streamed_text(await chat.stream(fields)) == chat.text(await chat.answer(fields))


async def test_chat_rule_1_stage_1_may_be_streamed(chat: Chat) -> None:
    whole = message_of(await chat.answer({"tools": TOOLS}, text=TOOL_QUESTION))["tool_calls"]
    frames = await chat.stream({"tools": TOOLS}, text=TOOL_QUESTION)
    pieces = [call for delta in chat.deltas(frames) for call in delta.get("tool_calls", [])]
    assert [piece["id"] for piece in pieces if "id" in piece] == [call["id"] for call in whole]
    arguments = "".join(piece["function"].get("arguments", "") for piece in pieces)
    assert arguments == whole[0]["function"]["arguments"]


async def test_chat_rule_1_two_named_tools_are_two_parallel_calls(chat: Chat) -> None:
    other = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}}
    question = chat.prompt("Ask get_weather and get_time")
    first = message_of(await chat.answer({"tools": [*TOOLS, other], "messages": question}))
    calls = first["tool_calls"]
    assert [call["function"]["name"] for call in calls] == ["get_weather", "get_time"]
    assert calls[0]["id"] != calls[1]["id"]
    tool_message = [
        {"role": "tool", "tool_call_id": call["id"], "content": f"result {n}"} for n, call in enumerate(calls)
    ]
    text = chat.text(await chat.answer({"tools": [*TOOLS, other], "messages": [*question, first, *tool_message]}))
    assert "get_weather gave: result 0" in text
    assert "get_time gave: result 1" in text


async def test_chat_rule_2_famq_extensions_are_refused_at_top_level(chat: Chat) -> None:
    for field, value in (
        ("incremental_output", True),
        ("enable_search", True),
        ("search_options", {"region": "eu", "recency_days": 7}),
        ("asr_options", {"language": "en"}),
        ("temperature", 0.5),
        ("top_p", 0.5),
    ):
        await chat.refuses(field, value, model="famQ-3-max")
        await chat.takes(f"parameters.{field}", value, model="famQ-3-max")


async def test_chat_rule_2_a_null_famq_extension_at_top_level_is_none(chat: Chat) -> None:
    names = ("incremental_output", "enable_search", "search_options", "asr_options", "temperature", "top_p")
    await chat.ignores_null(*names, model="famQ-3-max")


async def test_chat_rule_2_the_default_temperature_is_not_forced_on_famq(chat: Chat) -> None:
    reply = await chat.post(model="famQ-3-max")
    assert reply.status == 200
    assert "x-umg-dropped" not in reply.headers


async def test_chat_rule_3_enable_thinking_is_off_without_a_stream(chat: Chat) -> None:
    plain = await chat.answer(model="famQ-3-max")
    body = await chat.answer({"enable_thinking": True}, model="famQ-3-max")
    assert lasting(body) == lasting(plain)
    assert reasoning_tokens(body) == 0
    assert lasting(await chat.answer({"enable_thinking": True, "stream": False}, model="famQ-3-max")) == lasting(plain)


async def test_chat_rule_3_enable_thinking_is_on_in_a_stream(chat: Chat) -> None:
    frames = await chat.stream({"enable_thinking": True, **USAGE}, model="famQ-3-max")
    assert chat.streamed_reasoning(frames)
    assert streamed_reasoning_tokens(frames) > 0
    assert chat.streamed_text(frames) == chat.text(await chat.answer(model="famQ-3-max"))


async def test_chat_rule_4_reasoning_is_sent_as_reasoning_content(chat: Chat) -> None:
    message = message_of(await chat.answer({"thinking": {"type": "enabled"}}, model="famR-1"))
    assert message["reasoning_content"]
    assert message["reasoning_content"] not in message["content"]


async def test_chat_rule_5_suffix_thinking(chat: Chat) -> None:
    for model in ("famG-2.5-pro", "famG-3-pro"):
        frames = await chat.stream(USAGE, model=f"{model}-thinking")
        assert chat.streamed_reasoning(frames)
        assert streamed_reasoning_tokens(frames) > 0
        assert not chat.streamed_reasoning(await chat.stream(model=model))


async def test_chat_rule_5_suffix_thinking_with_a_budget(chat: Chat) -> None:
    for budget in (16, 1024):
        frames = await chat.stream(USAGE, model=f"famG-2.5-pro-thinking-{budget}")
        assert chat.streamed_reasoning(frames)
        assert 0 < streamed_reasoning_tokens(frames) <= budget
    frames = await chat.stream(USAGE, model="famG-2.5-pro-thinking-0")
    assert (streamed_reasoning_tokens(frames), chat.streamed_reasoning(frames)) == (0, "")
    assert chat.error(await chat.post(model="famG-3-pro-thinking-1024"), 400)["param"] == "model"


async def test_chat_rule_5_suffix_nothinking(chat: Chat) -> None:
    shown = {f"{CONFIG}.include_thoughts": True, **USAGE}
    frames = await chat.stream({**shown, f"{CONFIG}.thinking_budget": 512}, model="famG-2.5-pro-nothinking")
    assert (streamed_reasoning_tokens(frames), chat.streamed_reasoning(frames)) == (0, "")
    frames = await chat.stream(shown, model="famG-3-pro-nothinking")
    assert (streamed_reasoning_tokens(frames), chat.streamed_reasoning(frames)) == (0, "")


async def test_chat_rule_5_suffix_thinking_low_and_high(chat: Chat) -> None:
    for model in ("famG-3-pro", "famG-2.5-pro"):
        low, high = [await chat.stream(USAGE, model=f"{model}-thinking-{level}") for level in ("low", "high")]
        assert 0 < streamed_reasoning_tokens(low) < streamed_reasoning_tokens(high)
        assert chat.streamed_reasoning(low)
        assert chat.streamed_reasoning(high)


async def test_chat_rule_5_any_other_suffix_is_an_unknown_model(chat: Chat) -> None:
    for model in (
        "famG-2.5-pro-thinking-medium",
        "famG-2.5-pro-thinking--1",
        "famO-5-thinking",
        "famQ-3-max-nothinking",
    ):
        assert model in chat.error(await chat.post(model=model), 404)["message"]


async def test_chat_rule_5_thinking_budget_special_values(chat: Chat) -> None:
    async def stream_with_budget(budget: int) -> list[Frame]:
        fields = {f"{CONFIG}.thinking_budget": budget, f"{CONFIG}.include_thoughts": True, **USAGE}
        return await chat.stream(fields, model="famG-2.5-flash")

    automatic, off, bounded = [await stream_with_budget(budget) for budget in (-1, 0, 16)]
    assert streamed_reasoning_tokens(automatic) > 16
    assert chat.streamed_reasoning(automatic)
    assert (streamed_reasoning_tokens(off), chat.streamed_reasoning(off)) == (0, "")
    assert 0 < streamed_reasoning_tokens(bounded) <= 16
    assert chat.streamed_reasoning(bounded)
    await chat.refuses(f"{CONFIG}.thinking_budget", -2, -1000, model="famG-2.5-flash")


async def test_chat_rule_5_reasoning_effort_needs_the_suffix(chat: Chat) -> None:
    for model in (
        "famG-2.5-pro",
        "famG-3-pro",
        "famG-2.5-pro-thinking-64",
        "famG-3-pro-thinking-low",
        "famG-2.5-pro-nothinking",
    ):
        plain = await chat.answer(model=model)
        for effort in ("low", "high"):
            assert lasting(await chat.answer({"reasoning_effort": effort}, model=model)) == lasting(plain), model


async def test_chat_rule_5_reasoning_effort_works_with_the_suffix(chat: Chat) -> None:
    for model in ("famG-2.5-pro-thinking", "famG-3-pro-thinking"):
        low, high = [
            reasoning_tokens(await chat.answer({"reasoning_effort": effort}, model=model)) for effort in ("low", "high")
        ]
        assert 0 < low < high


async def test_chat_rule_5_reasoning_effort_needs_no_max_tokens(chat: Chat) -> None:
    model = "famG-2.5-pro-thinking"
    for limit in ("max_tokens", "max_completion_tokens"):
        plain = await chat.answer({limit: 3000}, model=model)
        for effort in ("low", "high"):
            assert lasting(await chat.answer({limit: 3000, "reasoning_effort": effort}, model=model)) == lasting(plain)


async def test_chat_rule_5_reasoning_is_visible_in_streams_only(chat: Chat) -> None:
    config = {f"{CONFIG}.thinking_budget": 64, f"{CONFIG}.include_thoughts": True}
    for model, fields in (
        ("famG-2.5-pro-thinking", {}),
        ("famG-3-pro-thinking-high", {}),
        ("famG-2.5-pro-thinking-64", {}),
        ("famG-2.5-pro", config),
    ):
        whole = await chat.answer(fields, model=model)
        assert "reasoning_content" not in message_of(whole), model
        assert reasoning_tokens(whole) > 0
        frames = await chat.stream(fields, model=model)
        assert chat.streamed_reasoning(frames), model
        assert chat.streamed_text(frames) == chat.text(whole)


async def test_chat_rule_5_include_thoughts_shows_nothing_without_a_budget(chat: Chat) -> None:
    frames = await chat.stream({f"{CONFIG}.include_thoughts": True}, model="famG-2.5-pro")
    assert not chat.streamed_reasoning(frames)


async def test_chat_rule_5_search_is_a_tool_named_vendorg_search(chat: Chat) -> None:
    for model in ("famG-2.5-pro", "famG-3-pro-thinking-low"):
        body = await chat.answer({"tools": SEARCH}, model=model)
        assert searched(body)
        assert "tool_calls" not in message_of(body)
        both = await chat.answer({"tools": [*SEARCH, *TOOLS]}, text=TOOL_QUESTION, model=model)
        assert [call["function"]["name"] for call in message_of(both)["tool_calls"]] == ["get_weather"]
    frames = await chat.stream({"tools": SEARCH}, model="famG-2.5-pro")
    received = [note["url_citation"]["url"] for delta in chat.deltas(frames) for note in delta.get("annotations", [])]
    assert received == addresses(await chat.answer({"tools": SEARCH}, model="famG-2.5-pro"))
    assert not searched(await chat.answer({"tools": TOOLS}, model="famG-2.5-pro"))


async def test_chat_rule_6_famc_refuses_web_search_options_alone(chat: Chat) -> None:
    for options in ({}, {"search_context_size": "low"}):
        await chat.refuses("web_search_options", options, model="famC-sonnet-4-5")
        await chat.refuses("web_search_options", options, fields={"tools": []}, model="famC-sonnet-4-5")
    reply = await chat.post({"web_search_options": {}, "stream": True}, model="famC-sonnet-4-5")
    assert chat.error(reply, 400)["param"] == "web_search_options"


async def test_chat_rule_6_famc_searches_by_a_tool_call(chat: Chat) -> None:
    tool: Any = {"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}
    tools = [{"type": "function", "function": tool}]
    fields = {"tools": tools, "web_search_options": {"search_context_size": "low"}}
    question = chat.prompt("Use search for news of Rome")
    first = message_of(await chat.answer({**fields, "messages": question}, model="famC-sonnet-4-5"))
    (call,) = first["tool_calls"]
    tool_message = {"role": "tool", "tool_call_id": call["id"], "content": "News: it rains"}
    second = await chat.answer({**fields, "messages": [*question, first, tool_message]}, model="famC-sonnet-4-5")
    assert "News: it rains" in chat.text(second)


async def test_chat_rule_7_structured_output_with_a_low_temperature_and_max_tokens(chat: Chat) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "kind": {"enum": ["city", "river"]},
            "sights": {"type": "array", "items": {"$ref": "#/$defs/sight"}, "minItems": 2},
        },
        "required": ["name", "kind", "sights"],
        "additionalProperties": False,
        "$defs": {"sight": {"type": "object", "properties": {"rank": {"type": "integer"}}, "required": ["rank"]}},
    }
    chosen = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema}}
    fields = {"response_format": chosen, "temperature": 0.2, "max_tokens": 500}
    for model in ("famO-5", "famG-2.5-pro", "famC-sonnet-4-5"):
        place = json.loads(chat.text(await chat.answer(fields, model=model)))
        assert place.keys() == {"name", "kind", "sights"}
        assert place["kind"] in {"city", "river"}
        assert all(isinstance(sight["rank"], int) for sight in place["sights"])
        assert len(place["sights"]) >= 2


async def test_chat_rule_8_files_are_sent_to_responses(chat: Chat) -> None:
    for file in ({"file_data": f"data:application/pdf;base64,{PDF}", "filename": "a.pdf"}, {"file_id": "file-1"}):
        spoken = [{"role": "user", "content": [{"type": "text", "text": "Read"}, {"type": "file", "file": file}]}]
        for model in ("famO-5", "famG-2.5-pro", "famC-sonnet-4-5"):
            error = chat.error(await chat.post({"messages": spoken}, model=model), 400)
            assert error["param"] == "messages[0].content[1]"
            assert "/v1/responses" in error["message"]
            assert "input_file" in error["message"]
