"""Whole answers, in both directions."""

import msgspec
import pytest

from tests.unit.wire.messages.streams import ANSWERED
from umg_grpc.v1 import pb
from umg_grpc.wire.messages import MESSAGES_FORMAT

Fields = dict[str, object]


def text(words: str, **more: object) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=words, **more))


def call(arguments: str = "{}", call_id: str = "t", **more: object) -> pb.Part:
    return pb.Part(tool_call=pb.ToolCall(call_id=call_id, name="f", arguments_json=arguments), **more)


def state(data: str, maker: str) -> pb.ReasoningState:
    return pb.ReasoningState(data=data, format=maker)


def answered(*parts: pb.Part, **more: object) -> Fields:
    candidate = pb.Candidate(message=pb.Message(parts=parts), **more)
    return msgspec.json.decode(
        MESSAGES_FORMAT.encode_response(pb.GenerateResponse(response_id="id.1", candidates=[candidate]), ANSWERED)
    )


def web(url: str, start: int | None = None, end: int | None = None) -> pb.Citation:
    return pb.Citation(web=pb.WebSource(url=url), start_index=start, end_index=end)


def source(url: str) -> Fields:
    return {"type": "web_search_result_location", "url": url, "title": None, "cited_text": "", "encrypted_index": ""}


def piece(words: str, *urls: str) -> Fields:
    return {"type": "text", "text": words} | ({"citations": [source(url) for url in urls]} if urls else {})


SPLITS = [
    ("no source", [], [piece("0123456789")]),
    ("the whole", [web("a")], [piece("0123456789", "a")]),
    ("a span", [web("a", 2, 4)], [piece("01"), piece("23", "a"), piece("456789")]),
    ("two of one span", [web("a", 2, 4), web("b", 2, 4)], [piece("01"), piece("23", "a", "b"), piece("456789")]),
    ("spans out of order", [web("b", 5, 10), web("a", 0, 5)], [piece("01234", "a"), piece("56789", "b")]),
    ("spans that overlap", [web("a", 0, 6), web("b", 4, 8)], [piece("012345", "a"), piece("67", "b"), piece("89")]),
    ("a span inside another", [web("a", 0, 6), web("b", 2, 4)], [piece("012345", "a", "b"), piece("6789")]),
    ("a span and the whole", [web("a"), web("b", 0, 4)], [piece("0123", "b"), piece("456789", "a")]),
    ("a span beyond the end", [web("a", 8, 99)], [piece("01234567"), piece("89", "a")]),
    ("an empty span", [web("a", 0, 0)], [piece("0123456789", "a")]),
    ("what this format cannot say", [pb.Citation(opaque=pb.OpaquePart(format="chat", json="{}")), pb.Citation(document=pb.DocumentSource(file_id="f"))], [piece("0123456789")]),
]  # fmt: skip


@pytest.mark.parametrize(("citations", "blocks"), [case[1:] for case in SPLITS], ids=[case[0] for case in SPLITS])
def test_a_cited_text_has_a_block_for_every_span(citations: list[pb.Citation], blocks: list[Fields]) -> None:
    assert answered(text("0123456789", citations=citations))["content"] == blocks


