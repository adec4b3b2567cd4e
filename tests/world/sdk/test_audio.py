"""The official openai SDK, unmodified, speaks and transcribes by the gateway: simulated, and by providers that take the
requests and send the responses of the SDK's own types.
"""

import asyncio
import base64
import io
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import aiohttp
import grpc
import openai
import pytest
import pytest_asyncio
from aiohttp import web
from google import genai
from google.genai import types
from openai.types.audio import (
    SpeechCreateParams,
    TranscriptionTextDeltaEvent,
    TranscriptionTextDoneEvent,
    TranslationVerbose,
)
from openai.types.audio.transcription_verbose import TranscriptionVerbose
from pydantic import TypeAdapter, ValidationError

from tests.support.gateways import Running, running
from tests.support.serving import serving
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.audio_file_properties import comment_of, duration_seconds, wav_file

pytestmark = pytest.mark.asyncio(loop_scope="module")

SPEECH = TypeAdapter(SpeechCreateParams)
CHUNK = bytes(range(256)) * 16
USAGE = {"input_tokens": 4, "output_tokens": 50, "total_tokens": 54}
PCM = base64.b64encode(bytes(48_000)).decode()
RECORDING = wav_file(bytes(96_000), 24_000)
"""Two seconds of silence."""
TOKENS = {
    "type": "tokens",
    "input_tokens": 34,
    "output_tokens": 5,
    "total_tokens": 39,
    "input_token_details": {"audio_tokens": 30, "text_tokens": 4},
}
SEGMENT = {
    "id": 0,
    "seek": 0,
    "start": 0.0,
    "end": 2.0,
    "text": " Hi there.",
    "tokens": [1, 2],
    "temperature": 0.0,
    "avg_logprob": -0.1,
    "compression_ratio": 1.5,
    "no_speech_prob": 0.01,
}
VERBOSE = {
    "task": "transcribe",
    "language": "english",
    "duration": 2.0,
    "text": "Hi there.",
    "segments": [SEGMENT],
    "usage": {"type": "duration", "seconds": 2},
}
DELTAS = ("Hi", " there.")
FIELDS = frozenset(
    {
        *("model", "language", "prompt", "response_format", "temperature", "stream", "chunking_strategy", "include[]"),
        *("timestamp_granularities[]", "chunking_strategy[type]", "chunking_strategy[threshold]"),
        *("known_speaker_names[]", "known_speaker_references[]"),
    }
)


