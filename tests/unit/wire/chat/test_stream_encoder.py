"""Chunks that chat's clients accept."""

import msgspec
import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT
from umg_grpc.wire.core.response_to_events import response_to_events

Chunk = dict[str, object]


def part(**kind: object) -> pb.Part:
    return pb.Part(**kind)


def text(words: str, *citations: pb.Citation) -> pb.Part:
    return part(text=pb.TextPart(text=words, citations=citations))


def thoughts(*words: str) -> pb.Part:
    return part(reasoning=pb.ReasoningPart(texts=words))


def call(call_id: str, name: str, arguments: str) -> pb.Part:
    return part(tool_call=pb.ToolCall(call_id=call_id, name=name, arguments_json=arguments))


def answer(*parts: pb.Part, reason: "pb.FinishReason.ValueType" = pb.FINISH_REASON_STOP) -> pb.GenerateResponse:
    candidate = pb.Candidate(message=pb.Message(role=pb.ROLE_ASSISTANT, parts=parts), finish_reason=reason)
    return pb.GenerateResponse(
        response_id="chatcmpl-1", model="m", candidates=[candidate], usage=pb.Usage(input_tokens=1)
    )


def frames(response: pb.GenerateResponse, request: pb.GenerateRequest | None = None) -> list[bytes]:
    encoder = CHAT_FORMAT.stream_encoder(request or pb.GenerateRequest())
    stream = encoder.feed(response_to_events(response)) + encoder.close()
    assert encoder.close() == b"", "the end is sent once"
    events = stream.split(b"\n\n")
    assert events.pop() == b""
    assert all(event.startswith(b"data: ") and b"\n" not in event for event in events)
    assert events.pop() == b"data: [DONE]"
    return [event[6:] for event in events]


def chunks(response: pb.GenerateResponse, request: pb.GenerateRequest | None = None) -> list[Chunk]:
    return [msgspec.json.decode(frame) for frame in frames(response, request)]


def deltas(response: pb.GenerateResponse, request: pb.GenerateRequest | None = None) -> list[Chunk]:
    return [chunk["choices"][0]["delta"] for chunk in chunks(response, request)]


def test_only_the_first_chunk_has_the_role() -> None:
    encoded = deltas(answer(thoughts("so"), text("hi"), call("c", "f", "{}")))
    assert [delta.get("role") for delta in encoded] == ["assistant", *[None] * (len(encoded) - 1)]


def test_content_is_null_where_an_answer_only_calls() -> None:
    assert deltas(answer(call("c", "f", "{}")))[0] == {"role": "assistant", "content": None, "refusal": None}
    assert deltas(answer(text("hi")))[0] == {"role": "assistant", "content": "", "refusal": None}
    assert deltas(answer())[0] == {"role": "assistant", "content": "", "refusal": None}


def test_calls_are_numbered_from_zero_and_have_id_type_and_name_once() -> None:
    encoded = [
        delta["tool_calls"][0]
        for delta in deltas(answer(text("hi"), call("a", "f", '{"x":1}'), call("b", "g", "")))
        if "tool_calls" in delta
    ]
    assert encoded == [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"x":1}'}},
        {"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}},
        {"index": 1, "function": {"arguments": "{}"}},
    ]


def test_calls_are_counted_in_each_choice() -> None:
    response = answer(call("a", "f", "{}"))
    response.candidates.add(index=1, finish_reason=pb.FINISH_REASON_STOP).message.parts.append(call("b", "f", "{}"))
    encoded = chunks(response)
    assert {
        (chunk["choices"][0]["index"], called["index"])
        for chunk in encoded
        for called in chunk["choices"][0]["delta"].get("tool_calls", ())
    } == {(0, 0), (1, 0)}
    assert [chunk["choices"][0]["finish_reason"] for chunk in encoded if chunk["choices"][0]["finish_reason"]] == [
        "tool_calls"
    ] * 2


def test_a_call_without_an_id_gets_a_unique_id() -> None:
    encoded = deltas(answer(call("", "f", "{}"), call("", "f", "{}")))
    assert [called["id"] for delta in encoded for called in delta.get("tool_calls", ()) if "id" in called] == [
        "call_chatcmpl1_0",
        "call_chatcmpl1_1",
    ]


