"""Speech: text becomes spoken audio."""

import re
from collections.abc import Mapping

from umg_grpc.knowledge.price_calculation import AUDIO_OUTPUT, CHARACTER_UNIT, INPUT_TOKEN, REQUEST_UNIT, Prices, Unit
from umg_grpc.operations.operation_row import AttemptTelemetry, StreamedMethod, UnaryOperation
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.provider_key_headers import NATIVE_KEY_HEADER
from umg_grpc.wire.provider_model_lists import GEMINI_LIST, OPENAI_LIST
from umg_grpc.wire.provider_protocols import MODEL_PATH, ProviderProtocol

TOKENS_OF_A_CHARACTER = 2
"""Audio tokens charged for a character if the provider states none. A second has about 21 tokens (litellm 1.110.2, cost
map, gpt-4o-mini-tts: prices of a second and of a token) and some 15 spoken characters.
"""
MOST_TOKENS_OF_A_CHARACTER = 16
"""Upper bound of audio tokens for a character: spoken at a quarter of the usual speed, with pauses."""


def _most_quantities(request: pb.SpeakRequest, size: int) -> Mapping[Unit, int]:
    characters = len(request.input)
    return {
        REQUEST_UNIT: 1,
        INPUT_TOKEN: size,
        CHARACTER_UNIT: characters,
        AUDIO_OUTPUT: MOST_TOKENS_OF_A_CHARACTER * characters,
    }


def _usage(response: pb.SpeakResponse | pb.StreamSpeakResponse) -> pb.Usage:
    tokens = response.usage.output_tokens
    return pb.Usage(input_tokens=response.usage.input_tokens, output_tokens=tokens, audio_output_tokens=tokens)


def _expected_usage(request: pb.SpeakRequest) -> pb.Usage:
    characters = min(len(request.input), MAX_COUNT)
    tokens = min(TOKENS_OF_A_CHARACTER * characters, MAX_COUNT)
    return pb.Usage(characters=characters, output_tokens=tokens, audio_output_tokens=tokens)


def _add_usage(request: pb.SpeakRequest, usage: pb.Usage, prices: Prices) -> None:
    expected = _expected_usage(request)
    usage.characters = expected.characters
    if not usage.output_tokens and prices.price_of(AUDIO_OUTPUT):
        usage.output_tokens, usage.audio_output_tokens = expected.output_tokens, expected.audio_output_tokens
        usage.estimated = True


def _messages(response: pb.SpeakResponse) -> list[pb.StreamSpeakResponse]:
    message = pb.StreamSpeakResponse(content_type=response.content_type, audio=response.audio)
    if response.HasField("usage"):
        message.usage.CopyFrom(response.usage)
    return [message]


SPEAK_OPERATION = UnaryOperation(
    value=pb.MODEL_OPERATION_SPEAK,
    scope="speech",
    verb="speak texts",
    results="speech",
    service="SpeechService",
    methods=("Speak", "StreamSpeak"),
    stream=StreamedMethod(
        name="StreamSpeak",
        request=pb.StreamSpeakRequest,
        message=pb.StreamSpeakResponse,
        messages=_messages,
        has_output=lambda message: bool(message.audio),
        usage=lambda message: _usage(message) if message.HasField("usage") else None,
    ),
    protocols={
        "speech": ProviderProtocol(call_path=re.compile(r"/audio/speech$"), model_list=OPENAI_LIST),
        "native_speech": ProviderProtocol(
            key_header=NATIVE_KEY_HEADER, call_path=MODEL_PATH, model_list=GEMINI_LIST, has_callers=False
        ),
    },
    listed_as=("speech", "tts", "audio_speech", "TextToSpeech"),
    id_part="tts",
    model_field="",
    units=frozenset({REQUEST_UNIT, INPUT_TOKEN, CHARACTER_UNIT, AUDIO_OUTPUT}),
    telemetry=AttemptTelemetry("speech", "umg.client.speech.duration"),  # the conventions have none
    request=pb.SpeakRequest,
    response=pb.SpeakResponse,
    probe=pb.SpeakRequest(input="Hi", voice="alloy"),
    most_quantities=_most_quantities,
    expected_usage=_expected_usage,
    usage=_usage,
    counted_texts=lambda request: (request.input, request.instructions),
    add_usage=_add_usage,
    example="umg_sandbox.simulated_speech:speak",
    simulated={"tts-1": "{character: 0.000015}", "gpt-4o-mini-tts": "{input: 0.6, audio_output: 12}"},
    paths={"/v1/audio/speech": "speech"},
    deployment_paths=("/v1/audio/speech",),
    tag="Audio",
    summary="Speak a text",
    body_types="umg_grpc.wire.speech.openapi_bodies:BODY_TYPES",
    codecs="umg_grpc.wire.speech:SPEECH_FORMATS",
    upstreams="umg_grpc.wire.speech:SPEECH_UPSTREAMS",
)
