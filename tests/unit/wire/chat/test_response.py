"""Whole answers: those for callers, and those of providers."""

import msgspec
import pytest

from tests.support.error_checks import raises_error
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT

REQUEST = pb.GenerateRequest(model="m")


def choice(message: object, finish: object = "stop", **more: object) -> bytes:
    return msgspec.json.encode(
        {"id": "c", "created": 1, "model": "x", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
        | more
    )


@pytest.mark.parametrize(
    ("message", "kinds"),
    [
        ({}, []),
        ({"content": None}, []),
        ({"content": ""}, []),
        (
            {
                "content": "a",
                "tool_calls": None,
                "refusal": None,
                "annotations": None,
                "audio": None,
                "function_call": None,
                "reasoning_content": None,
            },
            ["text"],
        ),
        ({"content": "a", "tool_calls": []}, ["text"]),
        ({"content": [{"type": "text", "text": "a"}, {"type": "other"}]}, ["text"]),
        ({"reasoning": "b", "content": "a"}, ["reasoning", "text"]),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "b"}]}, {"type": "text", "text": "a"}]}, ["reasoning", "text"]),
        ({"content": [{"type": "thinking", "thinking": "b"}]}, ["reasoning"]),
        ({"content": [{"type": "text", "text": "a"}], "reasoning": "b"}, ["reasoning", "text"]),
        ({"reasoning": {"x": 1}, "content": "a"}, ["text"]),
        ({"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]}, ["tool_call"]),
        ({"tool_calls": [{"function": {"name": "f", "arguments": None}}]}, ["tool_call"]),
        ({"images": [{"type": "image_url", "image_url": {"url": "https://x.test"}}]}, ["media"]),
        (None, []),
    ],
    ids=repr,
)  # fmt: skip
def test_members_that_providers_omit_are_absent(message: object, kinds: list[str]) -> None:
    candidate = CHAT_FORMAT.decode_response(choice(message, None, usage=None), REQUEST, False).candidates[0]
    assert [part.WhichOneof("kind") for part in candidate.message.parts] == kinds
    assert candidate.finish_reason == (pb.FINISH_REASON_TOOL_CALLS if "tool_call" in kinds else pb.FINISH_REASON_STOP)


def passed(body: bytes) -> dict[str, object]:
    """Return the body that a caller of the provider's format gets."""
    decoded: dict[str, object] = msgspec.json.decode(CHAT_FORMAT.decode_response(body, REQUEST, True).source.body)
    return decoded


def test_a_passed_answer_without_a_message_has_an_empty_one() -> None:
    message = {"role": "assistant", "content": None}
    assert passed(choice(None))["choices"] == [{"index": 0, "message": message, "finish_reason": "stop"}]


@pytest.mark.parametrize(
    ("usage", "totals"),
    [
        ({"prompt_tokens": 10, "total_tokens": 15}, (10, 5, 15)),
        ({"prompt_tokens": None, "completion_tokens": 5, "total_tokens": 15, "x": 1}, (10, 5, 15)),
        ({"input_tokens": 3, "output_tokens": 4}, (3, 4, 7)),
        ({"prompt_tokens": 10}, None),
        ({"total_tokens": 15}, None),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, None),
        ({}, None),
    ],
    ids=repr,
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_passed_usage_has_the_totals_that_its_other_members_state(
    usage: dict[str, object], totals: tuple[int, ...] | None, stream: bool
) -> None:
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    expected = usage if totals is None else usage | dict(zip(names, totals, strict=True))
    if not stream:
        assert passed(choice({"content": "a"}, usage=usage))["usage"] == expected
        return
    chunk = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}], "usage": usage}  # fmt: skip
    decoder = CHAT_FORMAT.passthrough_decoder(REQUEST)
    messages = [decoder.feed(b"data: " + msgspec.json.encode(chunk) + b"\n\ndata: [DONE]\n\n"), decoder.close()]
    frames = b"".join(message.source_frames for message in messages if message is not None)
    assert msgspec.json.decode(frames.split(b"\n")[0].removeprefix(b"data: "))["usage"] == expected


