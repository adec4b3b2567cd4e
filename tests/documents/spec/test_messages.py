"""Text document, "POST /v1/messages": its table, its rules and its responses."""

import json
from typing import Any

import pytest

from tests.documents.spec.callers import (
    NO_BOOLEANS,
    NO_NUMBERS,
    NO_OBJECTS,
    NO_STRINGS,
    PNG,
    WEATHER,
    Messages,
    lasting,
)
from tests.support.callers.api import ApiClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOOLS = [{"name": "get_weather", "description": "Weather", "input_schema": WEATHER}]
TOOL_QUESTION = "Ask get_weather of Rome"
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
PLACE = {"type": "approximate", "timezone": "Europe/Rome", "country": "IT", "region": "Lazio", "city": "Rome"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
THINK = {"type": "enabled", "budget_tokens": 1500}


def calls(messages: Messages, body: Any) -> list[str]:
    return [block["name"] for block in messages.blocks(body, "tool_use")]


def sources(messages: Messages, body: Any) -> list[str]:
    """Return the URLs of the citations."""
    return [note["url"] for block in messages.blocks(body, "text") for note in block.get("citations") or []]


# --- the table


async def test_messages_field_model(messages: Messages) -> None:
    await messages.misses("model")
    await messages.refuses("model", *NO_STRINGS, "")
    assert (await messages.answer(model="famR-1"))["model"] == "famR-1"


async def test_messages_field_messages(messages: Messages) -> None:
    await messages.misses("messages")
    await messages.refuses("messages", "Hi", 5, [], {"role": "user"})
    await messages.refuses("messages", ["Hi"], [5], named="messages[0]")
    blocks = [{"type": "text", "text": "Tell me of Paris"}]
    by_blocks = await messages.answer({"messages": [{"role": "user", "content": blocks}]})
    assert lasting(by_blocks) == lasting(await messages.answer())


async def test_messages_field_messages_role(messages: Messages) -> None:
    spoken = [*messages.prompt("Hi"), {"role": "assistant", "content": "Yes?"}, *messages.prompt("Go")]
    assert "turn 2" in messages.text(await messages.answer({"messages": spoken}))
    await messages.answer({"messages": [*messages.prompt("Hi"), {"role": "system", "content": "Be brief."}]})
    for role in ("developer", "tool", "robot", 5):
        await messages.refuses("messages", [{"role": role, "content": "Hi"}], named="messages[0].role")
    await messages.refuses("messages", [{"content": "Hi"}], named="messages[0].role")


async def test_messages_field_messages_content(messages: Messages) -> None:
    for content in (5, True, {"type": "text"}):
        await messages.refuses("messages", [{"role": "user", "content": content}], named="messages[0].content")
    await messages.refuses("messages", [{"role": "user"}], named="messages[0].content")
    for blocks in (["Hi"], [{"text": "Hi"}]):
        await messages.refuses("messages", [{"role": "user", "content": blocks}], named="messages[0].content[0]")
    for block in ({"type": "text"}, {"type": "text", "text": 5}):
        named = "messages[0].content[0].text"
        await messages.refuses("messages", [{"role": "user", "content": [block]}], named=named)
    reply = await messages.post({"messages": [{"role": "user", "content": [{"type": "smell", "smell": "x"}]}]})
    assert "smell" in messages.error(reply, 400)["message"]


async def test_messages_block_image(messages: Messages) -> None:
    url = {"type": "image", "source": {"type": "url", "url": "https://pictures.example/a.png"}}
    spoken = [{"role": "user", "content": [{"type": "text", "text": "Look"}, IMAGE, url]}]
    text = messages.text(await messages.answer({"messages": spoken}))
    assert "image/png, 1 x 1 pixels" in text
    assert "https://pictures.example/a.png" in text
    at = "messages[0].content[0].source"
    for source, named in (
        ("x", at),
        ({"type": "smell"}, at),
        ({"type": "base64", "media_type": "image/png"}, f"{at}.data"),
        ({"type": "base64", "media_type": "image/png", "data": "!"}, f"{at}.data"),
        ({"type": "base64", "media_type": 5, "data": PNG}, f"{at}.media_type"),
        ({"type": "url"}, f"{at}.url"),
    ):
        broken = [{"role": "user", "content": [{"type": "image", "source": source}]}]
        await messages.refuses("messages", broken, named=named)


async def test_messages_block_tool_use_and_tool_result(messages: Messages) -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Rome"}}

    def history(block: Any, result: Any) -> Any:
        return [
            *messages.prompt("Hi"),
            {"role": "assistant", "content": [block]},
            {"role": "user", "content": [result]},
        ]

    for content in ("17 degrees", [{"type": "text", "text": "17 degrees"}]):
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}
        assert "17 degrees" in messages.text(await messages.answer({"messages": history(use, result)}))
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    for name, wrong in (("id", 5), ("name", 5), ("input", "x")):
        named = f"messages[1].content[0].{name}"
        await messages.refuses("messages", history({**use, name: wrong}, result), named=named)
        without = {key: value for key, value in use.items() if key != name}
        await messages.refuses("messages", history(without, result), named=named)
    at = "messages[2].content[0]"
    await messages.refuses("messages", history(use, {"type": "tool_result", "content": "x"}), named=f"{at}.tool_use_id")
    await messages.refuses("messages", history(use, {**result, "content": 5}), named=f"{at}.content")


