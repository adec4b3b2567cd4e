"""Finish reasons of vendors: words that mean failure are errors in every format, whole and streamed; an unknown word is a
regular end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.unit.wire.streams import decoded, events_of, frames_of
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.finish_reason_words import FINISH_REASONS, REASON_MEANINGS
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.finish_reason_conversion import MEANING_FAILURES

REQUEST = pb.GenerateRequest(model="m")
Event = dict[str, Any]


def body_of(upstream: str, word: str | None, text: str, message: str = "") -> Event:
    """Return a complete answer of a provider that ends by a word."""
    if upstream == "chat":
        choice = {"index": 0, "message": {"role": "assistant", "content": text or None}, "finish_reason": word}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return {"id": "c", "model": "theirs", "choices": [choice], "usage": usage}
    if upstream == "messages":
        content = [{"type": "text", "text": text}] if text else []
        usage = {"input_tokens": 10, "output_tokens": 5}
        return {
            "type": "message",
            "id": "c",
            "model": "theirs",
            "content": content,
            "stop_reason": word,
            "usage": usage,
        }
    candidate: Event = {"content": {"parts": [{"text": text}]} if text else {}, "finishReason": word, "index": 0}
    if message:
        candidate["finishMessage"] = message
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return {"candidates": [candidate], "modelVersion": "theirs", "usageMetadata": usage}


def stream_of(upstream: str, word: str, text: str, message: str = "") -> list[bytes]:
    """Return the reads of a provider's stream that ends by a word."""
    if upstream == "chat":
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "theirs"}
        deltas = [{"role": "assistant", "content": ""}, *([{"content": text}] if text else [])]
        chunks: list[Event] = [{**head, "choices": [{"index": 0, "delta": each}]} for each in deltas]
        chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": word}]})
        chunks.append({**head, "choices": [], "usage": body_of(upstream, word, "")["usage"]})
        return [*map(sse, chunks), b"data: [DONE]\n\n"]
    if upstream == "messages":
        block = [
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": 0},
        ]
        started = {"id": "c", "model": "theirs", "usage": {"input_tokens": 10, "output_tokens": 1}}
        events: list[Event] = [{"type": "message_start", "message": started}, *(block if text else [])]
        events.append({"type": "message_delta", "delta": {"stop_reason": word}, "usage": {"output_tokens": 5}})
        return [*(b"event: %b\n" % each["type"].encode() + sse(each) for each in [*events, {"type": "message_stop"}])]
    last = body_of(upstream, word, "", message)
    return [*([sse({"candidates": [{"content": {"parts": [{"text": text}]}}]})] if text else []), sse(last)]


def sse(data: Event) -> bytes:
    return b"data: " + msgspec.json.encode(data) + b"\n\n"


@dataclass(frozen=True)
class Failed:
    upstream: str
    word: str
    failure: Failure
    message: str = ""

    @property
    def id(self) -> str:
        return f"{self.upstream} {self.word}"


FAILED = [
    Failed("native", "MALFORMED_FUNCTION_CALL", Failure.MODEL, "Malformed function call: print(x)"),
    Failed("native", "UNEXPECTED_TOOL_CALL", Failure.MODEL),
    Failed("native", "TOO_MANY_TOOL_CALLS", Failure.MODEL),
    Failed("native", "MISSING_THOUGHT_SIGNATURE", Failure.MODEL),
    Failed("native", "MALFORMED_RESPONSE", Failure.MODEL),
    Failed("native", "FINISH_REASON_UNSPECIFIED", Failure.MODEL, "the model stopped"),
    Failed("chat", "error", Failure.TRANSIENT),
    Failed("chat", "insufficient_system_resource", Failure.OVERLOADED),
    Failed("chat", "abort", Failure.TRANSIENT),
    Failed("chat", "network_error", Failure.TRANSIENT),
    Failed("chat", "malformed_function_call", Failure.MODEL),
    Failed("chat", "malformed_model_output", Failure.MODEL),
    Failed("messages", "malformed_tool_use", Failure.MODEL),
    Failed("messages", "MALFORMED_FUNCTION_CALL", Failure.MODEL),
    Failed("messages", "error", Failure.TRANSIENT),
]


def check(caught: pytest.ExceptionInfo[UmgError], case: Failed) -> None:
    error = caught.value
    assert (error.name, error.failure) == ("UPSTREAM_FAILED", case.failure)
    assert case.word in error.message
    assert case.message in error.message
    assert error.facts is not None
    assert error.facts.code == case.word
    assert error.usage is not None
    assert (error.usage.input_tokens, error.usage.output_tokens) == (10, 5)


@pytest.mark.parametrize("pass_", [False, True], ids=["translated", "passed"])
@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.id)
def test_a_whole_answer_that_failed_is_an_error_with_its_usage(case: Failed, pass_: bool) -> None:
    body = msgspec.json.encode(body_of(case.upstream, case.word, "", case.message))
    with pytest.raises(UmgError) as caught:
        TEXT_FORMATS[case.upstream].decode_response(body, REQUEST, pass_)
    check(caught, case)


