"""Streams of Converse providers: every split of the bytes, damaged frames, exceptions, and events of all kinds."""

import json
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.error_checks import raises_error
from tests.support.providers import converse_wire
from tests.support.providers.aws_event_stream import event, exception, frame
from tests.support.providers.converse_shapes import service_model
from tests.support.providers.scenarios import INDENTED, THOUGHTS, WORDS, Answer, ScenarioRequest, Usage
from tests.unit.wire.accumulate import accumulate
from tests.unit.wire.laws import cuts, few
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.converse import CONVERSE_FORMAT
from umg_grpc.wire.core.aws_event_stream import FrameSplitter

REQUEST = pb.GenerateRequest(model="m", tools=[pb.Tool(custom=pb.CustomTool(name="patch"))])
STREAM = b"".join(
    converse_wire.frames(
        ScenarioRequest(model="m", stream=True),
        Answer(WORDS, THOUGHTS, calls=INDENTED, usage=Usage(written=3, written_long=2)),
        {},
    )
)
START, STOP = event("messageStart", {"role": "assistant"}), event("messageStop", {"stopReason": "end_turn"})
USAGE = {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}
END = event("metadata", {"usage": USAGE, "metrics": {"latencyMs": 1}})


def delta(index: int = 0, **member: object) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": index, "delta": member})


def stopped(index: int = 0) -> bytes:
    return event("contentBlockStop", {"contentBlockIndex": index})


def decoded(pieces: Iterable[bytes]) -> list[pb.StreamGenerateResponse]:
    decoder = CONVERSE_FORMAT.translating_decoder(REQUEST)
    messages = [message for data in pieces if (message := decoder.feed(data)) is not None]
    last = decoder.close()
    return [*messages, last] if last is not None else messages


def parts_of(*frames: bytes) -> list[pb.Part]:
    return list(accumulate(decoded([START, *frames, STOP, END])).candidates[0].message.parts)


@few
@given(st.data())
def test_a_stream_is_decoded_equally_however_it_is_cut(data: st.DataObject) -> None:
    assert accumulate(decoded(data.draw(cuts(STREAM)))) == accumulate(decoded([STREAM]))


@pytest.mark.parametrize("at", range(0, STREAM.index(b"messageStop"), 97))
def test_a_stream_that_ends_early_is_cut_off(at: int) -> None:
    decoder = CONVERSE_FORMAT.translating_decoder(REQUEST)
    decoder.feed(STREAM[:at])
    with raises_error(reason=pb.ERROR_REASON_UPSTREAM_CUT):
        decoder.close()


@pytest.mark.parametrize("at", [*range(len(START)), *range(len(START), len(STREAM), 53)])
def test_a_damaged_byte_is_an_error_and_never_another_answer(at: int) -> None:
    damaged = STREAM[:at] + bytes([STREAM[at] ^ 0x10]) + STREAM[at + 1 :]
    decoder = CONVERSE_FORMAT.translating_decoder(REQUEST)
    with raises_error(reason=pb.ERROR_REASON_UPSTREAM_FAILED):
        for begin, end in pairwise([*range(0, len(damaged), 64), len(damaged)]):
            decoder.feed(damaged[begin:end])
        decoder.close()


def test_events_before_a_damaged_frame_are_returned_first() -> None:
    decoder = CONVERSE_FORMAT.translating_decoder(REQUEST)
    message = decoder.feed(START + delta(text="Hi") + b"\0" * 16)
    assert message is not None
    assert message.events[-1].text_delta == "Hi"
    with pytest.raises(UmgError, match="damaged"):
        decoder.feed(STOP)


def test_a_frame_beyond_the_limit_is_refused_at_its_first_bytes() -> None:
    splitter = FrameSplitter(limit=200)
    assert splitter.whole(START) == START
    with raises_error(failure=Failure.TOO_LARGE):
        splitter.whole(event("contentBlockDelta", {"delta": {"text": "x" * 200}})[:12])


