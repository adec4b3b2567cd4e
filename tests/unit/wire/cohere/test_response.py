"""Responses of Cohere's chat: whole and streamed ones have the same content, and the SDK's own types accept both."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from cohere.v2.types import V2ChatResponse, V2ChatStreamResponse
from hypothesis import given
from pydantic import TypeAdapter

from tests.support.callers.cohere_http_client import aggregate
from tests.support.callers.text_format_clients import events as events_of
from tests.unit.wire.chat import strategies as chat
from tests.unit.wire.laws import modest
from tests.unit.wire.messages import strategies as messages
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.cohere import COHERE_FACE
from umg_grpc.wire.core.response_to_events import response_to_events

EVENT: TypeAdapter[Any] = TypeAdapter(V2ChatStreamResponse)
DOCUMENTS = json.dumps(
    {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "documents": ["one", {"id": "b", "data": {"text": "two", "title": "T"}}],
    }
).encode()
REQUEST = COHERE_FACE.decode_request(DOCUMENTS, {}).canonical
DOCUMENT_B = {"type": "document", "id": "b", "document": {"id": "b", "title": "T", "text": "two"}}
PAGE = {
    "type": "document",
    "id": "https://a",
    "document": {"id": "https://a", "title": "A", "url": "https://a", "text": "seen"},
}


def text(value: str, *citations: pb.Citation) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=value, citations=citations))


def call(name: str, arguments: str, call_id: str = "") -> pb.Part:
    return pb.Part(tool_call=pb.ToolCall(call_id=call_id or name, name=name, arguments_json=arguments))


def thought(*texts: str, summaries: Sequence[str] = ()) -> pb.Part:
    return pb.Part(reasoning=pb.ReasoningPart(texts=texts, summaries=summaries))


def response(
    *parts: pb.Part, reason: "pb.FinishReason.ValueType" = pb.FINISH_REASON_STOP, notice: str = ""
) -> pb.GenerateResponse:
    message = pb.Message(role=pb.ROLE_ASSISTANT, parts=parts)
    candidate = pb.Candidate(message=message, finish_reason=reason, finish_message=notice)
    usage = pb.Usage(input_tokens=9, output_tokens=4, cache_read_tokens=3)
    return pb.GenerateResponse(response_id="r-1", model="m", candidates=[candidate], usage=usage)


def whole(made: pb.GenerateResponse) -> dict[str, Any]:
    """Return the response as one body, which the SDK's types accept."""
    body: dict[str, Any] = json.loads(COHERE_FACE.encode_response(made, REQUEST))
    V2ChatResponse.model_validate(body)
    return body


def frames(made: Sequence[pb.StreamGenerateResponse]) -> bytes:
    encoder = COHERE_FACE.stream_encoder(REQUEST)
    data = b"".join([*map(encoder.feed, made), encoder.close()])
    assert encoder.close() == b""
    for event in events_of(data):
        EVENT.validate_python(event)
    return data


def streamed(made: pb.GenerateResponse) -> dict[str, Any]:
    """Return the response as a client collects it from a stream, in the form of a whole one."""
    body = aggregate(events_of(frames([response_to_events(made)])))
    body.pop("error", None)
    message = {"role": "assistant"} | {name: value for name, value in body["message"].items() if value}
    if not message.keys() & {"content", "tool_calls"}:
        message["content"] = [{"type": "text", "text": ""}]
    return body | {"message": message}


@dataclass(frozen=True)
class Case:
    id: str
    made: pb.GenerateResponse
    message: dict[str, Any]
    finish: str = "COMPLETE"


WEB = pb.Citation(start_index=3, end_index=5, title="A", cited_text="seen", web=pb.WebSource(url="https://a"))
OF_B = pb.Citation(cited_text="two", document=pb.DocumentSource(document_index=1))
OF_NONE = pb.Citation(document=pb.DocumentSource(document_index=7))


