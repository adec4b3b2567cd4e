"""Text document, "POST /v1beta/models/{model}:generateContent" and ":streamGenerateContent"."""

import base64
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from tests.documents.spec.callers import (
    NO_BOOLEANS,
    NO_NUMBERS,
    NO_OBJECTS,
    NO_STRINGS,
    PNG,
    WEATHER,
    Native,
    frames_of,
)
from tests.support.callers.api import ApiClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

DECLARED = [{"functionDeclarations": [{"name": "get_weather", "description": "Weather", "parameters": WEATHER}]}]
IMAGES = "famG-2.5-flash-image"
THOUGHTS = "generationConfig.thinkingConfig.includeThoughts"
BUDGET = "generationConfig.thinkingConfig.thinkingBudget"
LEVEL = "generationConfig.thinkingConfig.thinkingLevel"


def thought_tokens(body: Any) -> int:
    return int(body["usageMetadata"]["thoughtsTokenCount"])


def searched(body: Any) -> bool:
    """Return whether the response has sources, each with an http URL."""
    chunks = body["candidates"][0].get("groundingMetadata", {}).get("groundingChunks", [])
    assert all(chunk["web"]["uri"].startswith("http") for chunk in chunks)
    return bool(chunks)


# --- path and body


async def test_generate_path_model_is_required_and_known(native: Native, gateway: ApiClient) -> None:
    assert (await native.answer(model="famG-2.5-flash"))["modelVersion"] == "famG-2.5-flash"
    for unknown in ("famG-9", "nobody/nothing", "famG-2.5-pro-thinkin"):
        assert unknown in native.error(await native.post(model=unknown), 404)["message"]
    assert native.error(await gateway.post("/v1beta/models/:generateContent", native.body()), 404)


async def test_generate_path_model_may_be_percent_encoded_or_carry_one_models_prefix(native: Native) -> None:
    for written in ("famG%2D2.5%2Dpro", "models/famG-2.5-pro"):
        assert (await native.answer(model=written))["modelVersion"] == "famG-2.5-pro"


async def test_generate_field_contents(native: Native) -> None:
    await native.misses("contents")
    await native.refuses("contents", "Hi", 5, True, [], ["Hi"], [5])
    body = await native.answer(text="What do you know of Lisbon?")
    assert "Lisbon" in native.text(body)


async def test_generate_field_generation_config(native: Native) -> None:
    await native.takes("generationConfig", {})
    await native.refuses("generationConfig", *NO_OBJECTS)
    await native.ignores_null("generationConfig")


async def test_generate_field_system_instruction(native: Native) -> None:
    body = await native.answer({"systemInstruction": {"parts": [{"text": "Speak like a sailor"}]}})
    assert "Speak like a sailor" in native.text(body)
    body = await native.answer({"system_instruction": {"role": "user", "parts": [{"text": "Speak like a sailor"}]}})
    assert "Speak like a sailor" in native.text(body)
    await native.refuses("systemInstruction", 5, True, [], "Speak", {"parts": "Speak"}, {"parts": [{"text": 5}]})
    await native.ignores_null("systemInstruction")