def test_headers_of_every_type_are_skipped_or_read() -> None:
    others = b"\1a\0\1b\1\1c\2x\1d\3xx\1e\4xxxx\1f\5xxxxxxxx\1g\6\0\2xx\1h\x08xxxxxxxx\1i\x09" + b"x" * 16
    plain = frame(b"{}", event_type="ping", message_type="event")
    size, headers = struct.unpack_from("!II", plain)
    body = plain[12:-4]
    prelude = struct.pack("!II", size + len(others), headers + len(others))
    head = prelude + struct.pack("!I", zlib.crc32(prelude)) + others + body
    message = CONVERSE_FORMAT.translating_decoder(REQUEST)
    assert message.feed(START + head + struct.pack("!I", zlib.crc32(head))) is not None


def test_unsigned_signed_and_redacted_reasoning_are_parts_of_their_own() -> None:
    found = parts_of(
        delta(reasoningContent={"text": "So"}), delta(reasoningContent={"text": "…"}), delta(reasoningContent={"signature": "c2ln"}), stopped(),
        delta(1, reasoningContent={"redactedContent": "YWI="}), delta(1, reasoningContent={"redactedContent": "Y2Q="}), stopped(1),
        delta(2, reasoningContent={"signature": "b25seQ=="}), stopped(2),
        delta(3, text="A"), stopped(3),
    )  # fmt: skip
    assert [(list(part.reasoning.texts), part.reasoning.redacted, part.state.data, part.state.format) for part in found] == [
        (["So…"], False, "c2ln", "messages"), ([], True, "YWJjZA==", "converse"), ([], False, "b25seQ==", "messages"), ([], False, "", ""),
    ]  # fmt: skip


def test_citations_images_calls_and_unknown_kinds() -> None:
    call = {"toolUse": {"toolUseId": "t", "name": "patch"}}
    found = parts_of(
        delta(citation={"title": "T", "sourceContent": [{"text": "q"}], "location": {"documentPage": {"documentIndex": 1, "start": 2, "end": 3}}}),
        delta(text="cited"), stopped(),
        event("contentBlockStart", {"contentBlockIndex": 1, "start": {"image": {"format": "png"}}}), delta(1, image={"source": {"bytes": "AAE="}}), stopped(1),
        event("contentBlockStart", {"contentBlockIndex": 2, "start": call}), delta(2, toolUse={"input": '{"input":'}), delta(2, toolUse={"input": '"x"}'}), stopped(2),
        event("contentBlockStart", {"contentBlockIndex": 3, "start": {"news": {}}}), stopped(3),
        event("later", {"a": 1}),
    )  # fmt: skip
    assert [part.WhichOneof("kind") for part in found] == ["text", "media", "tool_call", "opaque"]
    assert (found[0].text.text, found[0].text.citations[0].document.start) == ("cited", 2)
    assert (found[1].media.mime_type, found[1].media.data) == ("image/png", b"\0\1")
    assert found[2].tool_call.text == "x"


def test_a_call_without_input_has_an_empty_object() -> None:
    call = {"toolUse": {"toolUseId": "t", "name": "f"}}
    [found] = parts_of(event("contentBlockStart", {"contentBlockIndex": 0, "start": call}), stopped())
    assert found.tool_call.arguments_json == "{}"


def test_a_stream_without_usage_ends_and_deltas_of_no_block_are_refused() -> None:
    response = accumulate(decoded([START, delta(text="Hi"), STOP]))
    assert (response.candidates[0].finish_reason, response.HasField("usage")) == (pb.FINISH_REASON_STOP, False)
    with pytest.raises(UmgError, match="cannot be read"):
        decoded([START, delta(toolUse={"input": "{"})])
    with pytest.raises(UmgError, match="cannot be read"):
        decoded([delta(text="early")])


@dataclass(frozen=True)
class Broken:
    id: str
    frame: bytes
    reason: "pb.ErrorReason.ValueType"
    failure: Failure


