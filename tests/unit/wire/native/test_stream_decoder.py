"""Streams of real providers as canonical events."""

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.unit.wire.accumulate import accumulate
from tests.unit.wire.streams import kinds
from umg_grpc.v1 import pb
from umg_grpc.wire.native import NATIVE_FORMAT

REQUEST = pb.GenerateRequest(model="m")
SEARCHING = pb.GenerateRequest(model="m", tools=[pb.Tool(web_search=pb.WebSearchTool())])


def frame(*parts: object, finish: str | None = None, **more: object) -> bytes:
    candidate: dict[str, object] = {"content": {"parts": list(parts)}} | ({"finishReason": finish} if finish else {})
    candidate |= {name: more.pop(name) for name in ("groundingMetadata", "index", "logprobsResult") if name in more}
    return b"data: " + msgspec.json.encode({"candidates": [candidate], "responseId": "r"} | more) + b"\r\n\r\n"


def events(*frames: bytes, request: pb.GenerateRequest = REQUEST) -> list[pb.StreamGenerateResponse]:
    decoder = NATIVE_FORMAT.translating_decoder(request)
    messages = [message for message in (*map(decoder.feed, frames), decoder.close()) if message is not None]
    assert decoder.done
    return messages


def decode_candidate(*frames: bytes, request: pb.GenerateRequest = REQUEST) -> pb.Candidate:
    return accumulate(events(*frames, request=request)).candidates[0]


def test_a_call_and_a_stop_in_separate_lines_finish_as_a_tool_call() -> None:
    call = {"functionCall": {"name": "f", "args": {"a": 1.0}}, "thoughtSignature": "AAAA"}
    decoded = decode_candidate(frame(call), frame({"text": ""}, finish="STOP"))
    assert decoded.finish_reason == pb.FINISH_REASON_TOOL_CALLS
    assert [(part.tool_call.arguments_json, part.state.data) for part in decoded.message.parts] == [
        ('{"a":1.0}', "AAAA")
    ]


def test_texts_continue_over_lines_and_reasoning_is_a_part_of_its_own() -> None:
    decoded = decode_candidate(
        frame({"text": "th", "thought": True}), frame({"text": "ink", "thought": True}), frame({"text": "a"}),
        frame({"text": "b"}, {"functionCall": {"name": "f"}}), frame({"text": "again", "thought": True}), frame({"text": "c"}, finish="STOP"),
    )  # fmt: skip
    assert [(part.WhichOneof("kind"), part.text.text or "".join(part.reasoning.texts) or part.tool_call.name) for part in decoded.message.parts] == [
        ("reasoning", "think"), ("text", "ab"), ("tool_call", "f"), ("reasoning", "again"), ("text", "c"),
    ]  # fmt: skip


def test_a_signature_belongs_to_the_part_before_it_and_ends_the_part() -> None:
    decoded = decode_candidate(
        frame({"text": "a"}), frame({"text": "", "thoughtSignature": "AAAA"}), frame({"text": "b", "thoughtSignature": "BBBB"}),
        frame({"thoughtSignature": "CCCC"}), frame({"thought": True, "thoughtSignature": "DDDD"}), frame(finish="STOP"),
    )  # fmt: skip
    assert [(part.text.text, part.state.data, part.reasoning.redacted) for part in decoded.message.parts] == [
        ("a", "AAAA", False), ("b", "BBBB", False), ("", "CCCC", False), ("", "DDDD", True),
    ]  # fmt: skip


def test_usage_is_the_last_and_never_the_sum() -> None:
    counts = [
        {"promptTokenCount": 9},
        {"promptTokenCount": 9, "candidatesTokenCount": 2},
        {"promptTokenCount": 9, "candidatesTokenCount": 5, "thoughtsTokenCount": 1},
    ]
    frames = [frame({"text": "a"}, usageMetadata=usage) for usage in counts]
    decoded = accumulate(events(*frames, frame(finish="STOP", usageMetadata=counts[-1])))
    assert decoded.usage == pb.Usage(input_tokens=9, output_tokens=6, reasoning_tokens=1)
    only = b'data: {"usageMetadata":{"promptTokenCount":1}}\n\n'
    assert accumulate(events(only, frame({"text": "a"}, finish="STOP"))).usage.input_tokens == 1