async def test_generate_field_safety_settings(native: Native) -> None:
    harassment = "HARM_CATEGORY_HARASSMENT"
    await native.takes("safetySettings", [{"category": harassment, "threshold": "OFF"}], [])
    for threshold in ("BLOCK_NONE", "BLOCK_ONLY_HIGH", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_LOW_AND_ABOVE"):
        await native.takes("safetySettings", [{"category": harassment, "threshold": threshold}])
    await native.refuses("safetySettings", "OFF", 5, [5], [{"threshold": "OFF"}], [{"category": harassment}])
    await native.refuses("safetySettings", [{"category": harassment, "threshold": "SOMETIMES"}])
    await native.refuses("safetySettings", [{"category": "IMPOLITE", "threshold": "OFF"}])
    await native.ignores_null("safetySettings")


async def test_generate_field_tools(native: Native) -> None:
    await native.takes("tools", DECLARED, [{"vendorgSearch": {}}], [])
    await native.refuses("tools", "x", 5, ["x"], [{"functionDeclarations": "x"}], [{"functionDeclarations": [{}]}])
    await native.ignores_null("tools")


async def test_generate_field_tools_of_another_kind_are_refused_by_name(native: Native) -> None:
    for kind in ("codeExecution", "urlContext", "crystalBall"):
        await native.refuses("tools", [{kind: {}}], named=kind)


async def test_generate_field_tools_search_under_every_name(native: Native) -> None:
    assert not searched(await native.answer())
    for name in ("vendorgSearch", "vendorg_search", "googleSearch", "google_search"):
        body = await native.answer({"tools": [{name: {}}]})
        assert searched(body), name
        assert not any("functionCall" in part for part in native.parts(body))


async def test_generate_field_tool_config(native: Native) -> None:
    calling = "toolConfig.functionCallingConfig"
    forced = await native.answer({"tools": DECLARED, calling: {"mode": "ANY"}})
    assert [part["functionCall"]["name"] for part in native.parts(forced)] == ["get_weather"]
    both = [{"functionDeclarations": [{"name": "one"}, {"name": "two"}]}]
    named = await native.answer({"tools": both, calling: {"mode": "ANY", "allowedFunctionNames": ["two"]}})
    assert [part["functionCall"]["name"] for part in native.parts(named)] == ["two"]
    free = await native.answer({"tools": DECLARED, calling: {"mode": "AUTO"}}, text="Ask get_weather of Rome")
    assert "functionCall" in native.parts(free)[0]
    never = await native.answer({"tools": DECLARED, calling: {"mode": "NONE"}}, text="Ask get_weather of Rome")
    assert not any("functionCall" in part for part in native.parts(never))


async def test_generate_field_tool_config_out_of_its_values(native: Native) -> None:
    calling = "toolConfig.functionCallingConfig"
    await native.refuses("toolConfig", *NO_OBJECTS, fields={"tools": DECLARED})
    await native.refuses(f"{calling}.mode", "SOMETIMES", 5, fields={"tools": DECLARED})
    await native.refuses(f"{calling}.allowedFunctionNames", "get_weather", [5], fields={"tools": DECLARED})
    await native.ignores_null("toolConfig", fields={"tools": DECLARED})


async def test_generate_field_cached_content(native: Native) -> None:
    plain = await native.answer()
    assert plain["usageMetadata"]["cachedContentTokenCount"] == 0
    for field in ("cachedContent", "cached_content"):
        usage = (await native.answer({field: "cachedContents/abc"}))["usageMetadata"]
        assert usage["cachedContentTokenCount"] > 0
        assert usage["promptTokenCount"] >= usage["cachedContentTokenCount"]
    await native.refuses("cachedContent", *NO_STRINGS)
    await native.ignores_null("cachedContent")


async def test_generate_function_parameters_are_a_json_schema(native: Native) -> None:
    schema = {
        "type": "object",
        "properties": {"user_id": {"type": "integer"}, "mime_type": {"type": "string", "enum": ["a", "b"]}},
        "required": ["user_id", "mime_type"],
    }
    for name in ("parameters", "parametersJsonSchema", "parameters_json_schema"):
        tools = [{"functionDeclarations": [{"name": "look", "description": "d", name: schema}]}]
        body = await native.answer({"tools": tools}, text="Now look")
        args = native.parts(body)[0]["functionCall"]["args"]
        assert args.keys() == {"user_id", "mime_type"}
        assert isinstance(args["user_id"], int)
        assert args["mime_type"] in {"a", "b"}
    await native.refuses("tools", [{"functionDeclarations": [{"name": "look", "parameters": "x"}]}], named="parameters")


# --- generationConfig


async def test_generation_config_temperature(native: Native) -> None:
    field = "generationConfig.temperature"
    await native.takes(field, 0, 0.5, 2, 2.0)
    await native.refuses(field, -0.01, 2.01, *NO_NUMBERS[1:], "warm")
    await native.ignores_null(field)


async def test_generation_config_top_p(native: Native) -> None:
    for field in ("generationConfig.topP", "generationConfig.top_p"):
        await native.takes(field, 0, 0.5, 1)
    await native.refuses("generationConfig.topP", -0.01, 1.01, *NO_NUMBERS[1:], "high")
    await native.ignores_null("generationConfig.topP")


async def test_generation_config_top_k(native: Native) -> None:
    await native.takes("generationConfig.topK", 1, 40, 40.0)
    await native.refuses("generationConfig.topK", -1, *NO_NUMBERS[1:], "many")
    await native.ignores_null("generationConfig.topK")


async def test_generation_config_max_output_tokens(native: Native) -> None:
    field = "generationConfig.maxOutputTokens"
    body = await native.answer({field: 10})
    assert body["candidates"][0]["finishReason"] == "MAX_TOKENS"
    assert body["usageMetadata"]["candidatesTokenCount"] <= 10
    await native.takes(field, 1, 5000, 50.0)
    await native.refuses(field, 0, -1, 1.5, True, [5], "many")
    await native.ignores_null(field)


async def test_generation_config_stop_sequences(native: Native) -> None:
    field = "generationConfig.stopSequences"
    body = await native.answer({field: ["Tell me"]})
    assert body["candidates"][0]["finishReason"] == "STOP"
    assert "Tell me" not in native.text(body)
    assert "You said:" in native.text(body)
    await native.takes(field, [], ["a", "b"])
    await native.refuses(field, "Tell me", 5, [5], {"0": "x"})
    await native.ignores_null(field)


async def test_generation_config_response_mime_type(native: Native) -> None:
    field = "generationConfig.responseMimeType"
    await native.takes(field, "text/plain", "application/json")
    body = await native.answer({field: "application/json", "generationConfig.responseSchema": WEATHER})
    assert native.text(body).startswith('{"city":')
    reported = await native.post({field: "application/xml"})  # the table's values are examples: others are accepted
    assert (reported.status, reported.headers["x-umg-dropped"]) == (200, field)
    await native.refuses(field, *NO_STRINGS)
    await native.ignores_null(field)


async def test_generation_config_response_modalities(native: Native) -> None:
    field = "generationConfig.responseModalities"
    await native.takes(field, ["TEXT"], [])
    body = await native.answer({field: ["IMAGE"]}, model=IMAGES)
    assert [part.keys() for part in native.parts(body)] == [{"inlineData"}]
    await native.refuses(field, "TEXT", 5, ["SMELL"], [5], ["IMAGE"], ["TEXT", "IMAGE"])
    await native.ignores_null(field)


async def test_generation_config_thinking_config_include_thoughts(native: Native) -> None:
    for field in (THOUGHTS, "generationConfig.thinking_config.include_thoughts"):
        shown = await native.answer({field: True})
        assert native.thoughts(shown)
        assert thought_tokens(shown) > 0
    for model in ("famG-2.5-pro", "famG-3-pro"):
        assert native.thoughts(await native.answer({THOUGHTS: True}, model=model))
        assert not native.thoughts(await native.answer({THOUGHTS: False}, model=model))
        assert not native.thoughts(await native.answer(model=model))
    await native.refuses(THOUGHTS, *NO_BOOLEANS)
    await native.refuses("generationConfig.thinkingConfig", *NO_OBJECTS)
    await native.ignores_null(THOUGHTS, "generationConfig.thinkingConfig")


async def test_generation_config_thinking_config_thinking_budget(native: Native) -> None:
    for budget in (16, 64, 1024.0):
        body = await native.answer({BUDGET: budget, THOUGHTS: True})
        assert 0 < thought_tokens(body) <= budget
        assert native.thoughts(body)
    assert thought_tokens(await native.answer({BUDGET: -1, THOUGHTS: True})) > 0
    off = await native.answer({BUDGET: 0, THOUGHTS: True})
    assert (thought_tokens(off), native.thoughts(off)) == (0, "")
    await native.refuses(BUDGET, -2, 1.5, True, [5], "much")
    await native.ignores_null(BUDGET)


async def test_generation_config_thinking_config_thinking_budget_is_for_the_tier_with_budgets(native: Native) -> None:
    await native.refuses(BUDGET, 1024, 0, -1, model="famG-3-pro")
    await native.takes(BUDGET, 1024, 0, -1, model="famG-2.5-flash")


async def test_generation_config_thinking_config_thinking_level(native: Native) -> None:
    low = await native.answer({LEVEL: "LOW", THOUGHTS: True}, model="famG-3-pro")
    high = await native.answer({LEVEL: "HIGH", THOUGHTS: True}, model="famG-3-pro")
    assert 0 < thought_tokens(low) < thought_tokens(high)
    assert len(native.thoughts(low)) < len(native.thoughts(high))
    await native.takes(LEVEL, "low", "high", model="famG-3-pro")  # enums in any case, as SDKs write them
    await native.refuses(LEVEL, "LOUD", "", 5, True, model="famG-3-pro")
    await native.ignores_null(LEVEL, model="famG-3-pro")


async def test_generation_config_thinking_config_thinking_level_is_for_the_tier_with_levels(native: Native) -> None:
    await native.refuses(LEVEL, "LOW", "HIGH", model="famG-2.5-pro")
    await native.refuses(LEVEL, "LOW", "HIGH", model="famG-2.5-flash")


def drawn(native: Native, body: Any) -> tuple[str, Image.Image]:
    inline = next(part["inlineData"] for part in native.parts(body) if "inlineData" in part)
    return inline["mimeType"], Image.open(BytesIO(base64.b64decode(inline["data"], validate=True)))


async def test_generation_config_image_config(native: Native) -> None:
    fields = {"generationConfig.responseModalities": ["IMAGE"]}
    config = {"aspectRatio": "16:9", "imageSize": "1K", "imageOutputOptions": {"mimeType": "image/jpeg"}}
    mime_type, image = drawn(
        native, await native.answer({**fields, "generationConfig.imageConfig": config}, model=IMAGES)
    )
    assert (mime_type, image.format) == ("image/jpeg", "JPEG")
    assert image.width / image.height == pytest.approx(16 / 9, rel=0.03)
    mime_type, square = drawn(native, await native.answer(fields, model=IMAGES))
    assert (mime_type, square.format) == ("image/png", "PNG")
    larger = drawn(
        native, await native.answer({**fields, "generationConfig.imageConfig": {"imageSize": "2K"}}, model=IMAGES)
    )[1]
    assert larger.width >= 1.8 * square.width
    await native.refuses("generationConfig.imageConfig", *NO_OBJECTS)
    for name in ("aspectRatio", "imageSize"):
        await native.refuses(f"generationConfig.imageConfig.{name}", *NO_STRINGS, "large", fields=fields, model=IMAGES)
    await native.refuses("generationConfig.imageConfig.imageOutputOptions", *NO_OBJECTS)
    await native.ignores_null("generationConfig.imageConfig")


# --- thinking by the model's id


async def test_suffix_thinking_turns_thinking_on(native: Native) -> None:
    for model in ("famG-2.5-pro", "famG-2.5-flash", "famG-3-pro"):
        assert thought_tokens(await native.answer(model=model)) == 0
        body = await native.answer(model=f"{model}-thinking")
        assert thought_tokens(body) > 0
        assert native.thoughts(body)


async def test_suffix_thinking_with_a_budget_bounds_thinking(native: Native) -> None:
    small, large = [await native.answer(model=f"famG-2.5-pro-thinking-{budget}") for budget in (16, 4096)]
    assert 0 < thought_tokens(small) <= 16 < thought_tokens(large) <= 4096
    off = await native.answer(model="famG-2.5-pro-thinking-0")
    assert (thought_tokens(off), native.thoughts(off)) == (0, "")


async def test_suffix_thinking_with_a_budget_is_refused_on_the_tier_with_levels(native: Native) -> None:
    error = native.error(await native.post(model="famG-3-pro-thinking-1024"), 400)
    assert "model" in error["message"]


async def test_suffix_nothinking_turns_thinking_off(native: Native) -> None:
    for model, config in (("famG-2.5-pro", {BUDGET: 1024}), ("famG-3-pro", {LEVEL: "HIGH"}), ("famG-3-pro", {})):
        body = await native.answer({**config, THOUGHTS: True}, model=f"{model}-nothinking")
        assert (thought_tokens(body), native.thoughts(body)) == (0, "")


async def test_suffix_thinking_low_and_high_set_the_level(native: Native) -> None:
    for model in ("famG-3-pro", "famG-2.5-pro"):
        low, high = [await native.answer(model=f"{model}-thinking-{level}") for level in ("low", "high")]
        assert 0 < thought_tokens(low) < thought_tokens(high)
        assert native.thoughts(low)


async def test_suffix_that_is_none_of_the_five_makes_an_unknown_model(native: Native) -> None:
    for suffix in (
        "-thinking-medium",
        "-thinking--1",
        "-thinking-1.5",
        "-nothinking-1",
        "-thinking-",
        "-low",
        "-Thinking",
    ):
        model = f"famG-2.5-pro{suffix}"
        assert model in native.error(await native.post(model=model), 404)["message"]


async def test_suffix_is_for_family_fam_g_only(native: Native) -> None:
    for model in ("famO-5-thinking", "famC-sonnet-4-5-nothinking", "famR-1-thinking-1024"):
        assert model in native.error(await native.post(model=model), 404)["message"]


# --- rules


async def test_generate_rule_1_a_function_response_follows_a_function_call(native: Native) -> None:
    fields = native.prompt("Ask get_weather of Rome")
    first = await native.answer({"tools": DECLARED, "contents": fields})
    call = native.parts(first)[0]["functionCall"]
    assert first["candidates"][0]["finishReason"] == "STOP"
    assert (call["name"], call["args"].keys()) == ("get_weather", {"city"})
    for response in ({"output": "17 degrees"}, {"temperature": "17 degrees"}, {"error": "17 degrees are no weather"}):
        result = {"name": "get_weather", "response": response, **({"id": call["id"]} if "id" in call else {})}
        history = [
            *fields,
            first["candidates"][0]["content"],
            {"role": "user", "parts": [{"functionResponse": result}]},
        ]
        second = await native.answer({"tools": DECLARED, "contents": history})
        assert "17 degrees" in native.text(second)
        streamed = await native.stream({"tools": DECLARED, "contents": history})
        assert native.streamed_text(streamed) == native.text(second)


async def test_generate_rule_2_search_and_functions_are_accepted_together(native: Native) -> None:
    for tools in (
        [*DECLARED, {"vendorgSearch": {}}],
        [{"vendorgSearch": {}}, *DECLARED],
        [{**DECLARED[0], "vendorgSearch": {}}],
    ):
        assert searched(await native.answer({"tools": tools}))
        body = await native.answer({"tools": tools}, text="Ask get_weather of Rome")
        assert [part["functionCall"]["name"] for part in native.parts(body)] == ["get_weather"]


async def test_generate_rule_3_image_output_is_inline_data(native: Native) -> None:
    both = {"generationConfig.responseModalities": ["TEXT", "IMAGE"]}
    body = await native.answer(both, model=IMAGES)
    kinds = [next(iter(part)) for part in native.parts(body)]
    assert kinds == ["text", "inlineData"]
    mime_type, image = drawn(native, body)
    assert mime_type == "image/png"
    assert image.width > 0
    only_text = await native.answer({"generationConfig.responseModalities": ["TEXT"]})
    assert not any("inlineData" in part for part in native.parts(only_text))
    frames = await native.stream(both, model=IMAGES)
    assert [part for frame in frames for part in native.parts(frame.data) if "inlineData" in part] == native.parts(
        body
    )[1:]


async def test_stream_generate_takes_the_same_body_and_answers_with_events(native: Native) -> None:
    fields = {
        "generationConfig.temperature": 0.2,
        "systemInstruction": {"parts": [{"text": "Speak like a sailor"}]},
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}],
    }
    frames = await native.stream(fields)
    assert len(frames) > 3
    assert {frame.event for frame in frames} == {""}
    assert all(native.parts(frame.data) for frame in frames)
    assert native.streamed_text(frames) == native.text(await native.answer(fields))