SEARCH = pb.ServerToolCall(name="web_search", call_id="ws.1", queries=["a", "b"], input_json="{}", format="responses")
PARTS = [
    ([text("")], []),
    ([pb.Part(refusal=pb.RefusalPart(text="no"))], [piece("no")]),
    ([pb.Part(reasoning=pb.ReasoningPart(texts=["a", "b"], summaries=["c"]))], [{"type": "thinking", "thinking": "a\n\nb", "signature": "umg.unsigned"}]),
    ([pb.Part(reasoning=pb.ReasoningPart(summaries=["c"]), state=state("d", "responses"))], [{"type": "thinking", "thinking": "c", "signature": "umg.responses.d"}]),
    ([pb.Part(reasoning=pb.ReasoningPart(), state=state("d", "native"))], [{"type": "thinking", "thinking": "", "signature": "umg.native.d"}]),
    ([pb.Part(reasoning=pb.ReasoningPart())], []),
    ([pb.Part(reasoning=pb.ReasoningPart(redacted=True), state=state("d", "messages"))], [{"type": "redacted_thinking", "data": "d"}]),
    ([call('{"b": 1.0}')], [{"type": "tool_use", "id": "t", "name": "f", "input": {"b": 1.0}}]),
    ([call("")], [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]),
    ([call('{"a":')], [{"type": "tool_use", "id": "t", "name": "f", "input": {"raw_arguments": '{"a":'}}]),
    ([text("a"), call(call_id="")], [piece("a"), {"type": "tool_use", "id": "toolu_id1_1", "name": "f", "input": {}}]),
    ([call(state=state("d", "native"))], [{"type": "redacted_thinking", "data": "umg.native.d"}, {"type": "tool_use", "id": "t", "name": "f", "input": {}}]),
    ([text("a"), pb.Part(text=pb.TextPart(text="b"), state=state("d", "native"))], [piece("a"), piece("b")]),
    (
        [pb.Part(server_tool_call=SEARCH), pb.Part(server_tool_result=pb.ServerToolResult(name="web_search", call_id="ws.1", results=[pb.SearchResult(url="u")]))],
        [
            {"type": "server_tool_use", "id": "srvtoolu_umg_ws_1", "name": "web_search", "input": {"query": "a; b"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_umg_ws_1", "content": [{"type": "web_search_result", "url": "u", "title": "", "encrypted_content": "", "page_age": None}]},
        ],
    ),
    ([pb.Part(server_tool_result=pb.ServerToolResult(name="web_search", call_id="x", error_code="new"))], [{"type": "web_search_tool_result", "tool_use_id": "srvtoolu_umg_x", "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"}}]),
    ([pb.Part(server_tool_call=pb.ServerToolCall(name="file_search")), pb.Part(server_tool_result=pb.ServerToolResult(name="file_search"))], []),
    ([pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, data=b"abc", mime_type="image/png"))], [piece("[image: 3 bytes of image/png; this format cannot show it]")]),
    ([pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, uri="https://i.test"))], [piece("[image: https://i.test; this format cannot show it]")]),
    ([pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_AUDIO, data=b"abc", transcript="hello"))], [piece("hello")]),
    ([pb.Part(opaque=pb.OpaquePart(format="messages", type="new", json='{"type": "new"}')), pb.Part(opaque=pb.OpaquePart(format="native", json="{}"))], [{"type": "new"}]),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "blocks"), PARTS, ids=lambda value: repr(value)[:60])
def test_a_part_of_an_answer_has_its_blocks(parts: list[pb.Part], blocks: list[Fields]) -> None:
    assert answered(*parts)["content"] == blocks


STOPS = [
    (pb.FINISH_REASON_UNSPECIFIED, False, "end_turn"), (pb.FINISH_REASON_STOP, False, "end_turn"), (pb.FINISH_REASON_LENGTH, False, "max_tokens"),
    (pb.FINISH_REASON_STOP_SEQUENCE, False, "stop_sequence"), (pb.FINISH_REASON_CONTEXT_FULL, False, "model_context_window_exceeded"),
    (pb.FINISH_REASON_TOOL_CALLS, True, "tool_use"), (pb.FINISH_REASON_STOP, True, "tool_use"), (pb.FINISH_REASON_OTHER, True, "max_tokens"),
    (pb.FINISH_REASON_LENGTH, True, "max_tokens"), (pb.FINISH_REASON_CONTENT_FILTER, False, "refusal"), (pb.FINISH_REASON_REFUSAL, False, "refusal"),
    (pb.FINISH_REASON_RECITATION, False, "refusal"), (pb.FINISH_REASON_PAUSE, False, "pause_turn"), (pb.FINISH_REASON_MALFORMED_CALL, False, "max_tokens"),
    (pb.FINISH_REASON_COMPACTION, False, "compaction"), (pb.FINISH_REASON_OTHER, False, "max_tokens"),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "called", "name"), STOPS)
def test_every_finish_reason_has_a_value_of_the_format(
    reason: "pb.FinishReason.ValueType", called: bool, name: str
) -> None:
    answer = answered(
        *([call()] if called else [text("a")]),
        finish_reason=reason,
        stop_sequence="END" if name == "stop_sequence" else "",
    )
    assert answer["stop_reason"] == name
    assert answer["stop_sequence"] == ("END" if name == "stop_sequence" else None)
    assert answer["stop_details"] == (
        {"type": "refusal", "category": None, "explanation": None} if name == "refusal" else None
    )