async def test_messages_field_max_tokens(messages: Messages) -> None:
    await messages.misses("max_tokens")
    body = await messages.answer({"max_tokens": 10})
    assert body["stop_reason"] == "max_tokens"
    assert 0 < body["usage"]["output_tokens"] <= 10
    await messages.takes("max_tokens", 1, 50.0, 100000)
    await messages.refuses("max_tokens", 0, -1, 1.5, *NO_NUMBERS)


async def test_messages_field_system(messages: Messages) -> None:
    by_string = await messages.answer({"system": "Speak like a sailor"})
    assert "Speak like a sailor" in messages.text(by_string)
    block = {"type": "text", "text": "Speak like a sailor"}
    for blocks in ([block], [{**block, "cache_control": {"type": "ephemeral"}}]):
        assert lasting(await messages.answer({"system": blocks})) == lasting(by_string)
    await messages.refuses("system", 5, True, {"type": "text"})
    await messages.refuses("system", ["x"], [{"text": "x"}], named="system[0]")
    await messages.refuses("system", [{"type": "text"}], [{"type": "text", "text": 5}], named="system[0].text")
    await messages.ignores_null("system")


async def test_messages_field_temperature(messages: Messages) -> None:
    await messages.takes("temperature", 0, 0.5, 1, 1.0)
    await messages.refuses("temperature", -0.01, 1.01, *NO_NUMBERS)
    await messages.ignores_null("temperature")


async def test_messages_field_top_p(messages: Messages) -> None:
    await messages.takes("top_p", 0, 0.5, 1)
    await messages.refuses("top_p", -0.01, 1.01, *NO_NUMBERS)
    await messages.ignores_null("top_p")


async def test_messages_field_top_k(messages: Messages) -> None:
    await messages.takes("top_k", 1, 40, 40.0)
    await messages.refuses("top_k", -1, *NO_NUMBERS)
    await messages.ignores_null("top_k")


async def test_messages_field_stream(messages: Messages) -> None:
    assert messages.streamed_text(await messages.stream()) == messages.text(await messages.answer({"stream": False}))
    await messages.refuses("stream", *NO_BOOLEANS)
    await messages.ignores_null("stream")


async def test_messages_field_stop_sequences(messages: Messages) -> None:
    body = await messages.answer({"stop_sequences": ["never said", "Tell me"]})
    assert (body["stop_reason"], body["stop_sequence"]) == ("stop_sequence", "Tell me")
    assert "Tell me" not in messages.text(body)
    await messages.takes("stop_sequences", [])
    await messages.refuses("stop_sequences", "x", 5, {"0": "x"})
    await messages.refuses("stop_sequences", [5], named="stop_sequences[0]")
    await messages.ignores_null("stop_sequences")


