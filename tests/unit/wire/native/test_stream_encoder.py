"""Lines that native's clients accept."""

import re

import msgspec
import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.native import NATIVE_FORMAT

Chunk = dict[str, object]
LINE = re.compile(rb"data: \{[^\r\n]*\}\n\n")


def text(words: str, *citations: pb.Citation, state: pb.ReasoningState | None = None) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=words, citations=citations), state=state)


def thoughts(*words: str, summaries: tuple[str, ...] = (), state: pb.ReasoningState | None = None) -> pb.Part:
    return pb.Part(reasoning=pb.ReasoningPart(texts=words, summaries=summaries), state=state)


def call(call_id: str, name: str, arguments: str) -> pb.Part:
    return pb.Part(tool_call=pb.ToolCall(call_id=call_id, name=name, arguments_json=arguments))


def answer(*parts: pb.Part, reason: "pb.FinishReason.ValueType" = pb.FINISH_REASON_STOP) -> pb.GenerateResponse:
    candidate = pb.Candidate(message=pb.Message(role=pb.ROLE_ASSISTANT, parts=parts), finish_reason=reason)
    return pb.GenerateResponse(
        response_id="r", model="m", candidates=[candidate], usage=pb.Usage(input_tokens=3, output_tokens=2)
    )


def chunks(response: pb.GenerateResponse) -> list[Chunk]:
    encoder = NATIVE_FORMAT.stream_encoder(pb.GenerateRequest())
    stream = encoder.feed(response_to_events(response)) + encoder.close()
    assert encoder.close() == b"", "the end is sent once"
    lines = LINE.findall(stream)
    assert b"".join(lines) == stream, "nothing but data lines and blank ones"
    return [msgspec.json.decode(line[6:]) for line in lines]


def parts(response: pb.GenerateResponse) -> list[Chunk]:
    return [chunk["candidates"][0]["content"]["parts"][0] for chunk in chunks(response)]


SAMPLES = [
    answer(),
    answer(text("hi")),
    answer(thoughts("so"), text("hi"), call("c", "f", "{}")),
    answer(pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, data=b"x", mime_type="image/png"))),
    answer(pb.Part(refusal=pb.RefusalPart(text="no"))),
    pb.GenerateResponse(block_reason="SAFETY"),
    pb.GenerateResponse(candidates=[pb.Candidate(index=1), pb.Candidate(index=0)]),
]


@pytest.mark.parametrize("response", SAMPLES, ids=range(len(SAMPLES)))
def test_every_line_has_parts_counters_and_ratings_the_last_too(response: pb.GenerateResponse) -> None:
    encoded = chunks(response)
    assert encoded
    for chunk in encoded:
        (candidate,) = chunk["candidates"]
        assert len(candidate["content"]["parts"]) == 1
        assert candidate["content"]["role"] == "model"
        assert candidate["safetyRatings"] == []
        assert chunk["usageMetadata"].keys() == {
            "promptTokenCount",
            "candidatesTokenCount",
            "totalTokenCount",
            "thoughtsTokenCount",
            "cachedContentTokenCount",
        }
    finished = [chunk["candidates"][0].get("finishReason") for chunk in encoded]
    assert len([reason for reason in finished if reason]) == max(1, len(response.candidates))
    assert finished[-1]


def test_every_line_has_the_same_head_and_the_last_the_final_usage() -> None:
    response = answer(text("a"), text("b"))
    response.create_time.FromSeconds(1)
    encoded = chunks(response)
    assert {(chunk["modelVersion"], chunk["responseId"], chunk["createTime"]) for chunk in encoded} == {
        ("m", "r", "1970-01-01T00:00:01Z")
    }
    assert [chunk["usageMetadata"]["totalTokenCount"] for chunk in encoded] == [0, 0, 5]


