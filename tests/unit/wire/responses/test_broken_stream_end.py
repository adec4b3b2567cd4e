"""The end of a broken stream: the failed response with its output so far, then the error."""

from dataclasses import dataclass

import msgspec
import pytest
from openai import omit
from openai._models import construct_type
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import ResponseError, ResponseFailedEvent, ResponseStreamEvent

from tests.unit.wire.responses.streams import Payload, frames, payloads_of
from tests.unit.wire.responses.test_stream_decoder import CREATED, FUNCTION, MESSAGE, at, ended, item, message_item
from tests.unit.wire.responses.test_stream_encoder import END, REQUEST, STARTED, TEXT_EVENTS, message, stream
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.responses import RESPONSES_FORMAT
from umg_grpc.wire.responses.stream_encoder import StreamEncoder

CUT = UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "the provider's stream broke off")


def broken(encoder: StreamEncoder, sent: bytes, error: UmgError = CUT) -> tuple[Payload, Payload]:
    """Return the last two events of the stream; the SDK's stream state must accept each event."""
    *before, failed, last = payloads_of(sent + encoder.error(error))
    state = ResponseStreamState(input_tools=omit, text_format=omit)
    for payload in (*before, failed, last):
        state.handle_event(construct_type(type_=ResponseStreamEvent, value=payload))  # as the SDK does
    assert (failed["type"], last["type"]) == ("response.failed", "error")
    assert encoder.close() == b""
    response = failed["response"]
    assert isinstance(response, dict)
    assert response["status"] == "failed"
    return response, last


@dataclass(frozen=True)
class Code:
    id: str
    error: UmgError
    code: str
    official: bool = True  # whether the SDK's types have the code


CODES = [
    Code("a stream that is cut", CUT, "server_error"),
    Code("a rate limit", UmgError(pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, "slow down"), "rate_limit_exceeded"),
    Code("a blocked prompt", UmgError(pb.ERROR_REASON_CONTENT_BLOCKED, "no"), "invalid_prompt"),
    Code("a long prompt", UmgError(pb.ERROR_REASON_CONTEXT_TOO_LONG, "too long"), "context_length_exceeded", official=False),
    Code("a bad image", UmgError(pb.ERROR_REASON_UPSTREAM_REJECTED, "bad", upstream_code="image_too_large"), "image_too_large"),
    Code("a provider's own code", UmgError(pb.ERROR_REASON_UPSTREAM_REJECTED, "bad", upstream_code="E17"), "server_error"),
]  # fmt: skip


@pytest.mark.parametrize("case", CODES, ids=lambda case: case.id)
@pytest.mark.parametrize("passed", [False, True], ids=["translated", "passed"])
def test_the_response_has_our_words_and_a_code_that_clients_know(case: Code, passed: bool) -> None:
    encoder = StreamEncoder(REQUEST)
    began = frames(CREATED | {"sequence_number": 0})
    sent = encoder.feed(pb.StreamGenerateResponse(source_frames=began) if passed else message(STARTED))
    response, error = broken(encoder, sent, case.error)
    if case.official:
        ResponseError.model_validate(response["error"], strict=True)
    assert response["error"] == {"code": case.code, "message": case.error.message}
    assert response["id"] == "resp_1"
    assert error["message"] == case.error.message


def test_a_response_that_no_provider_began_has_the_id_of_its_call() -> None:
    error = UmgError(pb.ERROR_REASON_UPSTREAM_OVERLOADED, "busy", request_id="req_0f")
    response, last = broken(StreamEncoder(REQUEST), b"", error)
    assert (response["id"], last["code"]) == ("resp_0f", "server_is_overloaded")


def test_an_error_is_an_event_at_which_every_client_raises() -> None:
    encoder = StreamEncoder(REQUEST)
    begun = encoder.feed(message(STARTED))
    _, last = broken(encoder, begun, UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "it broke", field="input"))
    error = {"message": "it broke", "type": "server_error", "param": "input", "code": "upstream_failed"}
    assert last == {
        "type": "error", "sequence_number": 3, "code": "upstream_failed", "message": "it broke", "param": "input", "error": error,
    }  # fmt: skip


CALL = 'events { part_index: 1 part_started { tool_call { call_id: "c" name: "f" } } } events { part_index: 1 arguments_delta: "{\\"a" }'
OUTPUTS = {
    "nothing": ("", []),
    "a text": ('events { part_started { text {} } } events { text_delta: "Hi" }', [("message", "incomplete")]),
    "thoughts": ('events { part_started { reasoning {} } } events { summary_delta { text: "a" } }', [("reasoning", None)]),
    "a call behind a text": (TEXT_EVENTS + CALL, [("message", "completed")]),
}  # fmt: skip


