"""Bodies of transcriptions: forms as callers and providers write them, and providers' responses and streams."""

import json
from dataclasses import dataclass

import pytest

from http_facade.exchange.multipart_form_parser import parse_form
from tests.support.error_checks import raises_error
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.audio_file_properties import audio_file
from umg_grpc.wire.core.multipart_forms import FormPart
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.transcriptions import TRANSCRIPTIONS_FORMAT, TRANSLATIONS_FORMAT
from umg_grpc.wire.transcriptions.request import decode_form
from umg_grpc.wire.unary_format_interface import ClientShape

FILE = FormPart("file", "a.mp3", b"\0\r\n--umg-", "audio/mpeg")
STREAMED = RequestNotes(is_streamed=True)


def fields(*pairs: tuple[str, str]) -> list[FormPart]:
    return [FormPart(name, None, value.encode()) for name, value in pairs]


def decoded(*pairs: tuple[str, str]) -> pb.TranscribeRequest:
    return decode_form([*fields(("model", "mine"), *pairs), FILE]).canonical


def sent(request: pb.TranscribeRequest, model: str = "m", notes: RequestNotes = NO_NOTES) -> list[FormPart]:
    encoded = TRANSCRIPTIONS_FORMAT.encode_request(request, model, notes)
    return list(parse_form(encoded.body, encoded.headers["Content-Type"]))


FORM = (
    *(("language", "de"), ("prompt", "ä"), ("response_format", "verbose_json"), ("temperature", "0.2")),
    *(("timestamp_granularities[]", "word"), ("timestamp_granularities[]", "segment"), ("include[]", "logprobs")),
    *(("chunking_strategy[type]", "server_vad"), ("known_speaker_names[]", "Ann"), ("hotword", "x")),
)


def test_a_form_passes_to_its_provider_with_another_model_and_the_file_last() -> None:
    parts = sent(decoded(*FORM))
    assert parts == [*fields(("model", "m"), *FORM), FILE]
    assert sent(decoded(("stream", "true")), notes=STREAMED) == [*fields(("model", "m"), ("stream", "true")), FILE]
    assert sent(decoded(("stream", "true"))) == [*fields(("model", "m")), FILE]


def test_a_form_has_canonical_fields() -> None:
    request = decoded(*FORM)
    assert (request.model, request.language, request.prompt, request.temperature) == ("mine", "de", "ä", 0.2)
    assert (list(request.timestamp_granularities), list(request.include)) == (["word", "segment"], ["logprobs"])
    assert (request.chunking_strategy, list(request.known_speaker_names)) == ('{"type":"server_vad"}', ["Ann"])
    assert request.audio == pb.AudioFile(data=FILE.data, file_name="a.mp3", content_type="audio/mpeg")
    assert decode_form([*fields(*FORM, ("model", "m")), FILE]).notes.uncarried == ["hotword"]


def test_a_canonical_request_is_sent_as_the_form_of_a_caller() -> None:
    request = decoded(*FORM[:-1])
    request.ClearField("source")
    assert sorted(sent(request)) == sorted([*fields(("model", "m"), *FORM[:-1]), FILE])
    bare = sent(pb.TranscribeRequest(audio=pb.AudioFile(data=b"x")))
    assert bare == [*fields(("model", "m")), FormPart("file", "audio", b"x", "application/octet-stream")]


def test_a_file_without_a_name_has_one_that_ends_with_its_format() -> None:
    for name in ("mp3", "flac", "wav"):
        audio = pb.AudioFile(data=audio_file(bytes(4800), 24_000, name))
        assert sent(pb.TranscribeRequest(audio=audio))[-1].file_name == f"audio.{name}"
    audio = pb.AudioFile(data=audio_file(bytes(4800), 24_000, "opus"))
    assert sent(pb.TranscribeRequest(audio=audio))[-1].file_name == "audio.ogg"