async def test_messages_field_tools_function(messages: Messages) -> None:
    body = await messages.answer({"tools": TOOLS}, text=TOOL_QUESTION)
    assert calls(messages, body) == ["get_weather"]
    assert calls(messages, await messages.answer({"tools": [{**TOOLS[0], "type": "custom"}]}, text=TOOL_QUESTION))
    await messages.refuses("tools", "x", 5, {"name": "x"})
    await messages.refuses("tools", ["x"], named="tools[0]")
    await messages.refuses("tools", [{"input_schema": WEATHER}], [{**TOOLS[0], "name": 5}], named="tools[0].name")
    for schema in ("x", 5, []):
        await messages.refuses("tools", [{"name": "f", "input_schema": schema}], named="tools[0].input_schema")
    await messages.refuses("tools", [{"name": "f"}], named="tools[0].input_schema")
    await messages.ignores_null("tools")


async def test_messages_field_tools_web_search(messages: Messages) -> None:
    for more in ({}, {"max_uses": 1}, {"max_uses": 10, "user_location": PLACE}, {"max_uses": None}):
        body = await messages.answer({"tools": [{**SEARCH, **more}]})
        assert sources(messages, body)
    for name, wrong in (("max_uses", (0, -1, 1.5, "3", True)), ("user_location", NO_OBJECTS)):
        for value in wrong:
            await messages.refuses("tools", [{**SEARCH, name: value}], named=f"tools[0].{name}")
    for name in ("type", "timezone", "country", "region", "city"):
        broken = {**SEARCH, "user_location": {**PLACE, name: 5}}
        await messages.refuses("tools", [broken], named=f"tools[0].user_location.{name}")


async def test_messages_field_tools_of_other_kinds_are_refused_by_name(messages: Messages) -> None:
    for kind in ("code_execution_20250825", "bash_20250124", "crystal_ball"):
        reply = await messages.post({"tools": [{"type": kind, "name": "x"}]})
        assert kind in messages.error(reply, 400)["message"]


async def test_messages_field_tool_choice(messages: Messages) -> None:
    tools = [*TOOLS, {"name": "other", "input_schema": {"type": "object", "properties": {}}}]
    for choice, text, names in (
        ({"type": "auto"}, TOOL_QUESTION, ["get_weather"]),
        ({"type": "auto"}, "Hi", []),
        ({"type": "any"}, "Hi", ["get_weather"]),
        ({"type": "none"}, TOOL_QUESTION, []),
        ({"type": "tool", "name": "other"}, "Hi", ["other"]),
    ):
        body = await messages.answer({"tools": tools, "tool_choice": choice}, text=text)
        assert calls(messages, body) == names, choice
    await messages.refuses("tool_choice", *NO_OBJECTS, fields={"tools": tools})
    await messages.refuses(
        "tool_choice", {}, {"type": "sometimes"}, {"type": 5}, named="tool_choice.type", fields={"tools": tools}
    )
    await messages.refuses("tool_choice", {"type": "tool"}, named="tool_choice.name", fields={"tools": tools})
    await messages.ignores_null("tool_choice", fields={"tools": tools})


async def test_messages_field_tool_choice_disable_parallel_tool_use(messages: Messages) -> None:
    tools = [*TOOLS, {"name": "get_time", "input_schema": {"type": "object", "properties": {}}}]
    text = "Ask get_weather and get_time"
    for disabled, names in (
        (False, ["get_weather", "get_time"]),
        (True, ["get_weather"]),
        (None, ["get_weather", "get_time"]),
    ):
        choice = {"type": "auto", "disable_parallel_tool_use": disabled}
        assert calls(messages, await messages.answer({"tools": tools, "tool_choice": choice}, text=text)) == names
    fields = {"tools": tools, "tool_choice.type": "auto"}
    await messages.refuses("tool_choice.disable_parallel_tool_use", *NO_BOOLEANS, fields=fields)


