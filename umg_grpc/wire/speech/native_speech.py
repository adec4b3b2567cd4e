"""Speech by native models that generate audio (`POST /models/{model}:generateContent`), for providers only."""

import re
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

import msgspec
import pybase64
from msgspec import Raw, Struct

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.audio_file_properties import MEDIA_TYPES, audio_file
from umg_grpc.wire.core.base64_media import normal_mime
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject
from umg_grpc.wire.core.lenient_number_reading import count
from umg_grpc.wire.core.provider_key_headers import NATIVE_KEY_HEADER
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.errors.provider_errors import is_error, unreadable
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.native.errors import decode_error, stated_error
from umg_grpc.wire.native.model_paths import GENERATE_VERB, call_path
from umg_grpc.wire.native.usage import UsageMetadata
from umg_grpc.wire.speech.request import format_of
from umg_grpc.wire.text_format_interface import UpstreamRequest
from umg_grpc.wire.unary_format_interface import UnaryProviderFormat

PROTOCOL_NAME = "native_speech"
TOO_LONG = "input"
NATIVE_VOICES: Mapping[str, str] = MappingProxyType(
    {
        "alloy": "Kore",
        "ash": "Charon",
        "ballad": "Enceladus",
        "coral": "Aoede",
        "echo": "Orus",
        "fable": "Puck",
        "onyx": "Algenib",
        "nova": "Leda",
        "sage": "Sulafat",
        "shimmer": "Zephyr",
        "verse": "Fenrir",
        "marin": "Autonoe",
        "cedar": "Iapetus",
    }
)
"""OpenAI's voice (openai 3.57.0, `SpeechCreateParams.voice`) -> native voice
(ai.google.dev/gemini-api/docs/speech-generation, 2026-11). The pairs are our choice: no vendor states any.
"""
RATE_PARAMETER = re.compile(r"rate=(\d{4,6})")
DEFAULT_RATE = 24_000
RAW_TYPES = frozenset({"audio/l16", "audio/pcm", ""})
"""Media types of raw samples of 16 bits, little-endian."""


def encode_request(request: pb.SpeakRequest, model: str, notes: RequestNotes = NO_NOTES) -> UpstreamRequest:
    """Encode a request as a generation with audio output. Raise UmgError(UNTRANSLATABLE) for an unknown format."""
    report = Report()
    notes.report_uncarried(report)
    if format_of(request) not in MEDIA_TYPES:
        raise untranslatable("audio_format", f"this provider's audio is converted to {', '.join(MEDIA_TYPES)} alone")
    if request.HasField("speed") and request.speed != 1:
        report.drop("speed")
    config: JsonObject = {"responseModalities": ["AUDIO"]}
    if request.voice:
        voice = NATIVE_VOICES.get(request.voice, request.voice)
        if voice != request.voice:
            report.drop("voice", voice)
        config["speechConfig"] = {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": voice}}}
    # these models take directions and a colon before the text, and no system instruction
    text = f"{request.instructions.rstrip(' .:')}: {request.input}" if request.instructions else request.input
    body = {"contents": [{"role": "user", "parts": [{"text": text}]}], "generationConfig": config}
    return UpstreamRequest(call_path(model, GENERATE_VERB), msgspec.json.encode(body), {}, report)


class Blob(Struct, rename="camel"):
    """Member `inlineData` of a part."""

    mime_type: str = ""
    data: str = ""


class Part(Struct, rename="camel"):
    """Part of a response."""

    inline_data: Blob | None = None


class Content(Struct):
    """Member `content` of a candidate."""

    parts: list[Part] | None = None


class Candidate(Struct, rename="camel"):
    """Candidate of a response."""

    content: Content | None = None
    finish_reason: str = ""


class Feedback(Struct, rename="camel"):
    """Member `promptFeedback`."""

    block_reason: str = ""


class ResponseBody(Struct, rename="camel"):
    """Body of a response."""

    candidates: list[Candidate] | None = None
    prompt_feedback: Feedback | None = None
    usage_metadata: UsageMetadata | None = None
    error: Raw = ABSENT_MEMBER


_BODY = msgspec.json.Decoder(ResponseBody)
END_REASONS = frozenset({"", "STOP", "OTHER", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED"})
"""Finish reasons of a response without audio which do not mean that the content was refused."""


def decode_response(body: bytes, request: pb.SpeakRequest, pass_: bool) -> pb.SpeakResponse:
    """Decode a provider's response, and convert its samples to the requested file format. `pass_` has no effect. Raise
    UmgError: CONTENT_BLOCKED for refused content, UPSTREAM_FAILED for a response without audio.
    """
    try:
        sent = decode(_BODY, body)
        if is_error(sent.error):
            raise stated_error(sent.error)
        blobs = [
            part.inline_data
            for candidate in sent.candidates or ()
            for part in (candidate.content.parts if candidate.content is not None else None) or ()
            if part.inline_data is not None
        ]
        samples = b"".join(pybase64.b64decode(blob.data) for blob in blobs)
    except (ValueError, RecursionError):
        raise unreadable() from None
    if not samples:
        raise _without_audio(sent)
    kind, wanted = blobs[0].mime_type, format_of(request)
    response = pb.SpeakResponse(model=request.model, audio=samples, content_type=normal_mime(kind))
    if response.content_type in RAW_TYPES:
        rate = int(found[1]) if (found := RATE_PARAMETER.search(kind)) else DEFAULT_RATE
        response.audio, response.content_type = audio_file(samples, rate, wanted), MEDIA_TYPES[wanted]
    if (usage := sent.usage_metadata) is not None and usage.is_stated:
        response.usage.input_tokens = count(usage.prompt_token_count)
        response.usage.output_tokens = count(usage.candidates_token_count)
    return response


def _without_audio(sent: ResponseBody) -> UmgError:
    feedback, reasons = sent.prompt_feedback, [candidate.finish_reason for candidate in sent.candidates or ()]
    blocked = [feedback.block_reason] if feedback is not None and feedback.block_reason else []
    if blocked := blocked or [reason for reason in reasons if reason not in END_REASONS]:
        message = f"the provider refused to speak the text ({blocked[0][:64]}); change it"
        return UmgError(pb.ERROR_REASON_CONTENT_BLOCKED, message)
    return unreadable(": it has no audio")


NATIVE_SPEECH: UnaryProviderFormat[pb.SpeakRequest, pb.SpeakResponse] = UnaryProviderFormat(
    name=PROTOCOL_NAME,
    protocol=PROTOCOL_NAME,
    encode_request=encode_request,
    decode_response=decode_response,
    decode_error=partial(decode_error, too_long=TOO_LONG),
    key_header=NATIVE_KEY_HEADER,
    provider_name="gcp.gemini",
)