def test_one_late_delta_has_all_annotations_with_offsets_in_the_whole_content() -> None:
    first = pb.Citation(web=pb.WebSource(url="https://a.test"), title="A", start_index=1, end_index=2)
    whole = pb.Citation(web=pb.WebSource(url="https://b.test"))
    foreign = pb.Citation(document=pb.DocumentSource(document_index=1))
    encoded = chunks(answer(text("one"), text("two", first, whole, foreign)))
    annotations = [
        chunk["choices"][0]["delta"]["annotations"]
        for chunk in encoded
        if "annotations" in chunk["choices"][0]["delta"]
    ]
    assert annotations == [
        [
            {
                "type": "url_citation",
                "url_citation": {"url": "https://a.test", "title": "A", "start_index": 4, "end_index": 5},
            },
            {
                "type": "url_citation",
                "url_citation": {"url": "https://b.test", "title": "", "start_index": 3, "end_index": 6},
            },
        ]
    ]
    assert "annotations" in encoded[-2]["choices"][0]["delta"]


def test_usage_is_the_last_chunk_and_only_there_when_requested() -> None:
    encoded = chunks(answer(text("hi")), pb.GenerateRequest(face_hints=pb.FaceHints(include_usage=True)))
    assert [chunk["usage"] is None for chunk in encoded] == [*[True] * (len(encoded) - 1), False]
    assert encoded[-1]["choices"] == []
    assert not any("usage" in chunk for chunk in chunks(answer(text("hi"))))


def test_every_chunk_has_the_same_head() -> None:
    heads = {
        (chunk["id"], chunk["object"], chunk["created"], chunk["model"])
        for chunk in chunks(answer(text("hi")), pb.GenerateRequest(face_hints=pb.FaceHints(include_usage=True)))
    }
    assert heads == {("chatcmpl-1", "chat.completion.chunk", 0, "m")}


def test_reasoning_precedes_the_text_and_its_parts_are_separated() -> None:
    encoded = deltas(answer(thoughts("a", "b"), thoughts("c"), text("hi")))
    assert [delta["reasoning_content"] for delta in encoded if "reasoning_content" in delta] == ["a", "\n\nb", "\n\nc"]
    assert [delta["content"] for delta in encoded if delta.get("content")] == ["hi"]


PARTS = [thoughts("a", "b"), thoughts("c"), text("hi"), thoughts("d"), call("x", "f", "{}")]


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("count", range(len(PARTS) + 1))
def test_a_streamed_answer_aggregates_to_the_unstreamed_one(inline: bool, count: int) -> None:
    request, response = pb.GenerateRequest(face_hints=pb.FaceHints(thinking_to_content=inline)), answer(*PARTS[:count])
    message = msgspec.json.decode(CHAT_FORMAT.encode_response(response, request))["choices"][0]
    encoded = chunks(response, request)
    for name in ("content", "reasoning_content"):
        streamed = "".join(chunk["choices"][0]["delta"].get(name) or "" for chunk in encoded)
        assert streamed == (message["message"].get(name) or "")
    assert encoded[-1]["choices"][0]["finish_reason"] == message["finish_reason"]


def test_reasoning_is_inside_the_text_for_a_caller_that_requests_it() -> None:
    cited = pb.Citation(web=pb.WebSource(url="https://a.test"), start_index=0, end_index=2)
    request, response = (
        pb.GenerateRequest(face_hints=pb.FaceHints(thinking_to_content=True)),
        answer(thoughts("why"), text("hi", cited)),
    )
    message = msgspec.json.decode(CHAT_FORMAT.encode_response(response, request))["choices"][0]["message"]
    assert message["content"] == "<think>why</think>hi"
    assert "reasoning_content" not in message
    assert message["annotations"][0]["url_citation"]["start_index"] == 18
    assert deltas(response, request)[-2]["annotations"] == message["annotations"]


def test_the_older_functions_are_answered_as_one_function_call() -> None:
    request = pb.GenerateRequest(face_hints=pb.FaceHints(legacy_functions=True))
    encoded = chunks(answer(call("", "f", '{"a":1}'), call("", "g", "{}")), request)
    assert [
        chunk["choices"][0]["delta"]["function_call"]
        for chunk in encoded
        if "function_call" in chunk["choices"][0]["delta"]
    ] == [
        {"name": "f", "arguments": ""},
        {"arguments": '{"a":1}'},
    ]
    assert encoded[-1]["choices"][0]["finish_reason"] == "function_call"


