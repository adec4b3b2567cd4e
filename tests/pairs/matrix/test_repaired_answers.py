"""Answers with a defect that clients cannot read, repaired for callers of every format, the provider's own too."""

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest
import pytest_asyncio

from tests.pairs.table import every_face
from tests.support.callers.http_caller import HttpAnswer
from tests.support.callers.requests import Request
from tests.support.callers.text_format_clients import events as events_of
from tests.support.recorded_gateway import RecordedGateway, event_stream, recorded_gateway
from umg_grpc.v1 import pb

pytestmark = pytest.mark.asyncio(loop_scope="module")

Events = list[dict[str, Any]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RecordedGateway, None]:
    async with recorded_gateway(tmp_path_factory.mktemp("repaired")) as made:
        yield made


async def call(gateway: RecordedGateway, face: str, upstream: str, answer: Any, *, stream: bool = True) -> HttpAnswer:
    """Return the caller's result for a response of a provider of `upstream`: a body, or the bytes of a stream."""
    gateway.set_answer(answer)
    return await gateway.caller.call(face, f"m-{upstream}", Request("Hi", tools=("get_weather",)), stream=stream)


# --- the events of providers


def chunk(delta: Mapping[str, object], finish: str | None = None, **choice: object) -> dict[str, Any]:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "theirs"}
    return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish} | choice]}


CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
MESSAGE_START = {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "theirs", "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1}}}  # fmt: skip
RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "model": "theirs", "output": []}
ITEM = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Hi there", "annotations": [], "logprobs": []}]}  # fmt: skip
WHOLE_STREAMS: dict[str, Events] = {
    "chat": [
        chunk({"role": "assistant", "content": "Hi"}),
        chunk({"content": " there"}),
        chunk({}, "stop"),
        chunk({}) | {"choices": [], "usage": CHAT_USAGE},
    ],
    "responses": [
        {"type": "response.created", "response": RESPONSE | {"status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": ITEM | {"content": []}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hi there"},
        {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
        {"type": "response.completed", "response": RESPONSE | {"status": "completed", "output": [ITEM], "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}}},
    ],
    "messages": [
        MESSAGE_START,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi there"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ],
    "native": [
        {"candidates": [{"content": {"parts": [{"text": "Hi"}], "role": "model"}}], "modelVersion": "theirs"},
        {"candidates": [{"content": {"parts": [{"text": " there"}], "role": "model"}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}},
    ],
}  # fmt: skip
DONE = b"data: [DONE]\n\n"


# --- events for a call without a stream


@every_face
@pytest.mark.parametrize("upstream", WHOLE_STREAMS)
async def test_events_for_a_call_without_a_stream_are_one_answer(
    gateway: RecordedGateway, face: str, upstream: str
) -> None:
    got = await call(gateway, face, upstream, event_stream(WHOLE_STREAMS[upstream]), stream=False)
    assert got.status == 200, got.body
    [candidate] = got.canonical.candidates
    assert ["".join(part.text.text for part in candidate.message.parts)] == ["Hi there"]
    assert candidate.finish_reason == pb.FINISH_REASON_STOP
    assert (got.canonical.usage.input_tokens, got.canonical.usage.output_tokens) == (10, 5)
    assert json.loads(got.body).get("model", f"m-{upstream}") == f"m-{upstream}"


@every_face
@pytest.mark.parametrize("upstream", WHOLE_STREAMS)
async def test_a_stream_that_is_cut_is_no_answer(gateway: RecordedGateway, face: str, upstream: str) -> None:
    got = await call(gateway, face, upstream, event_stream(WHOLE_STREAMS[upstream][:1]), stream=False)
    assert (got.status, got.is_error) == (502, True)


# --- calls with the same index


def piece(index: int | None, call_id: str, arguments: str, name: str = "get_weather") -> dict[str, Any]:
    function = ({"name": name} if name else {}) | {"arguments": arguments}
    members = {"index": index, "id": call_id, "type": "function", "function": function}
    return {key: value for key, value in members.items() if value not in (None, "")}


OSLO, ROME = '{"city":"Oslo"}', '{"city":"Rome"}'
CALLS: dict[str, tuple[list[dict[str, Any]], list[int]]] = {
    "right": ([{"tool_calls": [piece(0, "a", OSLO)]}, {"tool_calls": [piece(1, "b", ROME)]}], [0, 1]),
    "from 1": ([{"tool_calls": [piece(1, "a", OSLO)]}, {"tool_calls": [piece(2, "b", ROME)]}], [1, 2]),
    "the same": ([{"tool_calls": [piece(0, "a", OSLO)]}, {"tool_calls": [piece(0, "b", ROME)]}], [0, 1]),
    "the same in one chunk": ([{"tool_calls": [piece(0, "a", OSLO), piece(0, "b", ROME)]}], [0, 1]),
    "none": ([{"tool_calls": [piece(None, "a", OSLO)]}, {"tool_calls": [piece(None, "b", ROME)]}], [0, 1]),
    "the same, in pieces": (
        [
            {"tool_calls": [piece(0, "a", "")]},
            *({"tool_calls": [piece(0, "", each, "")]} for each in ('{"city":', '"Oslo"}')),
            {"tool_calls": [piece(0, "b", "")]},
            *({"tool_calls": [piece(0, "", each, "")]} for each in ('{"city":', '"Rome"}')),
        ],
        [0, 0, 0, 1, 1, 1],
    ),
    "the same, in pieces that repeat the id": (
        [
            *({"tool_calls": [piece(0, "a", each)]} for each in ('{"city":', '"Oslo"}')),
            *({"tool_calls": [piece(0, "b", each)]} for each in ('{"city":', '"Rome"}')),
        ],
        [0, 0, 1, 1],
    ),
}


@every_face
@pytest.mark.parametrize("name", CALLS)
async def test_calls_with_the_same_index_are_several_calls(gateway: RecordedGateway, face: str, name: str) -> None:
    deltas, numbers = CALLS[name]
    events = [chunk({"role": "assistant", "content": None}), *map(chunk, deltas), chunk({}, "tool_calls")]
    got = await call(gateway, face, "chat", event_stream(events) + DONE)
    calls = [part.tool_call for part in got.canonical.candidates[0].message.parts if part.HasField("tool_call")]
    assert [(each.name, json.loads(each.arguments_json)["city"]) for each in calls] == [
        ("get_weather", "Oslo"),
        ("get_weather", "Rome"),
    ]
    if face == "chat":
        pieces = [
            each
            for event in events_of(got.body)
            for choice in event["choices"]
            for each in choice["delta"].get("tool_calls") or ()
        ]
        assert [each["index"] for each in pieces] == numbers


# --- no finish reason


@every_face
@pytest.mark.parametrize("calls", [False, True])
async def test_a_chat_stream_with_its_end_marker_has_a_finish_reason(
    gateway: RecordedGateway, face: str, calls: bool
) -> None:
    delta = {"tool_calls": [piece(0, "a", OSLO)]} if calls else {"content": " there"}
    usage = chunk({}) | {"choices": [], "usage": CHAT_USAGE}
    events = [chunk({"role": "assistant", "content": "Hi"}), chunk(delta), usage]
    got = await call(gateway, face, "chat", event_stream(events) + DONE)
    reason = got.canonical.candidates[0].finish_reason
    assert reason == (pb.FINISH_REASON_TOOL_CALLS if calls else pb.FINISH_REASON_STOP)
    if face == "chat":
        last = events_of(got.body)[-1]
        assert (last["id"], last["object"], last["model"]) == ("c", "chat.completion.chunk", "m-chat")
        assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]
        assert got.body.endswith(DONE)


@every_face
@pytest.mark.parametrize("calls", [False, True])
async def test_a_complete_chat_answer_has_a_finish_reason(gateway: RecordedGateway, face: str, calls: bool) -> None:
    message = {"role": "assistant", "content": "Hi"} | ({"tool_calls": [piece(None, "a", OSLO)]} if calls else {})
    choice = {"index": 0, "message": message, "finish_reason": None, "x": 1.0}
    got = await call(gateway, face, "chat", {"id": "c", "model": "theirs", "choices": [choice]}, stream=False)
    reason = got.canonical.candidates[0].finish_reason
    assert reason == (pb.FINISH_REASON_TOOL_CALLS if calls else pb.FINISH_REASON_STOP)
    if face == "chat":
        finish = "tool_calls" if calls else "stop"
        assert json.loads(got.body)["choices"] == [choice | {"finish_reason": finish}]


@every_face
async def test_a_chat_stream_without_end_marker_and_finish_reason_is_cut(gateway: RecordedGateway, face: str) -> None:
    got = await call(gateway, face, "chat", event_stream([chunk({"role": "assistant", "content": "Hi"})]))
    assert b"error" in got.body


# --- messages


def block(index: int, started: dict[str, Any], **delta: str) -> Events:
    """Return the start and one delta of a block, without its end."""
    return [
        {"type": "content_block_start", "index": index, "content_block": started},
        {"type": "content_block_delta", "index": index, "delta": delta},
    ]


def end(index: int) -> Events:
    return [{"type": "content_block_stop", "index": index}]


def text(index: int) -> Events:
    return block(index, {"type": "text", "text": ""}, type="text_delta", text="Hi there")


def tool(index: int, city: str) -> Events:
    started = {"type": "tool_use", "id": f"toolu_{city}", "name": "get_weather", "input": {}}
    return block(index, started, type="input_json_delta", partial_json=json.dumps({"city": city}))


STOP_EVENT = [{"type": "message_stop"}]
USED = [{"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 5}}]  # fmt: skip
RIGHT = [MESSAGE_START, *text(0), *end(0), *tool(1, "Oslo"), *end(1), *tool(2, "Rome"), *end(2), *USED, *STOP_EVENT]
UNKNOWN = [{"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 1}}]  # fmt: skip
MESSAGES_STREAMS: dict[str, tuple[Events, Events]] = {
    "right": (RIGHT, RIGHT),
    "the same index": (
        [MESSAGE_START, *text(0), *end(0), *tool(0, "Oslo"), *end(0), *tool(0, "Rome"), *end(0), *USED, *STOP_EVENT],
        RIGHT,
    ),
    "the same index, no ends": (
        [MESSAGE_START, *text(0), *tool(0, "Oslo"), *tool(0, "Rome"), *USED, *STOP_EVENT],
        RIGHT,
    ),
    "the same index of the calls": (
        [MESSAGE_START, *text(0), *end(0), *tool(1, "Oslo"), *end(1), *tool(1, "Rome"), *end(1), *USED, *STOP_EVENT],
        RIGHT,
    ),
    "no stop reason": (
        [each for each in RIGHT if each not in USED],
        [*RIGHT[:-2], *UNKNOWN, *STOP_EVENT],
    ),
    "no end marker": (RIGHT[:-1], RIGHT),
}


@every_face
@pytest.mark.parametrize("name", MESSAGES_STREAMS)
async def test_a_messages_stream_is_made_whole(gateway: RecordedGateway, face: str, name: str) -> None:
    stream, right = MESSAGES_STREAMS[name]
    got = await call(gateway, face, "messages", event_stream(stream))
    [candidate] = got.canonical.candidates
    calls = [part.tool_call for part in candidate.message.parts if part.HasField("tool_call")]
    assert [json.loads(each.arguments_json)["city"] for each in calls] == ["Oslo", "Rome"]
    assert candidate.finish_reason == pb.FINISH_REASON_TOOL_CALLS
    if face == "messages":
        model = MESSAGE_START["message"] | {"model": "m-messages"}
        assert events_of(got.body) == [MESSAGE_START | {"message": model}, *right[1:]]


@every_face
@pytest.mark.parametrize("calls", [False, True])
async def test_a_complete_messages_answer_has_a_stop_reason(gateway: RecordedGateway, face: str, calls: bool) -> None:
    used = [{"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}}] if calls else []
    content = [{"type": "text", "text": "Hi"}, *used]
    head = {"type": "message", "id": "msg_1", "role": "assistant", "x": 1.0}
    answer = head | {"model": "theirs", "content": content, "stop_reason": None}
    got = await call(gateway, face, "messages", answer, stream=False)
    reason = got.canonical.candidates[0].finish_reason
    assert reason == (pb.FINISH_REASON_TOOL_CALLS if calls else pb.FINISH_REASON_STOP)
    if face == "messages":
        stop = "tool_use" if calls else "end_turn"
        assert json.loads(got.body) == answer | {"model": "m-messages", "stop_reason": stop}


# --- responses and native


def item(index: int, city: str) -> Events:
    """Return the events of a call, an item with this index."""
    arguments, kind = json.dumps({"city": city}), "response.function_call_arguments"
    whole = {
        "id": f"fc_{city}",
        "type": "function_call",
        "call_id": city,
        "name": "get_weather",
        "arguments": arguments,
    }
    place = {"output_index": index, "item_id": f"fc_{city}"}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": whole | {"arguments": ""}},
        *({"type": f"{kind}.delta", **place, "delta": part} for part in (arguments[:5], arguments[5:])),
        {"type": f"{kind}.done", **place, "arguments": arguments},
        {"type": "response.output_item.done", "output_index": index, "item": whole},
    ]


@every_face
@pytest.mark.parametrize("index", [0, 1])
async def test_items_with_the_same_index_are_several_items(gateway: RecordedGateway, face: str, index: int) -> None:
    started, completed = WHOLE_STREAMS["responses"][0], WHOLE_STREAMS["responses"][-1]
    output = [each["item"] for city in ("Oslo", "Rome") for each in item(0, city)[-1:]]
    ended = completed | {"response": completed["response"] | {"output": output}}
    stream = [started, *item(0, "Oslo"), *item(index, "Rome"), ended]
    got = await call(gateway, face, "responses", event_stream(stream))
    calls = [part.tool_call for part in got.canonical.candidates[0].message.parts if part.HasField("tool_call")]
    assert [json.loads(each.arguments_json)["city"] for each in calls] == ["Oslo", "Rome"]
    if face == "responses":
        received = events_of(got.body)[1:-1]
        assert received == [*item(0, "Oslo"), *item(1, "Rome")]


@every_face
async def test_a_complete_response_has_a_status(gateway: RecordedGateway, face: str) -> None:
    got = await call(gateway, face, "responses", RESPONSE | {"output": [ITEM]}, stream=False)
    assert got.canonical.candidates[0].finish_reason == pb.FINISH_REASON_STOP
    if face == "responses":
        assert json.loads(got.body) == RESPONSE | {"model": "m-responses", "output": [ITEM], "status": "completed"}


@every_face
async def test_a_complete_native_answer_has_a_finish_reason(gateway: RecordedGateway, face: str) -> None:
    candidate = {"content": {"parts": [{"text": "Hi"}], "role": "model"}, "x": 1.0}
    got = await call(gateway, face, "native", {"candidates": [candidate]}, stream=False)
    assert got.canonical.candidates[0].finish_reason == pb.FINISH_REASON_STOP
    if face == "native":
        assert json.loads(got.body)["candidates"] == [candidate | {"finishReason": "STOP"}]
