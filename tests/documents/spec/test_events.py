"""Text document, "Events": the events in the streams of the four formats."""

import json
from typing import Any

import pytest

from tests.documents.spec.callers import WEATHER, Chat, Frame, Messages, Native, Responses
from tests.support.callers.api import ApiClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

THINK = {"type": "enabled", "budget_tokens": 1500}


# --- 1: native


async def test_events_1_native_lines_are_json_with_parts(native: Native, gateway: ApiClient) -> None:
    for model, fields in (
        ("famG-2.5-pro", {}),
        ("famG-2.5-pro", {"generationConfig.maxOutputTokens": 1}),
        ("famG-2.5-pro-thinking", {}),
        ("famG-2.5-pro", {"tools": [{"vendorgSearch": {}}]}),
        ("famO-5", {}),
    ):
        path = native.of(model, "streamGenerateContent") + "?alt=sse"
        reply = await gateway.post(path, native.body(fields))
        assert reply.headers["content-type"].partition(";")[0] == "text/event-stream"
        lines = [line for line in reply.text.split("\n") if line.strip()]
        assert lines
        for line in lines:
            assert line.startswith("data: {")
            (candidate,) = json.loads(line[6:])["candidates"]
            assert isinstance(candidate["content"]["parts"], list)
        assert json.loads(lines[-1][6:])["candidates"][0]["finishReason"]


# --- 2: chat


async def test_events_2_chat_chunks(chat: Chat) -> None:
    *chunks, last = await chat.stream()
    assert last == Frame("", "[DONE]")
    assert {frame.event for frame in chunks} == {""}
    assert {frame.data["object"] for frame in chunks} == {"chat.completion.chunk"}
    assert len({(frame.data["id"], frame.data["created"], frame.data["model"]) for frame in chunks}) == 1
    assert [delta["role"] for delta in chat.deltas(chunks) if "role" in delta] == ["assistant"]
    reasons = [frame.data["choices"][0]["finish_reason"] for frame in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["stop"]
    assert not any("usage" in frame.data for frame in chunks)


async def test_events_2_chat_usage_is_a_last_chunk_when_requested(chat: Chat) -> None:
    *chunks, usage, done = await chat.stream({"stream_options": {"include_usage": True}})
    assert done.data == "[DONE]"
    assert usage.data["choices"] == []
    assert usage.data["usage"]["total_tokens"] > 0
    assert all(frame.data["usage"] is None for frame in chunks)


# --- 3: responses


async def test_events_3_responses_event_names_equal_their_types(responses: Responses) -> None:
    frames = await responses.stream(
        {"reasoning": {"effort": "low", "summary": "auto"}, "tools": [{"type": "web_search"}]}
    )
    assert all(frame.event == frame.data["type"] for frame in frames)
    assert [frame.data["sequence_number"] for frame in frames] == list(range(len(frames)))


async def of_kind(responses: Responses, kind: str, **options: Any) -> list[Any]:
    found = [frame.data for frame in await responses.stream(**options) if frame.event == kind]
    assert found
    return found


async def test_events_3_response_created(responses: Responses) -> None:
    frames = await responses.stream()
    assert frames[0].event == "response.created"
    created = frames[0].data["response"]
    assert created["id"].startswith("resp_")
    assert (created["status"], created["output"]) == ("in_progress", [])


async def test_events_3_response_output_item_added(responses: Responses) -> None:
    tools = [{"type": "function", "name": "get_weather", "parameters": WEATHER}]
    options = {"fields": {"tools": tools}, "text": "Ask get_weather of Rome"}
    (added,) = await of_kind(responses, "response.output_item.added", **options)
    assert (added["output_index"], added["item"]["type"], added["item"]["name"]) == (0, "function_call", "get_weather")
    assert (added["item"]["status"], added["item"]["arguments"]) == ("in_progress", "")
    (message,) = await of_kind(responses, "response.output_item.added")
    assert (message["item"]["type"], message["item"]["content"]) == ("message", [])


async def test_events_3_response_output_text_delta(responses: Responses) -> None:
    deltas = await of_kind(responses, "response.output_text.delta")
    assert len(deltas) > 1
    assert all(isinstance(delta["delta"], str) and type(delta["sequence_number"]) is int for delta in deltas)
    assert len({(delta["item_id"], delta["output_index"], delta["content_index"]) for delta in deltas}) == 1


async def test_events_3_response_output_item_done(responses: Responses) -> None:
    (done,) = await of_kind(responses, "response.output_item.done")
    assert done["item"]["status"] == "completed"
    assert done["item"]["content"][0]["text"] == responses.text(await responses.answer())


async def test_events_3_response_completed(responses: Responses) -> None:
    frames = await responses.stream()
    assert frames[-1].event == "response.completed"
    completed = frames[-1].data["response"]
    assert completed["status"] == "completed"
    assert (
        completed["usage"]["total_tokens"] == completed["usage"]["input_tokens"] + completed["usage"]["output_tokens"]
    )
    assert responses.text(completed) == responses.streamed_text(frames)
    assert {completed["id"]} == {frame.data["response"]["id"] for frame in frames if "response" in frame.data}


async def test_events_3_the_order_of_a_text(responses: Responses) -> None:
    events = [frame.event.removeprefix("response.") for frame in await responses.stream()]
    kinds = [event for event, before in zip(events, ["", *events], strict=False) if event != before]
    assert kinds == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]


async def test_events_3_an_answer_cut_by_its_limit_is_incomplete(responses: Responses) -> None:
    frames = await responses.stream({"max_output_tokens": 5})
    assert frames[-1].event == "response.incomplete"
    assert frames[-1].data["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


# --- 4: messages


async def test_events_4_messages_deltas_are_thinking_or_text(messages: Messages) -> None:
    frames = await messages.stream({"thinking": THINK})
    assert all(frame.event == frame.data["type"] for frame in frames)
    kinds = [delta["type"] for delta in messages.deltas(frames)]
    assert set(kinds) == {"thinking_delta", "signature_delta", "text_delta"}
    assert kinds.index("text_delta") == kinds.count("thinking_delta") + 1
    assert messages.streamed_thinking(frames)
    assert messages.streamed_text(frames)


async def test_events_4_messages_blocks_are_opened_and_closed_in_order(messages: Messages) -> None:
    for fields in ({}, {"thinking": THINK}, {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}):
        frames = [frame for frame in await messages.stream(fields) if frame.event != "ping"]
        assert frames[0].event == "message_start"
        assert [frame.event for frame in frames[-2:]] == ["message_delta", "message_stop"]
        open_block, blocks = None, 0
        for frame in frames[1:-2]:
            match frame.event:
                case "content_block_start":
                    assert (open_block, frame.data["index"]) == (None, blocks)
                    open_block, blocks = blocks, blocks + 1
                case "content_block_delta":
                    assert frame.data["index"] == open_block
                case "content_block_stop":
                    assert frame.data["index"] == open_block
                    open_block = None
                case other:
                    pytest.fail(other)
        assert open_block is None
        assert frames[-2].data["delta"]["stop_reason"] == "end_turn"
        assert frames[-2].data["usage"]["output_tokens"] > 0


async def test_events_streams_are_not_cached_or_buffered(
    gateway: ApiClient, chat: Chat, responses: Responses, messages: Messages
) -> None:
    for face in (chat, responses, messages):
        reply = await face.post({"stream": True})
        assert "no-cache" in reply.headers["cache-control"]
        assert reply.headers["x-accel-buffering"] == "no"