def test_a_name_cannot_end_its_head() -> None:
    request = pb.TranscribeRequest(audio=pb.AudioFile(data=b"x", file_name='a"\r\nb: c', content_type="a/b\r\nc: d"))
    (_, file) = sent(request)
    assert (file.file_name, file.content_type) == ("a%22%0D%0Ab: c", "a/bc: d")


def test_a_translation_has_a_path_of_its_own() -> None:
    assert TRANSLATIONS_FORMAT.decode_form is not None
    request = TRANSLATIONS_FORMAT.decode_form([*fields(("model", "mine")), FILE]).canonical
    assert request.translate
    assert TRANSCRIPTIONS_FORMAT.encode_request(request, "m", NO_NOTES).path == "/audio/translations"
    assert "stream" not in {part.name for part in sent(request, notes=STREAMED)}


@pytest.mark.parametrize("written", ["{", '{"type": []}'])
def test_an_invalid_strategy_of_a_canonical_request_is_refused_by_its_name(written: str) -> None:
    with raises_error(field="chunking_strategy"):
        sent(pb.TranscribeRequest(audio=pb.AudioFile(data=b"x"), chunking_strategy=written))


REFUSED = (
    ([FILE], "model"),
    (fields(("model", "m")), "file"),
    ([*fields(("model", "m")), FormPart("file", None, b"x")], "file"),
    ([*fields(("model", "m")), FormPart("file", "a", b"")], "file"),
    ([*fields(("model", "m")), FILE, FormPart("mask", "a", b"x")], "mask"),
    ([*fields(("model", "m"), ("model", "n")), FILE], "model"),
    ([*fields(("model", "m"), ("temperature", "hot")), FILE], "temperature"),
    ([*fields(("model", "m"), ("temperature", "nan")), FILE], "temperature"),
    ([*fields(("model", "m"), ("stream", "yes")), FILE], "stream"),
    ([*fields(("model", "m")), FILE, FILE], "file"),
)


@pytest.mark.parametrize(("parts", "field"), REFUSED, ids=str)
def test_an_invalid_form_is_refused_by_the_name_of_the_field(parts: list[FormPart], field: str) -> None:
    with raises_error(field=field):
        decode_form(parts)


def test_numbers_and_switches_are_read_as_programs_write_them() -> None:
    request = decoded(("temperature", ".5"), ("stream", "True"))
    assert request.temperature == 0.5
    assert TRANSCRIPTIONS_FORMAT.wants_stream is not None
    assert TRANSCRIPTIONS_FORMAT.wants_stream(request.source.body)
    assert not TRANSCRIPTIONS_FORMAT.wants_stream(decoded(("stream", "False")).source.body)


@dataclass(frozen=True)
class Format:
    """Form of the text that is requested of a model, for the one that a caller selects."""

    model: str
    wanted: str
    sent: str | None
    """None if it is refused."""


FORMATS = (
    Format("whisper-1", "srt", "srt"),
    Format("any", "vtt", "vtt"),
    Format("gpt-4o-transcribe", "text", "json"),
    Format("gpt-4o-mini-transcribe-2025-12-15", "vtt", None),
    Format("gpt-transcribe", "verbose_json", "verbose_json"),
    Format("gpt-4o-transcribe-diarize", "srt", "diarized_json"),
    Format("whisper-large-v3-turbo", "srt", "verbose_json"),
    Format("whisper-large-v3", "text", "text"),
    Format("openai/whisper-large-v3", "text", "json"),
    Format("openai/gpt-4o-transcribe", "srt", None),
    Format("openai/whisper-1", "vtt", "verbose_json"),
    Format("FunAudioLLM/SenseVoiceSmall", "text", "json"),
)


@pytest.mark.parametrize("case", FORMATS, ids=lambda case: f"{case.model} {case.wanted}")
def test_a_model_is_sent_a_form_that_it_has(case: Format) -> None:
    request = decoded(("response_format", case.wanted))
    if case.sent is None:
        with raises_error(field="response_format"):
            sent(request, case.model)
    else:
        assert dict(part[::2] for part in sent(request, case.model))["response_format"] == case.sent.encode()