@pytest.mark.parametrize("case", OUTPUTS)
def test_the_output_has_the_sent_items_without_incomplete_calls(case: str) -> None:
    events, output = OUTPUTS[case]
    encoder = StreamEncoder(REQUEST)
    response, _ = broken(encoder, encoder.feed(message(STARTED)) + encoder.feed(message(events)))
    ResponseFailedEvent.model_validate({"type": "response.failed", "sequence_number": 1, "response": response})
    assert [(each["type"], each.get("status")) for each in response["output"]] == output
    if case == "a text":
        assert response["output"][0]["content"][0]["text"] == "Hi"


def test_no_item_is_done_that_was_not_before() -> None:
    encoder = StreamEncoder(REQUEST)
    encoder.feed(message(STARTED + TEXT_EVENTS + CALL))
    assert [payload["type"] for payload in map(msgspec.json.decode, _data(encoder.error(CUT)))] == [
        "response.failed",
        "error",
    ]


def test_an_error_before_the_first_event_is_preceded_by_a_created_response() -> None:
    response, error = broken(StreamEncoder(REQUEST), b"")
    assert (response["model"], error["sequence_number"]) == ("m", 3)


def numbered(*payloads: Payload) -> list[Payload]:
    return [payload | {"sequence_number": number} for number, payload in enumerate(payloads)]


PASSED = numbered(
    CREATED | {"response": CREATED["response"] | {"tools": [], "metadata": {"a": "b"}}},
    item("added", MESSAGE),
    item("added", FUNCTION, 1),
    item("done", FUNCTION | {"arguments": "{}"}, 1),
    item("done", message_item("Hi"), 0),
    item("added", FUNCTION, 2),
    at("function_call_arguments.delta", 2, delta="{"),
)


@pytest.mark.parametrize("together", [True, False], ids=["in one read", "event by event"])
def test_an_error_in_a_passed_through_stream_continues_its_response_and_sequence_numbers(together: bool) -> None:
    encoder = StreamEncoder(REQUEST)
    reads = [frames(*PASSED)] if together else [frames(payload) for payload in PASSED]
    sent = b"".join(encoder.feed(pb.StreamGenerateResponse(source_frames=read)) for read in reads)
    *before, failed, error = payloads_of(sent + encoder.error(CUT))
    assert before == PASSED
    assert failed == {
        "type": "response.failed",
        "sequence_number": 7,
        "response": PASSED[0]["response"]
        | {
            "status": "failed",
            "error": {"code": "server_error", "message": CUT.message},
            "output": [message_item("Hi"), FUNCTION | {"arguments": "{}"}],
        },
    }
    assert (error["type"], error["sequence_number"], error["message"]) == ("error", 8, CUT.message)


def test_a_passed_stream_that_has_ended_does_not_fail() -> None:
    encoder = RESPONSES_FORMAT.stream_encoder(REQUEST)
    passed = stream(STARTED, TEXT_EVENTS, END)
    assert encoder.feed(pb.StreamGenerateResponse(source_frames=passed)) == passed
    *before, error = payloads_of(passed + encoder.error(CUT))
    assert before == payloads_of(passed)
    assert error["type"] == "error"


@pytest.mark.parametrize("frames_", [b"event: x\ndata: {\n\n", b"event: x\ndata: {}\n\n", b": alive\n\n"], ids=repr)
def test_frames_without_a_response_are_followed_by_the_error_alone(frames_: bytes) -> None:
    encoder = StreamEncoder(REQUEST)
    encoder.feed(pb.StreamGenerateResponse(source_frames=frames_))
    (error,) = payloads_of(encoder.error(CUT))
    assert error["type"] == "error"


def test_an_error_after_the_complete_answer_is_sent_alone() -> None:
    encoder = StreamEncoder(REQUEST)
    whole = encoder.feed(message(STARTED + TEXT_EVENTS + END)) + encoder.close()
    assert payloads_of(whole + encoder.error(CUT))[-1]["type"] == "error"
    assert payloads_of(whole)[-1]["type"] == "response.completed"


def _data(stream_: bytes) -> list[bytes]:
    return [line.removeprefix(b"data: ") for line in stream_.split(b"\n") if line.startswith(b"data: ")]


def test_a_failed_end_of_the_provider_is_reported_in_the_gateways_words() -> None:
    decoder = RESPONSES_FORMAT.passthrough_decoder(pb.GenerateRequest(model="m"))
    failed = ended(status="failed", error={"code": "server_error", "message": "it broke"}) | {"type": "response.failed"}
    decoder.feed(frames(*numbered(CREATED)))
    with pytest.raises(UmgError, match="it broke"):
        decoder.feed(frames(failed))
