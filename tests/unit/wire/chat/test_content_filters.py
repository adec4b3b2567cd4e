"""Findings of Azure's content filter: in refusals, in responses and in streams, also of its asynchronous mode."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from umg_grpc.base.errors import Failure
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FACES, TEXT_FORMATS
from umg_grpc.wire.core.response_to_events import response_to_events

Json = dict[str, Any]

CHAT, REQUEST = TEXT_FORMATS["chat"], pb.GenerateRequest(model="m")
SAFE: Json = {"hate": {"filtered": False, "severity": "safe"}, "jailbreak": {"filtered": False, "detected": False}}
HIT: Json = {
    "hate": {"filtered": True, "severity": "high"},
    "self_harm": {"filtered": False, "severity": "safe"},
    "violence": {"filtered": True, "severity": "medium"},
}
MESSAGE = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
INNER: Json = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": HIT}
LISTED = [
    {"blocked": False, "source_type": "completion", "content_filter_results": SAFE},
    {"blocked": True, "source_type": "prompt", "content_filter_results": HIT},
]


@dataclass(frozen=True)
class Refused:
    id: str
    more: Json
    categories: str


REFUSALS = [
    Refused("in chat", {"innererror": INNER}, "hate,violence"),
    Refused("in images", {"inner_error": {}, "innererror": INNER | {"revised_prompt": "A cat"}}, "hate,violence"),
    Refused("in responses", {"content_filters": LISTED}, "hate,violence"),
    Refused("without findings", {}, ""),
    Refused("with odd findings", {"innererror": {"content_filter_result": [1]}, "content_filters": 7}, ""),
    Refused("with names that are none", {"innererror": {"content_filter_result": {"<b>": {"filtered": True}}}}, ""),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
@pytest.mark.parametrize("face", TEXT_FACES)
def test_a_refused_prompt_is_an_error_with_its_categories(case: Refused, face: str) -> None:
    body = {"error": {"message": MESSAGE, "type": None, "param": "prompt", "code": "content_filter", **case.more}}
    error = CHAT.decode_error(400, {}, json.dumps(body).encode())
    assert (error.reason, error.failure) == (pb.ERROR_REASON_CONTENT_BLOCKED, Failure.CALLER)
    assert error.metadata == ({"categories": case.categories} if case.categories else {})
    shown = TEXT_FACES[face].encode_error(error, 400).decode()
    assert MESSAGE in shown
    assert ("Filtered categories: hate, violence." in shown) == bool(case.categories)


HEAD: Json = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "gpt"}
EMPTY: Json = {"id": "", "object": "", "created": 0, "model": ""}
OFFSETS: Json = {"check_offset": 4, "start_offset": 4, "end_offset": 9}


def choice(**members: object) -> Json:
    return {"choices": [{"index": 0, "finish_reason": None, **members}]}


PROMPT: Json = EMPTY | {"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": SAFE}]}
BEGIN = [
    PROMPT,
    HEAD | choice(delta={"role": "assistant", "content": ""}, content_filter_results={}),
    HEAD | choice(delta={"content": "Hel"}, content_filter_results=SAFE),
]
ANNOTATED = EMPTY | choice(content_filter_results=SAFE, content_filter_offsets=OFFSETS)


@dataclass(frozen=True)
class Streamed:
    id: str
    chunks: list[Json]
    reason: "pb.FinishReason.ValueType"
    categories: str = ""


FILTERED = pb.FINISH_REASON_CONTENT_FILTER
STREAMS = [
    Streamed(
        "a text that passes",
        [*BEGIN, HEAD | choice(delta={}, finish_reason="stop", content_filter_results={})],
        pb.FINISH_REASON_STOP,
    ),
    Streamed(
        "a text that is filtered",
        [*BEGIN, HEAD | choice(delta={}, finish_reason="content_filter", content_filter_results=HIT)],
        FILTERED,
        "hate,violence",
    ),
    Streamed(
        "asynchronous findings around the end",
        [
            *BEGIN,
            ANNOTATED,
            HEAD | choice(delta={}, finish_reason="content_filter"),
            ANNOTATED | choice(content_filter_results=HIT, content_filter_offsets=OFFSETS),
            ANNOTATED,
        ],
        FILTERED,
        "hate,violence",
    ),
    Streamed(
        "findings that ended nothing",
        [*BEGIN, HEAD | choice(delta={}, finish_reason="stop", content_filter_results=HIT)],
        pb.FINISH_REASON_STOP,
    ),
]


def stream_of(chunks: list[Json]) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"


def decoded(data: bytes, size: int, *, passes: bool) -> list[pb.StreamGenerateResponse]:
    decoder = (CHAT.passthrough_decoder if passes else CHAT.translating_decoder)(REQUEST)
    messages = [decoder.feed(data[start : start + size]) for start in range(0, len(data), size)]
    return [message for message in (*messages, decoder.close()) if message is not None]


@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.id)
@pytest.mark.parametrize("size", [7, 5000])
def test_a_stream_with_findings_is_complete(case: Streamed, size: int) -> None:
    events = [event for message in decoded(stream_of(case.chunks), size, passes=False) for event in message.events]
    assert [event.text_delta for event in events if event.HasField("text_delta")] == ["Hel"]
    [finished] = [event.finished for event in events if event.HasField("finished")]
    assert (finished.finish_reason, finished.refusal_category) == (case.reason, case.categories)


@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.id)
def test_a_caller_of_the_same_format_gets_the_findings(case: Streamed) -> None:
    frames = b"".join(message.source_frames for message in decoded(stream_of(case.chunks), 5000, passes=True))
    passed = [json.loads(line[6:]) for line in frames.split(b"\n\n") if line.startswith(b"data: {")]
    findings = [[each.get("content_filter_results") for each in chunk["choices"]] for chunk in passed]
    sent = [[each.get("content_filter_results") for each in chunk["choices"]] for chunk in case.chunks]
    assert findings == sent
    assert passed[0]["prompt_filter_results"] == PROMPT["prompt_filter_results"]
    assert CHAT.has_no_output(stream_of([PROMPT])[: -len(b"data: [DONE]\n\n")])


@pytest.mark.parametrize("face", TEXT_FACES)
def test_a_filtered_response_ends_for_each_caller(face: str) -> None:
    answer = {"role": "assistant", "content": None}
    body = HEAD | choice(message=answer, finish_reason="content_filter", content_filter_results=HIT)
    response = CHAT.decode_response(json.dumps(body).encode(), REQUEST, False)
    [candidate] = response.candidates
    assert (candidate.finish_reason, candidate.refusal_category) == (FILTERED, "hate,violence")
    codec = TEXT_FACES[face]
    encoder = codec.stream_encoder(REQUEST)
    streamed = (encoder.feed(response_to_events(response)) + encoder.close()).decode()
    for shown in (codec.encode_response(response, REQUEST).decode(), streamed):
        assert any(word in shown for word in ("content_filter", '"refusal"', "SAFETY", '"ERROR"')), shown