async def test_messages_field_thinking(messages: Messages) -> None:
    body = await messages.answer({"thinking": THINK})
    assert [block["type"] for block in body["content"]] == ["thinking", "text"]
    assert body["content"][0]["thinking"]
    for off in ({"type": "disabled"}, None):
        assert not messages.blocks(await messages.answer({"thinking": off}), "thinking")
    await messages.refuses("thinking", *NO_OBJECTS)
    await messages.refuses("thinking", {"type": "sometimes"}, {"budget_tokens": 2000}, named="thinking.type")
    await messages.ignores_null("thinking")


async def test_messages_field_thinking_budget_tokens(messages: Messages) -> None:
    field, fields = "thinking.budget_tokens", {"thinking.type": "enabled"}
    await messages.takes(field, 1025, 1999, 1500.0, fields=fields)
    await messages.refuses(field, 1024, 0, -1, 1500.5, "1500", True, fields=fields)
    await messages.refuses("thinking", {"type": "enabled"}, named=field)


async def test_messages_field_metadata(messages: Messages) -> None:
    await messages.takes("metadata", {}, {"user_id": "u-1"})
    await messages.refuses("metadata", *NO_OBJECTS)
    await messages.ignores_null("metadata")


async def test_messages_field_mcp_servers(messages: Messages) -> None:
    servers = [{"type": "url", "name": "x", "url": "https://tools.example"}]
    await messages.refuses("mcp_servers", servers)  # the sandbox would have to call the servers
    await messages.refuses("mcp_servers", "x", 5, {"name": "x"})
    await messages.ignores_null("mcp_servers")


async def test_messages_field_context_management(messages: Messages) -> None:
    for kind in ("clear_tool_uses_20250919", "compact_20260112"):  # below their triggers
        reply = await messages.post({"context_management": {"edits": [{"type": kind}]}})
        assert (reply.status, "x-umg-dropped" in reply.headers) == (200, False)
        assert reply.body["context_management"] == {"applied_edits": []}
    await messages.refuses("context_management", *NO_OBJECTS)
    edits = [{"type": "no_edit"}, {"type": "clear_thinking_20251015", "keep": "some"}]
    for edit, field in zip(edits, ("type", "keep"), strict=True):
        at = f"context_management.edits[0].{field}"
        await messages.refuses("context_management", {"edits": [edit]}, named=at)
    await messages.ignores_null("context_management")


async def test_messages_field_cache_control(messages: Messages) -> None:
    block: dict[str, Any] = {"type": "text", "text": "Tell me of Paris"}
    for control in ({"type": "ephemeral"}, {"type": "persistent"}, {"type": "ephemeral", "ttl": "1h"}):
        await messages.takes("cache_control", control)
        await messages.takes("system", [{**block, "cache_control": control}])
        await messages.takes("messages", [{"role": "user", "content": [{**block, "cache_control": control}]}])
        await messages.takes("tools", [{**TOOLS[0], "cache_control": control}])
    await messages.refuses("cache_control", *NO_OBJECTS)
    for broken in ({"type": "eternal"}, {"type": 5}, {}):
        await messages.refuses("cache_control", broken, named="cache_control.type")
        named = "system[0].cache_control.type"
        await messages.refuses("system", [{**block, "cache_control": broken}], named=named)
        named = "messages[0].content[0].cache_control.type"
        spoken = [{"role": "user", "content": [{**block, "cache_control": broken}]}]
        await messages.refuses("messages", spoken, named=named)
    await messages.ignores_null("cache_control")


# --- rules


async def test_messages_rule_1_extended_thinking_as_recommended(messages: Messages) -> None:
    frames = await messages.stream({"thinking": THINK, "temperature": 1.0, "top_p": 0})
    whole = await messages.answer({"thinking": THINK, "temperature": 1.0, "top_p": 0})
    assert messages.streamed_thinking(frames) == whole["content"][0]["thinking"]
    assert messages.streamed_text(frames) == messages.text(whole)
    signatures = [delta["signature"] for delta in messages.deltas(frames) if delta["type"] == "signature_delta"]
    assert signatures == [whole["content"][0]["signature"]]


