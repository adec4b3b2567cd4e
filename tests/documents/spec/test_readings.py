"""The readings of unclear passages of the text document: readings 1 to 15, as far as no other module here tests them."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from openai.types.responses import Response

from tests.documents.spec.callers import Chat, Face, Frame, Messages, Native, Responses
from tests.documents.spec.test_chat import message_of, reasoning_tokens, searched
from tests.support.callers.api import ApiClient
from tests.support.gateways import SANDBOX, channel, running
from tests.support.providers.server import ReceivedRequest, RecordingProvider, serve_provider

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS = (
    "famG-2.5-flash",
    "famG-2.5-pro",
    "famG-3-pro",
    "famO-5-mini",
    "famO-5",
    "famC-sonnet-4-5",
    "famQ-3-max",
    "famR-1",
    "famX-4",
)
FACES: tuple[type[Face], ...] = (Chat, Responses, Messages, Native)
faces = pytest.mark.parametrize("face", FACES, ids=lambda face: face.name)


# --- 1


async def test_readings_1_values_of_current_sdk_types(native: Native) -> None:
    """Check the value that no field's own test has."""
    await native.takes("toolConfig.functionCallingConfig.mode", "VALIDATED")


async def test_readings_1_values_are_never_clamped_or_ignored(gateway: ApiClient) -> None:
    for face, field, values in (
        (Chat, "temperature", (2.0000001, 1e308, -1e-9)),
        (Responses, "temperature", (2.0000001, 1e308, -1e-9)),
        (Messages, "temperature", (1.0000001, 1e308, -1e-9)),
        (Native, "generationConfig.temperature", (2.0000001, 1e308, -1e-9)),
        (Chat, "max_tokens", (0, -1, 2**63, 1e40)),
        (Responses, "max_output_tokens", (0, -1, 2**63, 1e40)),
        (Messages, "max_tokens", (0, -1, 2**63, 1e40)),
        (Native, "generationConfig.maxOutputTokens", (0, -1, 2**63, 1e40)),
    ):
        await face(gateway).refuses(field, *values)


# --- 3 and 4 are in test_errors.py and test_authentication.py; here the rules that all of them share


# --- 5


@faces
@pytest.mark.parametrize("model", MODELS)
async def test_readings_5_every_model_answers_in_every_format(gateway: ApiClient, face: type[Face], model: str) -> None:
    caller = face(gateway)
    text = caller.text(await caller.answer(model=model))
    assert model in text
    assert "Tell me of Paris" in text
    assert caller.streamed_text(await caller.stream(model=model)) == text


# --- 6


UNKNOWN: list[tuple[type[Face], dict[str, Any]]] = [
    (Chat, {"messages": [{"role": "user", "content": [{"type": "hologram", "hologram": {}}]}]}),
    (Chat, {"tools": [{"type": "hologram", "hologram": {}}]}),
    (Responses, {"input": [{"type": "hologram", "light": "red"}]}),
    (Responses, {"input": [{"role": "user", "content": [{"type": "hologram"}]}]}),
    (Responses, {"tools": [{"type": "hologram"}]}),
    (Messages, {"messages": [{"role": "user", "content": [{"type": "hologram"}]}]}),
    (Messages, {"tools": [{"type": "hologram", "name": "x"}]}),
    (Native, {"contents": [{"role": "user", "parts": [{"hologram": {}}]}]}),
    (Native, {"tools": [{"hologram": {}}]}),
]
unknown = pytest.mark.parametrize(
    ("face", "fields"), UNKNOWN, ids=[f"{face.name} {next(iter(fields))}" for face, fields in UNKNOWN]
)


@unknown
async def test_readings_6_an_unknown_type_is_refused_and_named(
    gateway: ApiClient, face: type[Face], fields: Any
) -> None:
    caller = face(gateway)
    for model in ("famO-5", "famG-2.5-pro"):
        assert "hologram" in caller.error(await caller.post(fields, model=model), 400)["message"]


