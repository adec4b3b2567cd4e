"""Aggregation of a streamed response into one complete response: the inverse of `response_to_events`."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from contextlib import suppress
from typing import assert_never

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.streamed_text_buffers import Pieces
from umg_grpc.wire.text_format_interface import TextProviderFormat

ENVELOPE_EVENTS = frozenset({"started", "usage", "finished"})
"""Events that are aggregated even after the size limit was reached."""
BLOCK_BYTES = 8 << 10
"""Bytes of messages that are read at once, in less than a millisecond."""
MAX_SKIPPED = 100
"""Maximum number of consecutive reasoning indexes that may be skipped: providers choose them, and each costs memory."""


class ResponseAggregator(ABC):
    """Aggregator that collects the messages of one stream as one response. One instance per stream.

    It takes about as much memory as the stream is long. With the limit `max_bytes` it keeps only the beginning of a
    longer stream, from which the usage of the whole stream is estimated.
    """

    retained_bytes = 0
    """Size of the kept messages in bytes. Building a large response takes long and belongs in a thread."""
    _seen = 0
    _max_bytes: int | None

    @property
    def share(self) -> float:
        """Ratio of the received bytes to the kept bytes; 1 if all are kept."""
        return self._seen / self.retained_bytes if self.retained_bytes else 1.0

    @property
    def frames(self) -> Sequence[bytes]:
        """Frames of a passed-through stream that are kept."""
        return ()

    @abstractmethod
    def limit(self, max_bytes: int) -> None:
        """Keep only about the first `max_bytes` bytes of the stream, including messages received before this call."""

    @abstractmethod
    def feed(self, message: pb.StreamGenerateResponse) -> None:
        """Add the next message of the stream. The message itself is not kept: the sender may change it afterwards."""

    @abstractmethod
    def response(self) -> pb.GenerateResponse:
        """Return the response received so far, which may be incomplete."""


class StreamAggregator(ResponseAggregator):
    """Aggregator of a translated stream: joins canonical events to the response that the gateway stores and logs. It
    keeps the last bytes of messages, which become one message when they are joined, until the response is requested or
    they are a block: the response of most streams is short and never requested.
    """

    def __init__(self, max_bytes: int | None = None) -> None:
        self._max_bytes = max_bytes
        self._unread = bytearray()  # messages whose events are not part of the response yet
        self._response = pb.GenerateResponse()
        self._candidates: dict[int, _CollectedCandidate] = {}

    def limit(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        if self.retained_bytes > max_bytes:
            self._read()
            for candidate in self._candidates.values():
                candidate.shorten(max_bytes / self.retained_bytes)
            self.retained_bytes = max_bytes

    def feed(self, message: pb.StreamGenerateResponse) -> None:
        received = message.SerializeToString()
        self._seen += len(received)
        if self._max_bytes is None or self.retained_bytes < self._max_bytes:
            self.retained_bytes += len(received)
            self._unread += received
            if len(self._unread) >= BLOCK_BYTES:
                self._read()
            return
        self._read()
        for event in message.events:
            if event.WhichOneof("kind") in ENVELOPE_EVENTS:
                self._add(event)

    def _read(self) -> None:
        if self._unread:
            self._add_all(pb.StreamGenerateResponse.FromString(bytes(self._unread)).events)
            self._unread.clear()

    def _add_all(self, events: Iterable[pb.GenerateEvent]) -> None:
        """Add events. The texts of a row of deltas, which are by far the most frequent, are joined first."""
        texts, place = list[str](), (0, 0)
        for event in events:
            if text := event.text_delta:
                if (here := (event.candidate_index, event.part_index)) != place:
                    self._add_texts(place, texts)
                    place = here
                texts.append(text)
            else:
                self._add_texts(place, texts)
                self._add(event)
        self._add_texts(place, texts)

    def _add_texts(self, place: tuple[int, int], texts: list[str]) -> None:
        if texts:
            self._candidate(place[0]).part(place[1]).texts.append("".join(texts))
            texts.clear()

    def response(self) -> pb.GenerateResponse:
        self._read()
        response = pb.GenerateResponse()
        response.CopyFrom(self._response)
        response.candidates.extend(candidate.build(index) for index, candidate in sorted(self._candidates.items()))
        return response

    def _add(self, event: pb.GenerateEvent) -> None:
        match event.WhichOneof("kind"):
            case "started":
                _apply_start(self._response, event.started)
            case "usage":
                self._response.usage.CopyFrom(event.usage)
            case "finished" if event.finished.HasField("complete_time") and not self._response.HasField(
                "complete_time"
            ):
                self._response.complete_time.CopyFrom(event.finished.complete_time)
                self._add(event)
            case "finished" if event.finished.block_reason:
                self._response.block_reason = event.finished.block_reason
                self._response.prompt_safety_ratings.extend(event.finished.safety_ratings)
            case "finished":
                self._candidate(event.candidate_index).finish(event.finished)
            case None | "opaque" | "part_ended":
                pass  # not part of a response
            case (
                "part_started"
                | "part_updated"
                | "text_delta"
                | "refusal_delta"
                | "reasoning_delta"
                | "summary_delta"
                | "arguments_delta"
                | "media_delta"
                | "citation"
                | "logprobs"
                | "state"
            ):
                self._candidate(event.candidate_index).part(event.part_index).apply(event)
            case unhandled:
                assert_never(unhandled)

    def _candidate(self, index: int) -> "_CollectedCandidate":
        candidate = self._candidates.get(index)
        if candidate is None:
            candidate = self._candidates[index] = _CollectedCandidate()
        return candidate


class FrameAggregator(ResponseAggregator):
    """Aggregator of a passed-through stream: keeps the provider's frames, and decodes them when requested."""

    _frames_size = _events_size = 0
    _usage = b""  # the last usage event; some providers send one with each read

    def __init__(
        self, text_format: TextProviderFormat, request: pb.GenerateRequest, max_bytes: int | None = None
    ) -> None:
        self._format = text_format
        self._request = request
        self._max_bytes = max_bytes
        self._frames: list[bytes] = []
        self._events: list[bytes] = []  # every event where the provider did not stream; otherwise the first ones

    @property
    def frames(self) -> Sequence[bytes]:
        return self._frames

    @property
    def share(self) -> float:
        return self._seen / self._frames_size if self._frames_size else 1.0

    def limit(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        while self._frames and self._frames_size > max_bytes:
            last = self._frames.pop()
            self._frames_size -= len(last)
            if self._frames_size < max_bytes:
                self._frames.append(last[: max_bytes - self._frames_size])
                self._frames_size = max_bytes
        self.retained_bytes = self._frames_size + self._events_size

    def feed(self, message: pb.StreamGenerateResponse) -> None:
        self.feed_frames(message.source_frames)
        max_bytes = self._max_bytes
        for event in message.events or ():  # few messages have events: the frames carry the whole response
            if event.HasField("usage"):
                self._usage = event.SerializeToString()
            elif max_bytes is None or self._events_size < max_bytes:
                self._events.append(event.SerializeToString())
                self._events_size += len(self._events[-1])
                self.retained_bytes = self._frames_size + self._events_size

    def feed_frames(self, frames: bytes) -> None:
        """Add frames of a message without events."""
        size = len(frames)
        self._seen += size
        if size and (self._max_bytes is None or self._frames_size < self._max_bytes):
            self._frames.append(frames)
            self._frames_size += size
            self.retained_bytes += size

    def response(self) -> pb.GenerateResponse:
        separate = StreamAggregator()
        events = [*self._events, self._usage] if self._usage else self._events
        separate.feed(pb.StreamGenerateResponse(events=map(pb.GenerateEvent.FromString, events)))
        known = separate.response()
        if not self._frames:
            return known
        aggregator = StreamAggregator()
        for message in frames_to_events(self._format, self._request, b"".join(self._frames)):
            aggregator.feed(message)
        response = aggregator.response()
        _copy_changed_fields(response, known)
        return response


def frames_to_events(
    text_format: TextProviderFormat, request: pb.GenerateRequest, frames: bytes
) -> Iterator[pb.StreamGenerateResponse]:
    """Yield the canonical events in a provider's frames, up to the end or to the first frame that cannot be decoded."""
    decoder = text_format.translating_decoder(request)
    with suppress(UmgError):
        if (message := decoder.feed(frames)) is not None:
            yield message
        if (message := decoder.close()) is not None:
            yield message


def gather_events(text_format: TextProviderFormat, request: pb.GenerateRequest, body: bytes) -> pb.GenerateResponse:
    """Return the complete response in `body`, the events of a stream that the provider sent although none was
    requested. `text_format`: format of the events. Raise UmgError for a stream that is incomplete or has an error.
    """
    decoder, aggregator = text_format.translating_decoder(request), StreamAggregator()
    if (message := decoder.feed(body)) is not None:
        aggregator.feed(message)
    if (message := decoder.close()) is not None:
        aggregator.feed(message)
    return aggregator.response()


def read_whole_response(
    text_format: TextProviderFormat, request: pb.GenerateRequest, response: pb.GenerateResponse
) -> pb.GenerateResponse:
    """Return a complete response. A passed-through response has only the service's fields, so it is decoded from the
    provider's body of `text_format`; others stay. Raise UmgError(UPSTREAM_FAILED) for a body that cannot be decoded.
    """
    if response.source.format != text_format.name:
        return response
    read = text_format.decode_response(response.source.body, request, False)
    _copy_changed_fields(read, response)
    return read


def _copy_changed_fields(response: pb.GenerateResponse, known: pb.GenerateResponse) -> None:
    """Copy the fields that the gateway may have changed (id, model, time, usage, body) from `known` to `response`.
    `known`: the response as sent; `response`: the same, decoded from the provider's frames or body.
    """
    response.response_id = known.response_id or response.response_id
    response.model = known.model or response.model
    if known.HasField("create_time"):
        response.create_time.CopyFrom(known.create_time)
    if known.HasField("usage"):
        response.usage.CopyFrom(known.usage)
    if known.HasField("source"):
        response.source.CopyFrom(known.source)


def _apply_start(response: pb.GenerateResponse, started: pb.GenerationStarted) -> None:
    response.response_id, response.model = started.response_id, started.model
    response.service_tier, response.system_fingerprint = started.service_tier, started.system_fingerprint
    if started.HasField("create_time"):
        response.create_time.CopyFrom(started.create_time)
    if started.HasField("stored"):
        response.stored = started.stored


class _CollectedCandidate:
    """Candidate (one of several alternative responses) of a response that is being collected."""

    def __init__(self) -> None:
        self._parts: dict[int, _Part] = {}
        self._finished: pb.CandidateFinished | None = None

    def finish(self, finished: pb.CandidateFinished) -> None:
        self._finished = pb.CandidateFinished()
        self._finished.CopyFrom(finished)

    def part(self, index: int) -> "_Part":
        part = self._parts.get(index)
        if part is None:
            part = self._parts[index] = _Part()
        return part

    def shorten(self, share: float) -> None:
        for part in self._parts.values():
            part.shorten(share)

    def build(self, index: int) -> pb.Candidate:
        candidate = pb.Candidate(index=index, message=pb.Message(role=pb.ROLE_ASSISTANT))
        candidate.message.parts.extend(part.build() for _, part in sorted(self._parts.items()))
        if (finished := self._finished) is not None:
            candidate.finish_reason = finished.finish_reason
            candidate.stop_sequence = finished.stop_sequence
            candidate.finish_message = finished.finish_message
            candidate.safety_ratings.extend(finished.safety_ratings)
            candidate.grounding_json = finished.grounding_json
            candidate.provider_reason = finished.provider_reason
            candidate.refusal_category = finished.refusal_category
            candidate.container_json = finished.container_json
        return candidate


class _Part:
    """Part of a response being collected: texts are joined at the end, so that no delta copies a long text."""

    def __init__(self) -> None:
        self._part = pb.Part()
        self.texts = Pieces()
        self._reasoning_texts = defaultdict[int, Pieces](Pieces)
        self._summaries = defaultdict[int, Pieces](Pieces)
        self._data: list[bytes] = []
        self._retained = pb.TextPart()  # citations and log probabilities

    def shorten(self, share: float) -> None:
        """Free memory: keep a fraction (0 to 1) of the texts, and no media, citations or log probabilities."""
        for pieces in (self.texts, *self._reasoning_texts.values(), *self._summaries.values()):
            pieces.shorten(int(pieces.size * share))
        self._data.clear()
        self._retained.Clear()

    def apply(self, event: pb.GenerateEvent) -> None:  # noqa: PLR0912 - one case a kind
        match event.WhichOneof("kind"):
            case "text_delta":
                self.texts.append(event.text_delta)
            case "reasoning_delta":
                self._reasoning_texts[event.text_index].append(event.reasoning_delta)
            case "arguments_delta":
                self.texts.append(event.arguments_delta)
            case "summary_delta":
                self._summaries[event.summary_delta.summary_index].append(event.summary_delta.text)
            case "refusal_delta":
                self.texts.append(event.refusal_delta)
            case "media_delta":
                self._data.append(event.media_delta.data)
                self.texts.append(event.media_delta.transcript)
            case "part_started":
                self._part.CopyFrom(event.part_started)
            case "part_updated":
                self._update(event.part_updated)
            case "citation":
                self._retained.citations.append(event.citation)
            case "logprobs":
                self._retained.logprobs.extend(event.logprobs.logprobs)
            case "state":
                self._part.state.CopyFrom(event.state)
            case "started" | "usage" | "finished" | "opaque" | "part_ended" | None:
                pass  # added to the response, or not part of it
            case unhandled:
                assert_never(unhandled)

    def _update(self, part: pb.Part) -> None:
        if not part.HasField("media"):
            self._part = pb.Part(state=self._part.state if self._part.HasField("state") else None)
        self._part.MergeFrom(part)

    def build(self) -> pb.Part:
        part = pb.Part()
        part.CopyFrom(self._part)
        text = self.texts.text()
        match part.WhichOneof("kind"):
            case "refusal":
                part.refusal.text += text
                part.refusal.logprobs.extend(self._retained.logprobs)
            case "reasoning":
                _append_texts(part.reasoning.texts, self._reasoning_texts)
                _append_texts(part.reasoning.summaries, self._summaries)
            case "tool_call" if part.tool_call.HasField("text"):
                part.tool_call.text += text
            case "tool_call":
                part.tool_call.arguments_json += text
            case "media" if self._data:
                part.media.data += b"".join(self._data)
                part.media.transcript += text
            case "text":
                part.text.text += text
                part.text.MergeFrom(self._retained)
            case "media" | "tool_result" | "server_tool_call" | "server_tool_result" | "opaque" | "compaction" | None:
                pass  # complete in its start or in its last update
            case unhandled:
                assert_never(unhandled)
        return part


def _append_texts(texts: MutableSequence[str], deltas: dict[int, Pieces]) -> None:
    for index, pieces in sorted(deltas.items()):
        position = min(index, len(texts) + MAX_SKIPPED)
        texts.extend([""] * (position + 1 - len(texts)))
        texts[position] += pieces.text()
