"""Answers in the words and shapes of vendors, for callers of each format, whole and streamed: failed turns, answers split
over several choices, and usage with gaps.
"""

import json
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from tests.pairs.table import TEXT_FACES, every_face
from tests.support.callers.http_caller import HttpAnswer, HttpCaller, events_before_error
from tests.support.callers.requests import Request
from tests.support.gateways import channel, running
from tests.support.providers.server import RecordingProvider, serve_provider
from tests.support.recorded_gateway import RecordedGateway, event_stream, recorded_gateway
from umg_grpc.knowledge.provider_quirks import known
from umg_grpc.v1 import pb

pytestmark = pytest.mark.asyncio(loop_scope="module")

Body = dict[str, Any]
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
TOOLS = Request("Hi", tools=("get_weather",))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RecordedGateway, None]:
    async with recorded_gateway(tmp_path_factory.mktemp("vendors")) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def failing_over(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RecordedGateway, None]:
    """Gateway with two native channels to one provider for the model `m`."""
    async with serve_provider(RecordingProvider()) as provider:
        config = "channels:\n" + "".join(channel(name, "native", provider.url, "m", "theirs") for name in ("a", "b"))
        data = tmp_path_factory.mktemp("failover")
        async with running(config, data) as gateway, aiohttp.ClientSession() as session:
            yield RecordedGateway(HttpCaller(session, gateway.url, gateway.key), provider)


async def call(gateway: RecordedGateway, face: str, upstream: str, body: Body, *, stream: bool) -> HttpAnswer:
    """Return the caller's result for a response of a provider: `body`, or the same as the events of a stream."""
    gateway.set_answer(streamed(upstream, body) if stream else body)
    return await gateway.caller.call(face, f"m-{upstream}", TOOLS, stream=stream)


def streamed(upstream: str, body: Body) -> bytes:
    """Return a stream with the content of a complete answer."""
    if upstream == "native":
        return event_stream([body])
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "theirs"}
    chunks = list[Body]()
    for index, choice in enumerate(body["choices"]):
        delta = dict(choice["message"])
        for at, called in enumerate(delta.get("tool_calls", ())):
            delta["tool_calls"] = [called | {"index": at}]
        chunks.append(head | {"choices": [{"index": index, "delta": delta, "finish_reason": None}]})
    for index, choice in enumerate(body["choices"]):
        ended = {key: value for key, value in choice.items() if key != "message"}
        chunks.append(head | {"choices": [{"delta": {}} | ended | {"index": index}]})
    chunks.append(head | {"choices": [], "usage": body["usage"]})
    return event_stream(chunks) + b"data: [DONE]\n\n"


# --- failed turns


def malformed(*parts: Body) -> Body:
    candidate: Body = {"content": {"parts": list(parts)} if parts else {}, "finishReason": "MALFORMED_FUNCTION_CALL"}
    candidate["finishMessage"] = "Malformed function call: print(x)"
    return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 10}}


