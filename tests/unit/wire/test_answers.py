"""Incomplete answers of providers, and the results for callers of each format."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.unit.wire.streams import decoded, events_of
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.errors.provider_errors import decode_error

REQUEST = pb.GenerateRequest(model="m", face_hints=pb.FaceHints(include_usage=True))
Usage = Mapping[str, object]

BODIES: dict[str, Any] = {
    "chat": {"choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}]},
    "messages": {"type": "message", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"},
    "responses": {"status": "completed", "output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]},
    "native": {"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]},
}  # fmt: skip
# (format, usage, tokens of prompt and answer, whether the gateway counts the rest)
IN_PART: list[tuple[str, Usage, tuple[int, int], bool]] = [
    ("chat", {"prompt_tokens": 10, "total_tokens": 15}, (10, 5), False),
    ("chat", {"completion_tokens": 5, "total_tokens": 15}, (10, 5), False),
    ("chat", {"prompt_tokens": 9, "completion_tokens": None, "total_tokens": "12"}, (9, 3), False),
    ("chat", {"prompt_tokens": 9, "total_tokens": 4}, (9, 0), False),
    ("chat", {"prompt_tokens": None, "completion_tokens": 5}, (0, 5), True),
    ("chat", {"completion_tokens": 9, "total_tokens": None}, (0, 9), True),
    ("chat", {"prompt_tokens": 9}, (9, 0), True),
    ("chat", {"input_tokens": 9, "output_tokens": 2}, (9, 2), False),
    ("messages", {"output_tokens": 3}, (0, 3), True),
    ("messages", {"input_tokens": 3, "output_tokens": None}, (3, 0), True),
    ("messages", {"input_tokens": None, "output_tokens": 3, "total_tokens": 9}, (6, 3), False),
    ("messages", {"prompt_tokens": 6, "completion_tokens": 3}, (6, 3), False),
    ("responses", {"input_tokens": None, "output_tokens": 5}, (0, 5), True),
    ("responses", {"input_tokens": 5}, (5, 0), True),
    ("responses", {"input_tokens": 5, "output_tokens": None, "total_tokens": 8}, (5, 3), False),
    ("responses", {"prompt_tokens": 5, "completion_tokens": 3}, (5, 3), False),
    ("native", {"candidatesTokenCount": 5}, (0, 5), True),
    ("native", {"promptTokenCount": None, "candidatesTokenCount": 5}, (0, 5), True),
    ("native", {"candidatesTokenCount": 5, "totalTokenCount": 12}, (7, 5), False),
    ("native", {"promptTokenCount": 7, "totalTokenCount": 12}, (7, 5), False),
]
NOTHING: list[tuple[str, Usage]] = [
    ("chat", {"prompt_tokens": None, "completion_tokens": None}),
    ("chat", {"total_tokens": 5}),
    ("messages", {"input_tokens": None, "output_tokens": None}),
    ("responses", {"total_tokens": 5}),
    ("native", {"totalTokenCount": 5}),
]
WHOLE: list[tuple[str, Usage]] = [
    ("chat", {"prompt_tokens": 3, "completion_tokens": 0}),
    ("messages", {"input_tokens": 3, "output_tokens": 0}),
    ("responses", {"input_tokens": 3, "output_tokens": 0}),
    ("native", {"promptTokenCount": "3"}),
]


def body(name: str, usage: Usage) -> bytes:
    return msgspec.json.encode(BODIES[name] | {"usageMetadata" if name == "native" else "usage": usage})


def event(payload: Mapping[str, object]) -> bytes:
    kind = str(payload.get("type", ""))
    return (f"event: {kind}\n" if kind else "").encode() + b"data: " + msgspec.json.encode(payload) + b"\n\n"


def stream(name: str, usage: Usage) -> bytes:
    """Return a stream with the usage in every place that its format has for it."""
    match name:
        case "chat":
            choice = {"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}
            return event({"id": "c", "choices": [choice], "usage": usage}) + b"data: [DONE]\n\n"
        case "messages":
            start = event({"type": "message_start", "message": {"id": "r", "model": "m", "usage": usage}})
            reason = {"stop_reason": "end_turn"}
            delta = event({"type": "message_delta", "delta": reason, "usage": usage})
            return start + delta + event({"type": "message_stop"})
        case "responses":
            start = event({"type": "response.created", "response": {"id": "r", "status": "in_progress"}})
            return start + event({"type": "response.completed", "response": BODIES[name] | {"usage": usage}})
        case _:
            return event(BODIES[name] | {"usageMetadata": usage})


def usages(name: str, usage: Usage, pass_: bool) -> list[pb.Usage]:
    """Return the decoded usage, unstreamed and streamed."""
    answer = TEXT_FORMATS[name].decode_response(body(name, usage), REQUEST, pass_)
    expected = decoded(TEXT_FORMATS[name], [stream(name, usage)], REQUEST, pass_=pass_)
    streamed = [event.usage for event in events_of(expected) if event.HasField("usage")]
    return [*([answer.usage] if answer.HasField("usage") else []), *streamed[-1:]]


@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "translated"])
@pytest.mark.parametrize(("name", "usage", "tokens", "estimated"), IN_PART)
def test_a_number_that_a_usage_lacks_is_the_difference_to_the_total(
    name: str, usage: Usage, tokens: tuple[int, int], estimated: bool, pass_: bool
) -> None:
    expected = pb.Usage(input_tokens=tokens[0], output_tokens=tokens[1], estimated=estimated)
    assert usages(name, usage, pass_) == [expected] * 2


@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "translated"])
@pytest.mark.parametrize(("name", "usage"), NOTHING)
def test_a_usage_without_numbers_of_prompt_and_answer_is_none(name: str, usage: Usage, pass_: bool) -> None:
    assert usages(name, usage, pass_) == []


COUNTED = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
# members of the response or of the last chunk, and of its choice
PLACES: list[tuple[str, dict[str, object], dict[str, object]]] = [
    ("the choice (Moonshot)", {}, {"usage": COUNTED | {"cached_tokens": 4}}),
    ("x_groq", {"x_groq": {"id": "req_1", "usage": COUNTED}}, {}),
    ("usage_metadata", {"usage_metadata": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}}, {}),
    ("timings (llama.cpp)", {"timings": {"cache_n": 4, "prompt_n": 6, "prompt_ms": 1.5, "predicted_n": 5}}, {}),
    ("the usual place before others", {"usage": COUNTED, "timings": {"prompt_n": 1}}, {"usage": None}),
    ("members of other content", {"usage": COUNTED, "x_groq": "x", "timings": [1]}, {"usage": 7}),
]


@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "translated"])
@pytest.mark.parametrize(("place", "members", "inner"), PLACES, ids=lambda each: each if isinstance(each, str) else "")
def test_a_usage_is_found_in_the_places_of_all_vendors(
    place: str, members: dict[str, object], inner: dict[str, object], pass_: bool
) -> None:
    choice = {"index": 0, "finish_reason": "stop", **inner}
    whole = {"choices": [choice | {"message": {"content": "hi"}}], **members}
    chunks = {"id": "c", "choices": [choice | {"delta": {"content": "hi"}}], **members}
    answer = TEXT_FORMATS["chat"].decode_response(msgspec.json.encode(whole), REQUEST, pass_)
    messages = decoded(TEXT_FORMATS["chat"], [event(chunks) + b"data: [DONE]\n\n"], REQUEST, pass_=pass_)
    streamed = [each.usage for each in events_of(messages) if each.HasField("usage")]
    for usage in (answer.usage, *streamed[-1:]):
        assert (usage.input_tokens, usage.output_tokens, usage.estimated) == (10, 5, False)
    assert streamed


def test_a_usage_in_every_chunk_is_cumulative() -> None:
    chunks = [
        {
            "id": "c",
            "choices": [{"index": 0, "delta": {"content": "hi"}}],
            "usage": COUNTED | {"completion_tokens": done},
        }
        for done in (1, 3)
    ]
    end = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": COUNTED}
    stream = b"".join(map(event, [*chunks, end])) + b"data: [DONE]\n\n"
    for pass_ in (True, False):
        messages = decoded(TEXT_FORMATS["chat"], [stream], REQUEST, pass_=pass_)
        assert [each.usage for each in events_of(messages) if each.HasField("usage")][-1].output_tokens == 5


def test_the_usage_of_the_end_marker_of_messages_is_the_last() -> None:
    start = event({"type": "message_start", "message": {"id": "r", "usage": {"input_tokens": 0, "output_tokens": 0}}})
    delta = event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    stop = event({"type": "message_stop", "usage": {"input_tokens": 3, "output_tokens": 2}})
    for pass_ in (True, False):
        messages = decoded(TEXT_FORMATS["messages"], [start + delta + stop], REQUEST, pass_=pass_)
        last = [each.usage for each in events_of(messages) if each.HasField("usage")][-1]
        assert (last.input_tokens, last.output_tokens) == (3, 2)


@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "translated"])
@pytest.mark.parametrize(("name", "usage"), WHOLE)
def test_a_total_of_zero_is_valid(name: str, usage: Usage, pass_: bool) -> None:
    assert usages(name, usage, pass_) == [pb.Usage(input_tokens=3, output_tokens=0)] * 2


def test_totals_may_come_one_after_the_other() -> None:
    start = event({"type": "message_start", "message": {"id": "r", "usage": {"input_tokens": 3}}})
    delta = event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}})
    for pass_ in (True, False):
        expected = decoded(
            TEXT_FORMATS["messages"], [start + delta + event({"type": "message_stop"})], REQUEST, pass_=pass_
        )
        assert [event.usage for event in events_of(expected) if event.HasField("usage")] == [
            pb.Usage(input_tokens=3, output_tokens=2)
        ]


@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "translated"])
@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("chat", b'{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":0}}'),
        ("chat", b'{"choices":null}'),
        ("native", b'{"candidates":[],"usageMetadata":{"promptTokenCount":1}}'),
        ("native", b'{"promptFeedback":{"safetyRatings":[]}}'),
    ],
)
def test_a_body_without_an_answer_is_the_providers_failure(name: str, raw: bytes, pass_: bool) -> None:
    with pytest.raises(UmgError) as caught:
        TEXT_FORMATS[name].decode_response(raw, REQUEST, pass_)
    message = "the provider's response cannot be read: it contains no response; try again"
    assert (caught.value.name, caught.value.message) == ("UPSTREAM_FAILED", message)


NOT_WHOLE = {
    "chat": ("choices", 0, "finish_reason", "length"),
    "messages": ("stop_reason", "max_tokens"),
    "responses": ("status", "incomplete"),
    "native": ("candidates", 0, "finishReason", "OTHER"),
}


@pytest.mark.parametrize("face", TEXT_FORMATS)
@pytest.mark.parametrize("calls", [False, True], ids=["text", "a call"])
def test_an_answer_cut_by_its_provider_is_encoded_as_incomplete(face: str, calls: bool) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = BODIES["responses"]["output"] + ([call] if calls else [])
    raw = {"status": "incomplete", "incomplete_details": {"reason": "zork"}, "output": output}
    answer = TEXT_FORMATS["responses"].decode_response(msgspec.json.encode(raw), REQUEST, False)
    finish = answer.candidates[0]
    assert (finish.finish_reason, finish.provider_reason) == (pb.FINISH_REASON_OTHER, "zork")
    expected: Any = msgspec.json.decode(TEXT_FORMATS[face].encode_response(answer, REQUEST))
    *path, word = NOT_WHOLE[face]
    for step in path:
        expected = expected[step]
    assert expected == word


@pytest.mark.parametrize(
    ("status", "expected"), [(200, "the provider failed: busy"), (503, "the provider failed (status 503): busy")]
)
def test_a_failure_has_its_documented_status(status: int, expected: str) -> None:
    assert decode_error(status, {}, b'{"error":{"message":"busy"}}').message == expected


LOST = [
    [{"type": "response.function_call_arguments.delta", "output_index": 3, "delta": "{}"}],
    [{"type": "response.function_call_arguments.done", "output_index": 3, "arguments": "{}"}],
    [{"type": "response.content_part.done", "output_index": 3, "part": {"type": "output_text", "text": "hi"}}],
]
ENDED = {"type": "response.completed", "response": {"status": "completed", "output": []}}


@pytest.mark.parametrize("events", LOST)
def test_deltas_without_an_item_are_not_dropped_silently(events: list[Usage]) -> None:
    with raises_error(name="UPSTREAM_FAILED"):
        decoded(TEXT_FORMATS["responses"], [*map(event, events), event(ENDED)], REQUEST)


def test_a_complete_item_needs_no_start_event() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    done = {"type": "response.output_item.done", "output_index": 3, "item": item}
    expected = decoded(TEXT_FORMATS["responses"], [*map(event, LOST[0]), event(done), event(ENDED)], REQUEST)
    started = [each.part_started.tool_call.name for each in events_of(expected) if each.HasField("part_started")]
    assert started == ["f"]