def refuse(_: ReceivedRequest) -> web.Response:
    """Refuse a request of any format with the provider's own message."""
    return web.json_response({"error": {"message": "seen", "code": 400, "status": "INVALID_ARGUMENT"}}, status=400)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hop(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[RecordingProvider, ApiClient], None]:
    """Yield a provider for each format behind a gateway; each model has the name of its format."""
    async with serve_provider(RecordingProvider(refuse)) as provider:
        base = f"{provider.url}/v1"
        config = "channels:\n" + "".join(channel(face.name, face.name, base, f"only-{face.name}") for face in FACES)
        async with running(config, tmp_path_factory.mktemp("hop")) as made, aiohttp.ClientSession() as session:
            yield provider, ApiClient(made, session)


@unknown
async def test_readings_6_an_unknown_type_reaches_a_provider_of_its_own_format(
    hop: tuple[RecordingProvider, ApiClient], face: type[Face], fields: Any
) -> None:
    provider, gateway = hop
    caller = face(gateway)
    assert "seen" in caller.error(await caller.post(fields, model=f"only-{face.name}"), 400)["message"]
    sent = provider.bodies[-1]
    assert {name: sent[name] for name in fields} == fields
    for other in FACES:
        if other is not face:
            before = len(provider.bodies)
            reply = await caller.post(fields, model=f"only-{other.name}")
            assert "hologram" in caller.error(reply, 400)["message"], other.name
            assert len(provider.bodies) == before


async def test_readings_6_mcp_servers_pass_in_their_own_format_only(hop: tuple[RecordingProvider, ApiClient]) -> None:
    provider, gateway = hop
    messages = Messages(gateway)
    fields = {"mcp_servers": [{"type": "url", "name": "x", "url": "https://tools.example"}]}
    assert messages.error(await messages.post(fields, model="only-messages"), 400)["message"]
    assert provider.bodies[-1]["mcp_servers"] == fields["mcp_servers"]
    for model in ("only-chat", "only-responses", "only-native"):
        before = len(provider.bodies)
        assert "mcp_servers" in messages.error(await messages.post(fields, model=model), 400)["message"]
        assert len(provider.bodies) == before


# --- 7


async def test_readings_7_totals(gateway: ApiClient) -> None:
    thinking = {"model": "famG-2.5-pro-thinking"}
    chat = (await Chat(gateway).answer(**thinking))["usage"]
    assert chat["total_tokens"] == chat["prompt_tokens"] + chat["completion_tokens"]
    assert chat["completion_tokens"] > chat["completion_tokens_details"]["reasoning_tokens"] > 0
    responses = (await Responses(gateway).answer(**thinking))["usage"]
    assert responses["total_tokens"] == responses["input_tokens"] + responses["output_tokens"]
    native = (await Native(gateway).answer(**thinking))["usageMetadata"]
    assert native["totalTokenCount"] >= native["promptTokenCount"] + native["candidatesTokenCount"]
    assert chat["total_tokens"] == responses["total_tokens"] == native["totalTokenCount"]


async def test_readings_7_native_answers_have_all_counters_and_ratings(gateway: ApiClient) -> None:
    native = Native(gateway)
    names = {
        "promptTokenCount",
        "candidatesTokenCount",
        "totalTokenCount",
        "thoughtsTokenCount",
        "cachedContentTokenCount",
    }
    for model in MODELS:
        body = await native.answer(model=model)
        assert body["usageMetadata"].keys() >= names
        assert body["candidates"][0]["safetyRatings"] == []
        for frame in await native.stream(model=model):
            assert frame.data["usageMetadata"].keys() >= names
            assert isinstance(frame.data["candidates"][0]["content"]["parts"], list)


# --- 8


@pytest.mark.parametrize("budget", [1, 2, 5, 17, 30, 100, 24576])
async def test_readings_8_thinking_never_exceeds_its_budget(gateway: ApiClient, budget: int) -> None:
    native, chat = Native(gateway), Chat(gateway)
    config = {"generationConfig.thinkingConfig": {"thinkingBudget": budget, "includeThoughts": True}}
    assert (await native.answer(config))["usageMetadata"]["thoughtsTokenCount"] <= budget
    assert reasoning_tokens(await chat.answer(model=f"famG-2.5-pro-thinking-{budget}")) <= budget
    config = {"extra_body.vendorg.thinking_config": {"thinking_budget": budget, "include_thoughts": True}}
    assert reasoning_tokens(await chat.answer(config, model="famG-2.5-flash")) <= budget