async def test_stream_generate_without_alt_sse_is_one_json_array(native: Native, gateway: ApiClient) -> None:
    for query in ("", "?alt=json"):
        reply = await gateway.post(native.of(native.model, "streamGenerateContent") + query, native.body())
        assert reply.status == 200
        assert reply.headers["content-type"].partition(";")[0] == "application/json"
        received = "".join(native.text(each) for each in reply.body)
        assert received == native.text(await native.answer())


async def test_stream_generate_refuses_as_json(native: Native, gateway: ApiClient) -> None:
    for query in ("?alt=sse", ""):
        path = native.of(native.model, "streamGenerateContent") + query
        reply = await gateway.post(path, native.body({"generationConfig.temperature": 3}))
        assert "generationConfig.temperature" in native.error(reply, 400)["message"]


async def test_stream_generate_sends_function_calls_whole(native: Native) -> None:
    frames = await native.stream({"tools": DECLARED}, text="Ask get_weather of Rome")
    calls = [part["functionCall"] for frame in frames for part in native.parts(frame.data) if "functionCall" in part]
    assert [(call["name"], call["args"].keys()) for call in calls] == [("get_weather", {"city"})]
    assert frames[-1].data["candidates"][0]["finishReason"] == "STOP"


async def test_stream_generate_sends_reasoning_before_the_answer(native: Native) -> None:
    frames = await native.stream({THOUGHTS: True})
    whole = await native.answer({THOUGHTS: True})
    assert native.streamed_thoughts(frames) == native.thoughts(whole)
    assert native.streamed_text(frames) == native.text(whole)
    order = [bool(part.get("thought")) for frame in frames for part in native.parts(frame.data) if part.get("text")]
    assert order == sorted(order, reverse=True)


