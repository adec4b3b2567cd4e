"""Text document, "POST /v1/responses": its table, its rules and its responses."""

import json
from typing import Any

import pytest

from tests.documents.spec.callers import (
    NO_BOOLEANS,
    NO_NUMBERS,
    NO_OBJECTS,
    NO_STRINGS,
    PDF,
    PNG,
    WEATHER,
    Responses,
    frames_of,
    lasting,
)
from tests.support.callers.api import ApiClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

FUNCTION = {"name": "get_weather", "description": "Weather", "parameters": WEATHER}
NESTED = [{"type": "function", "function": FUNCTION}]
FLAT = [{"type": "function", **FUNCTION}]
TOOL_QUESTION = "Ask get_weather of Rome"
PLACE = {"type": "approximate", "country": "IT", "region": "Lazio", "city": "Rome", "timezone": "Europe/Rome"}


def reasoning_tokens(body: Any) -> int:
    return int(body["usage"]["output_tokens_details"]["reasoning_tokens"])


def searched(responses: Responses, body: Any) -> bool:
    """Return whether the response has sources, each with an http URL."""
    notes = [
        note for item in responses.items(body, "message") for part in item["content"] for note in part["annotations"]
    ]
    assert all(note["url"].startswith("http") for note in notes)
    return bool(notes)


def calls(responses: Responses, body: Any) -> list[str]:
    return [item["name"] for item in responses.items(body, "function_call")]


# --- the table


async def test_responses_field_model(responses: Responses) -> None:
    await responses.misses("model")
    await responses.refuses("model", *NO_STRINGS, "")
    assert (await responses.answer(model="famQ-3-max"))["model"] == "famQ-3-max"


async def test_responses_field_input(responses: Responses) -> None:
    await responses.misses("input")
    await responses.refuses("input", 5, True, {"role": "user", "content": "Hi"}, [])
    await responses.refuses("input", ["Hi"], [5], named="input[0]")
    by_array = await responses.answer()
    assert "Tell me of Paris" in responses.text(by_array)
    by_string = await responses.answer({"input": "Tell me of Paris"})
    assert lasting(by_string) == lasting(by_array)


async def test_responses_field_input_role_and_content(responses: Responses) -> None:
    for role in ("system", "developer"):
        spoken = [{"role": role, "content": "Speak like a sailor"}, *responses.prompt("Hi")]
        assert "Speak like a sailor" in responses.text(await responses.answer({"input": spoken}))
    spoken = [*responses.prompt("Hi"), {"role": "assistant", "content": "Yes?"}, *responses.prompt("Go")]
    assert "turn 2" in responses.text(await responses.answer({"input": spoken}))
    await responses.refuses("input", [{"role": "robot", "content": "Hi"}], named="input[0].role")
    for content in (5, True, {"text": "Hi"}):
        await responses.refuses("input", [{"role": "user", "content": content}], named="input[0].content")
    await responses.refuses("input", [{"role": "user"}], named="input[0].content")


@pytest.mark.parametrize("bare", [True, False], ids=["bare", "in a message"])
async def test_responses_field_input_text_image_and_file(responses: Responses, bare: bool) -> None:
    parts = [
        {"type": "input_text", "text": "Look at these"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "low"},
        {"type": "input_file", "file_url": "https://files.example/a.pdf"},
    ]
    body = await responses.answer({"input": parts if bare else [{"role": "user", "content": parts}]})
    text = responses.text(body)
    assert "Look at these" in text
    assert "image/png, 1 x 1 pixels" in text
    assert "https://files.example/a.pdf" in text
    assert "turn 2" not in text  # one user turn


