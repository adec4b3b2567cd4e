"""Base classes of stream decoders for all formats: `EventDecoder` for translated streams, `FrameDecoder` for
passed-through ones.

Each read returns the events that it completes. A failure is raised after the output before it was returned.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.json_decoding import replace_model_id
from umg_grpc.wire.core.split_character_repair import escape_halves, replace_invalid_utf8
from umg_grpc.wire.core.text_delta_reading import TextDeltaFrames
from umg_grpc.wire.errors.provider_errors import unreadable

Decoded = TypeVar("Decoded")

MAX_LESSONS = 16
"""Frames of one stream from which a decoder learns at most: frames may differ in more than their text."""
UNSEEN_MEMBER = b"\0"
"""A member that no frame has, since JSON has no NUL."""
DECODED_FRAME = b"", 0
"""Result of `_plain` if the first of the frames must be decoded."""


class Splitter(Protocol):
    """Splitter of one stream's bytes into complete events, independent of how the bytes are cut into reads."""

    def whole(self, data: bytes) -> bytes:
        """Append received bytes, and return the bytes of all events that are complete now, b"" if none is."""
        ...

    def is_between_events(self) -> bool:
        """Return whether all received bytes belong to complete events."""
        ...

    def rest(self) -> bytes:
        """Return the bytes that remain at the end of the stream, as a complete event; b"" if none remain."""
        ...


class _Decoder:
    """Decoder of one provider's stream. A failure after output in the same read is raised by the next call."""

    done = False  # whether the end of the response was received
    _started = False  # whether the event or frame that starts the response was decoded
    _failure: UmgError | None = None

    def __init__(self, request: pb.GenerateRequest) -> None:
        self._request = request
        self._splitter: Splitter = sse.SseSplitter()


class EventDecoder(_Decoder, ABC):
    """Decoder of a provider's server-sent events into canonical events. Each format has a subclass. One per stream."""

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._has_halves = False  # whether an event had half of a character, which later deltas may complete
        self._text_frames: TextDeltaFrames | None = None  # of frames whose text is read without decoding them
        self._lessons = MAX_LESSONS  # number of frames that may still be learned

    def feed(self, data: bytes) -> pb.StreamGenerateResponse | None:
        """Return a message with the canonical events that the bytes of one read complete; None if there are none. Raise
        the UmgError of an error event after the output before it was returned.
        """
        if self._failure is not None:
            raise self._failure
        return None if self.done else self._take(self._splitter.whole(data))

    def close(self) -> pb.StreamGenerateResponse | None:
        """Return the remaining events at the stream's end, if any. Raise UmgError(UPSTREAM_CUT) if it is incomplete."""
        message = (None if self.done else self._take(self._splitter.rest())) or pb.StreamGenerateResponse()
        if self._failure is not None:
            raise self._failure
        if not self.done:
            try:
                message.events.extend(self._finish())
            except (ValueError, RecursionError):
                raise unreadable() from None
            self.done = True
        return message if message.events else None

    def _take(self, frames: bytes) -> pb.StreamGenerateResponse | None:
        if not frames:
            return None
        message = pb.StreamGenerateResponse()
        if self._text_frames is not None and self._is_single_text(self._text_frames, frames, message):
            return message
        try:
            self._decode(frames, message)
        except UmgError as error:
            self._failure = error
        except (ValueError, RecursionError):
            self._failure = unreadable()
        if self._failure is not None and not message.events:
            raise self._failure
        return message if message.events else None

    def _decode(self, frames: bytes, message: pb.StreamGenerateResponse) -> None:
        """Append the events of frames to a message, up to the end of the response. The text of learned frames is cut
        out; frames between them are decoded one by one, so that no byte is copied twice.
        """
        start, size = 0, len(frames)
        blank = b"\r\n\r\n" if self._text_frames is not None and b"\r" in frames else b"\n\n"
        while start < size and not self.done:
            known, end = self._text_frames, -1
            if known is not None:
                start = self._append_texts(known, frames, start, message)
                end = frames.find(blank, start)
            for event in self._split(frames[start:] if end < 0 else frames[start : end + len(blank)]):
                start += len(event.raw)
                if event.data is not None:
                    message.events.extend(self._events(event))
                if self._is_over(known):
                    break
            else:
                start = size if end < 0 else end + len(blank)

    def _is_over(self, known: TextDeltaFrames | None) -> bool:
        """Return whether the response has ended, or other frames than `known` are to be cut out now."""
        return self.done or known is not self._text_frames

    def _is_single_text(self, known: TextDeltaFrames, frames: bytes, message: pb.StreamGenerateResponse) -> bool:
        """Append the event of a read with one frame that only appends text, as most reads are. Return whether it is."""
        try:
            text = known.text(frames)
        except ValueError:
            self._text_frames, self._lessons = None, 0
            return False
        return text is not None and self._appends((text,), message)

    def _append_texts(
        self, known: TextDeltaFrames, frames: bytes, start: int, message: pb.StreamGenerateResponse
    ) -> int:
        """Append the events of the frames from `start` on that only append text. Return the position behind them."""
        try:
            texts, end = known.texts(frames, start)
        except ValueError:
            self._text_frames, self._lessons = None, 0
            return start
        return end if texts and self._appends(texts, message) else start

    def _learns(self, frame: bytes, text: str, read: Callable[[bytes], str | None]) -> bool:
        """Learn a frame that only appends text, see `TextDeltaFrames.learn`, for a decoder that has `_appends`. Return
        whether it replaces the frame that was learned before.
        """
        if not self._lessons:
            return False
        self._lessons -= 1
        learned = TextDeltaFrames.learn(frame, text, read)
        self._text_frames = learned or self._text_frames
        return learned is not None

    def _appends(self, texts: Sequence[str], message: pb.StreamGenerateResponse) -> bool:
        """Append to a message the events of texts, none of them empty, as the learned frame appended its text. Return
        False, and append none, if the output has changed since then.
        """
        return False

    def _split(self, frames: bytes) -> Iterable[sse.SseEvent]:
        return sse.split(frames)

    def _read(self, decoder: msgspec.json.Decoder[Decoded], data: bytes) -> tuple[Decoded, bytes]:
        """Return (the decoded JSON of an event, the JSON text)."""
        try:
            return decoder.decode(data), data
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError):
            escaped = escape_halves(data)
            decoded = decoder.decode(escaped)
        self._has_halves = True
        return decoded, escaped

    @abstractmethod
    def _events(self, event: sse.SseEvent) -> Iterable[pb.GenerateEvent]:
        """Return the canonical events for one event of the provider, whose data is not None. An implementation sets
        `done` at the last event of the response, and raises UmgError for an error event.
        """

    @abstractmethod
    def _finish(self) -> Iterator[pb.GenerateEvent]:
        """Yield the last events of a stream without an end marker. Raise UmgError(UPSTREAM_CUT) if it is incomplete."""


