"""Decoding of a provider's chat stream: its chunks become canonical events."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.candidate_stream_decoding import ChunkChoice, StreamCandidate
from umg_grpc.wire.chat.shared_response_fields import Head, choice_error, decode_head
from umg_grpc.wire.chat.split_choice_joining import joint_reason, wants_one
from umg_grpc.wire.chat.usage import decode_usage, find_usage
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.finish_reason_conversion import Ended, failed_response
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER
from umg_grpc.wire.core.stream_decoder import EventDecoder
from umg_grpc.wire.core.streamed_text_buffers import ToolInputs
from umg_grpc.wire.errors.provider_errors import as_error, cut_off, failure_in_response, from_provider, is_error


class Chunk(Head, kw_only=True):
    """Chunk of the stream."""

    choices: list[ChunkChoice] | None = None


_CHUNK = msgspec.json.Decoder(Chunk)


def event_error(event: sse.SseEvent, chunk: Head, has_choices: bool) -> UmgError | None:
    """Return the error stated by an event's name `error`, a member `error`, or a code and a message without choices."""
    if chunk.error is ABSENT_MEMBER and event.name != b"error":
        return None if has_choices or chunk.usage is not None else failure_in_response(event.data or b"")
    if is_error(chunk.error):
        return from_provider(200, as_error(msgspec.json.decode(chunk.error)))
    if event.name == b"error" and event.data is not None:
        return from_provider(200, as_error(msgspec.json.decode(event.data)))
    return None


class TranslatingDecoder(EventDecoder):
    """Decoder of a translated chat stream. One per stream. The finish reason waits for later calls and usage."""

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._candidates: dict[int, StreamCandidate] = {}
        self._inputs = ToolInputs()
        self._citations: list[msgspec.Raw] = []
        self._usage: pb.Usage | None = None
        self._continued: tuple[StreamCandidate, str] | None = None  # candidate and kind of part of the learned frame

    def _events(self, event: sse.SseEvent) -> Iterable[pb.GenerateEvent]:
        data = event.data or b""
        if data.strip() == sse.DONE_DATA:
            if not self._candidates:
                raise cut_off()
            return self._finished()
        chunk, _ = self._read(_CHUNK, data)
        if error := event_error(event, chunk, bool(chunk.choices)):
            raise error
        if (continued := self._continuation(chunk)) is not None:
            candidate, text = continued
            if self._learns(event.raw, text, lambda frame: _text_of(candidate, frame)):
                self._continued = candidate, candidate.kind
            return (candidate.delta(text),)
        return self._chunk(chunk)

    def _appends(self, texts: Sequence[str], message: pb.StreamGenerateResponse) -> bool:
        if self._continued is None or self._has_halves:
            return False
        candidate, kind = self._continued
        if candidate.kind != kind:
            return False
        candidate.append_deltas(texts, message)
        return True

    def _continuation(self, chunk: Chunk) -> tuple[StreamCandidate, str] | None:
        choices = chunk.choices
        if not choices or len(choices) != 1 or chunk.usage is not None or chunk.citations or self._has_halves:
            return None
        candidate = self._candidates.get(choices[0].index or 0)
        text = None if candidate is None else candidate.continued_text(choices[0])
        return None if candidate is None or text is None else (candidate, text)

    def _chunk(self, chunk: Chunk) -> Iterator[pb.GenerateEvent]:
        if not self._started and (chunk.choices or chunk.id or chunk.usage):
            self._started = True
            started = pb.GenerateEvent()
            decode_head(chunk, self._request.model, started.started)
            yield started
        for position, choice in enumerate(chunk.choices or ()):
            yield from self._choice(choice, position)
        self._citations = chunk.citations or self._citations
        counted = pb.GenerateEvent()
        usage = find_usage(chunk, chunk.choices or ())
        if usage is not None and decode_usage(usage, counted.usage, chunk.service_tier):
            self._usage = counted.usage
            yield counted

    def _choice(self, choice: ChunkChoice, position: int) -> Iterator[pb.GenerateEvent]:
        index = position if choice.index is None else choice.index
        if index and wants_one(self._request):
            index = 0  # a response that is split over several choices
        candidate = self._candidates.get(index)
        if candidate is None:
            candidate = self._candidates[index] = StreamCandidate(index, self._request, self._has_halves, self._inputs)
        candidate.has_halves = self._has_halves
        if delta := choice.delta or choice.message:
            yield from candidate.decode(delta, choice.logprobs)
        if b"true" in bytes(choice.content_filter_results):
            candidate.filtered = choice.content_filter_results
        if choice.finish_reason:
            candidate.reason = joint_reason((candidate.reason, choice.finish_reason))
        if choice.error is not ABSENT_MEMBER and is_error(choice.error):
            raise choice_error(choice.error)

    def _finish(self) -> Iterator[pb.GenerateEvent]:
        if not self._candidates or not all(candidate.reason for candidate in self._candidates.values()):
            raise cut_off()
        yield from self._finished()

    def _finished(self) -> Iterator[pb.GenerateEvent]:
        self.done = True
        if error := failed_response(*(Ended(candidate.reason) for candidate in self._candidates.values())):
            raise error.with_usage(self._usage)
        for _, candidate in sorted(self._candidates.items()):
            yield from candidate.finish(self._citations)


def _text_of(candidate: StreamCandidate, frame: bytes) -> str | None:
    """Return the text that a frame with one chunk appends to the open part of a candidate; None for any other."""
    (event,) = sse.split(frame)
    choices = _CHUNK.decode(event.data or b"").choices
    return candidate.continued_text(choices[0]) if choices else None