async def test_messages_rule_2_tool_use_is_two_stage(messages: Messages) -> None:
    question = messages.prompt(TOOL_QUESTION)
    for model, thinking in (
        ("famC-sonnet-4-5", None),
        ("famC-sonnet-4-5", THINK),
        ("famO-5", None),
        ("famG-2.5-pro", None),
    ):
        fields = {"tools": TOOLS, "thinking": thinking}
        first = await messages.answer({**fields, "messages": question}, model=model)
        assert first["stop_reason"] == "tool_use"
        (use,) = messages.blocks(first, "tool_use")
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": "17 degrees"}
        history = [*question, {"role": "assistant", "content": first["content"]}, {"role": "user", "content": [result]}]
        second = await messages.answer({**fields, "messages": history}, model=model)
        assert "17 degrees" in messages.text(second)
        assert second["stop_reason"] == "end_turn"
        assert messages.streamed_text(
            await messages.stream({**fields, "messages": history}, model=model)
        ) == messages.text(second)


async def test_messages_rule_3_web_search_is_exactly_the_documented_pair(messages: Messages) -> None:
    for tool in (
        {"type": "web_search_20250305", "name": "search"},
        {"type": "web_search_20250305"},
        {"type": "web_search_20240101", "name": "web_search"},
        {"type": "web_search_", "name": "web_search"},
        {"type": "custom", "name": "web_search", "input_schema": WEATHER},
        {"name": "web_search", "input_schema": WEATHER},
    ):
        await messages.refuses("tools", [tool], named="tools[0]")


async def test_messages_rule_3_web_search_answers_have_citations(messages: Messages) -> None:
    body = await messages.answer({"tools": [SEARCH]})
    assert all(address.startswith("http") for address in sources(messages, body))
    assert sources(messages, body)
    assert not calls(messages, body)
    kinds = [block["type"] for block in body["content"]]
    assert kinds[:3] == ["server_tool_use", "web_search_tool_result", "text"]
    assert not sources(messages, await messages.answer())
    frames = await messages.stream({"tools": [SEARCH]})
    received = [delta["citation"]["url"] for delta in messages.deltas(frames) if delta["type"] == "citations_delta"]
    assert received == sources(messages, body)


def long_text(tokens: int, seed: str) -> str:
    """Return a text of at least this many tokens, and less than a fifth more."""
    return f"{seed} " + "word " * int(tokens * 1.1)


async def usage(messages: Messages, text: str, control: Any, model: str = "") -> Any:
    system = [{"type": "text", "text": text, "cache_control": control}]
    return (await messages.answer({"system": system}, model=model))["usage"]


async def test_messages_rule_4_a_marked_block_is_cached_and_read(messages: Messages) -> None:
    text = long_text(1024, "cached")
    written = await usage(messages, text, {"type": "ephemeral"})
    read = await usage(messages, text, {"type": "ephemeral"})
    size = written["cache_creation_input_tokens"]
    assert size >= 1024
    assert written["cache_creation"] == {"ephemeral_5m_input_tokens": size, "ephemeral_1h_input_tokens": 0}
    assert (written["cache_read_input_tokens"], read["cache_read_input_tokens"]) == (0, size)
    assert read["cache_creation_input_tokens"] == 0
    assert written["input_tokens"] == read["input_tokens"] < 100


