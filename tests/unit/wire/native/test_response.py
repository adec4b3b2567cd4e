"""Whole answers: those for callers, and those of providers."""

import msgspec
import pytest

from tests.support.error_checks import raises_error
from umg_grpc.v1 import pb
from umg_grpc.wire.core.reasoning_state_conversion import read
from umg_grpc.wire.native import NATIVE_FORMAT

Json = dict[str, object]
REQUEST = pb.GenerateRequest(model="m")
STATE = pb.ReasoningState(data="EqQB+/=", format="messages")


def body(*parts: object, **more: object) -> bytes:
    candidate: Json = {"content": {"parts": list(parts), "role": "model"}, "finishReason": "STOP"} | more
    return msgspec.json.encode({"candidates": [candidate], "modelVersion": "theirs"})


def candidate(*parts: object, **more: object) -> pb.Candidate:
    return NATIVE_FORMAT.decode_response(body(*parts, **more), REQUEST, False).candidates[0]


def face(response: pb.GenerateResponse) -> Json:
    return msgspec.json.decode(NATIVE_FORMAT.encode_response(response, REQUEST))


def answer(
    *parts: pb.Part, reason: "pb.FinishReason.ValueType" = pb.FINISH_REASON_STOP, **more: object
) -> pb.GenerateResponse:
    message = pb.Message(role=pb.ROLE_ASSISTANT, parts=parts)
    return pb.GenerateResponse(model="m", candidates=[pb.Candidate(message=message, finish_reason=reason, **more)])


def text(words: str, *citations: pb.Citation) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=words, citations=citations))


def test_missing_counts_are_zero_and_reasoning_counts_as_output() -> None:
    usage = {"promptTokenCount": 9, "thoughtsTokenCount": "5", "totalTokenCount": 14}
    raw = msgspec.json.encode({"candidates": [{}], "usageMetadata": usage})
    assert NATIVE_FORMAT.decode_response(raw, REQUEST, False).usage == pb.Usage(
        input_tokens=9, output_tokens=5, reasoning_tokens=5
    )


@pytest.mark.parametrize(
    ("encoded", "kinds"),
    [
        ({"content": {}}, []),
        ({}, []),
        ({"content": None}, []),
        ({"content": {"role": "model"}}, []),
        ({"content": {"parts": None}}, []),
        ({"content": {"parts": [{}]}}, []),
        ({"content": {"parts": [{"text": ""}]}}, []),
        ({"content": {"parts": [{"thought": True}]}}, []),
        ({"content": {"parts": [{"text": "a", "functionCall": None, "inlineData": None}]}}, ["text"]),
        ({"content": {"parts": [{"text": "a", "thought": True}, {"text": "b", "thought": False}]}}, ["reasoning", "text"]),
        ({"content": {"parts": [{"thoughtSignature": "AAAA"}]}}, ["text"]),
        ({"content": {"parts": [{"thoughtSignature": "AAAA", "thought": True}]}}, ["reasoning"]),
        ({"content": {"parts": [{"newKind": 1, "thoughtSignature": "AAAA"}, {"text": "a"}]}}, ["opaque", "text"]),
        ({"content": {"parts": [{"fileData": {"fileUri": "gs://b/a.png"}}]}}, ["media"]),
    ],
    ids=repr,
)  # fmt: skip
def test_members_that_providers_omit_are_absent(encoded: Json, kinds: list[str]) -> None:
    raw = msgspec.json.encode({"candidates": [encoded | {"finishReason": "MAX_TOKENS"}]})
    decoded = NATIVE_FORMAT.decode_response(raw, REQUEST, False).candidates[0]
    assert [part.WhichOneof("kind") for part in decoded.message.parts] == kinds
    assert decoded.finish_reason == pb.FINISH_REASON_LENGTH


def test_a_signature_behind_a_text_is_the_texts() -> None:
    parts = candidate(
        {"text": "a"}, {"text": "", "thoughtSignature": "AAAA"}, {"text": "", "thoughtSignature": "BBBB"}
    ).message.parts
    assert [(part.text.text, part.state.data) for part in parts] == [("a", "AAAA"), ("", "BBBB")]