def test_calls_and_media_are_encoded_in_one_chunk() -> None:
    events = [
        pb.GenerateEvent(part_index=0, part_started=pb.Part(tool_call=pb.ToolCall(call_id="a", name="f", arguments_json=""))),
        pb.GenerateEvent(part_index=1, part_started=pb.Part(tool_call=pb.ToolCall(call_id="b", name="g", text=""))),
        pb.GenerateEvent(part_index=0, arguments_delta='{"x":'),
        pb.GenerateEvent(part_index=1, arguments_delta="sel"),
        pb.GenerateEvent(part_index=2, part_started=pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_AUDIO, mime_type="audio/wav"))),
        pb.GenerateEvent(part_index=2, media_delta=pb.MediaDelta(data=b"ab")),
        pb.GenerateEvent(part_index=0, arguments_delta="1}"),
        pb.GenerateEvent(part_index=1, arguments_delta="ect"),
        pb.GenerateEvent(part_index=2, media_delta=pb.MediaDelta(data=b"c")),
        pb.GenerateEvent(part_index=2, part_updated=pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_AUDIO, media_id="i"))),
        pb.GenerateEvent(part_index=0, state=pb.ReasoningState(data="AAAA", format="native")),
    ]  # fmt: skip
    encoder = NATIVE_FORMAT.stream_encoder(pb.GenerateRequest())
    assert encoder.feed(pb.StreamGenerateResponse(events=events)) == b""
    ended = [pb.GenerateEvent(part_index=index, part_ended=pb.PartEnded()) for index in (1, 0)]
    stream = encoder.feed(pb.StreamGenerateResponse(events=ended)) + encoder.close()
    encoded = [msgspec.json.decode(line[6:])["candidates"][0]["content"]["parts"][0] for line in LINE.findall(stream)]
    assert encoded == [
        {"functionCall": {"id": "b", "name": "g", "args": {"input": "select"}}},
        {"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}, "thoughtSignature": "AAAA"},
        {"inlineData": {"mimeType": "audio/wav", "data": "YWJj"}},
        {"text": ""},
    ]


def test_a_provider_tool_call_is_encoded_with_its_final_state() -> None:
    started = pb.Part(server_tool_call=pb.ServerToolCall(name="code_execution", format="native"))
    done = pb.Part(
        server_tool_call=pb.ServerToolCall(name="code_execution", format="native", input_json='{"code":"1"}')
    )
    events = [
        pb.GenerateEvent(part_started=started),
        pb.GenerateEvent(part_updated=done),
        pb.GenerateEvent(part_ended=pb.PartEnded()),
    ]
    encoder = NATIVE_FORMAT.stream_encoder(pb.GenerateRequest())
    stream = encoder.feed(pb.StreamGenerateResponse(events=events))
    assert b'"parts":[{"executableCode":{"code":"1"}}]' in stream


FOREIGN = pb.ReasoningState(data="x", format="messages")


def test_summaries_are_sent_where_the_reasoning_is_not() -> None:
    assert [part["text"] for part in parts(answer(thoughts(summaries=("s", "t"))))] == ["s", "\n\nt", ""]
    assert [part["text"] for part in parts(answer(thoughts("a", summaries=("s",))))] == ["a", ""]


def test_hidden_reasoning_consists_of_its_state_alone() -> None:
    hidden = pb.Part(reasoning=pb.ReasoningPart(redacted=True), state=FOREIGN)
    encoded = parts(answer(hidden))[0]
    assert encoded.keys() == {"thought", "thoughtSignature"}


def test_a_failure_ends_the_stream_with_its_error_and_nothing_else() -> None:
    encoder = NATIVE_FORMAT.stream_encoder(pb.GenerateRequest())
    encoder.feed(pb.StreamGenerateResponse(events=[pb.GenerateEvent(text_delta="a")]))
    frame = encoder.error(UmgError(pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, "broken\n\nhalf"))
    assert frame == b'data: {"error":{"code":429,"message":"broken\\n\\nhalf","status":"RESOURCE_EXHAUSTED"}}\n\n'
    assert encoder.close() == b""
    assert encoder.feed(pb.StreamGenerateResponse(events=[pb.GenerateEvent(text_delta="b")])) == b""


def test_kinds_newer_than_this_build_are_skipped() -> None:
    encoder = NATIVE_FORMAT.stream_encoder(pb.GenerateRequest())
    events = [
        pb.GenerateEvent(),
        pb.GenerateEvent(opaque=pb.OpaquePart(format="responses", json="{}")),
        pb.GenerateEvent(part_started=pb.Part()),
        pb.GenerateEvent(part_index=9, arguments_delta="{}"),
        pb.GenerateEvent(part_index=9, part_ended=pb.PartEnded()),
    ]
    assert encoder.feed(pb.StreamGenerateResponse(events=events)) == b""


def test_a_percent_sign_in_an_id_is_only_that() -> None:
    response = answer(text("100%d"))
    response.response_id, response.model = "50%d", "m%s"
    assert {(chunk["responseId"], chunk["modelVersion"]) for chunk in chunks(response)} == {("50%d", "m%s")}


def test_a_heartbeat_is_a_bare_line() -> None:
    assert NATIVE_FORMAT.heartbeat == b"\n"


# --- as one array


def array(*fed: pb.StreamGenerateResponse, error: UmgError | None = None) -> bytes:
    assert NATIVE_FORMAT.array_encoder is not None
    encoder = NATIVE_FORMAT.array_encoder(pb.GenerateRequest())
    written = b"".join(map(encoder.feed, fed))
    return written + (encoder.error(error) if error else b"") + encoder.close()


def test_a_streamed_array_is_always_one_json_document() -> None:
    frames = b'data: {"a":1}\r\n\r\n\r\ndata: {"b":"\\n\\n"}\r\n\r\n: comment\n\ndata: {"c":3}\n\n'
    passed = pb.StreamGenerateResponse(source_frames=frames)
    assert array(passed) == b'[{"a":1},\r\n{"b":"\\n\\n"},\r\n{"c":3}]'
    encoded = msgspec.json.decode(array(response_to_events(answer(text("a"), text("b")))))
    assert [element["candidates"][0]["content"]["parts"][0]["text"] for element in encoded] == ["a", "b", ""]


def test_an_array_that_breaks_off_ends_with_the_error() -> None:
    error = UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "cut")
    encoded = msgspec.json.decode(
        array(pb.StreamGenerateResponse(events=[pb.GenerateEvent(text_delta="a")]), error=error)
    )
    assert encoded[-1] == {"error": {"code": 502, "message": "cut", "status": "UNAVAILABLE"}}
    assert len(encoded) == 2
    assert msgspec.json.decode(array(error=error)) == encoded[-1:]


def test_an_array_without_chunks_is_empty() -> None:
    assert NATIVE_FORMAT.array_encoder is not None
    encoder = NATIVE_FORMAT.array_encoder(pb.GenerateRequest())
    assert encoder.feed(pb.StreamGenerateResponse(source_frames=b"\n")) == b""
    assert encoder.close() == b"[]"
    assert encoder.close() == b""