def test_an_invalid_member_of_an_answer_is_the_providers_failure() -> None:
    image = {"images": [{"image_url": {"url": "data:image/png;base64,@"}}]}
    for broken in ({"audio": {"data": "@"}}, image, {"annotations": [3], "content": "a"}):
        with raises_error(name="UPSTREAM_FAILED"):
            CHAT_FORMAT.decode_response(choice(broken), REQUEST, False)


def test_a_passed_through_answer_has_the_fields_that_the_service_needs() -> None:
    body = choice({"content": "hi"}, "length", usage={"prompt_tokens": 5, "completion_tokens": 1}, timings={"a": 1.0})
    response = CHAT_FORMAT.decode_response(body, REQUEST, True)
    assert (response.response_id, response.model, response.usage.input_tokens) == ("c", "m", 5)
    assert [candidate.finish_reason for candidate in response.candidates] == [pb.FINISH_REASON_LENGTH]
    assert response.source.body == body.replace(b'"model":"x"', b'"model":"m"')
    assert CHAT_FORMAT.encode_response(response, REQUEST) == response.source.body
    same = pb.GenerateRequest(model="x")
    assert CHAT_FORMAT.decode_response(body, same, True).source.body == body


@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "decoded"])
@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"content": None, "refusal": "I cannot"}, pb.FINISH_REASON_REFUSAL),
        ({"content": "Hi", "refusal": None}, pb.FINISH_REASON_STOP),
        ({"content": "Hi", "refusal": ""}, pb.FINISH_REASON_STOP),
        ({"content": '{"refusal": "x"}', "annotations": [{"refusal": "x"}]}, pb.FINISH_REASON_STOP),
    ],
    ids=["a refusal", "none", "an empty one", "the word elsewhere"],
)
def test_a_refusal_text_is_the_finish_reason(message: object, reason: int, pass_: bool) -> None:
    [candidate] = CHAT_FORMAT.decode_response(choice(message), REQUEST, pass_).candidates
    assert candidate.finish_reason == reason


def test_reasoning_that_only_the_total_counts_is_output() -> None:
    usage = CHAT_FORMAT.decode_response(
        choice({}, usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 105}), REQUEST, False
    ).usage
    assert (usage.output_tokens, usage.reasoning_tokens) == (102, 100)


def decoded(message: object, **more: object) -> pb.Message:
    return CHAT_FORMAT.decode_response(choice(message, **more), REQUEST, False).candidates[0].message


def test_a_citation_of_an_unknown_shape_is_unchanged() -> None:
    flat = {"type": "url_citation", "url": "https://a.test"}
    citation = decoded({"content": "a", "annotations": [flat]}).parts[0].text.citations[0]
    assert citation.opaque == pb.OpaquePart(
        format="chat", type="url_citation", json='{"type":"url_citation","url":"https://a.test"}'
    )


def test_bare_addresses_are_citations_only_where_the_text_has_none_of_its_own() -> None:
    own = {"type": "url_citation", "url_citation": {"url": "https://a.test", "title": "A"}}
    for annotations, titles in (([own], ["A"]), ([], [""])):
        text = decoded({"content": "a", "annotations": annotations}, citations=["https://a.test"]).parts[0].text
        assert [citation.title for citation in text.citations] == titles


def test_the_state_of_an_answer_that_only_calls_stays_with_its_first_call() -> None:
    calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in "ab"]
    message = decoded({"tool_calls": calls, "extra_content": {"google": {"thought_signature": "s"}}})
    assert [part.state.data for part in message.parts] == ["s", ""]


def test_reasoning_state_stays_where_the_reasoning_is_sent_as_text() -> None:
    state = pb.ReasoningState(data="s", format="native")
    part = pb.Part(reasoning=pb.ReasoningPart(texts=["why"]), state=state)
    response = pb.GenerateResponse(candidates=[pb.Candidate(message=pb.Message(parts=[part]))])
    body = CHAT_FORMAT.encode_response(response, pb.GenerateRequest(face_hints=pb.FaceHints(thinking_to_content=True)))
    message = msgspec.json.decode(body)["choices"][0]["message"]
    assert message["extra_content"] == {"google": {"thought_signature": "s"}}


def test_a_count_below_zero_was_not_counted() -> None:
    body = choice(
        {}, usage={"prompt_tokens": -1, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": -1}}
    )
    usage = CHAT_FORMAT.decode_response(body, REQUEST, True).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (0, 2, 0)