def failed_chat(text: str, **choice: Any) -> Body:
    message = {"role": "assistant", "content": text}
    return {
        "id": "c",
        "choices": [{"index": 0, "message": message, "finish_reason": "error", **choice}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
    }


@every_face
@STREAMED
@pytest.mark.parametrize(("upstream", "body"), [("native", malformed()), ("chat", failed_chat(""))])
async def test_a_turn_that_failed_without_output_is_an_error_of_the_format(
    gateway: RecordedGateway, face: str, upstream: str, body: Body, stream: bool
) -> None:
    got = await call(gateway, face, upstream, body, stream=stream)
    assert (got.status, got.is_error) == (502, True)
    assert ("Malformed function call: print(x)" if upstream == "native" else "(error)") in got.body.decode()


@every_face
@STREAMED
async def test_a_turn_that_failed_without_output_is_repeated_at_another_channel(
    failing_over: RecordedGateway, face: str, stream: bool
) -> None:
    answers = [malformed(), {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}]
    written = iter([streamed("native", each) if stream else each for each in answers])
    failing_over.provider.respond = lambda _: next(written)
    got = await failing_over.caller.call(face, "m", TOOLS, stream=stream)
    assert got.status == 200
    assert got.canonical.candidates[0].message.parts[0].text.text == "Hi"
    assert got.canonical.candidates[0].finish_reason == pb.FINISH_REASON_STOP


@every_face
@pytest.mark.parametrize(
    ("upstream", "body"), [("native", malformed({"text": "I call"})), ("chat", failed_chat("I call"))]
)
async def test_a_stream_that_failed_after_output_ends_by_an_error_event(
    gateway: RecordedGateway, face: str, upstream: str, body: Body
) -> None:
    if face == upstream == "native":
        got = await call(gateway, face, upstream, body, stream=True)
        assert got.json["candidates"][0]["finishReason"] == "MALFORMED_FUNCTION_CALL"
        return
    got = await call(gateway, face, upstream, body, stream=True)
    assert got.status == 200
    texts = [event.text_delta for event in events_before_error(face, got.body) if event.HasField("text_delta")]
    assert texts == ["I call"]
    assert "the model's response failed" in got.body.decode()


@STREAMED
@pytest.mark.parametrize(("word", "logged"), [("zork", "zork"), ("eos", None), ("stop", None)])
async def test_the_log_names_a_finish_reason_that_no_row_has(
    gateway: RecordedGateway, word: str, logged: str | None, stream: bool
) -> None:
    body = failed_chat("Hi")
    body["choices"][0]["finish_reason"] = word
    for face in ("chat", "messages"):
        with capture_logs() as lines:
            got = await call(gateway, face, "chat", body, stream=stream)
        assert got.canonical.candidates[0].finish_reason == pb.FINISH_REASON_STOP
        assert [line["finish_reason"] for line in lines if line["event"] == "call"] == [logged]


# --- answers that are split over several choices

CALL = {"id": "call_x", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
SPLIT: Body = {
    "id": "msg_1",
    "created": 1,
    "model": "theirs",
    "choices": [
        {"finish_reason": "stop", "message": {"role": "assistant", "content": "I need to search."}},
        {"finish_reason": "tool_calls", "message": {"role": "assistant", "content": None, "tool_calls": [CALL]}},
    ],
    "usage": {"prompt_tokens": 10, "total_tokens": 15},
}


@every_face
@STREAMED
async def test_an_answer_split_over_choices_is_one_message(gateway: RecordedGateway, face: str, stream: bool) -> None:
    got = await call(gateway, face, "chat", SPLIT, stream=stream)
    [candidate] = got.canonical.candidates
    texts = [part.text.text for part in candidate.message.parts if part.HasField("text")]
    calls = [part.tool_call for part in candidate.message.parts if part.HasField("tool_call")]
    assert texts == ["I need to search."]
    assert [(each.name, each.arguments_json) for each in calls] == [("get_weather", '{"city":"Oslo"}')]
    if face == "chat":
        body = got.json
        assert [choice["finish_reason"] for choice in body["choices"]] == ["tool_calls"]
        assert [each["function"]["name"] for each in body["choices"][0]["message"]["tool_calls"]] == ["get_weather"]


async def test_several_candidates_that_were_requested_stay_apart(gateway: RecordedGateway) -> None:
    gateway.set_answer(SPLIT)
    body = TEXT_FACES["chat"].body(TOOLS, "m-chat") | {"n": 2}
    got = await gateway.caller.send("chat", "m-chat", body)
    assert len(got.json["choices"]) == 2


# --- usage with gaps


@every_face
@STREAMED
@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 10, "total_tokens": 15}, (10, 5)),
        ({"completion_tokens": 5, "total_tokens": 15}, (10, 5)),
        ({"prompt_tokens": 10, "completion_tokens": None}, (10, None)),
        ({"prompt_tokens": None, "completion_tokens": 5}, (None, 5)),
    ],
    ids=str,
)
async def test_the_numbers_that_a_provider_states_are_kept(
    gateway: RecordedGateway, face: str, usage: Body, tokens: tuple[int | None, int | None], stream: bool
) -> None:
    if face == "chat":
        return  # the body of this provider is passed through unchanged
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hello you"}, "finish_reason": "stop"}
    got = await call(gateway, face, "chat", {"id": "c", "choices": [choice], "usage": usage}, stream=stream)
    counted = got.canonical.usage
    for stated, number in zip(tokens, (counted.input_tokens, counted.output_tokens), strict=True):
        assert number == stated if stated is not None else number > 0


# --- streams as one JSON array


@every_face
@STREAMED
async def test_a_json_array_of_a_provider_is_a_stream(gateway: RecordedGateway, face: str, stream: bool) -> None:
    chunks: list[Body] = [
        {"candidates": [{"content": {"parts": [{"text": "Hel"}]}, "index": 0}], "modelVersion": "theirs"},
        {"candidates": [{"content": {"parts": [{"text": "lo"}]}, "finishReason": "STOP", "index": 0}]},
    ]
    gateway.set_answer(json.dumps(chunks, indent=2).encode())
    got = await gateway.caller.call(face, "m-native", TOOLS, stream=stream)
    assert got.status == 200
    assert "".join(part.text.text for part in got.canonical.candidates[0].message.parts) == "Hello"


# --- requests


async def test_zero_alternatives_request_no_log_probabilities(gateway: RecordedGateway) -> None:
    gateway.set_answer(SPLIT)
    body = TEXT_FACES["responses"].body(Request("Hi"), "m-chat") | {"top_logprobs": 0}
    await gateway.caller.send("responses", "m-chat", body)
    sent = gateway.provider.received[-1].json
    assert not {"logprobs", "top_logprobs"} & sent.keys()


async def test_edits_of_the_context_are_sent_to_their_own_vendor_alone() -> None:
    def rejected(model: str, url: str) -> bool:
        quirks = known(model, "", url, "messages", certain=True)
        return "context_management" in (quirks.rejects or ())

    assert rejected("glm-5.3", "https://api.z.ai/api/anthropic")
    assert rejected("deepseek-v4-pro", "https://relay.example.com")
    assert not rejected("claude-sonnet-5", "https://api.anthropic.com")
    assert not rejected("claude-sonnet-5", "https://relay.example.com")