def test_every_reason_is_tried() -> None:
    assert {reason for reason, _, _ in STOPS} == set(pb.FinishReason.values())


def test_a_blocked_prompt_is_a_refusal_without_content() -> None:
    answer = msgspec.json.decode(MESSAGES_FORMAT.encode_response(pb.GenerateResponse(block_reason="SAFETY"), ANSWERED))
    assert (answer["content"], answer["stop_reason"]) == ([], "refusal")
    assert answer["stop_details"] == {
        "type": "refusal",
        "category": None,
        "explanation": "the prompt was blocked: SAFETY",
    }


def test_only_the_first_candidate_is_encoded() -> None:
    choices = [pb.Candidate(index=index, message=pb.Message(parts=[text(word)])) for index, word in enumerate("ab")]
    answer = msgspec.json.decode(MESSAGES_FORMAT.encode_response(pb.GenerateResponse(candidates=choices), ANSWERED))
    assert answer["content"] == [piece("a")]


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"input_tokens": 5, "output_tokens": 2}, pb.Usage(input_tokens=5, output_tokens=2)),
        ({"input_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4, "output_tokens": 0}, pb.Usage(input_tokens=12, cache_read_tokens=3, cache_write_tokens=4)),
        ({"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 4, "cache_creation": {"ephemeral_1h_input_tokens": 3, "ephemeral_5m_input_tokens": 1}}, pb.Usage(input_tokens=4, cache_write_tokens=1, long_cache_write_tokens=3)),
        ({"input_tokens": 0, "output_tokens": 0, "cache_creation": {"ephemeral_1h_input_tokens": 3, "ephemeral_5m_input_tokens": 1}}, pb.Usage(input_tokens=4, cache_write_tokens=1, long_cache_write_tokens=3)),
        ({"input_tokens": 1, "cache_creation": None, "server_tool_use": None, "output_tokens": -1}, pb.Usage(input_tokens=1)),
        ({"input_tokens": 0, "output_tokens": "7", "output_tokens_details": {"thinking_tokens": 3.0}}, pb.Usage(output_tokens=7, reasoning_tokens=3)),
    ],
)  # fmt: skip
def test_a_providers_counts_are_summed(usage: Fields, counted: pb.Usage) -> None:
    body = msgspec.json.encode({"type": "message", "id": "i", "content": [], "usage": usage})
    assert MESSAGES_FORMAT.decode_response(body, ANSWERED, False).usage == counted
    assert MESSAGES_FORMAT.decode_response(body, ANSWERED, True).usage == counted


def provided(body: Fields, *, pass_: bool = False) -> pb.GenerateResponse:
    return MESSAGES_FORMAT.decode_response(msgspec.json.encode({"type": "message"} | body), ANSWERED, pass_)


def test_an_unknown_finish_reason_is_kept() -> None:
    candidate = provided({"content": [], "stop_reason": "tired"}).candidates[0]
    assert (candidate.finish_reason, candidate.provider_reason) == (pb.FINISH_REASON_STOP, "tired")


def test_a_tool_call_determines_the_finish_reason() -> None:
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
    for reason, encoded in (
        (None, pb.FINISH_REASON_TOOL_CALLS),
        ("end_turn", pb.FINISH_REASON_TOOL_CALLS),
        ("max_tokens", pb.FINISH_REASON_LENGTH),
    ):
        assert provided({"content": [use], "stop_reason": reason}).candidates[0].finish_reason == encoded


def test_a_passed_through_answer_has_the_callers_model_id() -> None:
    response = provided(
        {"model": "theirs", "content": [{"type": "new"}], "x": 1.0, "stop_reason": "end_turn"}, pass_=True
    )
    assert (
        MESSAGES_FORMAT.encode_response(response, ANSWERED)
        == b'{"type":"message","model":"m","content":[{"type":"new"}],"x":1.0,"stop_reason":"end_turn"}'
    )
    assert (response.model, response.candidates[0].finish_reason) == ("m", pb.FINISH_REASON_STOP)