# --- resources: content items, parts, the response


async def test_native_content_role(native: Native) -> None:
    spoken = [
        {"role": role, "parts": [{"text": text}]} for role, text in (("user", "Hi"), ("model", "Yes?"), ("user", "Go"))
    ]
    assert "turn 2" in native.text(await native.answer({"contents": spoken}))
    await native.takes("contents", [{"parts": [{"text": "Hi"}]}])
    for role in ("robot", "assistant", 5):
        await native.refuses("contents", [{"role": role, "parts": [{"text": "Hi"}]}], named="contents[0].role")


async def test_native_content_parts(native: Native) -> None:
    await native.refuses("contents", [{"role": "user", "parts": "Hi"}], named="contents[0].parts")
    await native.refuses("contents", [{"role": "user", "parts": ["Hi"]}], named="contents[0].parts[0]")
    await native.refuses("contents", [{"role": "user"}], [{"role": "user", "parts": []}], named="contents[0].parts")


async def test_native_part_text(native: Native) -> None:
    spoken = [{"role": "user", "parts": [{"text": "One of "}, {"text": "Porto"}]}]
    assert "Porto" in native.text(await native.answer({"contents": spoken}))
    for text in NO_STRINGS:
        await native.refuses(
            "contents", [{"role": "user", "parts": [{"text": text}]}], named="contents[0].parts[0].text"
        )