def cited(start: int, end: int, words: str, source: object, block: int = 0) -> dict[str, Any]:
    found = {"start": start, "end": end, "text": words, "sources": [source]}
    return found | {"content_index": block, "type": "TEXT_CONTENT"}


CASES = [
    Case("a text", response(text("Hello")), {"content": [{"type": "text", "text": "Hello"}]}),
    Case("no content", response(), {"content": [{"type": "text", "text": ""}]}),
    Case(
        "texts are one block, in which citations have their places",
        response(thought("hm"), text("ab "), text("cdefg", WEB), text("hi", OF_B, OF_NONE)),
        {
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "ab cdefghi"}],
            "citations": [cited(6, 8, "fg", PAGE, 1), cited(8, 10, "hi", DOCUMENT_B, 1)],
        },
    ),
    Case(
        "calls",
        response(text("I look."), call("a", '{"x": 1.0}'), call("b", ""), reason=pb.FINISH_REASON_TOOL_CALLS),
        {
            "content": [{"type": "text", "text": "I look."}],
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "a", "arguments": '{"x": 1.0}'}},
                {"id": "b", "type": "function", "function": {"name": "b", "arguments": "{}"}},
            ],
        },
        "TOOL_CALL",
    ),
    Case(
        "thoughts",
        response(thought("a", "b"), thought(summaries=["c"])),
        {"content": [{"type": "thinking", "thinking": "a\n\nb\n\nc"}]},
    ),
    Case("a limit", response(text("a"), reason=pb.FINISH_REASON_LENGTH), {"content": [{"type": "text", "text": "a"}]}, "MAX_TOKENS"),
    Case("a stop sequence", response(text("a"), reason=pb.FINISH_REASON_STOP_SEQUENCE), {"content": [{"type": "text", "text": "a"}]}, "STOP_SEQUENCE"),
    Case("filtered text", response(text("a"), reason=pb.FINISH_REASON_CONTENT_FILTER), {"content": [{"type": "text", "text": "a"}]}, "ERROR"),
    Case(
        "a refusal in words",
        response(pb.Part(refusal=pb.RefusalPart(text="No.")), reason=pb.FINISH_REASON_REFUSAL),
        {"content": [{"type": "text", "text": "No."}]},
    ),
    Case("a refusal without words", response(reason=pb.FINISH_REASON_REFUSAL), {"content": [{"type": "text", "text": ""}]}, "ERROR"),
    Case(
        "a search of the provider",
        response(pb.Part(server_tool_call=pb.ServerToolCall(call_id="1", name="web_search")), text("a")),
        {"content": [{"type": "text", "text": "a"}]},
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_response_has_the_same_content_whole_and_streamed(case: Case) -> None:
    body = whole(case.made)
    assert body["message"] == {"role": "assistant", **case.message}
    assert (body["id"], body["finish_reason"]) == ("r-1", case.finish)
    tokens = {"input_tokens": 9, "output_tokens": 4}
    assert body["usage"] == {"billed_units": tokens, "tokens": tokens, "cached_tokens": 3}
    assert streamed(case.made) == body


@modest
@given(messages.responses() | chat.responses())
def test_any_response_has_the_same_content_whole_and_streamed(made: pb.GenerateResponse) -> None:
    del made.candidates[1:]
    body = whole(made)
    body.pop("logprobs", None)
    assert streamed(made) == body


def test_a_blocked_prompt_is_an_error() -> None:
    assert whole(pb.GenerateResponse(response_id="r", block_reason="SAFETY"))["finish_reason"] == "ERROR"


def test_log_probabilities_have_the_texts_of_their_tokens() -> None:
    made = response(pb.Part(text=pb.TextPart(text="ab", logprobs=[pb.TokenLogprob(token="ab", logprob=-0.5)])))
    entry = {"text": "ab", "token_ids": [], "logprobs": [-0.5]}
    assert whole(made)["logprobs"] == [entry]
    found = [event["logprobs"] for event in events_of(frames([response_to_events(made)])) if "logprobs" in event]
    assert found == [entry]


def event(part: int, **kind: Any) -> pb.GenerateEvent:
    return pb.GenerateEvent(part_index=part, **kind)


def test_calls_whose_events_alternate_are_sent_one_after_another() -> None:
    started = [event(part, part_started=call(name, "")) for part, name in enumerate("abc")]
    halves = [event(part, arguments_delta='{"x":') for part in range(3)]
    others = [event(part, arguments_delta=f"{part}}}") for part in range(3)]
    ended = [event(part, part_ended=pb.PartEnded()) for part in range(3)]
    for order in ([*started, *halves, *others, *ended], [*started, *halves, *others[::-1], *ended[::-1]]):
        found = aggregate(events_of(frames([pb.StreamGenerateResponse(events=order)])))
        functions = [each["function"] for each in found["message"]["tool_calls"]]
        assert functions == [{"name": name, "arguments": f'{{"x":{at}}}'} for at, name in enumerate("abc")]


def test_a_citation_may_come_before_its_text() -> None:
    order = [
        event(0, part_started=text("")),
        event(0, citation=OF_B),
        event(0, text_delta="ab"),
        event(0, part_ended=pb.PartEnded()),
        event(1, citation=OF_B),
    ]
    found = aggregate(events_of(frames([pb.StreamGenerateResponse(events=order)])))
    assert found["message"]["citations"] == [cited(0, 2, "ab", DOCUMENT_B)]


def test_a_thousand_calls_that_wait_need_no_deep_stack() -> None:
    order = [event(0, part_started=call("first", ""))]
    order += [event(part, part_started=call("more", '{"x":1}', f"c{part}")) for part in range(1, 1001)]
    order += [event(part, part_ended=pb.PartEnded()) for part in range(1, 1001)]
    order.append(event(0, part_ended=pb.PartEnded()))
    encoder = COHERE_FACE.stream_encoder(REQUEST)
    encoder.feed(pb.StreamGenerateResponse(events=order[:-1]))
    assert encoder.retained_bytes > 1000 * 512
    rest = encoder.feed(pb.StreamGenerateResponse(events=order[-1:]))
    assert rest.count(b"event: tool-call-start") == 1000
    assert encoder.retained_bytes < 1000 * 512


def test_a_failed_stream_ends_with_the_error() -> None:
    encoder = COHERE_FACE.stream_encoder(REQUEST)
    begun = encoder.feed(pb.StreamGenerateResponse(events=[event(0, text_delta="a")]))
    failed = encoder.error(UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "the stream broke off"))
    assert encoder.feed(pb.StreamGenerateResponse(events=[event(0, text_delta="b")])) + encoder.close() == b""
    *_, last = events_of(begun + failed)
    EVENT.validate_python(last)
    assert last["delta"] == {"error": "the stream broke off", "finish_reason": "ERROR"}


def test_a_stream_states_why_the_provider_stopped() -> None:
    made = response(text("a"), reason=pb.FINISH_REASON_CONTENT_FILTER, notice="too rude")
    assert events_of(frames([response_to_events(made)]))[-1]["delta"]["error"] == "too rude"


@pytest.mark.parametrize(
    ("part", "expressed"),
    [
        (text("a"), True),
        (thought("a"), True),
        (call("a", "{}"), True),
        (pb.Part(server_tool_call=pb.ServerToolCall(name="web_search")), True),
        (pb.Part(server_tool_result=pb.ServerToolResult(name="code_execution")), False),
        (pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE)), False),
        (pb.Part(opaque=pb.OpaquePart(format="chat", json="{}")), False),
    ],
)
def test_parts_that_a_response_can_contain(part: pb.Part, expressed: bool) -> None:
    assert COHERE_FACE.can_express(part) is expressed