async def test_responses_field_input_parts_of_wrong_types(responses: Responses) -> None:
    for part, named in (
        ({"type": "input_text", "text": 5}, "text"),
        ({"type": "input_text"}, "text"),
        ({"type": "input_image", "image_url": {"url": "https://a.example/a.png"}}, "image_url"),
        ({"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "huge"}, "detail"),
        ({"type": "input_file", "file_url": 5}, "file_url"),
    ):
        await responses.refuses("input", [part], named=f"input[0].{named}")
        message = [{"role": "user", "content": [part]}]
        await responses.refuses("input", message, named=f"input[0].content[0].{named}")


async def test_responses_field_input_items_of_unknown_types_are_refused_by_name(responses: Responses) -> None:
    text = {"type": "input_text", "text": "Hi"}
    unknown = {"role": "user", "content": [text, {"type": "input_smell"}]}
    for items, named in (
        ([{"type": "smell_call", "id": "x"}], "input[0]"),
        ([*responses.prompt("Hi"), {"type": "smell_call"}], "input[1]"),
        ([text, text, {"type": "smell_call"}], "input[2]"),
        ([unknown], "input[0].content[1]"),
        ([text, text, unknown], "input[2].content[1]"),
    ):
        error = responses.error(await responses.post({"input": items}), 400)
        assert "smell" in error["message"]
        assert error["param"] == named


async def test_responses_field_input_annotations_of_wrong_types(responses: Responses) -> None:
    for annotation in ("x", 5, None, [], {"type": 5}):
        part = {"type": "output_text", "text": "a", "annotations": [annotation]}
        spoken = [{"role": "assistant", "content": [part]}, *responses.prompt("Hi")]
        place = "input[0].content[0].annotations[0]"
        await responses.refuses("input", spoken, named=f"{place}.type" if isinstance(annotation, dict) else place)


async def test_responses_field_instructions(responses: Responses) -> None:
    body = await responses.answer({"instructions": "Speak like a sailor"})
    assert "Speak like a sailor" in responses.text(body)
    assert body["instructions"] == "Speak like a sailor"
    await responses.refuses("instructions", *NO_STRINGS)
    await responses.ignores_null("instructions")


async def test_responses_field_max_output_tokens(responses: Responses) -> None:
    body = await responses.answer({"max_output_tokens": 10})
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert 0 < body["usage"]["output_tokens"] <= 10
    assert body["max_output_tokens"] == 10
    await responses.takes("max_output_tokens", 1, 5000, 50.0)
    await responses.refuses("max_output_tokens", 0, -1, 1.5, *NO_NUMBERS)
    await responses.ignores_null("max_output_tokens")


async def test_responses_field_stream(responses: Responses) -> None:
    whole = await responses.answer({"stream": False})
    assert responses.streamed_text(await responses.stream()) == responses.text(whole)
    await responses.refuses("stream", *NO_BOOLEANS)
    await responses.ignores_null("stream")


async def test_responses_field_temperature(responses: Responses) -> None:
    assert (await responses.answer())["temperature"] == 1.0
    for value in (0, 0.5, 2):
        assert (await responses.answer({"temperature": value}))["temperature"] == value
    await responses.refuses("temperature", -0.01, 2.01, *NO_NUMBERS)
    await responses.ignores_null("temperature")


async def test_responses_field_top_p(responses: Responses) -> None:
    assert (await responses.answer())["top_p"] == 0.98
    for value in (0, 0.5, 1):
        assert (await responses.answer({"top_p": value}))["top_p"] == value
    await responses.refuses("top_p", -0.01, 1.01, *NO_NUMBERS)
    await responses.ignores_null("top_p")


async def test_responses_field_reasoning_effort(responses: Responses) -> None:
    spent = {}
    for effort in ("none", "low", "medium", "high"):
        body = await responses.answer({"reasoning": {"effort": effort}})
        assert body["reasoning"]["effort"] == effort
        spent[effort] = reasoning_tokens(body)
    assert 0 == spent["none"] < spent["low"] < spent["medium"] < spent["high"]
    await responses.takes("reasoning.effort", "minimal", "xhigh")
    await responses.refuses("reasoning", *NO_OBJECTS)
    await responses.refuses("reasoning.effort", "enormous", *NO_STRINGS)
    await responses.ignores_null("reasoning")


async def test_responses_field_reasoning_defaults_to_medium(responses: Responses) -> None:
    expected = await responses.answer({"reasoning": {"effort": "medium"}})
    for reasoning in ({}, {"effort": None}):
        body = await responses.answer({"reasoning": reasoning})
        assert lasting(body) == lasting(expected)


async def test_responses_field_reasoning_summary(responses: Responses) -> None:
    async def summaries(summary: str) -> list[str]:
        body = await responses.answer({"reasoning": {"effort": "high", "summary": summary}})
        assert body["reasoning"]["summary"] == (None if summary == "none" else summary)  # SDK types have no `none`
        return [part["text"] for item in responses.items(body, "reasoning") for part in item["summary"]]

    assert await summaries("auto")
    assert len(await summaries("detailed")) > len(await summaries("auto"))
    assert await summaries("none") == []
    await responses.refuses("reasoning.summary", "long", *NO_STRINGS)


async def test_responses_field_tools_web_search_preview(responses: Responses) -> None:
    tool: dict[str, Any] = {"type": "web_search_preview"}
    assert searched(responses, await responses.answer({"tools": [tool]}))
    assert not searched(responses, await responses.answer())
    for size in ("low", "medium", "high"):
        full = {**tool, "search_context_size": size, "user_location": PLACE}
        body = await responses.answer({"tools": [full]})
        assert searched(responses, body)
        assert body["tools"] == [full]
    for name, wrong in (("search_context_size", ("huge", *NO_STRINGS)), ("user_location", NO_OBJECTS)):
        for value in wrong:
            await responses.refuses("tools", [{**tool, name: value}], named=f"tools[0].{name}")
    for name in ("type", "country", "region", "city", "timezone"):
        broken = {**tool, "user_location": {**PLACE, name: 5}}
        await responses.refuses("tools", [broken], named=f"tools[0].user_location.{name}")


async def test_responses_field_tools_search_context_size_defaults_to_medium(responses: Responses) -> None:
    body = await responses.answer({"tools": [{"type": "web_search_preview"}]})
    assert body["tools"][0]["search_context_size"] == "medium"


async def test_responses_field_tools_file_search(responses: Responses) -> None:
    body = await responses.answer({"tools": [{"type": "file_search"}]})
    assert body["tools"][0]["type"] == "file_search"
    await responses.refuses(
        "tools", [{"type": "file_search", "vector_store_ids": "x"}], named="tools[0].vector_store_ids"
    )


@pytest.mark.parametrize("tools", [NESTED, FLAT], ids=["nested as documented", "flat as SDKs send"])
async def test_responses_field_tools_function(responses: Responses, tools: Any) -> None:
    body = await responses.answer({"tools": tools}, text=TOOL_QUESTION)
    assert calls(responses, body) == ["get_weather"]
    (tool,) = body["tools"]
    assert (tool["type"], tool["name"], tool["parameters"]) == ("function", "get_weather", WEATHER)


async def test_responses_field_tools_of_wrong_types(responses: Responses) -> None:
    await responses.refuses("tools", "x", 5, {"type": "web_search_preview"})
    await responses.refuses("tools", ["x"], named="tools[0]")
    await responses.refuses("tools", [{"type": "function"}], named="tools[0].name")
    await responses.refuses("tools", [{"type": "function", "function": {}}], named="tools[0].function.name")
    await responses.refuses(
        "tools", [{"type": "function", "name": "f", "parameters": "x"}], named="tools[0].parameters"
    )
    reply = await responses.post({"tools": [{"type": "crystal_ball"}]})
    assert "crystal_ball" in responses.error(reply, 400)["message"]
    await responses.ignores_null("tools")


async def test_responses_field_tool_choice(responses: Responses) -> None:
    other = {"type": "function", "name": "other", "parameters": {"type": "object", "properties": {}}}
    tools = [*FLAT, other]
    assert (await responses.answer({"tools": tools}))["tool_choice"] == "auto"
    for choice, text, names in (
        ("auto", TOOL_QUESTION, ["get_weather"]),
        ("auto", "Hi", []),
        ("none", TOOL_QUESTION, []),
        ("required", "Hi", ["get_weather"]),
        ({"type": "function", "function": {"name": "other"}}, "Hi", ["other"]),
        ({"type": "function", "name": "other"}, "Hi", ["other"]),
    ):
        body = await responses.answer({"tools": tools, "tool_choice": choice}, text=text)
        assert calls(responses, body) == names, choice
    await responses.refuses("tool_choice", "sometimes", 5, True, fields={"tools": tools})
    await responses.ignores_null("tool_choice", fields={"tools": tools})


async def test_responses_field_parallel_tool_calls(responses: Responses) -> None:
    tools = [*FLAT, {"type": "function", "name": "get_time", "parameters": {"type": "object", "properties": {}}}]
    text = "Ask get_weather and get_time"
    assert (await responses.answer())["parallel_tool_calls"] is True
    assert calls(responses, await responses.answer({"tools": tools}, text=text)) == ["get_weather", "get_time"]
    body = await responses.answer({"tools": tools, "parallel_tool_calls": False}, text=text)
    assert calls(responses, body) == ["get_weather"]
    assert body["parallel_tool_calls"] is False
    await responses.refuses("parallel_tool_calls", *NO_BOOLEANS)
    await responses.ignores_null("parallel_tool_calls")


async def test_responses_field_max_tool_calls(responses: Responses) -> None:
    assert (await responses.answer({"max_tool_calls": 3}))["max_tool_calls"] == 3
    await responses.takes("max_tool_calls", 1, 5.0)
    await responses.refuses("max_tool_calls", -1, 1.5, *NO_NUMBERS)
    await responses.ignores_null("max_tool_calls")


async def test_responses_field_previous_response_id(responses: Responses) -> None:
    first = await responses.answer(text="My dog is called Rex")
    body = await responses.answer({"previous_response_id": first["id"]}, text="What is it called?")
    assert body["previous_response_id"] == first["id"]
    assert "you began with: My dog is called Rex" in responses.text(body)
    await responses.refuses("previous_response_id", 5, True, ["x"], "")
    await responses.ignores_null("previous_response_id")


async def test_responses_field_truncation(responses: Responses) -> None:
    assert (await responses.answer())["truncation"] == "disabled"
    for value in ("auto", "disabled"):
        assert (await responses.answer({"truncation": value}))["truncation"] == value
    await responses.refuses("truncation", "middle", *NO_STRINGS)
    await responses.ignores_null("truncation")


async def test_responses_field_metadata(responses: Responses) -> None:
    assert (await responses.answer({"metadata": {"trace": "a"}}))["metadata"] == {"trace": "a"}
    await responses.refuses("metadata", *NO_OBJECTS)
    await responses.ignores_null("metadata")


async def test_responses_field_user(responses: Responses) -> None:
    assert (await responses.answer({"user": "u-1"}))["user"] == "u-1"
    await responses.refuses("user", *NO_STRINGS)
    await responses.ignores_null("user")


async def test_responses_query_api_version_is_accepted(responses: Responses, gateway: ApiClient) -> None:
    usual = lasting(await responses.answer())
    for label in ("2025-04-01-preview", "2024-10-21", ""):
        reply = await gateway.post(f"/v1/responses?api-version={label}", responses.body())
        assert lasting(reply.body) == usual


# --- rules


async def test_responses_rule_1_a_function_call_is_an_output_item(responses: Responses) -> None:
    question = responses.prompt(TOOL_QUESTION)
    for model in ("famO-5", "famG-2.5-pro", "famC-sonnet-4-5"):
        first = await responses.answer({"tools": NESTED, "input": question}, model=model)
        (call,) = responses.items(first, "function_call")
        assert first["status"] == "completed"
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "17 degrees"}
        second = await responses.answer({"tools": NESTED, "input": [*question, *first["output"], result]}, model=model)
        assert "17 degrees" in responses.text(second)
        continued = {"tools": NESTED, "input": [result], "previous_response_id": first["id"]}
        assert "17 degrees" in responses.text(await responses.answer(continued, model=model))
        assert "17 degrees" in responses.streamed_text(await responses.stream(continued, model=model))


async def test_responses_rule_2_web_search_and_reasoning_work_for_a_capable_family(responses: Responses) -> None:
    fields = {"tools": [{"type": "web_search_preview"}], "reasoning": {"effort": "low", "summary": "auto"}}
    body = await responses.answer(fields)
    assert [item["type"] for item in body["output"]] == ["reasoning", "web_search_call", "message"]
    assert searched(responses, body)
    assert reasoning_tokens(body) > 0


async def test_responses_rule_3_the_done_event_has_the_full_text(responses: Responses) -> None:
    for options in (
        {},
        {"stream_options": {"include_obfuscation": True}},
        {"stream_options": {"include_obfuscation": False}},
    ):
        frames = await responses.stream(options)
        (done,) = [frame.data for frame in frames if frame.event == "response.output_text.done"]
        assert done["text"] == responses.streamed_text(frames) == responses.text(await responses.answer())


async def test_responses_rule_4_a_file_by_url_is_an_input_file(responses: Responses) -> None:
    for model in ("famO-5", "famG-2.5-pro", "famC-sonnet-4-5"):
        spoken = [{"role": "user", "content": [{"type": "input_file", "file_url": "https://files.example/a.pdf"}]}]
        assert "https://files.example/a.pdf" in responses.text(await responses.answer({"input": spoken}, model=model))


async def test_responses_rule_4_a_file_in_base64_as_sdks_send_it(responses: Responses) -> None:
    file = {"type": "input_file", "file_data": f"data:application/pdf;base64,{PDF}", "filename": "a.pdf"}
    body = await responses.answer({"input": [{"role": "user", "content": [file]}]})
    assert "application/pdf" in responses.text(body)
    assert "1 page" in responses.text(body)


# --- the response


async def test_responses_object_fields(responses: Responses) -> None:
    body = await responses.answer()
    assert body["id"].startswith("resp_")
    assert (body["object"], body["status"], body["model"]) == ("response", "completed", "famO-5")
    assert type(body["created_at"]) is int
    usage = body["usage"]
    assert all(type(usage[name]) is int for name in ("input_tokens", "output_tokens", "total_tokens"))
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["input_tokens_details"]["cached_tokens"] == 0
    assert usage["output_tokens_details"]["reasoning_tokens"] == 0


async def test_responses_object_completed_at(responses: Responses) -> None:
    body = await responses.answer()
    assert body["completed_at"] >= body["created_at"]


async def test_responses_output_item_message(responses: Responses) -> None:
    (item,) = (await responses.answer())["output"]
    assert item["id"]
    assert (item["type"], item["status"], item["role"]) == ("message", "completed", "assistant")
    (part,) = item["content"]
    assert (part["type"], part["annotations"]) == ("output_text", [])
    assert isinstance(part["text"], str)


async def test_responses_output_item_function_call(responses: Responses) -> None:
    (item,) = (await responses.answer({"tools": NESTED}, text=TOOL_QUESTION))["output"]
    assert item.keys() >= {"id", "type", "status", "name", "call_id", "arguments"}
    assert (item["type"], item["status"], item["name"]) == ("function_call", "completed", "get_weather")
    assert json.loads(item["arguments"]).keys() == {"city"}
    assert item["id"] != item["call_id"]


# --- state


async def test_states_in_progress_becomes_completed_with_usage(responses: Responses) -> None:
    frames = await responses.stream()
    responses_sent = [(frame.event, frame.data["response"]) for frame in frames if "response" in frame.data]
    assert [(event, response["status"]) for event, response in responses_sent] == [
        ("response.created", "in_progress"),
        ("response.in_progress", "in_progress"),
        ("response.completed", "completed"),
    ]
    assert [response["usage"] is None for _, response in responses_sent] == [True, True, False]
    assert lasting(responses_sent[-1][1]) == lasting(await responses.answer())


# --- counting


async def test_responses_input_tokens_counts_without_a_call(gateway: ApiClient, responses: Responses) -> None:
    small = await gateway.post("/v1/responses/input_tokens", responses.body())
    assert small.body.keys() == {"object", "input_tokens"}
    assert small.body["object"] == "response.input_tokens"
    fields = {"instructions": "Speak like a sailor", "tools": NESTED}
    large = await gateway.post("/v1/responses/input_tokens", responses.body(fields))
    assert large.body["input_tokens"] > small.body["input_tokens"] > 0
    failing = await gateway.post("/v1/responses/input_tokens", responses.body(text="[[fail]]"))
    assert failing.status == 200
    refused = await gateway.post("/v1/responses/input_tokens", responses.body({"input": 5}))
    assert responses.error(refused, 400)["param"] == "input"
    assert responses.error(await gateway.post("/v1/responses/input_tokens", responses.body(model="famO-9")), 404)


async def test_responses_stream_of_a_function_call(responses: Responses) -> None:
    frames = await responses.stream({"tools": NESTED}, text=TOOL_QUESTION)
    kinds = [frame.event.removeprefix("response.") for frame in frames if not frame.event.endswith(".delta")]
    assert kinds == [
        "created",
        "in_progress",
        "output_item.added",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    done = next(frame.data for frame in frames if frame.event == "response.function_call_arguments.done")
    deltas = [frame.data["delta"] for frame in frames if frame.event == "response.function_call_arguments.delta"]
    assert "".join(deltas) == done["arguments"]


async def test_responses_stream_replays_by_get(responses: Responses, gateway: ApiClient) -> None:
    frames = await responses.stream()
    response_id = frames[0].data["response"]["id"]
    replayed = frames_of(await gateway.get(f"/v1/responses/{response_id}?stream=true"))
    assert responses.streamed_text(replayed) == responses.streamed_text(frames)
    rest = frames_of(await gateway.get(f"/v1/responses/{response_id}?stream=true&starting_after=3"))
    assert rest == [frame for frame in replayed if frame.data["sequence_number"] > 3]