GRANULARITIES = (
    ("whisper-large-v3", "srt", "word", {"timestamp_granularities[]": "segment", "response_format": "verbose_json"}),
    ("whisper-1", "srt", "word", {"timestamp_granularities[]": "word", "response_format": "srt"}),
    ("voxtral-mini-latest", "vtt", "", {"timestamp_granularities": "segment"}),
    ("voxtral-mini-latest", "verbose_json", "word", {"timestamp_granularities": "segment"}),
    ("voxtral-mini-latest", "json", "word", {"timestamp_granularities": "word"}),
    ("voxtral-mini-latest", "text", "", {}),
    ("voxtral-mini-latest", "diarized_json", "", {"timestamp_granularities": "segment", "diarize": "true"}),
)


@pytest.mark.parametrize(("model", "wanted", "given", "fields_sent"), GRANULARITIES, ids=str)
def test_times_are_requested_where_the_form_of_the_text_needs_them(
    model: str, wanted: str, given: str, fields_sent: dict[str, str]
) -> None:
    granularities = [("timestamp_granularities[]", given)] if given else []
    parts = sent(decoded(("response_format", wanted), *granularities), model)
    assert {part.name: part.text for part in parts if part.name not in ("model", "file")} == fields_sent


VERBOSE = {
    "task": "transcribe",
    "language": "german",
    "duration": 3661.5,
    "text": "Ja. Nein.",
    "segments": [
        {"id": 0, "start": 0.0, "end": 1.25, "text": " Ja.", "new": 1},
        {"id": 1, "start": 3600, "end": 3661.5, "text": " Nein."},
    ],
}


def answer(body: object, *pairs: tuple[str, str], passes: bool = True) -> bytes:
    request = decoded(*pairs)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = TRANSCRIPTIONS_FORMAT.decode_response(data, request, passes)
    return TRANSCRIPTIONS_FORMAT.encode_response(response, request, ClientShape.SDK)


def test_a_body_of_the_selected_form_passes() -> None:
    for body, wanted in (
        (b'{"text": "a", "x_groq": {"id": 1}}', "json"),
        (json.dumps(VERBOSE).encode(), "verbose_json"),
        (b"1\n00:00:00,000 --> 00:00:01,000\na\n", "srt"),
        (b'{ he said: "text"', "text"),
    ):
        assert answer(body, ("response_format", wanted)) == body


def test_a_body_of_another_form_is_converted() -> None:
    assert answer(VERBOSE, ("response_format", "text")) == b"Ja. Nein.\n"
    srt = "1\n00:00:00,000 --> 00:00:01,250\nJa.\n\n2\n01:00:00,000 --> 01:01:01,500\nNein.\n\n"
    assert answer(VERBOSE, ("response_format", "srt")).decode() == srt
    vtt = "WEBVTT\n\n00:00:00.000 --> 00:00:01.250\nJa.\n\n01:00:00.000 --> 01:01:01.500\nNein.\n\n"
    assert answer(VERBOSE, ("response_format", "vtt")).decode() == vtt
    made = json.loads(answer({"text": "a", "segments": [{"text": "a", "end": 2}]}, ("response_format", "verbose_json")))
    assert (made["duration"], made["language"], made["segments"][0]["id"]) == (2, "", 0)
    with pytest.raises(UmgError):
        answer({"text": "a"}, ("response_format", "srt"))


def test_the_subtitles_of_silence_are_empty() -> None:
    silence = {"text": "", "language": "english", "duration": 3.0, "segments": []}
    assert answer(silence, ("response_format", "srt")) == b""
    assert answer(silence, ("response_format", "vtt")) == b"WEBVTT\n\n"
    for wanted in ("text", "srt", "vtt"):
        assert answer(b"", ("response_format", wanted)) == b""


