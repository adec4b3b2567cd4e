"""Streams of transcriptions: events of providers decoded, and canonical events encoded for callers."""

import msgspec
from msgspec import Raw, Struct

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import error_members
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject
from umg_grpc.wire.core.sse import DONE_DATA, EVENT_STREAM, SseSplitter, frame, split
from umg_grpc.wire.errors.provider_errors import as_error, cut_off, from_provider, is_error, unreadable
from umg_grpc.wire.transcriptions.response import (
    TOO_LONG,
    Logprob,
    ProviderBody,
    Segment,
    add_logprobs,
    fill,
    fill_segment,
    logprobs_of,
    plain,
    segment_event,
)
from umg_grpc.wire.unary_format_interface import MessageDecoder, MessageEncoder

DELTA_EVENT, SEGMENT_EVENT, END_EVENT = "transcript.text.delta", "transcript.text.segment", "transcript.text.done"
EVENT_TYPES = {
    "transcription.text.delta": DELTA_EVENT,
    "transcription.segment": SEGMENT_EVENT,
    "transcription.done": END_EVENT,
}
"""Mistral's event type (docs.mistral.ai, transcription stream events) -> OpenAI's event type."""


class ProviderEvent(Struct):
    """Event of a provider."""

    type: str = ""
    delta: str | None = None
    text: str = ""
    segment_id: str | None = None
    logprobs: list[Logprob] | None = None
    error: Raw = ABSENT_MEMBER


_EVENT = msgspec.json.Decoder(ProviderEvent, strict=False)
_SEGMENT = msgspec.json.Decoder(Segment, strict=False)
_END = msgspec.json.Decoder(ProviderBody, strict=False)


def stream_decoder(
    request: pb.TranscribeRequest, kind: str, pass_: bool
) -> MessageDecoder[pb.StreamTranscribeResponse] | None:
    """Return the decoder of events; None for other media types, since some models ignore a request to stream."""
    return EventDecoder(request.model) if kind == "text/event-stream" else None


class EventDecoder:
    """Decoder of the server-sent events of one response."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._splitter = SseSplitter()
        self._segments = 0
        self.done = False

    def feed(self, received: bytes) -> pb.StreamTranscribeResponse | None:
        return self._message(self._splitter.whole(received))

    def close(self) -> pb.StreamTranscribeResponse | None:
        message = None if self.done else self._message(self._splitter.rest())
        if not self.done:
            raise cut_off()
        return message

    def _message(self, frames: bytes) -> pb.StreamTranscribeResponse | None:
        message = pb.StreamTranscribeResponse()
        for event in split(frames):
            if event.data is None or self.done or event.data.strip() == DONE_DATA:
                continue
            try:
                self._add(event.data, message)
            except (ValueError, RecursionError):
                raise unreadable() from None
        return message if message.events else None

    def _add(self, data: bytes, message: pb.StreamTranscribeResponse) -> None:
        sent = _EVENT.decode(data)
        if is_error(sent.error):
            raise from_provider(200, as_error(msgspec.json.decode(sent.error)), too_long=TOO_LONG)
        match EVENT_TYPES.get(sent.type, sent.type):
            case "transcript.text.delta":
                delta = message.events.add().delta
                delta.text, delta.segment_id = sent.text if sent.delta is None else sent.delta, sent.segment_id or ""
                add_logprobs(delta, sent.logprobs)
            case "transcript.text.segment":
                fill_segment(message.events.add().segment, _SEGMENT.decode(data), self._segments)
                self._segments += 1
            case "transcript.text.done":
                finished = message.events.add().finished
                finished.model, self.done = self._model, True
                fill(finished, _END.decode(data))
            case _:  # an event that is newer than this build, or has no text
                pass


def stream_encoder(request: pb.TranscribeRequest) -> MessageEncoder[pb.StreamTranscribeResponse]:
    """Return the encoder of events. `request`: without effect."""
    return EventEncoder()


class EventEncoder:
    """Encoder of server-sent events."""

    heartbeat = b": keep-alive\n\n"

    def content_type(self, first: pb.StreamTranscribeResponse) -> str:
        return EVENT_STREAM

    def feed(self, message: pb.StreamTranscribeResponse) -> bytes:
        events = (event for event in message.events if event.WhichOneof("kind") is not None)
        return b"".join(frame(msgspec.json.encode(_event(event))) for event in events)

    def close(self) -> bytes:
        return b""

    def error(self, error: UmgError) -> bytes:
        return frame(msgspec.json.encode({"type": "error", "error": error_members(error)}))


def _event(event: pb.TranscriptionEvent) -> JsonObject:
    body: JsonObject
    match event.WhichOneof("kind"):
        case "segment":
            return segment_event(event.segment)
        case "finished":
            body = {"type": END_EVENT, **plain(event.finished)}
            if event.finished.usage.HasField("seconds"):
                del body["usage"]  # in streams it is always of tokens (openai 3.57.0, `TranscriptionTextDoneEvent`)
            return body
        case _:  # delta
            body = {"type": DELTA_EVENT, "delta": event.delta.text}
            if event.delta.segment_id:
                body["segment_id"] = event.delta.segment_id
            if event.delta.logprobs:
                body["logprobs"] = logprobs_of(event.delta.logprobs)
            return body
