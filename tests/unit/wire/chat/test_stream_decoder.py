"""Streams of real providers, as canonical events."""

from dataclasses import dataclass, field

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.unit.wire.accumulate import accumulate
from tests.unit.wire.streams import decoded
from tests.unit.wire.timing import within
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT

REQUEST = pb.GenerateRequest(model="m")


def chunk(delta: object, finish: str | None = None, **more: object) -> bytes:
    return (
        b"data: "
        + msgspec.json.encode({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} | more)
        + b"\n\n"
    )


def call(
    index: int | None, call_id: object = msgspec.UNSET, name: object = msgspec.UNSET, arguments: object = msgspec.UNSET
) -> dict[str, object]:
    given = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    return msgspec.to_builtins({key: value for key, value in given.items() if value not in (None, msgspec.UNSET)} | {
        "function": {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not msgspec.UNSET}
    })  # fmt: skip


def answered(*frames: bytes) -> pb.Candidate:
    return accumulate(decoded(CHAT_FORMAT, frames, REQUEST)).candidates[0]


@dataclass(frozen=True)
class Quirk:
    id: str
    calls: list[list[dict[str, object]]]  # deltas -> the calls of each
    expected: list[tuple[str, str, str]]  # id, name, arguments
    finish: str | None = "tool_calls"
    reason: "pb.FinishReason.ValueType" = field(default=pb.FINISH_REASON_TOOL_CALLS)


QUIRKS = [
    Quirk("pieces", [[call(0, "a", "f", "")], [call(0, arguments='{"x"')], [call(0, arguments=":1}")]], [("a", "f", '{"x":1}')]),
    Quirk("interleaved", [[call(0, "a", "f", "")], [call(1, "b", "g", "")], [call(0, arguments="1")], [call(1, arguments="2")], [call(0, arguments="3")]], [("a", "f", "13"), ("b", "g", "2")]),
    Quirk("several in one chunk", [[call(0, "a", "f", "1"), call(1, "b", "g", "2")]], [("a", "f", "1"), ("b", "g", "2")]),
    Quirk("all on index 0", [[call(0, "a", "f", "1")], [call(0, "b", "g", "2")]], [("a", "f", "1"), ("b", "g", "2")]),
    Quirk("counted from 1", [[call(1, "a", "f", "1")], [call(2, "b", "g", "2")]], [("a", "f", "1"), ("b", "g", "2")]),
    Quirk("without an index", [[call(None, "a", "f", "1")], [call(None, arguments="2")], [call(None, "b", "g", "3")]], [("a", "f", "12"), ("b", "g", "3")]),
    Quirk("id and name in every piece", [[call(0, "a", "f", "1")], [call(0, "a", "f", "2")]], [("a", "f", "12")]),
    Quirk("empty id and name in later pieces", [[call(0, "a", "f", "1")], [call(0, "", "", "2")]], [("a", "f", "12")]),
    Quirk("null id and name in later pieces", [[call(0, "a", "f", "1")], [{"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": "2"}}]], [("a", "f", "12")]),
    Quirk("the name after the id", [[call(0, "a", arguments="1")], [call(0, name="f", arguments="2")]], [("a", "f", "12")]),
    Quirk("no name at all", [[call(0, "a", arguments="1")]], [("a", "", "1")]),
    Quirk("arguments as an object", [[call(0, "a", "f", {"x": 1})]], [("a", "f", '{"x":1}')]),
    Quirk("arguments null", [[call(0, "a", "f", None)]], [("a", "f", "")]),
    Quirk("no id", [[call(0, msgspec.UNSET, "f", "1")]], [("", "f", "1")]),
    Quirk("finished as stop", [[call(0, "a", "f", "1")]], [("a", "f", "1")], "stop"),
    Quirk("finished by a word of its own", [[call(0, "a", "f", "1")]], [("a", "f", "1")], "tool_use"),
    Quirk("cut by the limit", [[call(0, "a", "f", "1")]], [("a", "f", "1")], "length", pb.FINISH_REASON_LENGTH),
    Quirk("an end without a reason", [[call(0, "a", "f", "1")]], [("a", "f", "1")], None),
]  # fmt: skip


@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: quirk.id)
def test_calls_are_decoded_in_every_form_of_providers(quirk: Quirk) -> None:
    frames = [chunk({"tool_calls": calls}) for calls in quirk.calls]
    candidate = answered(*frames, chunk({}, quirk.finish), b"data: [DONE]\n\n")
    called = [part.tool_call for part in candidate.message.parts]
    assert [(one.call_id, one.name, one.arguments_json) for one in called] == quirk.expected
    assert candidate.finish_reason == quirk.reason


def test_a_finish_before_the_call_is_kept_until_the_end() -> None:
    candidate = answered(
        chunk({"content": "hi"}, "stop"), chunk({"tool_calls": [call(0, "a", "f", "1")]}), b"data: [DONE]\n\n"
    )
    assert [part.WhichOneof("kind") for part in candidate.message.parts] == ["text", "tool_call"]
    assert candidate.finish_reason == pb.FINISH_REASON_TOOL_CALLS


def test_alternating_reasoning_and_text_are_parts_of_their_own() -> None:
    deltas = [
        {"reasoning_content": "a"},
        {"reasoning": "b"},
        {"content": "c"},
        {"reasoning_content": "d", "content": "e"},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "f"}]}]},
        {"content": [{"type": "text", "text": "g"}]},
    ]
    parts = answered(*(chunk(delta) for delta in deltas), chunk({}, "stop")).message.parts
    assert [part.text.text or part.reasoning.texts[0] for part in parts] == ["ab", "c", "d", "e", "f", "g"]


