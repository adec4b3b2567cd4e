"""A provider's frames for a chat caller: passed through, except for necessary changes."""

import msgspec
import pytest

from tests.proofs.linear.cost import Work, time_growth
from tests.support.error_checks import raises_error
from tests.unit.wire.streams import decoder_of
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT
from umg_grpc.wire.chat.passthrough_stream import PassthroughDecoder

HEAD = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "theirs"}
DONE = b"data: [DONE]\n\n"


def frame(delta: object, finish: str | None = None, index: int = 0, **more: object) -> bytes:
    return (
        b"data: "
        + msgspec.json.encode(HEAD | {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]} | more)
        + b"\n\n"
    )


def usage() -> bytes:
    return (
        b"data: "
        + msgspec.json.encode(HEAD | {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
        + b"\n\n"
    )


ROLE, END = frame({"role": "assistant", "content": ""}), frame({}, "stop")


def run(pieces: list[bytes], request: pb.GenerateRequest) -> tuple[bytes, list[pb.GenerateEvent]]:
    decoder = CHAT_FORMAT.passthrough_decoder(request)
    messages = [message for message in [*map(decoder.feed, pieces), decoder.close()] if message is not None]
    return b"".join(message.source_frames for message in messages), [
        event for message in messages for event in message.events
    ]


def kinds(events: list[pb.GenerateEvent]) -> list[str | None]:
    return [event.WhichOneof("kind") for event in events]


def text(*words: str, **more: object) -> list[bytes]:
    return [frame({"content": word}, **more) for word in words]


SAME = pb.GenerateRequest(model="theirs", face_hints=pb.FaceHints(include_usage=True))
OURS = pb.GenerateRequest(model="ours, longer", face_hints=pb.FaceHints(include_usage=True))


@pytest.mark.parametrize("request_", [SAME, OURS], ids=["the same model", "another model"])
@pytest.mark.parametrize(
    "more",
    [{}, {"usage": None}, {"usage": None, "obfuscation": "ab"}, {"obfuscation": "ab", "x": 1}, {"timings": {"a": 1}}],
    ids=repr,
)
def test_only_the_model_changes(request_: pb.GenerateRequest, more: dict[str, object]) -> None:
    words = [
        "a",
        '"model":"theirs"',
        "\n\ndata: [DONE]\n\n",
        'finish_reason":"stop',
        "\U0001f600\u2028",
        '{"error":1}',
        "{}",
        "",
    ]
    stream = b"".join([ROLE, *text(*words, **more), *text(*words, **more), END, usage(), DONE])
    expected = stream.replace(b',"model":"theirs"', b',"model":"' + request_.model.encode() + b'"')
    for pieces in (
        [stream],
        [stream[:400], stream[400:900], stream[900:]],
        [stream[at : at + 1] for at in range(len(stream))],
    ):
        passed, events = run(pieces, request_)
        assert passed == expected
        assert kinds(events) == ["started", "finished", "usage"]
        assert events[0].started.model == request_.model


@pytest.mark.parametrize("more", [{}, {"obfuscation": "abc"}], ids=repr)
@pytest.mark.parametrize("model", ["theirs", "ours", "others"])
def test_a_read_with_plain_chunks_only_is_passed_through_without_parsing(
    more: dict[str, object], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = PassthroughDecoder(pb.GenerateRequest(model=model))
    decoder.feed(ROLE)
    decoder.feed(b"".join(text("learn", **more)))
    monkeypatch.setattr(decoder, "_decode_frames", None)  # the slow path
    plain = b"".join(text(*(f"token {n}" for n in range(300)), **more))
    message = decoder.feed(plain)
    assert message is not None
    assert message.source_frames == plain.replace(b'"theirs"', b'"' + model.encode() + b'"')
    assert not message.events


@pytest.mark.parametrize(
    "odd",
    [
        END, usage(), DONE, b": comment\n\n", b"event: ping\n\n", b'data: {"error":{"message":"x"}}\n\n',
        frame({"content": "a"}, usage={"prompt_tokens": 1}), frame({"content": "a"}, index=1), frame({"content": "a"}, error={"message": "x"}),
        frame({"content": "a"}).replace(b'"finish_reason":null', b'"finish_reason":"stop"'),
        frame({"content": "a"}).replace(b"\n\n", b"\nevent: x\n\n"), b"data: x\n\n", b"\n\n",
    ],
    ids=lambda odd: repr(odd[:200]),
)  # fmt: skip
@pytest.mark.parametrize("more", [{}, {"obfuscation": "abc"}], ids=repr)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_nothing_that_needs_a_look_is_taken_for_plain(odd: bytes, more: dict[str, object], place: int) -> None:
    decoder = PassthroughDecoder(pb.GenerateRequest(model="ours"))
    decoder.feed(b"".join([ROLE, *text("learn", **more)]))
    plain = text("a", "b", "c", "d", **more)
    assert decoder._plain(b"".join(plain))[1] == len(b"".join(plain))
    before = b"".join(plain[:place])
    assert decoder._plain(b"".join([before, odd, *plain[place:]]))[1] <= len(before)


def test_the_usage_chunk_is_removed_for_a_caller_that_did_not_request_it() -> None:
    passed, events = run([ROLE + END + usage() + DONE], pb.GenerateRequest(model="theirs"))
    assert passed == ROLE + END + DONE
    assert (events[-1].usage.input_tokens, events[-1].usage.output_tokens) == (3, 2)


def test_usage_in_the_frame_of_the_last_text_is_passed_with_it() -> None:
    last = frame({"content": "end"}, "stop", usage={"prompt_tokens": 3, "completion_tokens": 1})
    passed, events = run([ROLE + last + DONE], pb.GenerateRequest(model="theirs"))
    assert passed == ROLE + last + DONE
    assert kinds(events) == ["started", "finished", "usage"]


def test_a_missing_end_marker_is_added() -> None:
    assert run([ROLE + END], SAME)[0] == ROLE + END + DONE


def test_the_last_event_needs_no_blank_line() -> None:
    assert run([ROLE + END + usage() + b"data: [DONE]"], SAME)[0] == ROLE + END + usage() + DONE
    assert run([ROLE + END[:-2]], SAME)[0] == ROLE + END + DONE


def test_nothing_follows_the_end_marker() -> None:
    assert run([ROLE + END + DONE + ROLE, ROLE], SAME)[0] == ROLE + END + DONE


def test_lines_that_break_clients_are_left_out_and_comments_stay() -> None:
    stream = (
        b": early\n\n"
        + ROLE
        + b": late\n\nevent: ping\n\nid: 1\n\n"
        + b'event: ping\ndata: {"type":"ping"}\n\n'
        + END
        + DONE
    )
    assert run([stream], SAME)[0] == ROLE + b": late\n\n" + END + DONE


@pytest.mark.parametrize("stream", [b"", ROLE, ROLE + usage(), b": x\n\n", ROLE + END[:30], DONE], ids=repr)
def test_a_broken_stream_is_an_error(stream: bytes) -> None:
    with pytest.raises(UmgError) as caught:
        run([stream], SAME)
    assert caught.value.name in {"UPSTREAM_CUT", "UPSTREAM_FAILED"}


def test_every_requested_choice_has_to_finish() -> None:
    two = pb.GenerateRequest(model="theirs", candidate_count=2)
    with pytest.raises(UmgError):
        run([ROLE + END], two)
    assert run([ROLE + END + frame({}, "stop", index=1)], two)[0].endswith(DONE)


@pytest.mark.parametrize("pass_", [True, False])
def test_an_error_event_follows_the_events_before_it(pass_: bool) -> None:
    error = b'data: {"error":{"message":"overloaded at https://x.test","code":502}}\n\n'
    decoder = decoder_of(CHAT_FORMAT, SAME, pass_)
    message = decoder.feed(ROLE + frame({"content": "hi"}) + error + END)
    assert message is not None
    if pass_:
        assert message.source_frames == ROLE + frame({"content": "hi"})
    else:
        assert message.events[-1].text_delta == "hi"
    for ending in (lambda: decoder.feed(END), decoder.close):
        with pytest.raises(UmgError, match=r"overloaded at \[url\]") as caught:
            ending()
        assert caught.value.name == "UPSTREAM_FAILED"


@pytest.mark.parametrize("pass_", [True, False])
@pytest.mark.parametrize(
    ("event", "name"),
    [
        (b'data: {"choices":3}\n\n', "UPSTREAM_FAILED"),
        (b'data: {"choices":[{"index":-1,"finish_reason":"stop"}]}\n\n', "UPSTREAM_FAILED"),
        (b'data: {"choices":[{"index":2147483648,"finish_reason":"stop"}]}\n\n', "UPSTREAM_FAILED"),
    ],
)
def test_an_error_instead_of_an_answer_is_raised_at_once(event: bytes, name: str, pass_: bool) -> None:
    with raises_error(name=name):
        decoder_of(CHAT_FORMAT, SAME, pass_).feed(event)


def sparse_chunk(delta: object, finish: str | None = None) -> bytes:
    """Return a chunk of a provider that has the finish reason only in its last chunk."""
    choice = {"index": 0, "delta": delta} | ({"finish_reason": finish} if finish else {})
    return b"data: " + msgspec.json.encode(HEAD | {"choices": [choice]}) + b"\n\n"


def test_the_end_is_detected_by_the_finish_reason_of_the_last_chunk() -> None:
    stream = [
        sparse_chunk({"role": "assistant"}),
        sparse_chunk({"content": "a"}),
        sparse_chunk({"content": "b"}),
        sparse_chunk({}, "stop"),
    ]
    for pieces in (stream, [b"".join(stream)]):
        passed, events = run(pieces, SAME)
        assert passed == b"".join(stream) + DONE
        assert kinds(events) == ["started", "finished"]


def test_the_end_is_detected_in_a_chunk_of_several_choices() -> None:
    def both(first: str | None, second: str | None) -> bytes:
        choices = [
            {"index": 0, "delta": {}, "finish_reason": first},
            {"index": 1, "delta": {}, "finish_reason": second},
        ]
        return b"data: " + msgspec.json.encode(HEAD | {"choices": choices}) + b"\n\n"

    stream = [ROLE, frame({"content": "a"}), both("stop", None), both(None, "stop")]
    _, events = run(stream, pb.GenerateRequest(model="theirs", candidate_count=2))
    assert kinds(events) == ["started", "finished", "finished"]


@pytest.mark.parametrize("pass_", [True, False])
def test_the_start_is_emitted_first_even_where_the_usage_comes_first(pass_: bool) -> None:
    early = b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":0}}\n\n'
    message = decoder_of(CHAT_FORMAT, SAME, pass_).feed(early + ROLE + END)
    assert message is not None
    assert kinds(list(message.events))[:2] == ["started", "usage"]


def test_many_frames_before_the_first_take_no_longer_than_many_others() -> None:
    early = b'data: {"id":"","choices":[]}\n\n'

    def reading(frames: int) -> Work:
        pieces = [early * frames + ROLE + END]
        return lambda: run(pieces, SAME)

    assert not time_growth(reading, 4096)
    passed, _ = run([early * 50_000 + ROLE + END], SAME)
    assert passed == early * 50_000 + ROLE + END + DONE


def test_an_id_line_which_breaks_clients_does_not_pass() -> None:
    numbered = ROLE.replace(b"\n\n", b"\nid: 1\n\n") + b"id: 2\n" + text("a")[0] + END + DONE
    frames, events = run([numbered], SAME)
    assert frames == ROLE + text("a")[0] + END + DONE
    assert kinds(events) == ["started", "finished"]


def test_a_heartbeat_of_empty_data_is_left_out() -> None:
    frames, _ = run([ROLE + b"data:\n\n" + b"data: \n\n" + END + DONE], SAME)
    assert frames == ROLE + END + DONE


def test_numbers_encoded_as_text_do_not_fail_an_answer() -> None:
    odd = usage().replace(b'"prompt_tokens":3', b'"prompt_tokens":"3"').replace(b'"created":1', b'"created":"1"')
    _, events = run([ROLE + END + odd + DONE], SAME)
    assert [event.usage.input_tokens for event in events if event.HasField("usage")] == [3]


def test_a_call_overrides_the_providers_finish_reason() -> None:
    call = frame({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]})
    _, events = run([ROLE + call, END + DONE], SAME)
    assert [event.finished.finish_reason for event in events if event.HasField("finished")] == [
        pb.FINISH_REASON_TOOL_CALLS
    ]
