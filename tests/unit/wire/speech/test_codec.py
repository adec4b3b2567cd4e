"""Bodies of speech: requests as callers and providers write them, and providers' responses and streams."""

import base64
import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.error_checks import raises_error
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.audio_file_properties import audio_file, comment_of, duration_seconds
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.speech import SPEECH_FORMAT
from umg_grpc.wire.speech.native_speech import NATIVE_SPEECH
from umg_grpc.wire.unary_format_interface import ClientShape, MessageDecoder

BODY = {"model": "mine", "input": "Hi", "voice": "alloy"}
STREAMED = RequestNotes(is_streamed=True)
AUDIO = bytes(range(256))
SECOND = bytes(48_000)
"""A second of silence, 24,000 samples of 16 bits."""


def decoded(**members: object) -> pb.SpeakRequest:
    return SPEECH_FORMAT.decode_request(json.dumps({**BODY, **members}).encode(), {}).canonical


def sent(request: pb.SpeakRequest, notes: RequestNotes = STREAMED) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(SPEECH_FORMAT.encode_request(request, "m", notes).body)
    return body


BODIES: tuple[dict[str, object], ...] = (
    {},
    {"instructions": "gently", "response_format": "wav", "speed": 1.5, "stream_format": "audio"},
    {"stream_format": "sse"},
    {"voice": {"id": "voice_1"}},
    {"sample_rate": 8000},
)


@pytest.mark.parametrize("members", BODIES, ids=json.dumps)
def test_a_body_passes_to_its_provider_with_another_model(members: dict[str, object]) -> None:
    assert sent(decoded(**members)) == {**BODY, **members, "model": "m"}


def test_a_whole_response_is_not_requested_as_events() -> None:
    assert sent(decoded(stream_format="sse"), NO_NOTES) == {**BODY, "model": "m"}


def test_a_canonical_request_has_the_members_that_it_sets() -> None:
    request = pb.SpeakRequest(input="Hi")
    assert sent(request) == {"model": "m", "input": "Hi"}
    request = pb.SpeakRequest(input="Hi", voice="a", instructions="b", audio_format="wav", speed=2, with_usage=True)
    assert sent(request) == {
        "model": "m",
        "input": "Hi",
        "voice": "a",
        "instructions": "b",
        "response_format": "wav",
        "speed": 2.0,
        "stream_format": "sse",
    }


REFUSED: tuple[tuple[dict[str, object], str], ...] = (
    ({"input": ""}, "input"),
    ({"input": ["Hi"]}, "input"),
    ({"voice": {}}, "voice.id"),
    ({"voice": 3}, "voice"),
    ({"speed": "fast"}, "speed"),
    ({"stream_format": "chunks"}, "stream_format"),
    ({"model": ""}, "model"),
)


@pytest.mark.parametrize(("members", "field"), REFUSED, ids=str)
def test_an_invalid_body_is_refused_by_the_name_of_the_field(members: dict[str, object], field: str) -> None:
    with raises_error(field=field):
        decoded(**members)


def decoder(kind: str, **members: object) -> MessageDecoder[pb.StreamSpeakResponse] | None:
    assert SPEECH_FORMAT.stream_decoder is not None
    return SPEECH_FORMAT.stream_decoder(decoded(**members), kind, True)


def read(kind: str, *parts: bytes) -> tuple[bytes, set[str], pb.SpeechUsage | None]:
    """Return the audio, the media types and the usage of a stream that came in parts."""
    reader, audio, kinds, usage = decoder(kind), b"", set[str](), None
    assert reader is not None
    for message in (*map(reader.feed, parts), reader.close()):
        if message is not None:
            audio += message.audio
            kinds |= {message.content_type} - {""}
            usage = message.usage if message.HasField("usage") else usage
    return audio, kinds, usage


def events(*sent: dict[str, object], end: bytes = b"") -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in sent) + end


DELTA: dict[str, object] = {"type": "speech.audio.delta", "audio": base64.b64encode(AUDIO).decode()}
END: dict[str, object] = {"type": "speech.audio.done", "usage": {"input_tokens": 3, "output_tokens": 8}}


def test_bytes_are_passed_on_as_they_come() -> None:
    assert read("audio/ogg", AUDIO[:9], AUDIO[9:]) == (AUDIO, {"audio/ogg"}, None)
    for unstated in ("application/octet-stream", "application/audio", ""):
        assert read(unstated, AUDIO) == (AUDIO, {"audio/mpeg"}, None)


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("end", [b"", b"data: [DONE]\n\n"])
def test_events_are_read_however_they_are_cut(size: int, end: bytes) -> None:
    body = events(DELTA, DELTA, END, end=end)
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    assert read("text/event-stream", *parts) == (
        2 * AUDIO,
        {"audio/mpeg"},
        pb.SpeechUsage(input_tokens=3, output_tokens=8),
    )


@dataclass(frozen=True)
class Broken:
    """Stream of a provider that fails."""

    id: str
    kind: str
    body: bytes
    reason: pb.ErrorReason.ValueType = pb.ERROR_REASON_UPSTREAM_FAILED


BROKEN = (
    Broken("no bytes", "audio/mpeg", b""),
    Broken("no end", "text/event-stream", events(DELTA), pb.ERROR_REASON_UPSTREAM_CUT),
    Broken("a page as audio", "audio/mpeg", b"<!DOCTYPE html><html></html>"),
    Broken(
        "an error as audio",
        "audio/mpeg",
        b' {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}',
        pb.ERROR_REASON_UPSTREAM_RATE_LIMITED,
    ),
    Broken("no JSON", "text/event-stream", b"data: {\n\n"),
    Broken("no base64", "text/event-stream", events({"type": "speech.audio.delta", "audio": "*"})),
    Broken(
        "an error",
        "text/event-stream",
        events(DELTA, {"type": "error", "error": {"message": "slow down", "code": "rate_limit_exceeded"}}),
        pb.ERROR_REASON_UPSTREAM_RATE_LIMITED,
    ),
)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.id)
def test_a_stream_that_fails_is_an_error(case: Broken) -> None:
    with raises_error(reason=case.reason):
        read(case.kind, *([case.body] if case.body else []))