def test_one_text_in_two_fields_is_decoded_once() -> None:
    parts = answered(chunk({"reasoning_content": "a", "reasoning": "a"}), chunk({"content": "b"}, "stop")).message.parts
    assert list(parts[0].reasoning.texts) == ["a"]


def test_content_is_decoded_from_parts_or_from_a_message() -> None:
    last = b'data: {"id":"c","choices":[{"message":{"content":"!"},"finish_reason":"eos"}]}\n\n'
    candidate = answered(chunk({"content": [{"type": "text", "text": "hi"}]}), last)
    assert candidate.message.parts[0].text.text == "hi!"
    assert (candidate.finish_reason, candidate.provider_reason) == (pb.FINISH_REASON_STOP, "eos")


@pytest.mark.parametrize(
    ("word", "reason", "finish_word"),
    [
        ("eos_token", pb.FINISH_REASON_STOP, "stop"),
        ("max_tokens", pb.FINISH_REASON_LENGTH, "length"),
        ("pause_turn", pb.FINISH_REASON_PAUSE, "length"),
        ("zork", pb.FINISH_REASON_STOP, "stop"),
    ],
)
def test_finish_reasons_of_other_vendors_are_encoded_in_the_words_of_the_format(
    word: str, reason: int, finish_word: str
) -> None:
    candidate = answered(chunk({"content": "hi"}, word))
    assert (candidate.finish_reason, candidate.provider_reason) == (reason, word)
    body = CHAT_FORMAT.encode_response(pb.GenerateResponse(candidates=[candidate]), pb.GenerateRequest())
    assert msgspec.json.decode(body)["choices"][0]["finish_reason"] == finish_word


def test_usage_is_emitted_before_the_end_so_that_an_encoder_can_write_both_in_one() -> None:
    decoder = CHAT_FORMAT.translating_decoder(REQUEST)
    stream = chunk({"content": "a"}, "stop", usage={"prompt_tokens": 3.0, "completion_tokens": 0}) + b"data: [DONE]\n\n"
    message = decoder.feed(stream)
    assert message is not None
    assert [event.WhichOneof("kind") for event in message.events] == [
        "started",
        "part_started",
        "text_delta",
        "usage",
        "part_ended",
        "finished",
    ]
    assert decoder.close() is None


@pytest.mark.parametrize(
    "stream", [b"", chunk({"content": "a"}), b"data: [DONE]\n\n", b": x\n\n", chunk({}, "stop")[:40]], ids=repr
)
def test_a_broken_stream_is_an_error(stream: bytes) -> None:
    decoder = CHAT_FORMAT.translating_decoder(REQUEST)
    with pytest.raises(UmgError) as caught:
        decoder.feed(stream)
        decoder.close()
    assert caught.value.name in {"UPSTREAM_CUT", "UPSTREAM_FAILED"}


def test_one_unfinished_choice_makes_the_answer_unfinished() -> None:
    second = chunk({"content": "b"}).replace(b'"index":0', b'"index":1')
    request = pb.GenerateRequest(candidate_count=2)
    with pytest.raises(UmgError):
        accumulate(decoded(CHAT_FORMAT, [chunk({"content": "a"}, "stop"), second], request))


def test_audio_answers_are_streamed_in_pieces_with_their_expiry() -> None:
    pieces = [
        {"id": "audio_1", "transcript": "He"},
        {"data": "aGk="},
        {"transcript": "y", "data": "IQ=="},
        {"expires_at": 9},
    ]
    media = answered(*(chunk({"audio": piece}) for piece in pieces), chunk({}, "stop")).message.parts[0].media
    assert (media.media_id, media.transcript, media.data, media.expire_time.seconds) == ("audio_1", "Hey", b"hi!", 9)


@pytest.mark.parametrize(
    "delta", [{"images": [{"image_url": {"url": "data:image/png;base64,@"}}]}, {"audio": {"data": "@"}}], ids=repr
)
def test_a_medium_that_is_broken_is_the_providers_failure(delta: object) -> None:
    with raises_error(name="UPSTREAM_FAILED"):
        answered(chunk(delta), chunk({}, "stop"))


def test_an_end_marker_without_any_choice_is_no_answer() -> None:
    with raises_error(name="UPSTREAM_CUT"):
        answered(b'data: {"id":"c","choices":[]}\n\n', b"data: [DONE]\n\n")


def test_a_long_input_without_a_name_is_kept_whole() -> None:
    piece = chunk({"tool_calls": [call(0, "a", arguments="x" * 200)]})
    with within(1):
        candidate = answered(piece * 20_000, chunk({}, "stop"))
    assert candidate.message.parts[0].tool_call.arguments_json == "x" * 4_000_000


def test_the_update_of_an_audio_part_has_its_id() -> None:
    decoder = CHAT_FORMAT.translating_decoder(REQUEST)
    pieces = [{"id": "audio_1"}, {"data": "aGk="}, {"expires_at": 9}]
    messages = [decoder.feed(chunk({"audio": piece})) for piece in pieces]
    updated = [
        event.part_updated.media
        for message in messages
        if message
        for event in message.events
        if event.HasField("part_updated")
    ]
    assert [(media.media_id, media.expire_time.seconds) for media in updated] == [("audio_1", 9)]