class FrameDecoder(_Decoder, ABC):
    """Decoder that passes a provider's server-sent events (frames) through. It emits only canonical events that the
    service needs, for example the usage. Each format has a subclass; one instance per stream.
    """

    _early: list[bytes] | None = None  # frames that are held back until the response has started

    def feed(self, data: bytes) -> pb.StreamGenerateResponse | None:
        """Return a message with the frames that the bytes of one read complete; None if there are none. Raise the
        UmgError of an error event after the frames before it were returned.
        """
        if self._failure is not None:
            raise self._failure
        frames = replace_invalid_utf8(self._splitter.whole(data))
        if not frames or self.done:
            return None
        plain, size = self._plain(frames)
        if size == len(frames):
            return pb.StreamGenerateResponse(source_frames=plain)
        return self._decode_frames(frames, plain, size)

    def plain_frames(self, data: bytes) -> bytes:
        """Return the frames of one read as they are passed through, if they are complete and only continue the
        response. b"" for any other read, which must be fed: nothing has changed.
        """
        if self.done or self._failure is not None or not self._splitter.is_between_events():
            return b""
        plain, size = self._plain(data)
        return plain if size == len(data) and replace_invalid_utf8(data) is data else b""

    def close(self) -> pb.StreamGenerateResponse | None:
        """Return a message with the remaining frames at the end of the stream, and the end marker if the provider left
        it out; None if there are none. Raise UmgError(UPSTREAM_CUT) for an incomplete response.
        """
        message = None
        if self._failure is None and not self.done and (rest := self._splitter.rest()):
            message = self._decode_frames(replace_invalid_utf8(rest))
        if self._failure is not None:
            raise self._failure
        if self.done:
            return message
        end = self._end()
        self.done = True
        if not end:
            return message
        message = message or pb.StreamGenerateResponse()
        message.source_frames += end
        return message

    def _decode_frames(self, frames: bytes, plain: bytes = b"", size: int = 0) -> pb.StreamGenerateResponse | None:
        """Return passed-through frames and the events that the service needs from them; None if there are neither. The
        bytes that `_plain` examines double with each success and shrink to an eighth with each failure: linear time.
        """
        passed, events = list[bytes](), list[pb.GenerateEvent]()
        blank, total = b"\r\n\r\n" if b"\r" in frames else b"\n\n", len(frames)
        start, window = 0, total
        try:
            while True:
                if size:
                    passed.append(plain)
                    start += size
                    window = 2 * size
                else:
                    end = frames.find(blank, start)
                    frame = frames[start:] if end < 0 else frames[start : end + len(blank)]
                    for event in sse.split(frame):
                        if kept := self._comment(event.raw) if event.data is None else self._frame(event, events):
                            passed.append(kept)
                        if self.done:
                            break
                    window //= 8 if start else 1  # the first frame is always decoded: the others are compared with it
                    start += len(frame)
                if start >= total or self.done:
                    break
                end = frames.find(blank, start + window)
                plain, size = self._plain(frames[start:] if end < 0 else frames[start : end + len(blank)])
        except UmgError as error:
            self._failure = error
        except (ValueError, RecursionError):
            self._failure = unreadable()
        if passed and self._early is not None:
            passed, self._early = [*self._early, *passed], None
        if not passed and not events:
            if self._failure is not None:
                raise self._failure
            return None
        return pb.StreamGenerateResponse(source_frames=b"".join(passed), events=events)

    def _plain(self, frames: bytes) -> tuple[bytes, int]:
        return DECODED_FRAME

    def _comment(self, frame: bytes) -> bytes:
        """Return a frame without data if it is to be passed through: a comment, which keeps the connection alive. b""
        for other frames without data, which break clients, and before the response has started.
        """
        return frame if self._started and frame.startswith(b":") else b""

    def _hold(self, frame: bytes) -> bytes:
        self._early = self._early or []
        self._early.append(frame)
        return b""

    @abstractmethod
    def _frame(self, event: sse.SseEvent, events: list[pb.GenerateEvent]) -> bytes:
        """Return a frame with data as it is passed through, b"" to omit it. Append the canonical events that the
        service needs to `events`. Set `done` at the last frame of the response; raise UmgError for an error event.
        """

    @abstractmethod
    def _end(self) -> bytes:
        """Return the end marker if the provider left it out, else b"". Raise UmgError(UPSTREAM_CUT) if incomplete."""