async def test_messages_rule_4_persistent_is_kept_for_an_hour(messages: Messages) -> None:
    for seed, control in (("persistent", {"type": "persistent"}), ("ttl", {"type": "ephemeral", "ttl": "1h"})):
        written = await usage(messages, long_text(1024, seed), control)
        size = written["cache_creation_input_tokens"]
        assert size >= 1024
        assert written["cache_creation"] == {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": size}


async def test_messages_rule_4_the_last_marked_block_is_cached(messages: Messages) -> None:
    marked = {"type": "text", "text": long_text(1024, "last"), "cache_control": {"type": "ephemeral"}}
    after = {"type": "text", "text": long_text(500, "after")}
    spoken = [{"role": "user", "content": [marked, after]}]
    (first, second) = [(await messages.answer({"messages": spoken}))["usage"] for _ in range(2)]
    assert first["cache_creation_input_tokens"] >= 1024
    assert second["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
    assert second["input_tokens"] == first["input_tokens"] >= 500


async def test_messages_rule_4_the_mark_of_the_whole_request_caches_all(messages: Messages) -> None:
    fields = {"system": long_text(1024, "whole"), "cache_control": {"type": "ephemeral"}}
    (first, second) = [(await messages.answer(fields))["usage"] for _ in range(2)]
    assert first["cache_creation_input_tokens"] >= 1024
    assert second["cache_read_input_tokens"] == first["cache_creation_input_tokens"]


async def test_messages_rule_4_without_a_mark_nothing_is_cached(messages: Messages) -> None:
    for _ in range(2):
        counted = (await messages.answer({"system": long_text(1100, "unmarked")}))["usage"]
        assert (counted["cache_creation_input_tokens"], counted["cache_read_input_tokens"]) == (0, 0)


async def test_messages_rule_4_other_formats_show_cached_tokens(gateway: ApiClient, messages: Messages) -> None:
    """Check a prompt cached under a key, as chat and responses have it, and native's cached context."""
    text = long_text(1024, "shown")
    body = {"model": "famO-5", "messages": [{"role": "user", "content": text}], "prompt_cache_key": "k"}
    for _ in range(2):
        chat = (await gateway.post("/v1/chat/completions", body)).body["usage"]
    assert 1024 <= chat["prompt_tokens_details"]["cached_tokens"] <= chat["prompt_tokens"]
    fields = {"model": "famO-5", "input": long_text(1024, "again"), "prompt_cache_key": "k"}
    (first, second) = [(await gateway.post("/v1/responses", fields)).body["usage"] for _ in range(2)]
    assert first["input_tokens_details"]["cache_write_tokens"] >= 1024
    assert second["input_tokens_details"]["cached_tokens"] == first["input_tokens_details"]["cache_write_tokens"]
    contents = [{"parts": [{"text": "Hi"}]}]
    native = await gateway.post(
        "/v1beta/models/famG-2.5-pro:generateContent", {"contents": contents, "cachedContent": "cachedContents/a"}
    )
    assert native.body["usageMetadata"]["cachedContentTokenCount"] > 0


async def test_messages_rule_4_streams_report_the_same_usage(messages: Messages) -> None:
    fields = {"system": long_text(1024, "streamed"), "cache_control": {"type": "ephemeral"}}
    whole = (await messages.answer(fields))["usage"]
    frames = await messages.stream(fields)
    received = next(frame.data["usage"] for frame in frames if frame.event == "message_delta")
    assert received["cache_read_input_tokens"] == whole["cache_creation_input_tokens"]
    assert received["output_tokens"] == whole["output_tokens"]


async def test_messages_rule_5_fields_that_are_not_shown_are_accepted(messages: Messages) -> None:
    reply = await messages.post({"metadata": {"user_id": "u-1", "trace": {"a": [1]}}, "context_management": {"new": 1}})
    assert reply.status == 200


# --- the response


async def test_messages_object_fields(messages: Messages) -> None:
    body = await messages.answer()
    assert body["id"]
    assert (body["type"], body["role"], body["model"]) == ("message", "assistant", "famC-sonnet-4-5")
    assert (body["stop_reason"], body["stop_sequence"]) == ("end_turn", None)
    assert [block.keys() >= {"type", "text"} for block in body["content"]] == [True]
    assert all(type(body["usage"][name]) is int for name in ("input_tokens", "output_tokens"))


async def test_messages_object_tool_use(messages: Messages) -> None:
    body = await messages.answer({"tools": TOOLS}, text=TOOL_QUESTION)
    (use,) = messages.blocks(body, "tool_use")
    assert use.keys() >= {"type", "id", "name", "input"}
    assert (use["name"], use["input"].keys()) == ("get_weather", {"city"})
    assert (body["stop_reason"], body["stop_sequence"]) == ("tool_use", None)
    frames = await messages.stream({"tools": TOOLS}, text=TOOL_QUESTION)
    pieces = [delta["partial_json"] for delta in messages.deltas(frames) if delta["type"] == "input_json_delta"]
    assert json.loads("".join(pieces)) == use["input"]