async def test_native_part_inline_data(native: Native) -> None:
    for part in (
        {"inlineData": {"mimeType": "image/png", "data": PNG}},
        {"inline_data": {"mime_type": "image/png", "data": PNG.replace("+", "-").replace("/", "_")}},
    ):
        spoken = [{"role": "user", "parts": [{"text": "Look"}, part]}]
        assert "image/png, 1 x 1 pixels" in native.text(await native.answer({"contents": spoken}))
    at = "contents[0].parts[0].inlineData"
    for inline, named in (
        ({"mimeType": "image/png", "data": "!"}, f"{at}.data"),
        ({"mimeType": "image/png"}, at),
        ("x", at),
    ):
        await native.refuses("contents", [{"role": "user", "parts": [{"inlineData": inline}]}], named=named)


async def test_native_part_file_data(native: Native) -> None:
    part = {"fileData": {"mimeType": "image/png", "fileUri": "https://pictures.example/a.png"}}
    spoken = [{"role": "user", "parts": [{"text": "Look"}, part]}]
    assert "https://pictures.example/a.png" in native.text(await native.answer({"contents": spoken}))
    at = "contents[0].parts[0].fileData"
    for file, named in (({"mimeType": "image/png"}, at), ("x", at), ({"fileUri": 5}, f"{at}.fileUri")):
        await native.refuses("contents", [{"role": "user", "parts": [{"fileData": file}]}], named=named)


