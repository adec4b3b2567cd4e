"""The official cohere SDK, unmodified, chats through the gateway: `ClientV2` and `AsyncClientV2`."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cohere
import pytest
import pytest_asyncio
from cohere.core import ApiError

from tests.support.gateways import SEARCHES_AND_REASONS, Running, channel, running
from tests.support.providers.scenarios import TEXT
from tests.support.providers.server import ReceivedRequest, RecordingProvider, Written, serve_provider
from tests.support.providers.strict_providers import KEY, Provider, provider
from tests.support.recorded_gateway import event_stream
from tests.world.sdk.cases import (
    DESCRIPTION,
    RESULT,
    SCHEMA,
    WEATHER,
    WEATHER_QUESTION,
    check_arguments,
    picture_base64,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS = ("famO-5-mini", "famC-sonnet-4-5", "famG-2.5-flash")
every_model = pytest.mark.parametrize("model", MODELS)
QUESTION: Any = [{"role": "user", "content": "Hi"}]
TOOL: Any = {"type": "function", "function": {"name": WEATHER, "description": DESCRIPTION, "parameters": SCHEMA}}


@pytest_asyncio.fixture(loop_scope="module")
async def client(sandbox: Running) -> AsyncGenerator[cohere.AsyncClientV2, None]:
    async with cohere.AsyncClientV2(api_key=sandbox.key, base_url=sandbox.url) as sdk:
        yield sdk


def text_of(answer: cohere.V2ChatResponse) -> str:
    [content] = answer.message.content or []
    assert content.type == "text"
    return content.text


@every_model
async def test_an_answer_and_a_stream(client: cohere.AsyncClientV2, model: str) -> None:
    answer = await client.chat(model=model, messages=QUESTION)
    assert answer.id
    assert answer.finish_reason == "COMPLETE"
    assert answer.usage is not None
    assert answer.usage.tokens is not None
    assert answer.usage.tokens.output_tokens
    events = [event async for event in client.chat_stream(model=model, messages=QUESTION)]
    assert [events[0].type, events[1].type, events[-2].type, events[-1].type] == [
        "message-start",
        "content-start",
        "content-end",
        "message-end",
    ]
    pieces = [event.delta.message.content.text for event in events if event.type == "content-delta"]
    assert "".join(pieces) == text_of(answer)
    assert events[-1].delta.finish_reason == "COMPLETE"
    assert events[-1].delta.usage.tokens.output_tokens == answer.usage.tokens.output_tokens


async def test_the_blocking_client(sandbox: Running) -> None:
    def answer() -> tuple[str, str]:
        with cohere.ClientV2(api_key=sandbox.key, base_url=sandbox.url) as sdk:
            whole = sdk.chat(model=MODELS[0], messages=QUESTION)
            stream = sdk.chat_stream(model=MODELS[0], messages=QUESTION)
            texts = [event.delta.message.content.text for event in stream if event.type == "content-delta"]
            return text_of(whole), "".join(texts)

    whole, streamed = await asyncio.to_thread(answer)
    assert whole == streamed


@every_model
async def test_a_round_of_tools_with_the_sdks_own_message(client: cohere.AsyncClientV2, model: str) -> None:
    question: Any = [{"role": "user", "content": WEATHER_QUESTION}]
    answer = await client.chat(model=model, messages=question, tools=[TOOL], tool_choice="REQUIRED")
    assert answer.finish_reason == "TOOL_CALL"
    assert answer.message.tool_calls is not None
    [call] = answer.message.tool_calls
    assert call.function is not None
    check_arguments(json.loads(call.function.arguments or ""))
    document = {"type": "document", "document": {"id": "d", "data": {"result": RESULT}}}
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": [document]}
    after = await client.chat(model=model, messages=[*question, answer.message, result], tools=[TOOL])
    assert after.finish_reason == "COMPLETE"
    assert RESULT in text_of(after)


@every_model
async def test_a_streamed_call_is_collected_from_its_deltas(client: cohere.AsyncClientV2, model: str) -> None:
    question: Any = [{"role": "user", "content": WEATHER_QUESTION}]
    events = [event async for event in client.chat_stream(model=model, messages=question, tools=[TOOL])]
    [started] = [event.delta.message.tool_calls for event in events if event.type == "tool-call-start"]
    assert (started.type, started.function.name) == ("function", WEATHER)
    deltas = [event.delta.message.tool_calls.function.arguments for event in events if event.type == "tool-call-delta"]
    check_arguments(json.loads("".join(deltas)))
    assert [event.type for event in events].count("tool-call-end") == 1
    assert events[-1].delta.finish_reason == "TOOL_CALL"


@every_model
async def test_thoughts_and_options(client: cohere.AsyncClientV2, model: str) -> None:
    answer = await client.chat(
        model=model,
        messages=QUESTION,
        thinking={"type": "enabled", "token_budget": 2000},
        max_tokens=4000,
        stop_sequences=["never"],
    )
    assert [content.type for content in answer.message.content or []] == ["thinking", "text"]


async def test_an_image_and_json(client: cohere.AsyncClientV2) -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture_base64()}"}}
    content: Any = [{"type": "text", "text": "What is it?"}, image]
    assert text_of(await client.chat(model=MODELS[0], messages=[{"role": "user", "content": content}]))
    answer = await client.chat(
        model=MODELS[0], messages=QUESTION, response_format={"type": "json_object", "json_schema": SCHEMA}
    )
    check_arguments(json.loads(text_of(answer)))


# --- with a provider


@dataclass
class Cited:
    gateway: Running
    provider: Provider


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cited(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Cited, None]:
    async with provider("messages") as server:
        made = channel("main", "messages", server.base_url, "m", "m").replace("sk-umg-end-to-end", KEY)
        config = "channels:\n" + made + SEARCHES_AND_REASONS
        async with running(config, tmp_path_factory.mktemp("cited")) as gateway:
            yield Cited(gateway, server)


DOCUMENTS: Any = ["A cat sleeps.", {"id": "rates", "data": {"text": "Rates went up.", "title": "News"}}]
PLACE = {"type": "char_location", "cited_text": "Rates went up.", "document_index": 1, "document_title": "News",
         "start_char_index": 0, "end_char_index": 14}  # fmt: skip
USAGE = {"input_tokens": 9, "output_tokens": 4}
HEAD: dict[str, Any] = {
    "id": "1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "stop_sequence": None,
    "usage": USAGE,
}
MESSAGE = HEAD | {
    "content": [
        {"type": "text", "text": "Well: "},
        {"type": "text", "text": "they rose", "citations": [PLACE]},
        {"type": "text", "text": "."},
    ],
    "stop_reason": "end_turn",
}


def message_events() -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": HEAD | {"content": [], "stop_reason": None}}]
    for index, block in enumerate(MESSAGE["content"]):
        deltas = [{"type": "citations_delta", "citation": each} for each in block.get("citations", ())]
        deltas.append({"type": "text_delta", "text": block["text"]})
        start = {"type": "text", "text": ""} | ({"citations": []} if "citations" in block else {})
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    return [*events, {"type": "message_delta", "delta": ended, "usage": USAGE}, {"type": "message_stop"}]


async def test_documents_reach_the_provider_and_citations_the_sdk(tmp_path: Path) -> None:
    def answer(received: ReceivedRequest) -> Written:
        return event_stream(message_events()) if received.json.get("stream") else MESSAGE

    async with serve_provider(RecordingProvider(respond=answer)) as server:
        config = "channels:\n" + channel("main", "messages", f"{server.url}/v1", "m", "m")
        async with (
            running(config, tmp_path) as gateway,
            cohere.AsyncClientV2(api_key=gateway.key, base_url=gateway.url) as sdk,
        ):
            whole = await sdk.chat(model="m", messages=QUESTION, documents=DOCUMENTS)
            stream = sdk.chat_stream(model="m", messages=QUESTION, documents=DOCUMENTS)
            events = [event async for event in stream]
    sent = server.received[-1].json["messages"][-1]["content"]
    assert [(block["type"], block.get("title")) for block in sent] == [
        ("document", "doc:0"),
        ("document", "News"),
        ("text", None),
    ]
    assert sent[1]["source"]["data"] == "Rates went up."
    assert all(block["citations"] == {"enabled": True} for block in sent[:2])
    assert text_of(whole) == "Well: they rose."
    [citation] = whole.message.citations or []
    assert (citation.start, citation.end, citation.text, citation.content_index) == (6, 15, "they rose", 0)
    [source] = citation.sources or []
    assert source.type == "document"
    assert (source.id, source.document) == ("rates", {"id": "rates", "title": "News", "text": "Rates went up."})
    assert [event.delta.message.citations for event in events if event.type == "citation-start"] == [citation]


# --- failures


@dataclass(frozen=True)
class Failure:
    id: str
    call: Callable[[cohere.AsyncClientV2], Awaitable[object]]
    raises: type[ApiError]
    status: int
    message: str


def _chat(model: str = MODELS[0], **members: Any) -> Callable[[cohere.AsyncClientV2], Awaitable[object]]:
    return lambda client: client.chat(**{"model": model, "messages": QUESTION, **members})


async def _stream(client: cohere.AsyncClientV2) -> None:
    async for _ in client.chat_stream(model="nope", messages=QUESTION):
        pass


FAILURES = [
    Failure("an unknown model", _chat("nope"), cohere.NotFoundError, 404, "nope"),
    Failure("an unknown model, streamed", _stream, cohere.NotFoundError, 404, "nope"),
    Failure("temperature 3", _chat(temperature=3), cohere.BadRequestError, 400, "temperature"),
    Failure("an unknown role", _chat(messages=[{"role": "x", "content": ""}]), cohere.BadRequestError, 400, "messages[0].role"),
]  # fmt: skip


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.id)
async def test_a_failure_is_the_sdks_own_exception(case: Failure, client: cohere.AsyncClientV2) -> None:
    with pytest.raises(case.raises) as caught:
        await case.call(client)
    assert caught.value.status_code == case.status
    assert isinstance(caught.value.body, Mapping)
    assert case.message in caught.value.body["message"]


async def test_a_wrong_key_and_the_first_version(sandbox: Running) -> None:
    async with cohere.AsyncClientV2(api_key="sk-umg-wrong", base_url=sandbox.url) as sdk:
        with pytest.raises(cohere.UnauthorizedError, match="key"):
            await sdk.chat(model=MODELS[0], messages=QUESTION)
    async with cohere.AsyncClient(api_key=sandbox.key, base_url=sandbox.url) as first:
        with pytest.raises(cohere.NotFoundError, match="first version of Cohere's chat API"):
            await first.chat(model=MODELS[0], message="Hi")


@pytest.mark.parametrize(
    ("scenario", "raises"),
    [
        ("error-429", cohere.TooManyRequestsError),
        ("error-503", cohere.ServiceUnavailableError),
        ("error-504", cohere.GatewayTimeoutError),
        ("error-500", ApiError),
    ],
)
async def test_a_failure_of_the_provider(cited: Cited, scenario: str, raises: type[ApiError]) -> None:
    async with cohere.AsyncClientV2(api_key=cited.gateway.key, base_url=cited.gateway.url) as sdk:
        with pytest.raises(raises):
            await sdk.chat(
                model="m",
                messages=[{"role": "user", "content": f"scenario: {scenario}"}],
                request_options={"max_retries": 0},
            )


async def test_a_stream_that_breaks_states_its_error(cited: Cited) -> None:
    question: Any = [{"role": "user", "content": "scenario: error-mid"}]
    async with cohere.AsyncClientV2(api_key=cited.gateway.key, base_url=cited.gateway.url) as sdk:
        events = [event async for event in sdk.chat_stream(model="m", messages=question)]
    assert events[-1].type == "message-end"
    assert events[-1].delta.finish_reason == "ERROR"
    assert "the model fell over" in events[-1].delta.error
    assert TEXT not in events[-1].delta.error
