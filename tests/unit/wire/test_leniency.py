"""Answers of providers that deviate from their format: decoded the same in every format, streamed or not."""

from dataclasses import dataclass

import msgspec
import pytest

from tests.unit.wire.accumulate import accumulate
from tests.unit.wire.streams import decoded, encoded
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.core.sse import BYTE_ORDER_MARK
from umg_grpc.wire.errors.provider_errors import decode_error

REQUEST = pb.GenerateRequest(model="m")

Json = dict[str, object]


@dataclass(frozen=True)
class Loose:
    id: str
    format: str
    call: Json
    """The call as the provider writes it."""
    expected: pb.ToolCall


def function(arguments: object) -> Json:
    return {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}


def read(arguments: str, call_id: str = "c") -> pb.ToolCall:
    return pb.ToolCall(call_id=call_id, name="f", arguments_json=arguments)


TOOL_USE: Json = {"type": "tool_use", "id": "c", "name": "f"}
CALL: Json = {"type": "function_call", "call_id": "c", "name": "f"}
CUSTOM: Json = {"type": "custom_tool_call", "name": "f", "input": "x"}

LOOSE = [
    Loose("chat, an object", "chat", function({"a": 1}), read('{"a":1}')),
    Loose("messages, no input", "messages", TOOL_USE, read("{}")),
    Loose("messages, null", "messages", TOOL_USE | {"input": None}, read("{}")),
    Loose("responses, an object", "responses", CALL | {"arguments": {"a": 1.0}}, read('{"a":1.0}')),
    Loose("responses, null", "responses", CALL | {"arguments": None}, read("")),
    Loose("responses, none", "responses", CALL, read("")),
    Loose("responses, no id", "responses", {"type": "function_call", "name": "f", "arguments": "{}"}, read("{}", "")),
    Loose("responses, null for an id", "responses", CALL | {"call_id": None, "arguments": "{}"}, read("{}", "")),
    Loose("responses, no id of free text", "responses", CUSTOM, pb.ToolCall(name="f", text="x")),
]


def body(case: Loose) -> Json:
    match case.format:
        case "chat":
            return {"choices": [{"message": {"tool_calls": [case.call]}, "finish_reason": "tool_calls"}]}
        case "messages":
            return {"type": "message", "content": [case.call], "stop_reason": "tool_use"}
        case _:
            return {"status": "completed", "output": [case.call]}


def frames(case: Loose) -> list[bytes]:
    match case.format:
        case "chat":
            choice = {"delta": {"tool_calls": [case.call | {"index": 0}]}, "finish_reason": "tool_calls"}
            events: list[Json] = [{"choices": [choice]}]
        case "messages":
            events = [
                {"type": "message_start", "message": {}},
                {"type": "content_block_start", "index": 0, "content_block": case.call},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
                {"type": "message_stop"},
            ]
        case _:
            done = {"output_index": 0, "arguments": case.call.get("arguments"), "input": case.call.get("input")}
            events = [
                {"type": "response.created", "response": {}},
                {"type": "response.output_item.added", "output_index": 0, "item": case.call},
                {"type": "response.function_call_arguments.done"} | done,
                {"type": "response.output_item.done", "output_index": 0, "item": case.call},
                {"type": "response.completed", "response": {"status": "completed", "output": [case.call]}},
            ]
    return [b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events]


@pytest.mark.parametrize("case", LOOSE, ids=lambda case: case.id)
def test_a_leniently_encoded_call_is_decoded(case: Loose) -> None:
    text_format = TEXT_FORMATS[case.format]
    whole = text_format.decode_response(msgspec.json.encode(body(case)), REQUEST, False)
    streamed = accumulate(decoded(text_format, frames(case), REQUEST))
    for answer in (whole, streamed):
        assert [part.tool_call for part in answer.candidates[0].message.parts] == [case.expected]


TEXTS: dict[str, Json] = {
    "chat": {"model": "x", "choices": [{"index": 0, "message": {"content": "CUT"}, "finish_reason": "stop"}]},
    "messages": {"type": "message", "model": "x", "content": [{"type": "text", "text": "CUT"}], "stop_reason": "end_turn"},
    "responses": {"model": "x", "status": "completed", "output": [{"type": "message", "content": [{"type": "output_text", "text": "CUT"}]}]},
    "native": {"modelVersion": "x", "candidates": [{"content": {"parts": [{"text": "CUT"}]}, "finishReason": "STOP"}]},
}  # fmt: skip