async def test_native_part_function_call_and_response(native: Native) -> None:
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]}
    spoken = [
        *native.prompt("Hi"),
        call,
        {"parts": [{"functionResponse": {"name": "f", "response": {"output": "42"}}}]},
    ]
    assert "The tool f gave: 42" in native.text(await native.answer({"contents": spoken})).replace('"', "")
    for part, named in (
        ({"functionCall": {"args": {}}}, "functionCall"),
        ({"functionCall": {"name": "f", "args": "x"}}, "functionCall.args"),
    ):
        await native.refuses(
            "contents", [*native.prompt("Hi"), {"role": "model", "parts": [part]}, *native.prompt("Hi")], named=named
        )
    for part, named in (
        ({"functionResponse": {"response": {}}}, "functionResponse"),
        ({"functionResponse": {"name": "f", "response": "x"}}, "functionResponse.response"),
    ):
        await native.refuses("contents", [*native.prompt("Hi"), call, {"role": "user", "parts": [part]}], named=named)


async def test_native_response_candidates(native: Native) -> None:
    (candidate,) = (await native.answer())["candidates"]
    assert candidate["content"]["role"] == "model"
    assert [part.keys() for part in candidate["content"]["parts"]] == [{"text"}]
    assert (candidate["finishReason"], candidate["index"], candidate["safetyRatings"]) == ("STOP", 0, [])