async def test_readings_8_famr_thinks_before_its_text(gateway: ApiClient) -> None:
    chat = Chat(gateway)
    assert reasoning_tokens(await chat.answer(model="famR-1")) == 0
    frames = await chat.stream({"thinking": {"type": "enabled"}}, model="famR-1")
    kinds = [
        "reasoning" if delta.get("reasoning_content") else "text"
        for delta in chat.deltas(frames)
        if delta.get("reasoning_content") or delta.get("content")
    ]
    assert kinds[0] == "reasoning"
    assert kinds == sorted(kinds)


# --- 10


async def test_readings_10_a_configured_id_takes_precedence_over_a_suffix(tmp_path: Path) -> None:
    config = SANDBOX.replace(
        "famG-2.5-flash,", "famG-2.5-flash, {id: famG-2.5-flash-thinking, upstream: famO-5, family: famO},"
    )
    async with running(config, tmp_path) as made, aiohttp.ClientSession() as session:
        native = Native(ApiClient(made, session))
        exact = await native.answer(model="famG-2.5-flash-thinking")
        assert exact["usageMetadata"]["thoughtsTokenCount"] == 0
        assert "famO-5" in native.text(exact)
        assert exact["modelVersion"] == "famG-2.5-flash-thinking"
        assert (await native.answer(model="famG-2.5-pro-thinking"))["usageMetadata"]["thoughtsTokenCount"] > 0


async def test_readings_10_suffixes_work_in_every_format(gateway: ApiClient) -> None:
    for model, thinks in (
        ("famG-2.5-pro-thinking", True),
        ("famG-3-pro-thinking-high", True),
        ("famG-3-pro-nothinking", False),
    ):
        chat = (await Chat(gateway).answer(model=model))["usage"]["completion_tokens_details"]["reasoning_tokens"]
        responses = (await Responses(gateway).answer(model=model))["usage"]["output_tokens_details"]["reasoning_tokens"]
        native = (await Native(gateway).answer(model=model))["usageMetadata"]["thoughtsTokenCount"]
        messages = (await Messages(gateway).answer(model=model))["content"]
        assert {chat > 0, responses > 0, native > 0, messages[0]["type"] == "thinking"} == {thinks}, model


async def test_readings_10_the_answer_has_the_requested_id(gateway: ApiClient) -> None:
    for model in ("famG-2.5-pro-thinking", "famG-2.5-pro-thinking-64"):
        assert (await Chat(gateway).answer(model=model))["model"] == model
        assert (await Responses(gateway).answer(model=model))["model"] == model
        assert (await Messages(gateway).answer(model=model))["model"] == model
        assert (await Native(gateway).answer(model=model))["modelVersion"] == model


# --- 11


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("famR-1", {"thinking": {"type": "enabled"}}),
        ("famQ-3-max", {"enable_thinking": True}),
        ("famG-2.5-pro-thinking", {}),
    ],
)
async def test_readings_11_the_content_has_the_reasoning_verbatim(gateway: ApiClient, model: str, fields: Any) -> None:
    chat = Chat(gateway)
    apart = await chat.stream(fields, model=model)
    joined = await chat.stream({**fields, "vendorn_thinking_to_content": True}, model=model)
    assert chat.streamed_reasoning(apart)
    assert chat.streamed_reasoning(apart) in chat.streamed_text(joined)
    assert chat.streamed_text(joined).endswith(chat.streamed_text(apart))
    assert not any("reasoning_content" in delta for delta in chat.deltas(joined))


# --- 12


