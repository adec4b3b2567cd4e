"""Speech responses from providers and for callers: whole audio files, and streams of bytes or of events."""

import re
from collections.abc import Mapping

import msgspec
import pybase64
from msgspec import Raw, Struct

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import error_members
from umg_grpc.wire.core.audio_file_properties import PCM_FORMAT, media_type
from umg_grpc.wire.core.base64_media import normal_mime
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject
from umg_grpc.wire.core.lenient_number_reading import Count, count
from umg_grpc.wire.core.sse import DONE_DATA, EVENT_STREAM, SseSplitter, frame, split
from umg_grpc.wire.errors.provider_errors import as_error, cut_off, from_provider, is_error, no_response, unreadable
from umg_grpc.wire.speech.request import format_of, wants_events
from umg_grpc.wire.unary_format_interface import ClientShape, MessageDecoder, MessageEncoder

TOO_LONG = "input"
"""Canonical field that an error names if the provider rejects the request as too long."""
DELTA_EVENT, END_EVENT = "speech.audio.delta", "speech.audio.done"
JSON_TYPE, EVENTS_TYPE = "application/json", "text/event-stream"
AUDIO_TYPES = re.compile(r"audio/|video/|application/ogg\b")
"""Media types that state the audio format; other types, like `application/octet-stream`, fit any bytes."""
PAGE_TYPES = re.compile(r"text/|application/(?:xhtml\+)?xml\b")
"""Media types of the pages that failed proxies and servers send with status 200."""
NO_AUDIO = re.compile(rb"\s*(?:[\[{]\s*[\"{}\]]|<(?:!doctype|html)\b)", re.IGNORECASE)
"""Pattern for the first bytes of JSON or an HTML page, which some servers send with an audio media type."""


class ProviderUsage(Struct):
    """Member `usage` of the last event."""

    input_tokens: Count = None
    output_tokens: Count = None


class ProviderBody(Struct):
    """JSON of a provider: an event, an error, or the response of one that sends audio in base64."""

    type: str = ""
    audio: str = ""
    audio_data: str = ""
    """Audio in a response of Mistral (mistralai, `SpeechResponse`)."""
    usage: ProviderUsage | None = None
    error: Raw = ABSENT_MEMBER


_BODY = msgspec.json.Decoder(ProviderBody)


# --- whole responses


def decode_response(body: bytes, request: pb.SpeakRequest, pass_: bool) -> pb.SpeakResponse:
    """Decode an audio file, or JSON with one. `pass_` has no effect. Raise UmgError(UPSTREAM_FAILED) without audio."""
    response = pb.SpeakResponse(model=request.model, audio=body, content_type=media_type(format_of(request)))
    if not is_audio(body, request):
        sent = _decode(body)
        if not sent.audio_data:
            raise no_response(body, too_long=TOO_LONG)
        response.audio = _bytes(sent.audio_data)
        _set_usage(response, sent.usage)
    if not response.audio:
        raise unreadable(": it has no audio")
    return response


def is_audio(begin: bytes, request: pb.SpeakRequest) -> bool:
    """Return whether a body with these first bytes is audio. Raw samples may begin like JSON by chance: they count as
    JSON only if all of the body can be decoded.
    """
    if NO_AUDIO.match(begin) is None:
        return True
    return format_of(request) == PCM_FORMAT and not _is_json(begin)


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body, type=Raw)
    except ValueError:
        return False
    return True


def read_headers(response: pb.SpeakResponse, headers: Mapping[str, str]) -> None:
    """Set the audio media type that the headers state, if any. Raise UmgError(UPSTREAM_FAILED) for a text type."""
    kind = normal_mime(headers.get("content-type", ""))
    _check_kind(kind)
    if AUDIO_TYPES.match(kind):
        response.content_type = kind


def _check_kind(kind: str) -> None:
    if PAGE_TYPES.match(kind):
        raise unreadable(f": it is {kind} and no audio")


def encode_response(response: pb.SpeakResponse, request: pb.SpeakRequest, shape: ClientShape) -> bytes:
    """Return the audio file. `request` and `shape` have no effect."""
    return response.audio


def _decode(body: bytes) -> ProviderBody:
    try:
        sent = _BODY.decode(body)
        if is_error(sent.error):
            raise from_provider(200, as_error(msgspec.json.decode(sent.error)), too_long=TOO_LONG)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return sent


def _bytes(text: str) -> bytes:
    try:
        return pybase64.b64decode(text, validate=True)
    except ValueError:
        raise unreadable() from None