class ModelMember(msgspec.Struct, eq=False):
    """Replacement of the provider's model id in passed-through frames by the caller's. One instance per stream."""

    caller_model: str
    member: str = "model"  # name of the member with the model id
    parent: str = ""  # object at the top level that holds the member, "" for the top level
    _theirs: bytes = UNSEEN_MEMBER  # the member with its value, as the last frame with a model spelled it
    _ours: bytes = UNSEEN_MEMBER  # the same with the caller's model

    def replace(self, event: sse.SseEvent, provider_model: str | None) -> bytes:
        """Return an event's frame with the caller's model id. `provider_model`: id in the event; None for no change."""
        raw = event.raw
        if provider_model is None:
            return raw
        name = b'"%b"' % self.member.encode()
        if raw.count(name) == 1:
            if self._theirs not in raw:
                colon = b": " if name + b": " in raw else b":"
                self._theirs = name + colon + msgspec.json.encode(provider_model)
                self._ours = name + colon + msgspec.json.encode(self.caller_model or provider_model)
            if self._theirs in raw:
                return raw.replace(self._theirs, self._ours)
        if provider_model == self.caller_model or not self.caller_model:
            return raw
        data = event.data or b"{}"
        renamed = replace_model_id(data, provider_model, self.caller_model, self.member, self.parent)
        return raw.replace(data, renamed) if raw.count(data) == 1 else sse.encode_event(event.name, renamed)

    def replace_all(self, frames: bytes, count: int) -> bytes | None:
        """Return `count` frames with the caller's model id, replaced without decoding. None if a frame may contain the
        model in another spelling than the last decoded frame; it has to be decoded.
        """
        if frames.count(self._theirs) == count:
            return frames if self._theirs == self._ours else frames.replace(self._theirs, self._ours)
        return None if b'"%b"' % self.member.encode() in frames else frames
