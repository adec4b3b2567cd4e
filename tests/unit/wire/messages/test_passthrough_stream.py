"""A provider's frames for a caller of the format: passed through, except for necessary changes."""

import msgspec
import pytest

from tests.unit.wire.messages.streams import decoded
from tests.unit.wire.messages.test_stream_decoder import argued, block, end, frame, start, text_delta
from tests.unit.wire.streams import events_of, kinds
from umg_grpc.v1 import pb
from umg_grpc.wire.messages import MESSAGES_FORMAT
from umg_grpc.wire.messages.passthrough_stream import PassthroughDecoder

SAME, OURS = pb.GenerateRequest(model="theirs"), pb.GenerateRequest(model="ours, longer")
WORDS = ["a", '"model":"theirs"', "\n\nevent: message_stop\ndata: {}\n\n", "event: error", "\U0001f600\u2028", "{}", ""]
TEXT = block(0, "text", *map(text_delta, WORDS), text="")


def run(pieces: list[bytes], request: pb.GenerateRequest) -> tuple[bytes, list[pb.StreamGenerateResponse]]:
    messages = decoded(pieces, request, pass_=True)
    return b"".join(message.source_frames for message in messages), messages


@pytest.mark.parametrize("request_", [SAME, OURS], ids=["the same model", "another model"])
def test_only_the_model_changes(request_: pb.GenerateRequest) -> None:
    stream = (
        start()
        + TEXT
        + frame("ping")
        + block(1, "tool_use", argued("{}"), id="t", name="f", input={})
        + frame("new", x=1.0)
        + end("tool_use")
    )
    expected = stream.replace(b'"model":"theirs","content"', b'"model":"%b","content"' % request_.model.encode())
    for pieces in (
        [stream],
        [stream[:300], stream[300:700], stream[700:]],
        [stream[at : at + 1] for at in range(len(stream))],
    ):
        passed, messages = run(pieces, request_)
        assert passed == expected
        assert kinds(messages) == ["started", "usage", "finished", "usage"]
        encoded_deltas = events_of(messages)
        assert (encoded_deltas[0].started.model, encoded_deltas[2].finished.finish_reason) == (
            request_.model,
            pb.FINISH_REASON_TOOL_CALLS,
        )
        assert encoded_deltas[3].usage == pb.Usage(input_tokens=8, cache_read_tokens=3, output_tokens=7)


def test_a_model_spelled_oddly_is_renamed_too() -> None:
    spelled = start(note='"model"').replace(b'"model":"theirs"', b'"mod\\u0065l" : "theirs"')
    passed, _ = run([spelled + end()], OURS)
    message = msgspec.json.decode(passed.split(b"\n")[1].removeprefix(b"data: "))["message"]
    assert (message["model"], message["note"]) == ("ours, longer", '"model"')


def test_a_read_with_deltas_only_is_passed_through_without_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = PassthroughDecoder(OURS)
    decoder.feed(start())
    monkeypatch.setattr(decoder, "_decode_frames", None)  # the slow path
    deltas = b"".join(frame("content_block_delta", index=0, delta=text_delta(word)) for word in WORDS * 50)
    message = decoder.feed(deltas)
    assert message is not None
    assert (message.source_frames, list(message.events)) == (deltas, [])


DELTA = frame("content_block_delta", index=0, delta=text_delta("a"))


@pytest.mark.parametrize(
    "odd",
    [
        end(), frame("message_stop"), frame("error", error={"message": "x"}), b": comment\n\n", b"\n\n", frame("ping"), DELTA.replace(b"\n", b"\r\n"),
        b"event: content_block_delta\ndata: {}\ndata: {}\n\n", b"event: content_block_delta\nevent: error\ndata: {}\n\n", b"event: content_block_delta\n\n",
        DELTA.removeprefix(b"event: content_block_delta\n"), DELTA[:-1] + b"event: error\n\n",
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 1, 2])
def test_chunks_that_need_parsing_are_not_taken_for_plain_deltas(odd: bytes, place: int) -> None:
    decoder = PassthroughDecoder(OURS)
    decoder.feed(start())
    plain = [DELTA, DELTA]
    assert decoder._plain(b"".join(plain))[1] == len(b"".join(plain))
    before = b"".join(plain[:place])
    assert decoder._plain(b"".join([before, odd, *plain[place:]]))[1] <= len(before)


@pytest.mark.parametrize(
    ("stream", "passed"),
    [
        (start() + b": still here\n\n" + end(), start() + b": still here\n\n" + end()),
        (start() + b"event: ping\n\n" + end(), start() + end()),
        (start() + b"data: [DONE]\n\n" + end(), start() + end()),
        (start() + end()[: -len(frame("message_stop"))], start() + end()),
        (start() + end() + b"data: [DONE]\n\n", start() + end()),
        (b": first\n\n" + frame("ping") + start() + end(), frame("ping") + start() + end()),
        ((start() + DELTA + end()).replace(b"event: content_block_delta\n", b""), start() + DELTA + end()),
        ((start() + end()).replace(b"event: message_stop\n", b""), start() + end()),
    ],
    ids=["a comment", "no data", "another end marker", "no end marker", "both", "what comes first", "a delta without a name", "an end without a name"],
)  # fmt: skip
def test_frames_that_clients_do_not_accept_are_corrected(stream: bytes, passed: bytes) -> None:
    for pieces in ([stream], [stream[at : at + 1] for at in range(len(stream))]):
        assert run(pieces, SAME)[0] == passed


def test_nothing_is_passed_before_the_answer_begins() -> None:
    decoder = MESSAGES_FORMAT.passthrough_decoder(SAME)
    assert decoder.feed(frame("ping")) is None
    message = decoder.feed(start())
    assert message is not None
    assert message.source_frames == frame("ping") + start()