def _set_usage(target: pb.SpeakResponse | pb.StreamSpeakResponse, usage: ProviderUsage | None) -> None:
    if usage is not None and (usage.input_tokens is not None or usage.output_tokens is not None):
        target.usage.input_tokens, target.usage.output_tokens = count(usage.input_tokens), count(usage.output_tokens)


# --- streams of providers


def stream_decoder(request: pb.SpeakRequest, kind: str, pass_: bool) -> MessageDecoder[pb.StreamSpeakResponse] | None:
    """Return the decoder for a response of the media type `kind`; None for JSON. `pass_` has no effect. Raise
    UmgError(UPSTREAM_FAILED) if the media type is that of a text.
    """
    if kind == JSON_TYPE or kind.endswith("+json"):
        return None
    if kind == EVENTS_TYPE:
        return EventDecoder(media_type(format_of(request)))
    _check_kind(kind)
    return BytesDecoder(kind if AUDIO_TYPES.match(kind) else media_type(format_of(request)), request)


class BytesDecoder:
    """Decoder of the bytes of an audio file."""

    done = False

    def __init__(self, content_type: str, request: pb.SpeakRequest) -> None:
        self._content_type = content_type
        self._request = request
        self._is_empty = True

    def feed(self, received: bytes) -> pb.StreamSpeakResponse:
        if self._is_empty and not is_audio(received, self._request):
            decode_response(received, self._request, pass_=False)  # raises the error that it states
            raise unreadable(": it is no audio")
        self._is_empty = False
        return pb.StreamSpeakResponse(content_type=self._content_type, audio=received)

    def close(self) -> None:
        if self._is_empty:
            raise unreadable(": it has no audio")


class EventDecoder:
    """Decoder of server-sent events with audio in base64."""

    def __init__(self, content_type: str) -> None:
        self._content_type = content_type
        self._splitter = SseSplitter()
        self.done = False

    def feed(self, received: bytes) -> pb.StreamSpeakResponse | None:
        return self._message(self._splitter.whole(received))

    def close(self) -> pb.StreamSpeakResponse | None:
        message = None if self.done else self._message(self._splitter.rest())
        if not self.done:
            raise cut_off()
        return message

    def _message(self, frames: bytes) -> pb.StreamSpeakResponse | None:
        message = pb.StreamSpeakResponse()
        for event in split(frames):
            if event.data is None or self.done:
                continue
            if event.data.strip() == DONE_DATA:
                self.done = True
                continue
            sent = _decode(event.data)
            if sent.audio:
                message.content_type, message.audio = self._content_type, message.audio + _bytes(sent.audio)
            if sent.type == END_EVENT:
                self.done = True
                _set_usage(message, sent.usage)
        return message if message.ListFields() else None


# --- streams for callers


def stream_encoder(request: pb.SpeakRequest) -> MessageEncoder[pb.StreamSpeakResponse]:
    """Return the encoder of the response: of events if the request's body selects them, otherwise of bytes."""
    return EventEncoder() if wants_events(request.source.body) else BytesEncoder()


class BytesEncoder:
    """Encoder of an audio file as bytes, which can only break off after a failure: it has no place for an error."""

    heartbeat = b""

    def content_type(self, first: pb.StreamSpeakResponse) -> str:
        return first.content_type

    def feed(self, message: pb.StreamSpeakResponse) -> bytes:
        return message.audio

    def close(self) -> bytes:
        return b""

    def error(self, error: UmgError) -> None:
        return None


class EventEncoder:
    """Encoder of server-sent events."""

    heartbeat = b": keep-alive\n\n"

    def __init__(self) -> None:
        self._end: JsonObject = {"type": END_EVENT}

    def content_type(self, first: pb.StreamSpeakResponse) -> str:
        return EVENT_STREAM

    def feed(self, message: pb.StreamSpeakResponse) -> bytes:
        if message.HasField("usage"):
            tokens = message.usage.input_tokens, message.usage.output_tokens
            names = ("input_tokens", "output_tokens", "total_tokens")
            self._end["usage"] = dict(zip(names, (*tokens, sum(tokens)), strict=True))
        if not message.audio:
            return b""
        return frame(msgspec.json.encode({"type": DELTA_EVENT, "audio": pybase64.b64encode_as_string(message.audio)}))

    def close(self) -> bytes:
        return frame(msgspec.json.encode(self._end))

    def error(self, error: UmgError) -> bytes:
        return frame(msgspec.json.encode({"type": "error", "error": error_members(error)}))