@pytest.mark.parametrize("pass_", [False, True], ids=["translated", "passed"])
@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.id)
def test_a_stream_that_failed_before_output_sends_none_and_is_an_error(case: Failed, pass_: bool) -> None:
    codec, reads = TEXT_FORMATS[case.upstream], stream_of(case.upstream, case.word, "", case.message)
    decoder = codec.passthrough_decoder(REQUEST) if pass_ else codec.translating_decoder(REQUEST)
    sent = list[pb.StreamGenerateResponse]()
    with pytest.raises(UmgError) as caught:
        for read in reads:
            sent += [message] if (message := decoder.feed(read)) is not None else []
        decoder.close()
    check(caught, case)
    assert not any(message.source_frames and not codec.has_no_output(message.source_frames) for message in sent)
    assert not any(event.HasField("finished") for event in events_of(sent))


@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.id)
def test_an_answer_that_failed_after_output_is_an_error_for_other_formats(case: Failed) -> None:
    codec = TEXT_FORMATS[case.upstream]
    with pytest.raises(UmgError) as caught:
        codec.decode_response(
            msgspec.json.encode(body_of(case.upstream, case.word, "Hi", case.message)), REQUEST, False
        )
    check(caught, case)
    with pytest.raises(UmgError) as caught:
        decoded(codec, stream_of(case.upstream, case.word, "Hi", case.message), REQUEST)
    check(caught, case)


@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.id)
def test_an_answer_that_failed_after_output_is_passed_on_only_in_words_of_its_format(case: Failed) -> None:
    codec, reads = TEXT_FORMATS[case.upstream], stream_of(case.upstream, case.word, "Hi", case.message)
    body = msgspec.json.encode(body_of(case.upstream, case.word, "Hi", case.message))
    if case.upstream == "native" and not case.message:
        assert codec.decode_response(body, REQUEST, True).source.body == body.replace(b"theirs", b"m")
        assert frames_of(decoded(codec, reads, REQUEST, pass_=True)) == b"".join(reads).replace(b"theirs", b"m")
    elif case.upstream != "native":
        with pytest.raises(UmgError) as caught:
            codec.decode_response(body, REQUEST, True)
        check(caught, case)
        with pytest.raises(UmgError) as caught:
            decoded(codec, reads, REQUEST, pass_=True)
        check(caught, case)


@pytest.mark.parametrize("upstream", ["chat", "messages", "native"])
@pytest.mark.parametrize("word", ["zork", "ZORK_9"])
def test_an_unknown_word_is_a_regular_end_that_names_it(upstream: str, word: str) -> None:
    codec = TEXT_FORMATS[upstream]
    whole = codec.decode_response(msgspec.json.encode(body_of(upstream, word, "Hi")), REQUEST, False).candidates[0]
    assert (whole.finish_reason, whole.provider_reason) == (pb.FINISH_REASON_STOP, word)
    for pass_ in (False, True):
        [finished] = finishes(decoded(codec, stream_of(upstream, word, "Hi"), REQUEST, pass_=pass_))
        assert (finished.finish_reason, finished.provider_reason) == (pb.FINISH_REASON_STOP, word)


def finishes(messages: Sequence[pb.StreamGenerateResponse]) -> list[pb.CandidateFinished]:
    return [event.finished for event in events_of(messages) if event.HasField("finished")]


def test_the_error_of_a_choice_is_the_error_of_the_answer() -> None:
    choice: Event = {"index": 0, "message": {"content": ""}, "finish_reason": "error"}
    choice["error"] = {"code": 429, "message": "slow down"}
    chunk = {"id": "c", "choices": [{"index": 0, "delta": {"content": ""}, **choice}]}
    codec = TEXT_FORMATS["chat"]
    for pass_ in (False, True):
        with raises_error(name="UPSTREAM_RATE_LIMITED"):
            codec.decode_response(msgspec.json.encode({"choices": [choice]}), REQUEST, pass_)
        with raises_error(name="UPSTREAM_RATE_LIMITED"):
            decoded(codec, [sse(chunk), b"data: [DONE]\n\n"], REQUEST, pass_=pass_)


def test_one_failed_candidate_of_several_is_no_error() -> None:
    request = pb.GenerateRequest(model="m", candidate_count=2)
    body = body_of("chat", "error", "a")
    body["choices"].append({"index": 1, "message": {"content": "b"}, "finish_reason": "stop"})
    response = TEXT_FORMATS["chat"].decode_response(msgspec.json.encode(body), request, False)
    reasons = [candidate.finish_reason for candidate in response.candidates]
    assert reasons == [pb.FINISH_REASON_OTHER, pb.FINISH_REASON_STOP]


def test_an_unspecified_reason_in_the_middle_of_a_stream_is_no_end() -> None:
    reads = [
        sse(body_of("native", "FINISH_REASON_UNSPECIFIED", "a")),
        sse(body_of("native", "FINISH_REASON_UNSPECIFIED", "b")),
        sse(body_of("native", "STOP", "c")),
    ]
    for pass_ in (False, True):
        [finished] = finishes(decoded(TEXT_FORMATS["native"], reads, REQUEST, pass_=pass_))
        assert finished.finish_reason == pb.FINISH_REASON_STOP


def test_each_row_has_a_source_and_one_meaning_in_any_case() -> None:
    meanings: dict[str, set[str]] = {}
    for row in FINISH_REASONS:
        assert row.source
        assert row.as_of
        meanings.setdefault(row.word.lower(), set()).add(row.meaning)
    assert all(len(each) == 1 for each in meanings.values())
    assert set(MEANING_FAILURES) <= set(REASON_MEANINGS.values())