class Provider:
    def __init__(self) -> None:
        self.left = asyncio.Event()
        """Set when the caller of an endless response has left."""
        self.forms: list[list[tuple[str, str]]] = []
        """Fields of the forms, and the names, types and sizes of files."""

    async def speak(self, request: web.Request) -> web.StreamResponse:
        """Speak as the words of the input select."""
        body = await request.json()
        try:
            SPEECH.validate_python(body, strict=True)
        except ValidationError as error:
            return web.json_response({"error": {"message": str(error), "type": "invalid_request_error"}}, status=400)
        match body["input"]:
            case "busy":
                error = {"message": "slow down", "code": "rate_limit_exceeded"}
                return web.json_response({"error": error}, status=429)
            case "json":
                return web.json_response({"error": {"message": "no voice", "type": "server_error"}})
            case "empty":
                return web.Response(body=b"", content_type="audio/mpeg")
            case "page":
                return web.Response(text="<html>Bad gateway</html>", content_type="text/html")
            case _:
                return await self._stream(request, body)

    async def _stream(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        events = body.get("stream_format") == "sse"
        response = web.StreamResponse(headers={"content-type": "text/event-stream" if events else "audio/mpeg"})
        await response.prepare(request)
        delta = {"type": "speech.audio.delta", "audio": base64.b64encode(CHUNK).decode()}
        part = b"data: %b\n\n" % json.dumps(delta).encode() if events else CHUNK
        await response.write(part)
        if body["input"] == "cut":
            assert request.transport is not None
            request.transport.close()
            return response
        if body["input"] == "endless":
            while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110  # no event
                await asyncio.sleep(0.01)
            self.left.set()
        await response.write(part)
        if events:
            await response.write(b'data: {"type": "speech.audio.done", "usage": %b}\n\n' % json.dumps(USAGE).encode())
        return response

    async def generate(self, request: web.Request) -> web.Response:
        body = await request.json()
        assert body["generationConfig"]["responseModalities"] == ["AUDIO"]
        part = {"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": PCM}}
        usage = {"promptTokenCount": 3, "candidatesTokenCount": 25, "totalTokenCount": 28}
        return web.json_response({"candidates": [{"content": {"parts": [part]}}], "usageMetadata": usage})

    async def transcribe(self, request: web.Request) -> web.StreamResponse:
        """Transcribe as the model and the form of the text select."""
        fields: list[tuple[str, str]] = []
        async for part in await request.multipart():
            assert isinstance(part, aiohttp.BodyPartReader)
            data = await part.read()
            if part.name == "file":
                fields.append(("file", f"{part.filename} {part.headers['content-type']} {len(data)}"))
            else:
                assert part.name in FIELDS, part.name
                fields.append((str(part.name), data.decode()))
        self.forms.append(fields)
        form = dict(fields)
        if form.get("prompt") == "busy":
            return web.json_response({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, status=429)
        if form.get("prompt") == "page":
            return web.Response(text="<html>Bad gateway</html>", content_type="text/html")
        if "stream" in form and form["model"] != "whisper-1":
            return await self._stream_text(request)
        match form.get("response_format", "json"):
            case "verbose_json":
                return web.json_response(VERBOSE)
            case "json" if form["model"] == "whisper-1":
                return web.json_response({"text": "Hi there.", "usage": {"type": "duration", "seconds": 2}})
            case "json":
                return web.json_response({"text": "Hi there.", "usage": TOKENS})
            case "vtt":
                return web.Response(text="WEBVTT\n\n00:00.000 --> 00:02.000\nHi there.\n\n")
            case "text" | "srt" as name:
                assert form["model"] == "whisper-1", name
                return web.Response(text="Hi there.\n")
            case other:
                return web.json_response({"error": {"message": f"no {other}", "param": "response_format"}}, status=400)

    async def _stream_text(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        events: list[dict[str, Any]] = [{"type": "transcript.text.delta", "delta": delta} for delta in DELTAS]
        events.append({"type": "transcript.text.done", "text": "".join(DELTAS), "usage": TOKENS})
        for event in events:
            await response.write(b"data: %b\n\n" % json.dumps(event).encode())
        return response


@dataclass(frozen=True)
class World:
    gateway: Running
    provider: Provider

    def client(self, key: str = "") -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(api_key=key or self.gateway.key, base_url=f"{self.gateway.url}/v1", max_retries=0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World, None]:
    provider, app = Provider(), web.Application()
    app.router.add_post("/v1/audio/speech", provider.speak)
    app.router.add_post("/v1/audio/transcriptions", provider.transcribe)
    app.router.add_post("/v1/audio/translations", provider.transcribe)
    app.router.add_post("/v1beta/models/{call}", provider.generate)
    async with serving(app) as url:
        config = f"""
channels:
  - name: openai
    provider: openai
    base_url: '{url}/v1'
    api_key: k
    models: [tts-1, gpt-4o-mini-tts, whisper-1, gpt-4o-transcribe, {{id: groq, upstream: whisper-large-v3}}]
  - {{name: gemini, provider: gemini, base_url: '{url}/v1beta', api_key: k, models: [gemini-2.5-flash-preview-tts]}}
  - {{name: sandbox, protocols: [sandbox], models: [simulated-voice, simulated-ear, guarded-ear, guarded-voice]}}
guards:
  - {{name: words, kind: patterns, words: [sleeps], models: ['guarded-*']}}
models:
  groq: {{capabilities: {{operations: [transcribe]}}, price: {{audio_second: 0.00003}}}}
  simulated-voice: {{capabilities: {{operations: [speech]}}, price: {{request: 0}}}}
  simulated-ear: {{capabilities: {{operations: [transcribe]}}, price: {{request: 0}}}}
  guarded-ear: {{capabilities: {{operations: [transcribe]}}, price: {{request: 0}}}}
  guarded-voice: {{capabilities: {{operations: [speech]}}, price: {{request: 0}}}}
"""
        async with running(config, tmp_path_factory.mktemp("audio")) as made:
            yield World(made, provider)


# --- speech


async def test_audio_is_passed_on_as_it_comes(world: World) -> None:
    async with world.client() as client:
        spoken = await client.audio.speech.create(model="tts-1", input="Hi", voice="alloy")
        assert (spoken.content, spoken.response.headers["content-type"]) == (2 * CHUNK, "audio/mpeg")
        speak = client.audio.speech.with_streaming_response.create
        async with speak(model="tts-1", input="Hi", voice="alloy", speed=2) as streamed:
            assert b"".join([part async for part in streamed.iter_bytes()]) == 2 * CHUNK


async def test_the_blocking_client_speaks_too(world: World) -> None:
    def spoken() -> bytes:
        with openai.OpenAI(api_key=world.gateway.key, base_url=f"{world.gateway.url}/v1") as client:
            return client.audio.speech.create(model="tts-1", input="Hi", voice="coral").content

    assert await asyncio.to_thread(spoken) == 2 * CHUNK


async def test_events_state_the_usage(world: World) -> None:
    async with world.client() as client:
        speak = client.audio.speech.with_streaming_response.create
        async with speak(model="gpt-4o-mini-tts", input="Hi", voice="ash", stream_format="sse") as streamed:
            assert streamed.headers["content-type"].startswith("text/event-stream")
            events = [json.loads(line[6:]) async for line in streamed.iter_lines() if line]
    audio = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    assert (audio, events[-1]) == (2 * CHUNK, {"type": "speech.audio.done", "usage": USAGE})


async def test_a_native_model_speaks_in_the_format_that_the_caller_selects(world: World) -> None:
    model = "gemini-2.5-flash-preview-tts"
    async with world.client() as client:
        spoken = await client.audio.speech.create(model=model, input="Hi", voice="alloy", response_format="wav")
        assert spoken.content == wav_file(bytes(48_000), 24_000)
        assert spoken.response.headers["x-umg-dropped"]
        spoken = await client.audio.speech.create(model=model, input="Hi", voice="Puck")
    assert duration_seconds(spoken.content) == pytest.approx(1, abs=0.1)


async def test_the_native_sdk_has_several_speakers_of_a_native_model(world: World) -> None:
    voices = [
        types.SpeakerVoiceConfig(
            speaker=speaker,
            voice_config=types.VoiceConfig(prebuilt_voice_config=types.PrebuiltVoiceConfig(voice_name=voice)),
        )
        for speaker, voice in (("Joe", "Kore"), ("Jane", "Puck"))
    ]
    speech = types.SpeechConfig(multi_speaker_voice_config=types.MultiSpeakerVoiceConfig(speaker_voice_configs=voices))
    config = types.GenerateContentConfig(response_modalities=["AUDIO"], speech_config=speech)
    options = types.HttpOptions(base_url=world.gateway.url)

    def speak() -> types.GenerateContentResponse:
        with genai.Client(api_key=world.gateway.key, http_options=options) as client:
            return client.models.generate_content(
                model="gemini-2.5-flash-preview-tts", contents="Joe: Hi. Jane: Hello.", config=config
            )

    spoken = await asyncio.to_thread(speak)
    assert spoken.parts is not None
    blob = spoken.parts[0].inline_data
    assert blob is not None
    assert blob.data == bytes(48_000)


async def test_azures_path_names_the_model(world: World) -> None:
    endpoint = world.gateway.url
    async with openai.AsyncAzureOpenAI(api_key=world.gateway.key, azure_endpoint=endpoint, api_version="1") as client:
        spoken = await client.audio.speech.create(model="tts-1", input="Hi", voice="alloy")
        assert spoken.content == 2 * CHUNK
        file = io.BytesIO(RECORDING)
        async with openai.AsyncAzureOpenAI(
            api_key=world.gateway.key, base_url=f"{endpoint}/openai/deployments/whisper-1", api_version="1"
        ) as deployment:
            written = await deployment.audio.transcriptions.create(model="whisper-1", file=("a.wav", file))
    assert written.text == "Hi there."


@dataclass(frozen=True)
class Refused:
    """Call that fails before the first byte, with the SDK's error."""

    id: str
    options: dict[str, Any]
    error: type[openai.APIStatusError]
    field: str | None = None


REFUSED = (
    Refused("no input", {"input": ""}, openai.BadRequestError, "input"),
    Refused("an unknown model", {"model": "none"}, openai.NotFoundError),
    Refused("a busy provider", {"input": "busy"}, openai.RateLimitError),
    Refused("JSON in place of audio", {"input": "json"}, openai.InternalServerError),
    Refused("no audio", {"input": "empty"}, openai.InternalServerError),
    Refused("a page in place of audio", {"input": "page"}, openai.InternalServerError),
    Refused("too fast", {"model": "simulated-voice", "speed": 1e6}, openai.BadRequestError, "speed"),
    Refused(
        "an unknown format",
        {"model": "simulated-voice", "response_format": "no"},
        openai.BadRequestError,
        "response_format",
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
async def test_an_error_before_the_first_byte_has_the_body_of_the_format(case: Refused, world: World) -> None:
    async with world.client() as client:
        with pytest.raises(case.error) as refused:
            await client.audio.speech.create(**{"model": "tts-1", "input": "Hi", "voice": "alloy", **case.options})
    assert refused.value.param == case.field


async def test_audio_that_breaks_off_ends_with_the_connection(world: World) -> None:
    async with world.client() as client:
        with pytest.raises(openai.APIConnectionError):
            await client.audio.speech.create(model="tts-1", input="cut", voice="alloy")
        speak = client.audio.speech.with_streaming_response.create
        async with speak(model="gpt-4o-mini-tts", input="cut", voice="ash", stream_format="sse") as streamed:
            events = [json.loads(line[6:]) async for line in streamed.iter_lines() if line]
    assert [event["type"] for event in events] == ["speech.audio.delta", "error"]


async def test_a_caller_that_leaves_stops_the_provider(world: World) -> None:
    world.provider.left.clear()
    async with world.client() as client:
        speak = client.audio.speech.with_streaming_response.create
        async with speak(model="tts-1", input="endless", voice="alloy") as streamed:
            assert await anext(aiter(streamed.iter_bytes()))
    async with asyncio.timeout(30):
        await world.provider.left.wait()


# --- transcription


async def test_the_form_passes_with_its_file_last(world: World) -> None:
    options: dict[str, Any] = {
        "language": "en",
        "prompt": "a list",
        "temperature": 0.5,
        "timestamp_granularities": ["word", "segment"],
        "response_format": "verbose_json",
        "chunking_strategy": {"type": "server_vad", "threshold": 0.5},
    }
    async with world.client() as client:
        written = await client.audio.transcriptions.create(
            model="whisper-1", file=("a b.wav", RECORDING, "audio/x-wav"), **options
        )
    assert isinstance(written, TranscriptionVerbose)
    assert (written.text, written.usage and written.usage.seconds) == ("Hi there.", 2)
    *fields, file = world.provider.forms[-1]
    assert file == ("file", f"a b.wav audio/x-wav {len(RECORDING)}")
    assert sorted(fields) == sorted(
        [
            *(("model", "whisper-1"), ("language", "en"), ("prompt", "a list"), ("temperature", "0.5")),
            *(("timestamp_granularities[]", "word"), ("timestamp_granularities[]", "segment")),
            *(("response_format", "verbose_json"), ("chunking_strategy[type]", "server_vad")),
            ("chunking_strategy[threshold]", "0.5"),
        ]
    )


@dataclass(frozen=True)
class Written:
    id: str
    model: str
    wanted: str
    sent: str
    text: str


SRT, VTT = "00:00:00,000 --> 00:00:02,000\nHi there.\n\n", "00:00:00.000 --> 00:00:02.000\nHi there.\n\n"
WRITTEN = (
    Written("a text of the provider", "whisper-1", "text", "text", "Hi there.\n"),
    Written("subtitles of the provider", "whisper-1", "vtt", "vtt", "WEBVTT\n\n00:00.000 --> 00:02.000\nHi there.\n\n"),
    Written("a text of JSON", "gpt-4o-transcribe", "text", "json", "Hi there.\n"),
    Written("SRT of times", "groq", "srt", "verbose_json", f"1\n{SRT}"),
    Written("WebVTT of times", "groq", "vtt", "verbose_json", f"WEBVTT\n\n{VTT}"),
)


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case.id)
async def test_a_form_that_the_provider_lacks_is_made(case: Written, world: World) -> None:
    async with world.client() as client:
        written = await client.audio.transcriptions.create(
            model=case.model,
            file=("a.wav", RECORDING),
            response_format=case.wanted,  # type: ignore[call-overload]
        )
    assert (written, dict(world.provider.forms[-1])["response_format"]) == (case.text, case.sent)


async def test_subtitles_without_times_are_refused_by_the_field(world: World) -> None:
    async with world.client() as client:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.audio.transcriptions.create(
                model="gpt-4o-transcribe", file=("a.wav", RECORDING), response_format="srt"
            )
    assert refused.value.param == "response_format"


@pytest.mark.parametrize("model", ["gpt-4o-transcribe", "whisper-1"])
async def test_a_transcription_is_streamed_also_by_a_model_without_streams(model: str, world: World) -> None:
    async with world.client() as client:
        stream = await client.audio.transcriptions.create(model=model, file=("a.wav", RECORDING), stream=True)
        events = [event async for event in stream]
    *deltas, done = events
    assert all(isinstance(event, TranscriptionTextDeltaEvent) for event in deltas)
    assert isinstance(done, TranscriptionTextDoneEvent)
    assert "".join(getattr(event, "delta", "") for event in deltas) == done.text == "Hi there."
    if model != "whisper-1":
        assert len(deltas) == len(DELTAS)
        assert done.usage is not None
        assert done.usage.total_tokens == 39


async def test_audio_is_translated(world: World) -> None:
    async with world.client() as client:
        create = client.audio.translations.create
        with pytest.warns(DeprecationWarning, match="deprecated"):
            written = await create(model="whisper-1", file=("a.wav", RECORDING), response_format="verbose_json")
    assert isinstance(written, TranslationVerbose)
    assert (written.text, written.language) == ("Hi there.", "english")


INVALID = (
    Refused("an empty file", {"file": ("a.wav", b"")}, openai.BadRequestError, "file"),
    Refused("no audio", {"file": ("a.wav", b"none"), "model": "simulated-ear"}, openai.BadRequestError, "file"),
    Refused("a temperature in words", {"temperature": "hot"}, openai.BadRequestError, "temperature"),
    Refused("an unknown form", {"response_format": "html"}, openai.BadRequestError, "response_format"),
    Refused("a busy provider", {"prompt": "busy"}, openai.RateLimitError),
    Refused("a page in place of a text", {"prompt": "page", "response_format": "text"}, openai.InternalServerError),
    Refused("a huge file", {"file": ("a.wav", bytes(66 << 20))}, openai.APIStatusError),
)


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.id)
async def test_a_refused_transcription_names_the_field(case: Refused, world: World) -> None:
    async with world.client() as client:
        with pytest.raises(case.error) as refused:
            await client.audio.transcriptions.create(
                **{"model": "whisper-1", "file": ("a.wav", RECORDING), **case.options}
            )
    assert refused.value.param == case.field


# --- both


@pytest.mark.parametrize("name", ["mp3", "wav", "flac", "opus"])
async def test_simulated_speech_is_a_file_whose_text_is_found_again(name: Any, world: World) -> None:
    async with world.client() as client:
        spoken = await client.audio.speech.create(
            model="simulated-voice", input="Hello. A cat sleeps.", voice="nova", response_format=name
        )
        file = (f"a.{name}", spoken.content)
        written = await client.audio.transcriptions.create(model="simulated-ear", file=file, response_format="srt")
    assert "Hello." in str(written)
    assert "A cat sleeps." in str(written)


async def test_guards_check_the_texts_of_streams_too(world: World) -> None:
    async with world.client() as client:
        speak, write = client.audio.speech.create, client.audio.transcriptions.create
        spoken = await speak(model="simulated-voice", input="A cat sleeps.", voice="nova")
        file = ("a.mp3", spoken.content)
        for name in ("text", "srt", "vtt"):
            assert "sleeps" not in str(await write(model="guarded-ear", file=file, response_format=name))  # type: ignore[call-overload]
        stream = await write(model="guarded-ear", file=file, stream=True)
        assert "sleeps" not in str([event async for event in stream])
        spoken = await speak(model="guarded-voice", input="A cat sleeps.", voice="nova")
        assert "sleeps" not in comment_of(spoken.content)


async def test_the_grpc_face_speaks_and_transcribes(world: World) -> None:
    metadata = (("authorization", f"Bearer {world.gateway.key}"),)
    async with grpc.aio.insecure_channel(world.gateway.grpc) as channel:
        speech, transcription = rpc.SpeechServiceStub(channel), rpc.TranscriptionServiceStub(channel)
        request = pb.SpeakRequest(model="tts-1", input="Hi", voice="alloy")
        spoken = await speech.Speak(request, metadata=metadata)
        assert (spoken.audio, spoken.content_type, spoken.model) == (2 * CHUNK, "audio/mpeg", "tts-1")
        messages = [
            each async for each in speech.StreamSpeak(pb.StreamSpeakRequest(request=request), metadata=metadata)
        ]
        assert b"".join(message.audio for message in messages) == 2 * CHUNK
        spoken_request = pb.TranscribeRequest(
            model="gpt-4o-transcribe", audio=pb.AudioFile(data=RECORDING, file_name="a.wav")
        )
        written = await transcription.Transcribe(spoken_request, metadata=metadata)
        assert (written.text, written.usage.audio_tokens) == ("Hi there.", 30)
        stream = transcription.StreamTranscribe(pb.StreamTranscribeRequest(request=spoken_request), metadata=metadata)
        events = [event async for message in stream for event in message.events]
        assert [event.WhichOneof("kind") for event in events] == ["delta", "delta", "finished"]
        form = pb.SourceDocument(format="transcriptions", body=b'{"model": "whisper-1", "prompt": "x"}')
        spoken_request = pb.TranscribeRequest(source=form, audio=spoken_request.audio)
        assert (await transcription.Transcribe(spoken_request, metadata=metadata)).usage.seconds == 2
        spoken_request.ClearField("audio")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await transcription.Transcribe(spoken_request, metadata=metadata)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_characters_seconds_and_tokens_are_charged(world: World) -> None:
    key, secret = await ApiKeys(world.gateway.service.store).create("budget", budget_micro_credits=1_000_000)
    async with world.client(secret) as client:
        await client.audio.speech.create(model="tts-1", input="x" * 100, voice="alloy")
        speak = client.audio.speech.with_streaming_response.create
        async with speak(model="gpt-4o-mini-tts", input="Hi", voice="ash", stream_format="sse") as streamed:
            await streamed.read()
        for model in ("whisper-1", "gpt-4o-transcribe"):
            await client.audio.transcriptions.create(model=model, file=("a.wav", RECORDING))
        await client.audio.transcriptions.create(model="whisper-1", file=("a.wav", RECORDING), response_format="text")
    records = await _records(world.gateway, key.key_id, 5)
    costs = sorted((record["model"], record["micro_credits"]) for record in records)
    assert costs == [
        ("gpt-4o-mini-tts", 603),  # 4 tokens at 0.6, 50 of audio at 12 a million
        ("gpt-4o-transcribe", 240),  # 4 tokens at 2.5, 30 of audio at 6, 5 at 10
        ("tts-1", 1500),
        ("whisper-1", 200),
        ("whisper-1", 200),  # a text states no duration: that of the file
    ]


async def test_a_budget_that_the_longest_speech_exceeds_refuses_it(world: World) -> None:
    _, secret = await ApiKeys(world.gateway.service.store).create("poor", budget_micro_credits=100)
    async with world.client(secret) as client:
        with pytest.raises(openai.RateLimitError):
            await client.audio.speech.create(model="tts-1", input="x" * 100, voice="alloy")


async def _records(gateway: Running, key: str, count: int) -> list[dict[str, Any]]:
    """Return the records of a key once there are as many: they are written in the background."""
    async with aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session, asyncio.timeout(60):
        while True:
            async with session.get("/admin/v1/requests", params={"key_ids": key}) as response:
                if len(records := (await response.json())["records"]) >= count:
                    return list(records)
            await asyncio.sleep(0.02)