@pytest.mark.parametrize("reason", pb.FinishReason.values())
def test_every_finish_reason_is_one_that_clients_know(reason: "pb.FinishReason.ValueType") -> None:
    assert chunks(answer(text("hi"), reason=reason))[-1]["choices"][0]["finish_reason"] in {
        "stop",
        "length",
        "tool_calls",
        "content_filter",
    }


def test_a_blocked_prompt_is_an_empty_choice_that_was_filtered() -> None:
    blocked = pb.GenerateResponse(response_id="r", block_reason="SAFETY")
    whole = msgspec.json.decode(CHAT_FORMAT.encode_response(blocked, pb.GenerateRequest()))["choices"]
    assert [(choice["message"]["content"], choice["finish_reason"]) for choice in whole] == [("", "content_filter")]
    assert chunks(blocked)[-1]["choices"][0]["finish_reason"] == "content_filter"


def test_a_failure_ends_the_stream_with_its_error_and_nothing_else() -> None:
    encoder = CHAT_FORMAT.stream_encoder(pb.GenerateRequest())
    encoder.feed(pb.StreamGenerateResponse(events=[pb.GenerateEvent(started=pb.GenerationStarted())]))
    frame = encoder.error(UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "broken\n\nhalf"))
    assert (
        frame
        == b'data: {"error":{"message":"broken\\n\\nhalf","type":"server_error","param":null,"code":"upstream_cut"}}\n\n'
    )
    assert encoder.close() == b""


def test_a_failure_before_the_first_chunk_has_the_status_and_the_time_to_wait() -> None:
    error = UmgError(pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, "later", retry_after_seconds="1.5")
    frame = CHAT_FORMAT.stream_encoder(pb.GenerateRequest()).error(error)
    members = b'"message":"later","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"'
    assert frame == b'data: {"error":{%b,"status":429,"retry_after":2}}\n\n' % members


def test_kinds_newer_than_this_build_are_skipped() -> None:
    encoder = CHAT_FORMAT.stream_encoder(pb.GenerateRequest())
    events = [
        pb.GenerateEvent(),
        pb.GenerateEvent(opaque=pb.OpaquePart(format="responses", json="{}")),
        pb.GenerateEvent(part_started=pb.Part()),
    ]
    assert encoder.feed(pb.StreamGenerateResponse(events=events)) == b""


def test_reasoning_state_is_sent_only_where_chat_has_a_field_for_it() -> None:
    native = part(
        tool_call=pb.ToolCall(call_id="c", name="f", arguments_json="{}"),
        state=pb.ReasoningState(data="s", format="native"),
    )
    foreign = part(reasoning=pb.ReasoningPart(texts=["a"]), state=pb.ReasoningState(data="t", format="messages"))
    encoded = msgspec.json.encode(deltas(answer(foreign, native)))
    assert b'"extra_content":{"google":{"thought_signature":"s"}}' in encoded
    assert b'"t"' not in encoded


def test_heartbeats_are_comments() -> None:
    assert CHAT_FORMAT.heartbeat.startswith(b":")
    assert CHAT_FORMAT.heartbeat.endswith(b"\n\n")


def test_a_state_after_its_call_has_the_function_that_clients_read() -> None:
    signed = part(tool_call=pb.ToolCall(call_id="c", name="f"), state=pb.ReasoningState(data="s", format="native"))
    custom = part(
        tool_call=pb.ToolCall(call_id="d", name="g", text="x"), state=pb.ReasoningState(data="t", format="native")
    )
    states = [
        called
        for delta in deltas(answer(signed, custom))
        for called in delta.get("tool_calls", ())
        if "extra_content" in called
    ]
    assert [(called.get("function"), called.get("custom")) for called in states] == [
        ({"arguments": ""}, None),
        (None, {"input": ""}),
    ]
    assert all(
        "tool_calls" not in delta
        for delta in deltas(answer(signed), pb.GenerateRequest(face_hints=pb.FaceHints(legacy_functions=True)))
    )


def test_a_legacy_function_may_have_text_arguments() -> None:
    request, custom = (
        pb.GenerateRequest(face_hints=pb.FaceHints(legacy_functions=True)),
        part(tool_call=pb.ToolCall(name="f", text="x")),
    )
    message = msgspec.json.decode(CHAT_FORMAT.encode_response(answer(custom), request))["choices"][0]["message"]
    assert message["function_call"] == {"name": "f", "arguments": "x"}