def test_json_is_no_stream() -> None:
    assert decoder("application/json") is None
    body = json.dumps({"audio_data": base64.b64encode(AUDIO).decode()}).encode()
    assert SPEECH_FORMAT.decode_response(body, decoded(), True).audio == AUDIO
    for error in ({"error": {"message": "no"}}, {}, {"audio_data": "*"}):
        with pytest.raises(UmgError):
            SPEECH_FORMAT.decode_response(json.dumps(error).encode(), decoded(), True)
    for body in (b"", b"[]", b"<html>"):
        with pytest.raises(UmgError):
            SPEECH_FORMAT.decode_response(body, decoded(), True)
    assert decoder("application/problem+json") is None


def test_samples_that_begin_as_json_does_are_audio() -> None:
    request = decoded(response_format="pcm")
    assert SPEECH_FORMAT.decode_response(b' {"' + AUDIO, request, True).audio == b' {"' + AUDIO
    assert SPEECH_FORMAT.stream_decoder is not None
    reader = SPEECH_FORMAT.stream_decoder(request, "audio/pcm", True)
    assert reader is not None
    message = reader.feed(b"{}" + AUDIO)
    assert message is not None
    assert message.audio == b"{}" + AUDIO


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "application/xml"])
def test_a_text_in_place_of_audio_is_a_failure(kind: str) -> None:
    assert SPEECH_FORMAT.read_headers is not None
    with pytest.raises(UmgError):
        decoder(kind)
    with pytest.raises(UmgError):
        SPEECH_FORMAT.read_headers(pb.SpeakResponse(audio=AUDIO), {"content-type": f"{kind}; charset=utf-8"})


def test_the_headers_state_the_media_type_of_a_whole_response() -> None:
    response = SPEECH_FORMAT.decode_response(AUDIO, decoded(response_format="wav"), True)
    assert response.content_type == "audio/wav"
    assert SPEECH_FORMAT.read_headers is not None
    SPEECH_FORMAT.read_headers(response, {"content-type": "audio/x-wav; a=b"})
    assert response.content_type == "audio/wav"
    SPEECH_FORMAT.read_headers(response, {"content-type": "audio/ogg"})
    assert (response.content_type, SPEECH_FORMAT.encode_response(response, decoded(), ClientShape.SDK)) == (
        "audio/ogg",
        AUDIO,
    )


def native(*parts: dict[str, object], **members: object) -> bytes:
    content = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], **members}
    return json.dumps(content).encode()


PCM = {"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": base64.b64encode(SECOND).decode()}}
USAGE = {"promptTokenCount": 4, "candidatesTokenCount": 25}


@pytest.mark.parametrize("name", ["mp3", "opus", "aac", "flac", "wav"])
def test_samples_of_native_models_become_a_file_of_the_format(name: str) -> None:
    request = decoded(response_format=name)
    response = NATIVE_SPEECH.decode_response(native(PCM, PCM, usageMetadata=USAGE), request, False)
    assert duration_seconds(response.audio) == pytest.approx(2, abs=0.1)
    assert (response.usage.input_tokens, response.usage.output_tokens) == (4, 25)


def test_samples_of_native_models_are_those_of_pcm() -> None:
    response = NATIVE_SPEECH.decode_response(native(PCM), decoded(response_format="pcm"), False)
    assert (response.audio, response.content_type, response.HasField("usage")) == (SECOND, "audio/pcm", False)


def test_a_native_request_has_a_voice_of_its_own() -> None:
    encoded = NATIVE_SPEECH.encode_request(decoded(instructions="Say it gently", speed=2), "tts", NO_NOTES)
    body = json.loads(encoded.body)
    assert encoded.path == "/models/tts:generateContent"
    assert body["contents"] == [{"role": "user", "parts": [{"text": "Say it gently: Hi"}]}]
    assert body["generationConfig"] == {
        "responseModalities": ["AUDIO"],
        "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}}},
    }
    assert set(encoded.report.dropped) == {"voice", "speed"}
    named = json.loads(NATIVE_SPEECH.encode_request(decoded(voice="Puck"), "tts", NO_NOTES).body)
    assert named["generationConfig"]["speechConfig"]["voiceConfig"]["prebuiltVoiceConfig"]["voiceName"] == "Puck"


def test_native_responses_without_audio_are_errors() -> None:
    blocked = json.dumps({"promptFeedback": {"blockReason": "SAFETY"}}).encode()
    for body, reason in (
        (blocked, pb.ERROR_REASON_CONTENT_BLOCKED),
        (native({"text": "no"}), pb.ERROR_REASON_UPSTREAM_FAILED),
        (b"{}", pb.ERROR_REASON_UPSTREAM_FAILED),
    ):
        with raises_error(reason=reason):
            NATIVE_SPEECH.decode_response(body, decoded(), False)
    with raises_error(field="audio_format"):
        NATIVE_SPEECH.encode_request(decoded(response_format="ulaw"), "tts", NO_NOTES)


def test_a_wav_file_keeps_its_comment() -> None:
    assert [comment_of(audio_file(SECOND, 24_000, name, "Hi ä")) for name in ("wav", "mp3", "flac")] == ["Hi ä"] * 3
    assert (comment_of(b"none"), duration_seconds(b"none")) == ("", None)
