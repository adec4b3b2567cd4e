"""A provider's lines for a native caller: passed through, except for necessary changes."""

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.unit.wire.streams import decoder_of
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.native import NATIVE_FORMAT
from umg_grpc.wire.native.passthrough_stream import PassthroughDecoder


def frame(
    *parts: object, finish: str | None = None, index: int | None = None, end: bytes = b"\r\n\r\n", **more: object
) -> bytes:
    candidate: dict[str, object] = {"content": {"parts": list(parts), "role": "model"}}
    candidate |= ({"finishReason": finish} if finish else {}) | ({} if index is None else {"index": index})
    chunk = {"candidates": [candidate], "modelVersion": "theirs", "responseId": "r"} | more
    return b"data: " + msgspec.json.encode(chunk) + end


def text(*words: str, **more: object) -> list[bytes]:
    return [frame({"text": word}, **more) for word in words]


END = frame({"text": ""}, finish="STOP", usageMetadata={"promptTokenCount": 3, "candidatesTokenCount": 2})
CALL = frame({"functionCall": {"name": "f", "args": {}}})
SAME, OURS = pb.GenerateRequest(model="theirs"), pb.GenerateRequest(model='ours, "longer"')


def run(pieces: list[bytes], request: pb.GenerateRequest) -> tuple[bytes, list[pb.GenerateEvent]]:
    decoder = NATIVE_FORMAT.passthrough_decoder(request)
    messages = [message for message in [*map(decoder.feed, pieces), decoder.close()] if message is not None]
    return b"".join(message.source_frames for message in messages), [
        event for message in messages for event in message.events
    ]


def kinds(events: list[pb.GenerateEvent]) -> list[str | None]:
    return [event.WhichOneof("kind") for event in events]