@pytest.mark.parametrize(
    ("word", "reason", "name"),
    [
        ("STOP", pb.FINISH_REASON_STOP, ""),
        ("MAX_TOKENS", pb.FINISH_REASON_LENGTH, ""),
        ("SAFETY", pb.FINISH_REASON_CONTENT_FILTER, ""),
        ("BLOCKLIST", pb.FINISH_REASON_CONTENT_FILTER, "BLOCKLIST"),
        ("LANGUAGE", pb.FINISH_REASON_CONTENT_FILTER, "LANGUAGE"),
        ("RECITATION", pb.FINISH_REASON_RECITATION, ""),
        ("CONTINUATION", pb.FINISH_REASON_LENGTH, "CONTINUATION"),
        ("OTHER", pb.FINISH_REASON_OTHER, ""),
        ("NO_IMAGE", pb.FINISH_REASON_OTHER, "NO_IMAGE"),
        ("BRAND_NEW", pb.FINISH_REASON_STOP, "BRAND_NEW"),
        ("FINISH_REASON_UNSPECIFIED", pb.FINISH_REASON_STOP, ""),
        (None, pb.FINISH_REASON_STOP, ""),
    ],
)
def test_a_finish_reason_is_decoded_and_encoded(word: str | None, reason: int, name: str) -> None:
    decoded = candidate({"text": "a"}, finishReason=word)
    assert (decoded.finish_reason, decoded.provider_reason) == (reason, name)
    encoded = face(pb.GenerateResponse(candidates=[decoded]))["candidates"][0]["finishReason"]
    assert encoded == (word if word not in (None, "FINISH_REASON_UNSPECIFIED") else "STOP")


@pytest.mark.parametrize("reason", pb.FinishReason.values())
@pytest.mark.parametrize("word", ["", "content_filter", "SPII", "X"])
def test_every_reason_is_encoded_as_a_native_finish_reason(reason: "pb.FinishReason.ValueType", word: str) -> None:
    encoded = face(answer(text("a"), reason=reason, provider_reason=word))["candidates"][0]["finishReason"]
    assert encoded.isupper()
    if reason in (pb.FINISH_REASON_TOOL_CALLS, pb.FINISH_REASON_STOP_SEQUENCE, pb.FINISH_REASON_UNSPECIFIED):
        assert encoded == "STOP"


def test_calls_override_the_providers_finish_reason() -> None:
    called = {"functionCall": {"name": "f"}}
    assert candidate(called).finish_reason == pb.FINISH_REASON_TOOL_CALLS
    assert candidate(called, finishReason="MAX_TOKENS").finish_reason == pb.FINISH_REASON_LENGTH
    passed = NATIVE_FORMAT.decode_response(body(called), REQUEST, True)
    assert passed.candidates[0].finish_reason == pb.FINISH_REASON_TOOL_CALLS
    assert candidate(called).message.parts[0].tool_call == pb.ToolCall(name="f", arguments_json="{}")


@pytest.mark.parametrize("pass_", [True, False])
def test_a_blocked_prompt_is_no_failure(pass_: bool) -> None:
    rating = {"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH", "blocked": True}
    raw = msgspec.json.encode(
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT", "safetyRatings": [rating]}, "modelVersion": "m"}
    )
    response = NATIVE_FORMAT.decode_response(raw, REQUEST, pass_)
    assert (response.block_reason, len(response.candidates)) == ("PROHIBITED_CONTENT", 0)
    if pass_:
        assert NATIVE_FORMAT.encode_response(response, REQUEST) == raw
        return
    encoded = face(response)
    assert encoded["promptFeedback"] == {"blockReason": "PROHIBITED_CONTENT", "safetyRatings": [rating]}
    assert encoded["candidates"] == [
        {
            "content": {"parts": [], "role": "model"},
            "finishReason": "PROHIBITED_CONTENT",
            "index": 0,
            "safetyRatings": [],
        }
    ]
    again = NATIVE_FORMAT.decode_response(NATIVE_FORMAT.encode_response(response, REQUEST), REQUEST, False)
    assert (again.block_reason, len(again.candidates)) == ("PROHIBITED_CONTENT", 0)


def test_state_of_another_format_is_base64_and_is_decoded_again() -> None:
    thought = pb.Part(reasoning=pb.ReasoningPart(texts=["why", "so"]), state=STATE)
    hidden = pb.Part(reasoning=pb.ReasoningPart(redacted=True), state=STATE)
    silent = pb.Part(reasoning=pb.ReasoningPart())
    encoded = face(answer(thought, hidden, silent, text("")))["candidates"][0]["content"]["parts"]
    assert [part.get("text") for part in encoded] == ["why\n\nso", None]
    assert [part["thought"] for part in encoded] == [True, True]
    assert [read(part["thoughtSignature"], "native") for part in encoded] == [STATE, STATE]