def test_speakers_are_named_in_subtitles_and_in_json() -> None:
    body = {"text": "a", "segments": [{"id": "s", "start": 0, "end": 1, "text": "a", "speaker_id": "1"}]}
    assert b"1: a" in answer(body, ("response_format", "vtt"))
    made = json.loads(answer(body, ("response_format", "diarized_json")))
    assert (made["segments"][0]["speaker"], made["segments"][0]["id"], made["duration"]) == ("1", "s", 1)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"error": {"message": "no"}}', b"{", b'{"text": 3}'], ids=str)
def test_a_body_without_a_text_is_a_failure(body: bytes) -> None:
    with pytest.raises(UmgError):
        answer(body)


USAGES = (
    ({"type": "duration", "seconds": 2.5}, {"type": "duration", "seconds": 2.5}),
    ({"prompt_audio_seconds": 9}, {"type": "duration", "seconds": 9.0}),
    (
        {"input_tokens": 5, "output_tokens": 2, "input_token_details": {"audio_tokens": 4}},
        {
            "type": "tokens",
            "input_tokens": 5,
            "output_tokens": 2,
            "total_tokens": 7,
            "input_token_details": {"audio_tokens": 4, "text_tokens": 1},
        },
    ),
)


@pytest.mark.parametrize(("stated", "encoded"), USAGES, ids=str)
def test_a_usage_is_of_tokens_or_of_a_duration(stated: dict[str, object], encoded: dict[str, object]) -> None:
    assert json.loads(answer({"text": "a", "usage": stated}, passes=False)) == {"text": "a", "usage": encoded}


LOGPROB = {"token": "a", "logprob": -0.5, "bytes": [97]}
EVENTS = (
    {"type": "transcript.text.delta", "delta": "a", "logprobs": [LOGPROB]},
    {"type": "transcript.text.new"},
    {"type": "transcript.text.segment", "id": "s", "start": 0.0, "end": 1.0, "text": "a", "speaker": "A"},
    {"type": "transcript.text.done", "text": "a", "logprobs": [LOGPROB]},
)


def frames(*events: dict[str, object]) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


def read(body: bytes, size: int) -> list[pb.StreamTranscribeResponse]:
    assert TRANSCRIPTIONS_FORMAT.stream_decoder is not None
    decoder = TRANSCRIPTIONS_FORMAT.stream_decoder(decoded(), "text/event-stream", True)
    assert decoder is not None
    found = [decoder.feed(body[at : at + size]) for at in range(0, len(body), size)]
    return [message for message in (*found, decoder.close()) if message is not None]


@pytest.mark.parametrize("size", [1, 9, 10_000])
def test_a_stream_is_read_however_it_is_cut_and_written_again(size: int) -> None:
    assert TRANSCRIPTIONS_FORMAT.stream_encoder is not None
    encoder = TRANSCRIPTIONS_FORMAT.stream_encoder(decoded())
    written = b"".join(map(encoder.feed, read(frames(*EVENTS) + b"data: [DONE]\n\n", size)))
    known = [event for event in EVENTS if event["type"] != "transcript.text.new"]
    assert [json.loads(line[6:]) for line in written.decode().split("\n\n") if line] == known


def test_events_of_mistral_are_read() -> None:
    events = ({"type": "transcription.text.delta", "text": "a"}, {"type": "transcription.done", "text": "a"})
    (message,) = read(frames(*events), 10_000)
    assert [event.WhichOneof("kind") for event in message.events] == ["delta", "finished"]
    assert message.events[0].delta.text == message.events[1].finished.text == "a"


def test_a_stream_that_breaks_off_is_an_error() -> None:
    for body in (frames(EVENTS[0]), frames({"type": "error", "error": {"message": "no"}}), b"data: {\n\n"):
        with pytest.raises(UmgError):
            read(body, 10_000)