BROKEN = [
    Broken("throttled", exception("throttlingException", "Too many requests"), pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, Failure.OVERLOADED),
    Broken("overloaded", exception("serviceUnavailableException", "Try later"), pb.ERROR_REASON_UPSTREAM_OVERLOADED, Failure.TRANSIENT),
    Broken("the model", exception("modelStreamErrorException", "It fell over"), pb.ERROR_REASON_UPSTREAM_FAILED, Failure.TRANSIENT),
    Broken("internal", exception("internalServerException", "Oops"), pb.ERROR_REASON_UPSTREAM_FAILED, Failure.TRANSIENT),
    Broken("invalid", exception("validationException", "Blank text"), pb.ERROR_REASON_UPSTREAM_REJECTED, Failure.CALLER),
    Broken("too long", exception("validationException", "Input is too long for requested model."), pb.ERROR_REASON_CONTEXT_TOO_LONG, Failure.CONTEXT),
    Broken("an error of the transport", frame(b"", message_type="error", error_code="InternalServerException", error_message="x"), pb.ERROR_REASON_UPSTREAM_FAILED, Failure.TRANSIENT),
    Broken("a type that no frame has", frame(b"{}", message_type="news"), pb.ERROR_REASON_UPSTREAM_FAILED, Failure.AMBIGUOUS),
]  # fmt: skip


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.id)
def test_an_exception_ends_a_stream_after_the_output_before_it(case: Broken) -> None:
    decoder = CONVERSE_FORMAT.translating_decoder(REQUEST)
    message = decoder.feed(START + delta(text="Hi") + case.frame)
    assert message is not None
    assert message.events[-1].text_delta == "Hi"
    with raises_error(reason=case.reason, failure=case.failure):
        decoder.close()


REASONS = [
    ("end_turn", pb.FINISH_REASON_STOP),
    ("tool_use", pb.FINISH_REASON_STOP),  # without a call, no caller could answer it
    ("max_tokens", pb.FINISH_REASON_LENGTH),
    ("stop_sequence", pb.FINISH_REASON_STOP_SEQUENCE),
    ("guardrail_intervened", pb.FINISH_REASON_CONTENT_FILTER),
    ("content_filtered", pb.FINISH_REASON_CONTENT_FILTER),
    ("model_context_window_exceeded", pb.FINISH_REASON_CONTEXT_FULL),
    ("malformed_model_output", None),
    ("malformed_tool_use", None),
]


def test_every_stop_reason_of_the_service_has_a_meaning() -> None:
    assert {name for name, _ in REASONS} == set(service_model().shape_for("StopReason").enum)


@pytest.mark.parametrize(("name", "reason"), REASONS)
def test_a_stop_reason_is_the_same_streamed_and_unstreamed(
    name: str, reason: "pb.FinishReason.ValueType | None"
) -> None:
    body = {
        "output": {"message": {"role": "assistant", "content": [{"text": "x"}]}},
        "stopReason": name,
        "usage": USAGE,
    }
    stream = [START, delta(text="x"), event("messageStop", {"stopReason": name}), END]
    if reason is None:
        for call in (
            lambda: CONVERSE_FORMAT.decode_response(json.dumps(body).encode(), REQUEST, False),
            lambda: decoded(stream),
        ):
            with pytest.raises(UmgError, match=name) as caught:
                call()
            assert (caught.value.failure, caught.value.usage) == (
                Failure.MODEL,
                pb.Usage(input_tokens=3, output_tokens=2),
            )
        return
    whole = CONVERSE_FORMAT.decode_response(json.dumps(body).encode(), REQUEST, False)
    assert whole.candidates[0].finish_reason == accumulate(decoded(stream)).candidates[0].finish_reason == reason


def test_a_response_without_a_message_has_its_reason_and_one_without_a_reason_is_refused() -> None:
    body = {"output": {}, "stopReason": "guardrail_intervened", "usage": USAGE}
    response = CONVERSE_FORMAT.decode_response(json.dumps(body).encode(), REQUEST, False)
    [candidate] = response.candidates
    assert (candidate.finish_reason, list(candidate.message.parts)) == (pb.FINISH_REASON_CONTENT_FILTER, [])
    assert response.usage.input_tokens == 3
    with pytest.raises(UmgError, match="no response"):
        CONVERSE_FORMAT.decode_response(b'{"output": {}}', REQUEST, False)