def test_a_refusal_is_encoded_as_text_and_unsupported_parts_are_dropped() -> None:
    refusal = pb.Part(refusal=pb.RefusalPart(text="no"))
    foreign = [
        pb.Part(opaque=pb.OpaquePart(format="messages", json="{}")),
        pb.Part(server_tool_call=pb.ServerToolCall(name="code_execution", format="messages", input_json="{}")),
        pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, file_id="file-1")),
        pb.Part(opaque=pb.OpaquePart(format="native", json="{broken")),
        pb.Part(server_tool_call=pb.ServerToolCall(name="code_execution", format="native", input_json="{broken")),
        pb.Part(),
    ]
    encoded = face(answer(refusal, *foreign, reason=pb.FINISH_REASON_REFUSAL))["candidates"][0]
    assert (encoded["content"]["parts"], encoded["finishReason"]) == ([{"text": "no"}], "SAFETY")


def test_arguments_are_encoded_as_an_object_for_any_text_of_the_model() -> None:
    calls = [
        pb.Part(tool_call=pb.ToolCall(call_id=str(n), name="f", arguments_json=arguments))
        for n, arguments in enumerate(["", '{"a":1.0}', '{"a":', "3"])
    ]
    custom = pb.Part(tool_call=pb.ToolCall(name="g", text="x"))
    encoded = face(answer(*calls, custom, reason=pb.FINISH_REASON_TOOL_CALLS))["candidates"][0]
    assert [part["functionCall"]["args"] for part in encoded["content"]["parts"]] == [
        {}, {"a": 1.0}, {"raw_arguments": '{"a":'}, {"raw_arguments": "3"}, {"input": "x"},
    ]  # fmt: skip
    assert [part["functionCall"].get("id") for part in encoded["content"]["parts"]] == ["0", "1", "2", "3", None]
    assert encoded["finishReason"] == "STOP"


WORDS = "Grüße 😀, hier: €5."


def page(url: str, start: int | None = None, end: int | None = None) -> pb.Citation:
    return pb.Citation(title=url.upper(), web=pb.WebSource(url=f"https://{url}.test"), start_index=start, end_index=end)


def test_sources_count_bytes_on_the_wire_and_characters_within() -> None:
    cited = text(WORDS, page("a", 0, 7), page("b", 0, 7), page("a", 15, 17))
    grounding = face(answer(cited))["candidates"][0]["groundingMetadata"]
    assert grounding == {
        "groundingChunks": [{"web": {"uri": "https://a.test", "title": "A"}}, {"web": {"uri": "https://b.test", "title": "B"}}],
        "groundingSupports": [
            {"segment": {"endIndex": 12, "text": "Grüße 😀"}, "groundingChunkIndices": [0, 1]},
            {"segment": {"startIndex": 20, "endIndex": 24, "text": "€5"}, "groundingChunkIndices": [0]},
        ],
    }  # fmt: skip
    assert WORDS.encode()[20:24].decode() == "€5"
    again = candidate({"text": WORDS}, groundingMetadata=grounding)
    assert again.message.parts[0] == cited
    assert again.grounding_json == ""


def test_sources_of_several_texts_have_the_position_of_their_part() -> None:
    parts = [
        text("one", page("a", 0, 3)),
        pb.Part(tool_call=pb.ToolCall(name="f", arguments_json="{}")),
        text("zwö", page("a", 1, 3)),
    ]
    grounding = face(answer(*parts))["candidates"][0]["groundingMetadata"]
    assert [support["segment"] for support in grounding["groundingSupports"]] == [
        {"endIndex": 3, "text": "one"},
        {"partIndex": 2, "startIndex": 1, "endIndex": 4, "text": "wö"},
    ]
    again = candidate(
        {"text": "one"}, {"functionCall": {"name": "f", "args": {}}}, {"text": "zwö"}, groundingMetadata=grounding
    )
    assert [list(part.text.citations) for part in again.message.parts if part.HasField("text")] == [
        [page("a", 0, 3)], [page("a", 1, 3)],
    ]  # fmt: skip


def test_sources_without_a_position_are_of_the_whole_text() -> None:
    whole = text("abc", page("a"), page("b"))
    grounding = face(answer(whole))["candidates"][0]["groundingMetadata"]
    assert "groundingSupports" not in grounding
    assert candidate({"text": "abc"}, groundingMetadata=grounding).message.parts[0] == whole
    mixed = face(answer(text("abc", page("a"), page("b", 1, 2))))["candidates"][0]["groundingMetadata"]
    assert [support["segment"] for support in mixed["groundingSupports"]] == [
        {"endIndex": 3, "text": "abc"}, {"startIndex": 1, "endIndex": 2, "text": "b"},
    ]  # fmt: skip