def test_a_token_limit_while_thinking_is_an_answer_without_parts() -> None:
    decoded = decode_candidate(
        b'data: {"candidates":[{"content":{},"finishReason":"MAX_TOKENS","index":0}],"responseId":"r"}\n\n'
    )
    assert (list(decoded.message.parts), decoded.finish_reason) == ([], pb.FINISH_REASON_LENGTH)


GROUNDING = {
    "webSearchQueries": ["q"],
    "groundingChunks": [{"web": {"uri": "https://a.test", "title": "A"}}],
    "groundingSupports": [
        {"segment": {"endIndex": 2, "text": "é"}, "groundingChunkIndices": [0]},
        {"segment": {"startIndex": 3, "endIndex": 5, "text": "bc"}, "groundingChunkIndices": [0]},
    ],
}


@pytest.mark.parametrize("request_", [SEARCHING, pb.GenerateRequest(search=pb.SearchOptions())])
def test_sources_come_last_and_find_their_texts(request_: pb.GenerateRequest) -> None:
    decoded = decode_candidate(
        frame({"text": "éa"}, groundingMetadata={}), frame({"executableCode": {"code": "1"}}), frame({"text": "b"}), frame({"text": "c"}),
        frame(finish="STOP", groundingMetadata=GROUNDING), request=request_,
    )  # fmt: skip
    assert [part.WhichOneof("kind") for part in decoded.message.parts] == [
        "text",
        "server_tool_call",
        "text",
        "server_tool_call",
    ]
    assert [
        [(cited.start_index, cited.end_index) for cited in part.text.citations] for part in decoded.message.parts
    ] == [
        [(0, 1)],
        [],
        [(0, 2)],
        [],
    ]
    assert list(decoded.message.parts[3].server_tool_call.queries) == ["q"]


def test_texts_end_where_they_end_when_no_sources_are_to_come() -> None:
    decoded = kinds(events(frame({"text": "a"}), frame({"executableCode": {}}), frame({"text": "b"}, finish="STOP")))
    assert decoded == [
        "started",
        "part_started",
        "text_delta",
        "part_started",
        "part_ended",
        "part_ended",
        "part_started",
        "text_delta",
        "part_ended",
        "finished",
    ]


def test_the_end_marker_of_another_format_is_accepted() -> None:
    assert decode_candidate(frame({"text": "a"}, finish="STOP"), b"data: [DONE]\n\n").message.parts[0].text.text == "a"


def test_unknown_parts_are_kept_unchanged() -> None:
    decoded = decode_candidate(
        frame({"text": "a"}, {"newKind": {"n": 1.0}}, {}, {"thought": True}), frame(finish="STOP")
    )
    assert [part.opaque for part in decoded.message.parts][1] == pb.OpaquePart(
        format="native", type="newKind", json='{"newKind":{"n":1.0}}'
    )
    assert len(decoded.message.parts) == 2


def test_candidates_are_encoded_separately() -> None:
    frames = [frame({"text": str(index)}, finish="STOP", index=index) for index in (1, 0)]
    decoded = accumulate(events(*frames))
    assert [(candidate.index, candidate.message.parts[0].text.text) for candidate in decoded.candidates] == [
        (0, "0"),
        (1, "1"),
    ]


def test_a_candidate_without_a_finish_reason_counts_as_cut_off() -> None:
    with raises_error(name="UPSTREAM_CUT"):
        events(frame({"text": "a"}, finish="STOP", index=0), frame({"text": "b"}, index=1))