@pytest.mark.parametrize("request_", [SAME, OURS], ids=["the same model", "another model"])
@pytest.mark.parametrize(
    "more",
    [{}, {"usageMetadata": {"promptTokenCount": 3}}, {"x": {"modelVersion": "theirs"}}, {"createTime": None}],
    ids=repr,
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_only_the_model_changes(request_: pb.GenerateRequest, more: dict[str, object], end: bytes) -> None:
    words = [
        "a",
        '"modelVersion":"theirs"',
        "\r\n\r\ndata: {}\n\n",
        '"finishReason":"STOP"',
        "\U0001f600\u2028",
        '{"error":1}',
        "",
    ]
    stream = b"".join([*text(*words, **more), *text(*words, **more), END]).replace(b"\r\n\r\n", end + end)
    name = b',"modelVersion":' + msgspec.json.encode(request_.model)
    for pieces in (
        [stream],
        [stream[:100], stream[100:700], stream[700:]],
        [stream[at : at + 1] for at in range(len(stream))],
    ):
        passed, events = run(pieces, request_)
        assert passed == stream.replace(b',"modelVersion":"theirs"', name)
        assert [kind for kind in kinds(events) if kind != "usage"] == ["started", "finished"]
        assert events[-1].usage == pb.Usage(input_tokens=3, output_tokens=2)
        assert events[0].started.model == request_.model


@pytest.mark.parametrize("model", ["theirs", "ours"])
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
def test_a_read_with_plain_chunks_only_is_passed_through_without_parsing(
    model: str, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = PassthroughDecoder(pb.GenerateRequest(model=model))
    decoder.feed(frame({"text": "learn"}, end=end))
    monkeypatch.setattr(decoder, "_decode_frames", None)  # the slow path
    usages = [{"promptTokenCount": 1, "candidatesTokenCount": n} for n in range(300)]
    plain = b"".join(frame({"text": f"token {n}"}, usageMetadata=usage, end=end) for n, usage in enumerate(usages))
    message = decoder.feed(plain)
    assert message is not None
    assert message.source_frames == plain.replace(b'"theirs"', b'"' + model.encode() + b'"')
    assert [event.usage.output_tokens for event in message.events] == [299]


@pytest.mark.parametrize(
    "odd",
    [
        END, CALL, b": comment\n\n", b"event: ping\n\n", b'data: {"error":{"message":"x"}}\n\n', b'data:{"candidates":[]}\n\n', b"\n\n",
        b"data: [DONE]\n\n", frame({"text": "a"}, promptFeedback={}), frame({"text": "a"}).replace(b"\r\n\r\n", b"\r\nid: 1\r\n\r\n"),
        b'data: {\ndata: "candidates":[]}\n\n',
    ],
    ids=lambda odd: repr(odd[:60]),
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 1, 2])
def test_nothing_that_needs_a_look_is_taken_for_plain(odd: bytes, place: int) -> None:
    decoder = PassthroughDecoder(pb.GenerateRequest(model="ours"))
    decoder.feed(frame({"text": "learn"}, end=b"\n\n"))
    plain = text("a", "b", end=b"\n\n")
    assert decoder._plain(b"".join(plain))[1] == len(b"".join(plain))
    before = b"".join(plain[:place])
    assert decoder._plain(b"".join([before, odd, *plain[place:]]))[1] <= len(before)


def test_lines_that_break_clients_are_left_out_or_written_again() -> None:
    plain = [part.replace(b"\r\n\r\n", b"\n\n") for part in text("a", "b", "c", "d")]
    odd = (
        b": early\n\n"
        + plain[0]
        + b": late\n\n"
        + b"event: x\n" + plain[1]
        + plain[2].replace(b"data: ", b"data:")
        + plain[3].replace(b'{"candidates"', b'{\ndata: "candidates"').replace(b"\n\n", b"\nid: 7\n\n")
        + b"data: [DONE]\n\n"
        + END
        + b"data: [DONE]\n\n"
    )  # fmt: skip
    passed, events = run([odd], SAME)
    assert passed == plain[0] + plain[1] + plain[2] + plain[3].replace(b'{"candidates"', b'{ "candidates"') + END
    assert kinds(events) == ["started", "finished", "usage"]


def test_bare_lines_keep_a_connection_alive() -> None:
    assert run([b"\n\n" + text("a")[0] + b"\n" + END], SAME)[0].count(b"\n\n\n") == 0
    assert run([text("a")[0] + b"\n\n" + END], SAME)[0] == text("a")[0] + b"\n" + END


def test_the_last_event_needs_no_blank_line() -> None:
    passed, events = run([text("a")[0] + END[:-4]], OURS)
    assert passed.endswith(b"}\n\n")
    assert kinds(events) == ["started", "finished", "usage"]


@pytest.mark.parametrize(
    "stream",
    [b"", b"\n\n", text("a")[0], CALL, text("a")[0] + b'data: {"candidates":[', b"data: [DONE]\n\n"],
    ids=lambda stream: repr(stream[-30:]),
)
@pytest.mark.parametrize("pass_", [True, False])
def test_a_broken_stream_is_an_error(stream: bytes, pass_: bool) -> None:
    decoder = decoder_of(NATIVE_FORMAT, SAME, pass_)
    decoder.feed(stream)
    with pytest.raises(UmgError) as caught:
        decoder.close()
    assert caught.value.name in {"UPSTREAM_CUT", "UPSTREAM_FAILED"}


def test_every_requested_candidate_has_to_finish() -> None:
    two = pb.GenerateRequest(model="theirs", candidate_count=2)
    with pytest.raises(UmgError):
        run([END], two)
    passed, events = run([END + frame(finish="MAX_TOKENS", index=1)], two)
    assert passed.count(b"data: ") == 2
    assert [(event.candidate_index, event.finished.finish_reason) for event in events if event.HasField("finished")] == [
        (0, pb.FINISH_REASON_STOP), (1, pb.FINISH_REASON_LENGTH),
    ]  # fmt: skip


def test_a_call_in_an_earlier_line_overrides_the_providers_finish_reason() -> None:
    for pieces in ([CALL + END], [CALL, END], [text("a")[0], CALL, END]):
        events = run(pieces, SAME)[1]
        assert [event.finished.finish_reason for event in events if event.HasField("finished")] == [
            pb.FINISH_REASON_TOOL_CALLS
        ]


@pytest.mark.parametrize("pass_", [True, False])
def test_a_blocked_prompt_is_a_complete_answer(pass_: bool) -> None:
    line = b'data: {"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}\n\n'
    decoder = decoder_of(NATIVE_FORMAT, SAME, pass_)
    messages = [message for message in (decoder.feed(line), decoder.close()) if message is not None]
    events = [event for message in messages for event in message.events]
    assert sorted(filter(None, kinds(events))) == ["finished", "started", "usage"]
    finished = next(event.finished for event in events if event.HasField("finished"))
    assert (finished.block_reason, finished.finish_reason) == ("SAFETY", pb.FINISH_REASON_CONTENT_FILTER)
    assert b"".join(message.source_frames for message in messages) == (line if pass_ else b"")


@pytest.mark.parametrize("pass_", [True, False])
def test_an_error_event_follows_the_events_before_it(pass_: bool) -> None:
    error = b'data: {"error":{"code":503,"message":"overloaded at https://x.test","status":"UNAVAILABLE"}}\r\n\r\n'
    decoder = decoder_of(NATIVE_FORMAT, SAME, pass_)
    message = decoder.feed(text("hi")[0] + error + END)
    assert message is not None
    if pass_:
        assert message.source_frames == text("hi")[0]
    else:
        assert message.events[-1].text_delta == "hi"
    for ending in (lambda: decoder.feed(END), decoder.close):
        with pytest.raises(UmgError, match=r"overloaded at \[url\]") as caught:
            ending()
        assert caught.value.name == "UPSTREAM_OVERLOADED"


@pytest.mark.parametrize("pass_", [True, False])
@pytest.mark.parametrize(
    ("event", "name"),
    [
        (b'data: {"candidates":3}\n\n', "UPSTREAM_FAILED"),
        (b'data: {"candidates":[{"index":-1}]}\n\n', "UPSTREAM_FAILED"),
        (b"data: " + b"[" * 99999 + b"\n\n", "UPSTREAM_FAILED"),
    ],
)
def test_an_error_instead_of_an_answer_is_raised_at_once(event: bytes, name: str, pass_: bool) -> None:
    with raises_error(name=name):
        decoder_of(NATIVE_FORMAT, SAME, pass_).feed(event)
