"""A provider's frames for a caller of the same format: passed through, except for necessary changes."""

import pytest

from tests.unit.wire.responses.streams import Payload, decoded, frames, payloads_of
from tests.unit.wire.responses.test_stream_decoder import CREATED, FUNCTION, MESSAGE, at, ended, item, message_item
from umg_grpc.v1 import pb
from umg_grpc.wire.responses import RESPONSES_FORMAT
from umg_grpc.wire.responses.passthrough_stream import PassthroughDecoder

SAME, OURS = pb.GenerateRequest(model="theirs"), pb.GenerateRequest(model="ours, longer")
WORDS = ["a", '"model":"theirs"', "\n\nevent: response.completed\n\n", "\U0001f600\u2028", "", ".delta\ndata: {"]


def numbered(*payloads: Payload) -> list[Payload]:
    return [payload | {"sequence_number": number} for number, payload in enumerate(payloads)]


def text(*words: str) -> list[Payload]:
    return [at("output_text.delta", content_index=0, delta=word) for word in words]


def passed(pieces: list[bytes], request: pb.GenerateRequest) -> tuple[bytes, list[pb.GenerateEvent]]:
    messages = decoded(pieces, request, pass_=True)
    return b"".join(message.source_frames for message in messages), [event for message in messages for event in message.events]  # fmt: skip


@pytest.mark.parametrize("request_", [SAME, OURS], ids=["the same model", "another model"])
@pytest.mark.parametrize(
    "tools", [[], [{"type": "image_generation", "model": "theirs"}]], ids=["plain", "with a model in a tool"]
)
def test_only_the_model_of_responses_changes(request_: pb.GenerateRequest, tools: list[Payload]) -> None:
    created = CREATED | {"response": CREATED["response"] | {"tools": tools}}
    last = ended(message_item("x"), tools=tools)
    payloads = numbered(created, item("added", MESSAGE), *text(*WORDS), *text(*WORDS), last)
    stream = frames(*payloads)
    for pieces in (
        [stream],
        [stream[:400], stream[400:900], stream[900:]],
        [stream[at_ : at_ + 1] for at_ in range(len(stream))],
    ):
        out, events = passed(pieces, request_)
        assert request_ is not SAME or out == stream
        expected = [payload | {"response": payload["response"] | {"model": request_.model}} if "response" in payload else payload for payload in payloads]  # fmt: skip
        assert payloads_of(out) == expected
        assert [event.WhichOneof("kind") for event in events] == ["started", "usage", "finished"]
        assert events[0].started.model == request_.model


def test_an_encoded_frame_has_one_data_line() -> None:
    tools = [{"type": "image_generation", "model": "theirs"}]
    created, last = numbered(CREATED | {"response": CREATED["response"] | {"tools": tools}}, ended())
    several = frames(created).replace(b'"response":', b'"response":\ndata: ')
    out, _ = passed([several + frames(last)], OURS)
    assert payloads_of(out)[0] == created | {"response": created["response"] | {"model": "ours, longer"}}
    assert out.count(b"\n") == 6


def test_reads_of_deltas_are_passed_without_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = PassthroughDecoder(OURS)
    decoder.feed(frames(CREATED))
    monkeypatch.setattr(decoder, "_decode_frames", None)  # the slow path
    plain = frames(
        *text(*WORDS), at("function_call_arguments.delta", delta="{"), at("reasoning_summary_text.delta", delta="x")
    )
    message = decoder.feed(plain)
    assert message is not None
    assert message.source_frames == plain
    assert not message.events


@pytest.mark.parametrize(
    "odd",
    [
        frames(ended()), frames(item("done", message_item("x"))), b": comment\n\n", b"data: {}\n\n", b"event: response.x.delta\n\n", b"\n\n", b"\n",
        frames({"type": "error", "message": "x"}), b"event: response.x.delta\nid: 1\ndata: {}\n\n", b"event: response.x.delta\ndata: {}\ndata: {}\n\n",
        frames(*text("x")).replace(b"\n", b"\r\n"),
    ],
    ids=lambda odd: repr(odd[:60]),
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 1, 3])
def test_nothing_that_needs_a_look_is_taken_for_plain(odd: bytes, place: int) -> None:
    decoder = PassthroughDecoder(OURS)
    decoder.feed(frames(CREATED))
    plain = [frames(delta) for delta in text("a", "b", "c")]
    assert decoder._plain(b"".join(plain))[1] == len(b"".join(plain))
    before = b"".join(plain[:place])
    assert decoder._plain(b"".join([before, odd, *plain[place:]]))[1] <= len(before)


def test_lines_that_break_clients_are_left_out() -> None:
    stream = (
        b": early\n\n" + frames({"type": "keepalive"}, CREATED) + b": alive\n\nevent: ping\n\ndata: \n\n"
        b'event: response.output_text.delta\nid: 1\ndata: {"type":"response.output_text.delta","delta":"x"}\n\n'
    )  # fmt: skip
    out, _ = passed([stream + frames(ended()) + b"data: [DONE]\n\n"], SAME)
    numberless = b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"x"}\n\n'
    assert out == frames(CREATED) + b": alive\n\n" + numberless + frames(ended())


@pytest.mark.parametrize(
    ("output", "status", "reason"),
    [
        ([], "completed", pb.FINISH_REASON_STOP),
        ([FUNCTION], "completed", pb.FINISH_REASON_TOOL_CALLS),
        ([MESSAGE | {"content": [{"type": "refusal", "refusal": "no"}]}], "completed", pb.FINISH_REASON_REFUSAL),
        ([FUNCTION], "incomplete", pb.FINISH_REASON_LENGTH),
    ],
)
@pytest.mark.parametrize("in_the_last_event", [True, False])
def test_the_service_learns_why_it_ended(
    output: list[Payload], status: str, reason: int, in_the_last_event: bool
) -> None:
    done = [item("done", each, index) for index, each in enumerate(output)]
    details = {"reason": "max_output_tokens"} if status == "incomplete" else None
    last = ended(*(output if in_the_last_event else []), status=status, incomplete_details=details)
    _, events = passed([frames(CREATED, *done, last | {"type": f"response.{status}"})], SAME)
    assert events[-1].finished.finish_reason == reason


SIGNED: Payload = {"type": "reasoning", "id": "rs_umg_1", "summary": [], "encrypted_content": "umg.native.X"}


def test_states_that_look_like_ours_are_marked_as_the_providers() -> None:
    """Check a provider that is itself a gateway: its reasoning state of other formats must come back to it."""
    stream = frames(CREATED, item("done", SIGNED), *text('"encrypted_content":"umg.native.X"'), ended(SIGNED))
    out, _ = passed([stream], SAME)
    assert out == stream.replace(
        b'"encrypted_content":"umg.native.X"', b'"encrypted_content":"umg.responses.umg.native.X"'
    )
    body = b'{"id":"r","status":"completed","output":[' + frames(SIGNED).split(b"data: ")[1].strip() + b"]}"
    kept = RESPONSES_FORMAT.decode_response(body, pb.GenerateRequest(), True).source.body
    assert kept == body.replace(b"umg.native.X", b"umg.responses.umg.native.X")
    assert (
        RESPONSES_FORMAT.decode_response(kept, pb.GenerateRequest(), False).candidates[0].message.parts[0].state.data
        == "umg.native.X"
    )
