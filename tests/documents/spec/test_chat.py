"""Text document, "POST /v1/chat/completions": its table, its messages and its responses."""

import json
from typing import Any

import pytest

from tests.documents.spec.callers import (
    NO_ARRAYS,
    NO_BOOLEANS,
    NO_NUMBERS,
    NO_OBJECTS,
    NO_STRINGS,
    PNG,
    WEATHER,
    Chat,
    Frame,
    lasting,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": WEATHER}}]
TOOL_QUESTION = "Ask get_weather of Rome"
LOCATION = {"approximate": {"timezone": "Europe/Rome", "country": "IT", "region": "Lazio", "city": "Rome"}}


def message_of(body: Any) -> Any:
    return body["choices"][0]["message"]


def reasoning_tokens(body: Any) -> int:
    return int(body["usage"]["completion_tokens_details"]["reasoning_tokens"])


def streamed_reasoning_tokens(frames: list[Frame]) -> int:
    (usage,) = [frame.data["usage"] for frame in frames if isinstance(frame.data, dict) and frame.data.get("usage")]
    return int(usage["completion_tokens_details"]["reasoning_tokens"])


def addresses(body: Any) -> list[str]:
    return [annotation["url_citation"]["url"] for annotation in message_of(body)["annotations"]]


def searched(body: Any) -> bool:
    assert all(address.startswith("http") for address in addresses(body))
    return bool(addresses(body))


# --- the table


async def test_chat_field_model(chat: Chat) -> None:
    await chat.misses("model")
    await chat.refuses("model", *NO_STRINGS, "")
    assert (await chat.answer(model="famX-4"))["model"] == "famX-4"


async def test_chat_field_messages(chat: Chat) -> None:
    await chat.misses("messages")
    await chat.refuses("messages", "Hi", 5, [], {"role": "user"})
    await chat.refuses("messages", ["Hi"], [5], named="messages[0]")


async def test_chat_field_temperature(chat: Chat) -> None:
    await chat.takes("temperature", 0, 0.7, 1, 2, 2.0)
    await chat.refuses("temperature", -0.01, 2.01, *NO_NUMBERS)
    await chat.ignores_null("temperature")


async def test_chat_field_stream(chat: Chat) -> None:
    assert chat.text(await chat.answer({"stream": False})) == chat.streamed_text(await chat.stream())
    await chat.refuses("stream", *NO_BOOLEANS)
    await chat.ignores_null("stream")


async def test_chat_field_max_tokens(chat: Chat) -> None:
    body = await chat.answer({"max_tokens": 10})
    assert body["choices"][0]["finish_reason"] == "length"
    assert 0 < body["usage"]["completion_tokens"] <= 10
    await chat.takes("max_tokens", 1, 50.0, 5000)
    await chat.refuses("max_tokens", 0, -1, 1.5, *NO_NUMBERS)
    await chat.ignores_null("max_tokens")


async def test_chat_field_top_p(chat: Chat) -> None:
    await chat.takes("top_p", 0, 0.5, 1)
    await chat.refuses("top_p", -0.01, 1.01, *NO_NUMBERS)
    await chat.ignores_null("top_p")


async def test_chat_field_tools(chat: Chat) -> None:
    body = await chat.answer({"tools": TOOLS}, text=TOOL_QUESTION)
    assert [call["function"]["name"] for call in message_of(body)["tool_calls"]] == ["get_weather"]
    await chat.takes("tools", [], [{"type": "function", "function": {"name": "bare"}}])
    await chat.refuses("tools", *NO_ARRAYS)
    await chat.refuses("tools", ["x"], named="tools[0]")
    await chat.refuses("tools", [{"type": "function"}], named="tools[0].function")
    await chat.refuses("tools", [{"type": "function", "function": {}}], named="tools[0].function.name")
    named = "tools[0].function.parameters"
    await chat.refuses("tools", [{"type": "function", "function": {"name": "f", "parameters": "x"}}], named=named)
    await chat.ignores_null("tools")


async def test_chat_field_tool_choice(chat: Chat) -> None:
    two = [*TOOLS, {"type": "function", "function": {"name": "other"}}]
    forced = {"type": "function", "function": {"name": "other"}}
    for choice, text, names in (
        ("auto", TOOL_QUESTION, ["get_weather"]),
        ("auto", "Hi", []),
        ("none", TOOL_QUESTION, []),
        ("required", "Hi", ["get_weather"]),
        (forced, "Hi", ["other"]),
    ):
        message = message_of(await chat.answer({"tools": two, "tool_choice": choice}, text=text))
        assert [call["function"]["name"] for call in message.get("tool_calls", [])] == names, choice
    await chat.refuses("tool_choice", 5, True, "sometimes", ["auto"], fields={"tools": TOOLS})
    await chat.ignores_null("tool_choice", fields={"tools": TOOLS})


async def test_chat_field_response_format(chat: Chat) -> None:
    schema = {"name": "place", "schema": WEATHER}
    body = await chat.answer({"response_format": {"type": "json_schema", "json_schema": schema}, "temperature": 0.2})
    assert json.loads(chat.text(body)).keys() == {"city"}
    frames = await chat.stream({"response_format": {"type": "json_schema", "json_schema": schema}})
    assert json.loads(chat.streamed_text(frames)).keys() == {"city"}
    await chat.takes("response_format", {"type": "text"}, {"type": "json_object"})
    await chat.refuses("response_format", *NO_OBJECTS)
    await chat.refuses("response_format", {"type": "poem"}, named="response_format.type")
    await chat.refuses("response_format", {"type": "json_schema"}, named="response_format.json_schema")
    unnamed = {"type": "json_schema", "json_schema": {"schema": WEATHER}}
    await chat.refuses("response_format", unnamed, named="response_format.json_schema.name")
    await chat.ignores_null("response_format")


async def test_chat_field_thinking(chat: Chat) -> None:
    assert "reasoning_content" not in message_of(await chat.answer(model="famR-1"))
    assert "reasoning_content" not in message_of(await chat.answer({"thinking": {"type": "disabled"}}, model="famR-1"))
    body = await chat.answer({"thinking": {"type": "enabled"}}, model="famR-1")
    assert message_of(body)["reasoning_content"]
    assert reasoning_tokens(body) > 0
    await chat.refuses("thinking", *NO_OBJECTS, model="famR-1")
    await chat.refuses("thinking", {}, {"type": "sometimes"}, {"type": 5}, named="thinking.type", model="famR-1")
    await chat.ignores_null("thinking", model="famR-1")


async def test_chat_field_thinking_is_for_the_family_that_supports_it(chat: Chat) -> None:
    for model in ("famO-5", "famG-2.5-pro", "famQ-3-max", "famX-4"):
        await chat.refuses("thinking", {"type": "enabled"}, model=model)
        await chat.takes("thinking", {"type": "disabled"}, model=model)


async def test_chat_field_enable_thinking(chat: Chat) -> None:
    on = await chat.stream({"enable_thinking": True}, model="famQ-3-max")
    off = await chat.stream({"enable_thinking": False}, model="famQ-3-max")
    assert chat.streamed_reasoning(on)
    assert not chat.streamed_reasoning(off)
    await chat.refuses("enable_thinking", *NO_BOOLEANS, model="famQ-3-max")
    await chat.ignores_null("enable_thinking", model="famQ-3-max")


async def test_chat_field_enable_thinking_is_for_family_fam_q(chat: Chat) -> None:
    for model in ("famO-5", "famG-2.5-pro", "famC-sonnet-4-5", "famR-1", "famX-4"):
        await chat.refuses("enable_thinking", True, False, model=model)


async def test_chat_field_parameters(chat: Chat) -> None:
    everything = {
        "incremental_output": True,
        "enable_search": True,
        "search_options": {"region": "eu", "recency_days": 7},
        "asr_options": {"language": "en"},
        "temperature": 0.5,
        "top_p": 0.9,
    }
    assert searched(await chat.answer({"parameters": everything}, model="famQ-3-max"))
    assert not searched(await chat.answer({"parameters": {"enable_search": False}}, model="famQ-3-max"))
    await chat.refuses("parameters", *NO_OBJECTS, model="famQ-3-max")
    for field, *wrong in (
        ("incremental_output", *NO_BOOLEANS),
        ("enable_search", *NO_BOOLEANS),
        ("search_options", *NO_OBJECTS),
        ("search_options.region", *NO_STRINGS),
        ("search_options.recency_days", "7", 1.5, -1, True),
        ("asr_options", *NO_OBJECTS),
        ("asr_options.language", *NO_STRINGS),
        ("temperature", -0.01, 2.01, *NO_NUMBERS),
        ("top_p", -0.01, 1.01, *NO_NUMBERS),
    ):
        await chat.refuses(f"parameters.{field}", *wrong, model="famQ-3-max")
    await chat.ignores_null("parameters", *(f"parameters.{name}" for name in everything), model="famQ-3-max")


async def test_chat_field_parameters_is_for_family_fam_q(chat: Chat) -> None:
    for model in ("famO-5", "famG-2.5-pro", "famC-sonnet-4-5", "famR-1", "famX-4"):
        await chat.refuses("parameters", {"enable_search": True}, model=model)


async def test_chat_field_vendorn_thinking_to_content(chat: Chat) -> None:
    thinking = {"thinking": {"type": "enabled"}}
    thought = message_of(await chat.answer(thinking, model="famR-1"))["reasoning_content"]
    inlined = message_of(await chat.answer({**thinking, "vendorn_thinking_to_content": True}, model="famR-1"))
    assert "reasoning_content" not in inlined
    assert thought in inlined["content"]
    frames = await chat.stream({**thinking, "vendorn_thinking_to_content": True}, model="famR-1")
    assert chat.streamed_text(frames) == inlined["content"]
    assert not chat.streamed_reasoning(frames)
    apart = await chat.answer({**thinking, "vendorn_thinking_to_content": False}, model="famR-1")
    assert message_of(apart)["reasoning_content"] == thought
    await chat.refuses("vendorn_thinking_to_content", *NO_BOOLEANS, model="famR-1")
    await chat.ignores_null("vendorn_thinking_to_content", fields=thinking, model="famR-1")


PLACES = ("extra_body.vendorg", "extra_body.google", "vendorg", "google")
"""Places of vendor G's part: the documented one, and that of SDKs that merge `extra_body` into the body."""


@pytest.mark.parametrize("place", PLACES)
async def test_chat_field_extra_body_thinking_config(chat: Chat, place: str) -> None:
    usage = {"stream_options": {"include_usage": True}}
    config = f"{place}.thinking_config"
    shown = {f"{config}.thinking_budget": 16, f"{config}.include_thoughts": True}
    frames = await chat.stream({**shown, **usage}, model="famG-2.5-pro")
    assert chat.streamed_reasoning(frames)
    assert 0 < streamed_reasoning_tokens(frames) <= 16
    frames = await chat.stream({**shown, f"{config}.include_thoughts": False, **usage}, model="famG-2.5-pro")
    assert not chat.streamed_reasoning(frames)
    assert streamed_reasoning_tokens(frames) > 0
    await chat.refuses(f"{config}.thinking_budget", -2, 1.5, "16", True, model="famG-2.5-pro")
    await chat.refuses(f"{config}.include_thoughts", *NO_BOOLEANS, model="famG-2.5-pro")
    await chat.refuses(config, *NO_OBJECTS, model="famG-2.5-pro")
    await chat.ignores_null(config, place, model="famG-2.5-pro")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("tool", ["vendorgSearch", "vendorg_search", "googleSearch", "google_search"])
async def test_chat_field_extra_body_tools_pass_a_search_tool_through(chat: Chat, place: str, tool: str) -> None:
    body = await chat.answer({f"{place}.tools": [{tool: {}}]}, model="famG-2.5-pro")
    assert searched(body)
    assert "tool_calls" not in message_of(body)


async def test_chat_field_extra_body_is_an_object(chat: Chat) -> None:
    await chat.refuses("extra_body", *NO_OBJECTS, model="famG-2.5-pro")
    await chat.refuses("extra_body.vendorg", *NO_OBJECTS, model="famG-2.5-pro")
    tools = "extra_body.vendorg.tools"
    await chat.refuses(tools, *NO_ARRAYS, model="famG-2.5-pro")
    await chat.refuses(tools, ["x"], named=f"{tools}[0]", model="famG-2.5-pro")
    for wrong in NO_OBJECTS:
        await chat.refuses(tools, [{"vendorgSearch": wrong}], named=f"{tools}[0].vendorgSearch", model="famG-2.5-pro")
    await chat.ignores_null("extra_body", "extra_body.vendorg", model="famG-2.5-pro")


async def test_chat_field_generation_config(chat: Chat) -> None:
    level = "generationConfig.thinkingConfig.thinkingLevel"
    usage = {"stream_options": {"include_usage": True}}
    low, high = [await chat.stream({level: name, **usage}, model="famG-3-pro") for name in ("LOW", "HIGH")]
    assert 0 < streamed_reasoning_tokens(low) < streamed_reasoning_tokens(high)
    await chat.refuses(level, "LOUD", 5, "", model="famG-3-pro")
    await chat.refuses("generationConfig", *NO_OBJECTS, model="famG-3-pro")
    await chat.refuses("generationConfig.thinkingConfig", *NO_OBJECTS, model="famG-3-pro")
    await chat.ignores_null("generationConfig", "generationConfig.thinkingConfig", level, model="famG-3-pro")


async def test_chat_field_generation_config_is_for_the_tier_with_levels(chat: Chat) -> None:
    level = "generationConfig.thinkingConfig.thinkingLevel"
    await chat.refuses(level, "LOW", "HIGH", model="famG-2.5-pro")
    reply = await chat.post({level: "LOW"}, model="famO-5")
    assert chat.error(reply, 400)["param"].startswith("generationConfig")


async def test_chat_field_reasoning_effort(chat: Chat) -> None:
    spent = [reasoning_tokens(await chat.answer({"reasoning_effort": each})) for each in ("low", "medium", "high")]
    assert 0 < spent[0] < spent[1] < spent[2]
    await chat.takes("reasoning_effort", "minimal", "none", "xhigh")  # of current SDK types
    await chat.refuses("reasoning_effort", "enormous", "", *NO_STRINGS)
    await chat.ignores_null("reasoning_effort")


async def test_chat_field_reasoning_effort_is_a_share_of_the_budget(chat: Chat) -> None:
    budget = {"extra_body.vendorg.thinking_config.thinking_budget": 40}
    model = "famG-2.5-pro-thinking"
    spent = [
        reasoning_tokens(await chat.answer({**budget, "reasoning_effort": effort}, model=model))
        for effort in ("low", "medium", "high")
    ]
    assert 0 < spent[0] <= 8
    assert spent[0] < spent[1] <= 20
    assert spent[1] < spent[2] <= 32


async def test_chat_field_web_search_options(chat: Chat) -> None:
    assert searched(await chat.answer({"web_search_options": {}}))
    for size in ("low", "medium", "high"):
        options = {"search_context_size": size, "user_location": LOCATION}
        assert searched(await chat.answer({"web_search_options": options}))
    await chat.takes("web_search_options", {"user_location": {"type": "approximate", **LOCATION}})
    await chat.refuses("web_search_options", *NO_OBJECTS)
    await chat.refuses("web_search_options.search_context_size", "huge", *NO_STRINGS)
    await chat.refuses("web_search_options.user_location", *NO_OBJECTS)
    for name in ("timezone", "country", "region", "city"):
        await chat.refuses(f"web_search_options.user_location.approximate.{name}", *NO_STRINGS)
    await chat.ignores_null("web_search_options")
    assert not searched(await chat.answer({"web_search_options": None}))


async def test_chat_field_search_parameters(chat: Chat) -> None:
    for mode, cited in (("on", True), ("auto", True), ("off", False)):
        assert searched(await chat.answer({"search_parameters": {"mode": mode}}, model="famX-4")) is cited, mode
    cited = {"mode": "on", "return_citations": True}
    assert searched(await chat.answer({"search_parameters": cited}, model="famX-4"))
    bare = await chat.answer({"search_parameters": {**cited, "return_citations": False}}, model="famX-4")
    assert not searched(bare)
    assert "http" not in chat.text(bare)
    await chat.refuses("search_parameters", *NO_OBJECTS, model="famX-4")
    await chat.refuses("search_parameters.mode", "sometimes", *NO_STRINGS, model="famX-4")
    await chat.refuses("search_parameters.return_citations", *NO_BOOLEANS, model="famX-4")
    await chat.ignores_null("search_parameters", model="famX-4")
    given = {"search_parameters.mode": "on"}
    await chat.ignores_null("search_parameters.return_citations", fields=given, model="famX-4")


async def test_chat_field_search_parameters_is_for_family_fam_x(chat: Chat) -> None:
    for model in ("famO-5", "famG-2.5-pro", "famC-sonnet-4-5", "famQ-3-max", "famR-1"):
        await chat.refuses("search_parameters", {"mode": "on"}, model=model)


async def test_chat_unknown_fields_are_refused_by_name_where_they_cannot_go(chat: Chat) -> None:
    await chat.refuses("crystal_ball", {"size": 3}, 0, "")


async def test_chat_fields_that_change_no_answer_are_reported_by_name(chat: Chat) -> None:
    reply = await chat.post({"min_p": 0.1, "cache_prompt": True})
    assert (reply.status, reply.headers["x-umg-dropped"]) == (200, "min_p, cache_prompt")


async def test_chat_unknown_null_fields_are_absent(chat: Chat) -> None:
    reply = await chat.post({"crystal_ball": None})
    assert reply.status == 200
    assert "x-umg-dropped" not in reply.headers


# --- resources: chat message


async def test_chat_message_role(chat: Chat) -> None:
    for role in ("system", "developer"):
        spoken = [{"role": role, "content": "Speak like a sailor"}, *chat.prompt("Hi")]
        assert "Speak like a sailor" in chat.text(await chat.answer({"messages": spoken}))
    spoken = [*chat.prompt("Hi"), {"role": "assistant", "content": "Yes?"}, *chat.prompt("Go")]
    assert "turn 2" in chat.text(await chat.answer({"messages": spoken}))
    for role in ("robot", "model", "", 5):
        await chat.refuses("messages", [{"role": role, "content": "Hi"}], named="messages[0].role")
    await chat.refuses("messages", [{"content": "Hi"}], named="messages[0].role")


async def test_chat_message_content(chat: Chat) -> None:
    parts = [
        {"type": "text", "text": "Look at"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    ]
    text = chat.text(await chat.answer({"messages": [{"role": "user", "content": parts}]}))
    assert "Look at" in text
    assert "image/png, 1 x 1 pixels" in text
    for content in (5, True, {"text": "Hi"}):
        await chat.refuses("messages", [{"role": "user", "content": content}], named="messages[0].content")
    for role in ("user", "system"):
        await chat.refuses("messages", [{"role": role}], named="messages[0].content")
    await chat.refuses(
        "messages", [{"role": "user", "content": [{"type": "text"}]}], named="messages[0].content[0].text"
    )
    reply = await chat.post({"messages": [{"role": "user", "content": [{"type": "smell", "smell": "x"}]}]})
    assert "smell" in chat.error(reply, 400)["message"]


async def test_chat_message_tool_calls(chat: Chat) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "17 degrees"}

    def history(changed: Any) -> Any:
        return [*chat.prompt("Hi"), {"role": "assistant", "content": None, "tool_calls": changed}, result]

    assert "17 degrees" in chat.text(await chat.answer({"messages": history([call])}))
    at = "messages[1].tool_calls"
    await chat.refuses("messages", history("x"), history(5), named=at)
    await chat.refuses("messages", history([{**call, "id": 5}]), named=f"{at}[0].id")
    await chat.refuses("messages", history([{**call, "function": {"arguments": "{}"}}]), named=f"{at}[0].function.name")
    wrong = {"name": "get_weather", "arguments": {"city": "Rome"}}
    await chat.refuses("messages", history([{**call, "function": wrong}]), named=f"{at}[0].function.arguments")
    without = [{name: value for name, value in call.items() if name != "id"}]
    await chat.refuses("messages", history(without), named=f"{at}[0].id")
    reply = await chat.post({"messages": history([{"id": "call_1", "type": "spell", "spell": {}}])})
    assert "spell" in (error := chat.error(reply, 400))["message"]
    assert error["param"] == f"{at}[0]"


async def test_chat_message_tool_call_id(chat: Chat) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    history = [*chat.prompt("Hi"), {"role": "assistant", "tool_calls": [call]}]
    named = "messages[2].tool_call_id"
    await chat.refuses("messages", [*history, {"role": "tool", "content": "x"}], named=named)
    await chat.refuses("messages", [*history, {"role": "tool", "content": "x", "tool_call_id": 5}], named=named)


async def test_chat_message_name_is_optional_on_tool_messages(chat: Chat) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    history = [*chat.prompt("Hi"), {"role": "assistant", "tool_calls": [call]}]
    tool = {"role": "tool", "content": "x", "tool_call_id": "call_1"}
    with_name = await chat.answer({"messages": [*history, {**tool, "name": "f"}]})
    without = await chat.answer({"messages": [*history, tool]})
    assert lasting(with_name) == lasting(without)
    await chat.refuses("messages", [*history, {**tool, "name": 5}], named="messages[2].name")


# --- resources: chat completion response


async def test_chat_response_fields(chat: Chat) -> None:
    body = await chat.answer()
    assert body["id"]
    assert body["object"] == "chat.completion"
    assert type(body["created"]) is int
    assert body["model"] == "famO-5"
    (choice,) = body["choices"]
    assert (choice["index"], choice["finish_reason"], choice["message"]["role"]) == (0, "stop", "assistant")
    assert isinstance(choice["message"]["content"], str)


async def test_chat_response_usage(chat: Chat) -> None:
    for fields in ({}, {"reasoning_effort": "high"}):
        usage = (await chat.answer(fields))["usage"]
        assert all(type(usage[name]) is int for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    frames = await chat.stream({"stream_options": {"include_usage": True}})
    assert frames[-2].data["usage"] == (await chat.answer())["usage"]


async def test_chat_response_tool_calls(chat: Chat) -> None:
    body = await chat.answer({"tools": TOOLS}, text=TOOL_QUESTION)
    (call,) = message_of(body)["tool_calls"]
    assert (call["type"], call["function"]["name"]) == ("function", "get_weather")
    assert json.loads(call["function"]["arguments"]).keys() == {"city"}
    assert call["id"]
    assert body["choices"][0]["finish_reason"] == "tool_calls"
    assert "tool_calls" not in message_of(await chat.answer({"tools": TOOLS}))


async def test_chat_response_stream_deltas(chat: Chat) -> None:
    frames = await chat.stream({"thinking": {"type": "enabled"}}, model="famR-1")
    message = message_of(await chat.answer({"thinking": {"type": "enabled"}}, model="famR-1"))
    assert chat.streamed_text(frames) == message["content"]
    assert chat.streamed_reasoning(frames) == message["reasoning_content"]
    order = [
        bool(delta.get("content"))
        for delta in chat.deltas(frames)
        if delta.get("content") or "reasoning_content" in delta
    ]
    assert order == sorted(order)  # reasoning comes first
