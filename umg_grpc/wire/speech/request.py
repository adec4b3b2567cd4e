"""Speech requests: decoding of a caller's body, and encoding of the canonical request for a provider."""

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.json_decoding import JsonObject, NonEmpty, parse
from umg_grpc.wire.core.unknown_field_detection import Fields
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest, RequestNotes
from umg_grpc.wire.text_format_interface import UpstreamRequest

FORMAT_NAME = "speech"
DEFAULT_FORMAT = "mp3"
EVENTS_FORMAT = "sse"


class CustomVoice(Struct):
    """Voice in the account at the provider."""

    id: NonEmpty


class SpeechBody(Struct, kw_only=True):
    """Body of `POST /v1/audio/speech`."""

    model: NonEmpty
    input: NonEmpty
    voice: str | CustomVoice | None = None
    instructions: str | None = None
    response_format: str | None = None
    speed: float | None = None
    stream_format: Literal["audio", "sse"] | None = None


class StreamFormat(Struct):
    """Member by which a caller selects bytes or events."""

    stream_format: str | None = None


KNOWN_FIELDS = Fields(SpeechBody, {}, {})
wire_path = wire_paths([(r"^audio_format$", "response_format"), (r"^with_usage$", "stream_format")])


def decode_request(body: bytes, headers: Mapping[str, str], model: str = "") -> DecodedRequest[pb.SpeakRequest]:
    """Decode the JSON body of a request, which the canonical request keeps as source document. `headers` and `model`
    have no effect. Raise UmgError: MALFORMED_BODY, MISSING_FIELD or INVALID_FIELD.
    """
    decoded = parse(SpeechBody, body)
    request = pb.SpeakRequest(
        model=decoded.model,
        input=decoded.input,
        instructions=decoded.instructions or "",
        audio_format=decoded.response_format or "",
        speed=decoded.speed,
        with_usage=decoded.stream_format == EVENTS_FORMAT,
    )
    request.source.format, request.source.body = FORMAT_NAME, body
    uncarried = list(KNOWN_FIELDS.unknown(body))
    if isinstance(decoded.voice, CustomVoice):  # an object in the account at the provider, as unknown members may name
        uncarried.append("voice.id")
    else:
        request.voice = decoded.voice or ""
    return DecodedRequest(request, RequestNotes(uncarried=uncarried))


def wants_events(body: bytes) -> bool:
    """Return whether a body requests events (`stream_format`) in place of audio bytes."""
    return msgspec.json.decode(body, type=StreamFormat).stream_format == EVENTS_FORMAT


def format_of(request: pb.SpeakRequest) -> str:
    """Return the file format of the audio that a request selects."""
    return request.audio_format or DEFAULT_FORMAT


def encode_request(request: pb.SpeakRequest, model: str, notes: RequestNotes = NO_NOTES) -> UpstreamRequest:
    """Encode a request as a call of a provider's `POST /audio/speech`. Members of a caller's body are kept."""
    fields: JsonObject = {"input": request.input}
    if request.source.format == FORMAT_NAME:
        fields |= parse(dict[str, Raw], request.source.body)
    else:
        optional = {
            "voice": request.voice,
            "instructions": request.instructions,
            "response_format": request.audio_format,
            "speed": request.speed if request.HasField("speed") else None,
            "stream_format": EVENTS_FORMAT if request.with_usage else "",
        }
        fields |= {name: value for name, value in optional.items() if value not in ("", None)}
    if not notes.is_streamed:
        fields.pop("stream_format", None)  # a whole response has no events
    fields["model"] = model
    return UpstreamRequest("/audio/speech", msgspec.json.encode(fields), {}, Report())