async def test_readings_12_the_search_tool_is_never_a_tool_call(gateway: ApiClient) -> None:
    chat = Chat(gateway)
    tools = [{"type": "function", "function": {"name": "vendorgSearch"}}]
    for model in ("famG-2.5-pro", "famG-3-pro"):
        for choice in ("auto", "required", {"type": "function", "function": {"name": "vendorgSearch"}}, None):
            fields = {"tools": tools, "tool_choice": choice}
            body = await chat.answer(fields, text="Use vendorgSearch to find Rome", model=model)
            assert "tool_calls" not in message_of(body)
            assert searched(body), choice
        body = await chat.answer({"tools": tools, "tool_choice": "none"}, model=model)
        assert not searched(body)
    native = Native(gateway)
    body = await native.answer({"tools": [{"vendorgSearch": {}}]}, text="Use vendorgSearch to find Rome")
    assert not any("functionCall" in part for part in native.parts(body))


async def test_readings_12_search_means_citations_in_every_format(gateway: ApiClient) -> None:
    chat, responses, messages, native = (face(gateway) for face in FACES)
    for model in ("famO-5", "famG-2.5-pro", "famX-4"):
        caller: list[tuple[Face, dict[str, Any]]] = [
            (chat, {"web_search_options": {}}),
            (responses, {"tools": [{"type": "web_search_preview"}]}),
            (messages, {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
            (native, {"tools": [{"vendorgSearch": {}}]}),
        ]
        for face, fields in caller:
            assert "http" in json.dumps(await face.answer(fields, model=model)), face.name
            assert "http" not in json.dumps(await face.answer(model=model)), face.name
            frames = await face.stream(fields, model=model)
            assert "http" in json.dumps([frame.data for frame in frames]), face.name


# --- 13


async def test_readings_13_the_response_object_has_every_field_of_the_sdk_type(gateway: ApiClient) -> None:
    responses = Responses(gateway)
    fields = set(Response.model_fields)
    whole = await responses.answer()
    assert fields - whole.keys() == set()
    assert {"cached_tokens", "cache_write_tokens"} <= whole["usage"]["input_tokens_details"].keys()
    received = [frame.data["response"] for frame in await responses.stream() if "response" in frame.data]
    assert all(fields - response.keys() == set() for response in received)
    assert Response.model_validate(whole).output_text == responses.text(whole)


async def test_readings_13_background_is_refused_by_name(gateway: ApiClient) -> None:
    responses = Responses(gateway)
    await responses.refuses("background", True)
    await responses.takes("background", False)
    await responses.ignores_null("background")


# --- 14


async def test_readings_14_a_tool_turn_keeps_its_thinking(gateway: ApiClient) -> None:
    """Check rule 2 with thinking on: the block goes back unchanged, and its signature is checked."""
    messages = Messages(gateway)
    tools = [{"name": "get_weather", "input_schema": {"type": "object", "properties": {}}}]
    fields = {"tools": tools, "thinking": {"type": "enabled", "budget_tokens": 1500}}
    caller = messages.prompt("Ask get_weather")
    first = await messages.answer({**fields, "messages": caller})
    assert [block["type"] for block in first["content"]] == ["thinking", "tool_use"]
    result = {"type": "tool_result", "tool_use_id": first["content"][1]["id"], "content": "17 degrees"}

    def history(content: Any) -> Any:
        return [*caller, {"role": "assistant", "content": content}, {"role": "user", "content": [result]}]

    body = await messages.answer({**fields, "messages": history(first["content"])})
    assert "17 degrees" in messages.text(body)
    changed = {**first["content"][0], "thinking": "Something else"}
    reply = await messages.post({**fields, "messages": history([changed, first["content"][1]])})
    assert "messages[1].content[0]" in messages.error(reply, 400)["message"]


def frames_with(frames: list[Frame], event: str) -> list[Any]:
    return [frame.data for frame in frames if frame.event == event]


async def test_readings_14_streams_carry_the_usage_of_the_whole(gateway: ApiClient) -> None:
    messages = Messages(gateway)
    frames = await messages.stream()
    (start,), (delta,) = frames_with(frames, "message_start"), frames_with(frames, "message_delta")
    whole = (await messages.answer())["usage"]
    assert start["message"]["usage"]["input_tokens"] == whole["input_tokens"]
    assert delta["usage"]["output_tokens"] == whole["output_tokens"]