@pytest.mark.parametrize("name", TEXT_FORMATS)
@pytest.mark.parametrize("half", [b"\\ud83d", b"\xc3"], ids=["a lone surrogate", "a stray byte"])
def test_half_a_character_is_replaced_without_failing_the_answer(name: str, half: bytes) -> None:
    written = msgspec.json.encode(TEXTS[name]).replace(b"CUT", b"a" + half)
    response = TEXT_FORMATS[name].decode_response(written, REQUEST, False)
    assert response.candidates[0].message.parts[0].text.text == "a\ufffd"
    passed = TEXT_FORMATS[name].decode_response(written, REQUEST, True)
    assert passed.source.body == written.replace(b'"x"', b'"m"').decode(errors="replace").encode()


@pytest.mark.parametrize("name", ["chat", "messages", "responses"])
def test_half_a_character_does_not_fail_an_answer_with_a_repeated_member(name: str) -> None:
    written = msgspec.json.encode(TEXTS[name] | {"metadata": {"model": "y"}}).replace(b"CUT", b"a\\ud83d")
    passed = msgspec.json.decode(TEXT_FORMATS[name].decode_response(written, REQUEST, True).source.body)
    assert passed["model"] == "m"
    assert "a\ufffd" in str(passed)


def test_half_a_character_does_not_fail_the_repair_of_an_answer() -> None:
    written = b'{"model":"x","choices":[{"message":{"content":"a\\ud83d"}}]}'
    passed = msgspec.json.decode(TEXT_FORMATS["chat"].decode_response(written, REQUEST, True).source.body)
    assert passed["choices"] == [{"message": {"content": "a\ufffd"}, "finish_reason": "stop", "index": 0}]


TIMES = {"chat": "created", "responses": "created_at"}
STARTS = {"chat": TEXTS["chat"], "responses": TEXTS["responses"] | {"completed_at": 10**18}}


@pytest.mark.parametrize("face", TEXT_FORMATS)
@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("moment", [10**18, 1.7e12, "9" * 19, -1, 253402300800], ids=str)
def test_a_time_that_no_calendar_has_is_left_out(name: str, face: str, moment: object) -> None:
    written = msgspec.json.encode(STARTS[name] | {TIMES[name]: moment})
    response = TEXT_FORMATS[name].decode_response(written, REQUEST, False)
    assert not response.HasField("create_time")
    assert not response.HasField("complete_time")
    assert b"CUT" in TEXT_FORMATS[face].encode_response(response, REQUEST)
    assert b"CUT" in encoded(TEXT_FORMATS[face], [response_to_events(response)], REQUEST)


def test_the_last_second_that_a_calendar_has_is_a_time() -> None:
    written = msgspec.json.encode(TEXTS["chat"] | {"created": 253402300799})
    response = TEXT_FORMATS["chat"].decode_response(written, REQUEST, False)
    assert (
        msgspec.json.decode(TEXT_FORMATS["native"].encode_response(response, REQUEST))["createTime"]
        == "9999-12-31T23:59:59Z"
    )


ODD_GROUNDINGS = [
    b'{"groundingSupports":[{"segment":{"endIndex":1e999}}]}',
    b'{"groundingChunks":[7]}',
    b'{"groundingSupports":[{"segment":"x","groundingChunkIndices":[0]}]}',
    b'{"webSearchQueries":"x"}',
    b'{"searchEntryPoint":{"renderedContent":' + b"[" * 300 + b"]" * 300 + b"}}",
]


@pytest.mark.parametrize("grounding", ODD_GROUNDINGS, ids=range(len(ODD_GROUNDINGS)))
def test_invalid_grounding_is_passed_through_without_failing_the_answer(grounding: bytes) -> None:
    part = b'{"candidates":[{"content":{"parts":[{"text":"CUT"}]},"finishReason":"STOP","groundingMetadata":%b}]}'
    native, written = TEXT_FORMATS["native"], part % grounding
    whole = native.decode_response(written, REQUEST, False)
    streamed = decoded(native, [b"data: %b\n\n" % written], REQUEST)
    for candidate in (whole.candidates[0], accumulate(streamed).candidates[0]):
        assert [part.text.text for part in candidate.message.parts] == ["CUT"]
        assert not candidate.message.parts[0].text.citations
        assert candidate.grounding_json == grounding.decode()
    assert grounding in native.encode_response(whole, REQUEST)


def test_half_a_character_in_the_grounding_of_a_stream_is_replaced() -> None:
    written = (
        b'{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP","groundingMetadata":{"x":"a\xff"}}]}'
    )
    streamed = decoded(TEXT_FORMATS["native"], [b"data: %b\n\n" % written], REQUEST)
    assert accumulate(streamed).candidates[0].grounding_json == '{"x":"a\ufffd"}'


def test_a_mark_before_an_error_is_skipped() -> None:
    error = decode_error(
        400, {}, BYTE_ORDER_MARK + b'{"error": {"message": "too hot", "type": "invalid_request_error"}}'
    )
    assert error.message == "too hot"