async def test_native_response_usage_metadata(native: Native) -> None:
    for fields in ({}, {THOUGHTS: True}, {"cachedContent": "cachedContents/a"}):
        usage = (await native.answer(fields))["usageMetadata"]
        names = (
            "promptTokenCount",
            "candidatesTokenCount",
            "totalTokenCount",
            "thoughtsTokenCount",
            "cachedContentTokenCount",
        )
        assert all(type(usage[name]) is int for name in names)
        spent = usage["promptTokenCount"] + usage["candidatesTokenCount"]
        assert usage["totalTokenCount"] == spent + usage["thoughtsTokenCount"]


async def test_native_response_model_version_and_create_time(native: Native) -> None:
    body = await native.answer(model="famG-2.5-flash")
    assert body["modelVersion"] == "famG-2.5-flash"
    assert body["createTime"].endswith("Z")
    assert body["createTime"][10] == "T"


async def test_native_response_grounding_metadata_when_search_is_on(native: Native) -> None:
    body = await native.answer({"tools": [{"vendorgSearch": {}}]})
    grounding = body["candidates"][0]["groundingMetadata"]
    assert grounding["webSearchQueries"]
    assert all(support["groundingChunkIndices"] for support in grounding["groundingSupports"])
    frames = await native.stream({"tools": [{"vendorgSearch": {}}]})
    received = [frame.data["candidates"][0].get("groundingMetadata") for frame in frames]
    assert [each for each in received if each][-1]["groundingChunks"] == grounding["groundingChunks"]
    assert "groundingMetadata" not in (await native.answer())["candidates"][0]


@pytest.mark.parametrize("root", ["/v1beta", "/v1"])
async def test_versioning_native_generation_is_under_both_roots(gateway: ApiClient, native: Native, root: str) -> None:
    path = f"{root}/models/famG-2.5-pro"
    body = (await gateway.post(f"{path}:generateContent", native.body())).body
    frames = frames_of(await gateway.post(f"{path}:streamGenerateContent?alt=sse", native.body()))
    assert native.text(body) == native.streamed_text(frames) == native.text(await native.answer())
    assert (await gateway.post(f"{path}:countTokens", native.body())).body["totalTokens"] > 0
