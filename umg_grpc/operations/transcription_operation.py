"""Transcription: audio becomes text, in the language of the audio or in English."""

import math
import re
from collections.abc import Mapping

from umg_grpc.knowledge.price_calculation import (
    AUDIO_INPUT,
    AUDIO_SECOND,
    INPUT_TOKEN,
    OUTPUT_TOKEN,
    REQUEST_UNIT,
    Prices,
    Unit,
)
from umg_grpc.operations.operation_row import AttemptTelemetry, StreamedMethod, UnaryOperation
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.audio_file_properties import duration_seconds
from umg_grpc.wire.core.base64_media import sample_bytes_of_a_second
from umg_grpc.wire.provider_model_lists import OPENAI_LIST
from umg_grpc.wire.provider_protocols import ProviderProtocol

LEAST_BYTES_OF_A_SECOND = 1000
"""Lower bound for the bytes in a second of compressed speech: Opus at 8 kbit/s."""
USUAL_BYTES_OF_A_SECOND = 16_000
"""Assumed bytes in a second of a file whose duration cannot be read: MP3 at 128 kbit/s."""
INPUT_TOKENS_OF_A_SECOND = 17
"""Input tokens for a second of audio (litellm 1.110.2, cost map: 0.0001 a second, and at Azure 0.000006 a token)."""
OUTPUT_TOKENS_OF_A_SECOND = 10
"""Upper bound for the tokens of text in a second of fast speech."""


def _most_quantities(request: pb.TranscribeRequest, size: int) -> Mapping[Unit, int]:
    data = request.audio.data
    seconds = 1 + len(data) // (sample_bytes_of_a_second(data) or LEAST_BYTES_OF_A_SECOND)
    tokens = {AUDIO_INPUT: INPUT_TOKENS_OF_A_SECOND * seconds, OUTPUT_TOKEN: OUTPUT_TOKENS_OF_A_SECOND * seconds}
    return {REQUEST_UNIT: 1, AUDIO_SECOND: seconds, INPUT_TOKEN: size, **tokens}


def _usage(response: pb.TranscribeResponse) -> pb.Usage:
    stated = response.usage
    seconds = stated.seconds if stated.HasField("seconds") else response.duration
    return pb.Usage(
        input_tokens=stated.input_tokens,
        audio_input_tokens=stated.audio_tokens,
        output_tokens=stated.output_tokens,
        audio_seconds=min(math.ceil(seconds), MAX_COUNT),
    )


def _expected_usage(request: pb.TranscribeRequest) -> pb.Usage:
    seconds = _usual_seconds(request.audio.data)
    tokens = min(INPUT_TOKENS_OF_A_SECOND * seconds, MAX_COUNT)
    return pb.Usage(input_tokens=tokens, audio_input_tokens=tokens, audio_seconds=seconds)


def _usual_seconds(data: bytes) -> int:
    return math.ceil(len(data) / (sample_bytes_of_a_second(data) or USUAL_BYTES_OF_A_SECOND))


def _add_usage(request: pb.TranscribeRequest, usage: pb.Usage, prices: Prices) -> None:
    needs_tokens = not usage.audio_input_tokens and not usage.output_tokens and bool(prices.price_of(AUDIO_INPUT))
    if usage.audio_seconds == 0 and (prices.price_of(AUDIO_SECOND) or needs_tokens):
        data = request.audio.data
        seconds = duration_seconds(data)
        usage.estimated = usage.estimated or seconds is None
        usage.audio_seconds = _usual_seconds(data) if seconds is None else min(math.ceil(seconds), MAX_COUNT)
    if needs_tokens:
        usage.audio_input_tokens = min(INPUT_TOKENS_OF_A_SECOND * usage.audio_seconds, MAX_COUNT)
        usage.input_tokens, usage.estimated = usage.input_tokens + usage.audio_input_tokens, True


def _messages(response: pb.TranscribeResponse) -> list[pb.StreamTranscribeResponse]:
    message = pb.StreamTranscribeResponse()
    for segment in response.segments:
        if segment.speaker:
            message.events.add().segment.CopyFrom(segment)
    message.events.add().delta.text = response.text
    message.events.add().finished.CopyFrom(response)
    message.events[-1].finished.ClearField("source")
    return [message]


def _stream_usage(message: pb.StreamTranscribeResponse) -> pb.Usage | None:
    last = message.events[-1] if message.events else None
    return _usage(last.finished) if last is not None and last.HasField("finished") else None


TRANSCRIBE_OPERATION = UnaryOperation(
    value=pb.MODEL_OPERATION_TRANSCRIBE,
    scope="transcribe",
    verb="transcribe audio",
    results="transcriptions",
    service="TranscriptionService",
    methods=("Transcribe", "StreamTranscribe"),
    stream=StreamedMethod(
        name="StreamTranscribe",
        request=pb.StreamTranscribeRequest,
        message=pb.StreamTranscribeResponse,
        messages=_messages,
        has_output=lambda message: bool(message.events),
        usage=_stream_usage,
    ),
    protocols={
        "transcriptions": ProviderProtocol(
            call_path=re.compile(r"/audio/(?:transcriptions|translations)$"), model_list=OPENAI_LIST
        )
    },
    listed_as=("transcription", "transcribe", "audio_transcription", "stt", "SpeechToText"),
    id_part="whisper",
    model_field="",
    units=frozenset({REQUEST_UNIT, INPUT_TOKEN, AUDIO_INPUT, AUDIO_SECOND}),
    telemetry=AttemptTelemetry("transcription", "umg.client.transcription.duration"),  # the conventions have none
    request=pb.TranscribeRequest,
    response=pb.TranscribeResponse,
    probe=None,  # there is no file that costs next to nothing at every provider
    file_field="audio",
    most_quantities=_most_quantities,
    expected_usage=_expected_usage,
    usage=_usage,
    add_usage=_add_usage,
    example="umg_sandbox.simulated_transcription:transcribe",
    simulated={"whisper-1": "{audio_second: 0.0001}"},
    paths={"/v1/audio/transcriptions": "transcriptions", "/v1/audio/translations": "translations"},
    deployment_paths=("/v1/audio/transcriptions", "/v1/audio/translations"),
    tag="Audio",
    summary="Write down speech",
    body_types="umg_grpc.wire.transcriptions.openapi_bodies:BODY_TYPES",
    codecs="umg_grpc.wire.transcriptions:TRANSCRIPTION_FACES",
    upstreams="umg_grpc.wire.transcriptions:TRANSCRIPTION_UPSTREAMS",
)