REAL = {
    "webSearchQueries": ["q"], "searchEntryPoint": {"renderedContent": "<div/>"},
    "groundingChunks": [{"web": {"uri": "https://a.test", "title": "a", "domain": "a.test"}}, {"retrievedContext": {"uri": "gs://b", "title": "B"}}, {"web": {"title": "no address"}}],
    "groundingSupports": [
        {"segment": {"startIndex": 1, "endIndex": 99}, "groundingChunkIndices": [0, 1, 2, 7, -1], "confidenceScores": [0.9, 0.1]},
        {"groundingChunkIndices": [0]}, {"segment": {"endIndex": 1}}, {"segment": {"partIndex": 9, "endIndex": 1}, "groundingChunkIndices": [0]},
    ],
}  # fmt: skip


def test_grounding_of_real_providers_is_read_and_kept() -> None:
    decoded = candidate({"text": "éa"}, groundingMetadata=REAL)
    arguments, search = decoded.message.parts
    assert [(cited.start_index, cited.end_index, cited.web.url) for cited in arguments.text.citations] == [
        (0, 2, "https://a.test"), (0, 2, "gs://b"),
    ]  # fmt: skip
    assert search.server_tool_call == pb.ServerToolCall(name="web_search", queries=["q"])
    assert msgspec.json.decode(decoded.grounding_json) == REAL
    encoded = face(pb.GenerateResponse(candidates=[decoded]))["candidates"][0]["groundingMetadata"]
    assert encoded == REAL
    del arguments.text.citations[:]
    encoded = face(pb.GenerateResponse(candidates=[decoded]))["candidates"][0]["groundingMetadata"]
    assert encoded == {"searchEntryPoint": REAL["searchEntryPoint"], "webSearchQueries": ["q"]}


@pytest.mark.parametrize("grounding", [None, {}, {"groundingChunks": None}])
def test_an_answer_without_sources_has_none(grounding: object) -> None:
    decoded = candidate({"text": "a"}, groundingMetadata=grounding)
    assert not decoded.message.parts[0].text.citations
    assert "groundingMetadata" not in face(pb.GenerateResponse(candidates=[decoded]))["candidates"][0]


def test_sources_in_documents_are_not_encoded() -> None:
    cited = text("a", pb.Citation(document=pb.DocumentSource(document_index=1), start_index=0, end_index=1))
    assert "groundingMetadata" not in face(answer(cited))["candidates"][0]


@pytest.mark.parametrize("rest", ["[1]", "{broken", "3"])
def test_sources_of_a_grpc_upstream_cannot_break_an_answer(rest: str) -> None:
    assert face(answer(text("a"), grounding_json=rest))["candidates"][0].keys() == {
        "content",
        "finishReason",
        "index",
        "safetyRatings",
    }


def test_an_invalid_member_of_an_answer_is_the_providers_failure() -> None:
    for broken in (
        {"inlineData": {"mimeType": "image/png", "data": "@"}},
        {"functionCall": {"args": {}}},
        {"executableCode": 3},
    ):
        with raises_error(name="UPSTREAM_FAILED"):
            candidate(broken)


@pytest.mark.parametrize(
    ("raw", "passed"),
    [
        (b'{\n  "candidates": [{}],\n  "modelVersion": "theirs",\n  "x": 1.0\n}\n', b'{\n  "candidates": [{}],\n  "modelVersion": "m",\n  "x": 1.0\n}\n'),
        (b'{"candidates":[{"x":"\\"modelVersion\\":\\"theirs\\""}],"modelVersion":"theirs"}', b'{"candidates":[{"x":"\\"modelVersion\\":\\"theirs\\""}],"modelVersion":"m"}'),
        (b'{"candidates": [{"modelVersion":"theirs"}],"modelVersion":"theirs"}', b'{"candidates":[{"modelVersion":"theirs"}],"modelVersion":"m"}'),
        (b'{"candidates":[{}],"modelVersion":"th\\u0065irs"}', b'{"candidates":[{}],"modelVersion":"m"}'),
        (b'{"candidates":[{}]}', b'{"candidates":[{}]}'),
        (b'{"candidates": [{}], "modelVersion": "m"}', b'{"candidates": [{}], "modelVersion": "m"}'),
    ],
)  # fmt: skip
def test_a_passed_answer_is_the_providers_under_the_callers_model(raw: bytes, passed: bytes) -> None:
    response = NATIVE_FORMAT.decode_response(raw, REQUEST, True)
    assert NATIVE_FORMAT.encode_response(response, REQUEST) == passed
    assert response.model == "m"


def test_the_type_of_raw_audio_keeps_the_parameters_needed_to_play_it() -> None:
    sound = {"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": "AAAA"}}
    media = candidate(sound).message.parts[0].media
    assert (media.kind, media.mime_type) == (pb.MEDIA_KIND_AUDIO, "audio/l16;codec=pcm;rate=24000")
