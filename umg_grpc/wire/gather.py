"""A streamed answer, put together to a whole one: the inverse of `replay`."""

from collections.abc import Callable, Iterator, MutableSequence
from contextlib import suppress
from typing import Protocol

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.format import TextFormat

MAX_SKIPPED = 100
"""Indexes in a row without a text; a provider may number them as it likes, and each costs memory."""


class AnswerGatherer(Protocol):
    """Messages of one stream -> its answer. One instance a stream; costs as much as the stream is long."""

    def feed(self, message: pb.StreamGenerateResponse) -> None:
        """Takes the next message. It is not kept, so that its sender may change it."""
        ...

    def response(self) -> pb.GenerateResponse:
        """What was said so far. Whether that is all, only who read the stream to its end knows."""
        ...


class Gatherer:
    """Gathers a stream whose messages say all in their events."""

    def __init__(self) -> None:
        self._response = pb.GenerateResponse()
        self._candidates: dict[int, _Candidate] = {}

    def feed(self, message: pb.StreamGenerateResponse) -> None:
        """See `AnswerGatherer`."""
        for event in message.events:
            self._take(event)

    def response(self) -> pb.GenerateResponse:
        """See `AnswerGatherer`."""
        response = pb.GenerateResponse()
        response.CopyFrom(self._response)
        response.candidates.extend(candidate.whole(index) for index, candidate in sorted(self._candidates.items()))
        return response

    def _take(self, event: pb.GenerateEvent) -> None:
        match event.WhichOneof("kind"):
            case "started":
                _begin(self._response, event.started)
            case "usage":
                self._response.usage.CopyFrom(event.usage)
            case "finished" if event.finished.HasField("complete_time") and not self._response.HasField(
                "complete_time"
            ):
                self._response.complete_time.CopyFrom(event.finished.complete_time)
                self._take(event)
            case "finished" if event.finished.block_reason:
                self._response.block_reason = event.finished.block_reason
                self._response.prompt_safety_ratings.extend(event.finished.safety_ratings)
            case None | "opaque" | "part_ended":
                pass  # nothing that an answer holds
            case kind:
                candidate = self._candidates.get(event.candidate_index)
                if candidate is None:
                    candidate = self._candidates[event.candidate_index] = _Candidate()
                candidate.take(kind, event)


class FrameGatherer:
    """Gathers a stream that goes on as it came: keeps its frames, and reads them when the answer is asked for."""

    def __init__(self, text_format: TextFormat, request: pb.GenerateRequest, most_bytes: int | None = None) -> None:
        """`most_bytes`: what is kept of it where its beginning is enough, to tell what the whole comes to."""
        self._format = text_format
        self._request = request
        self._most = most_bytes
        self._kept = 0
        self._seen = 0
        self._frames: list[bytes] = []
        self._events: list[bytes] = []  # all, where the provider did not stream; else the head and usage

    @property
    def kept_bytes(self) -> int:
        """Size of the frames; reading many takes a while, which is better spent in a thread."""
        return self._kept

    @property
    def share(self) -> float:
        """How many times as much came as was kept; 1 for a whole answer."""
        return self._seen / self._kept if self._kept else 1.0

    def feed(self, message: pb.StreamGenerateResponse) -> None:
        """See `AnswerGatherer`."""
        if message.source_frames:
            self._seen += len(message.source_frames)
            if self._most is None or self._kept < self._most:
                self._frames.append(message.source_frames)
                self._kept += len(message.source_frames)
        if message.events:  # few have any: frames say all
            self._events.extend(event.SerializeToString() for event in message.events)

    def response(self) -> pb.GenerateResponse:
        """See `AnswerGatherer`. Of frames that cannot be read, what stands before them."""
        beside = Gatherer()
        beside.feed(pb.StreamGenerateResponse(events=map(pb.GenerateEvent.FromString, self._events)))
        told = beside.response()
        if not self._frames:
            return told
        gatherer = Gatherer()
        for message in frames_to_events(self._format, self._request, b"".join(self._frames)):
            gatherer.feed(message)
        response = gatherer.response()
        _complete(response, told)
        return response


def frames_to_events(
    text_format: TextFormat, request: pb.GenerateRequest, frames: bytes
) -> Iterator[pb.StreamGenerateResponse]:
    """What a format's frames say. Ends where they cannot be read, or where the stream broke off."""
    decoder = text_format.stream_decoder(request, False)
    with suppress(UmgError):
        if (message := decoder.feed(frames)) is not None:
            yield message
        if (message := decoder.close()) is not None:
            yield message


def read_answer(
    text_format: TextFormat, request: pb.GenerateRequest, response: pb.GenerateResponse
) -> pb.GenerateResponse:
    """The answer with its candidates and its source; one that is passed on has only what the service needs of it.

    Raises UmgError(UPSTREAM_FAILED) for what cannot be read.
    """
    if response.source.format != text_format.name:
        return response
    read = text_format.decode_response(response.source.body, request, False)
    _complete(read, response)
    return read


def _complete(response: pb.GenerateResponse, told: pb.GenerateResponse) -> None:
    """Takes from what was told beside the provider's own words what the gateway may have changed."""
    response.response_id = told.response_id or response.response_id
    response.model = told.model or response.model
    if told.HasField("create_time"):
        response.create_time.CopyFrom(told.create_time)
    if told.HasField("usage"):
        response.usage.CopyFrom(told.usage)
    if told.HasField("source"):
        response.source.CopyFrom(told.source)


def _begin(response: pb.GenerateResponse, started: pb.GenerationStarted) -> None:
    response.response_id, response.model = started.response_id, started.model
    response.service_tier, response.system_fingerprint = started.service_tier, started.system_fingerprint
    if started.HasField("create_time"):
        response.create_time.CopyFrom(started.create_time)


class _Candidate:
    """One answer of a stream."""

    def __init__(self) -> None:
        self._parts: dict[int, _Part] = {}
        self._finished: pb.CandidateFinished | None = None

    def take(self, kind: str, event: pb.GenerateEvent) -> None:
        if kind == "finished":
            self._finished = pb.CandidateFinished()
            self._finished.CopyFrom(event.finished)
            return
        part = self._parts.get(event.part_index)
        if part is None:
            part = self._parts[event.part_index] = _Part()
        part.take(kind, event)

    def whole(self, index: int) -> pb.Candidate:
        candidate = pb.Candidate(index=index, message=pb.Message(role=pb.ROLE_ASSISTANT))
        candidate.message.parts.extend(part.whole() for _, part in sorted(self._parts.items()))
        if (finished := self._finished) is not None:
            candidate.finish_reason = finished.finish_reason
            candidate.stop_sequence = finished.stop_sequence
            candidate.finish_message = finished.finish_message
            candidate.safety_ratings.extend(finished.safety_ratings)
            candidate.grounding_json = finished.grounding_json
            candidate.provider_reason = finished.provider_reason
            candidate.refusal_category = finished.refusal_category
        return candidate


class _Part:
    """One part of an answer. Texts are joined at the end: a long one is not copied at each of its deltas."""

    def __init__(self) -> None:
        self._part = pb.Part()
        self._texts: list[str] = []
        self._thoughts: dict[int, list[str]] = {}
        self._summaries: dict[int, list[str]] = {}
        self._data: list[bytes] = []
        self._citations: list[pb.Citation] = []
        self._logprobs: list[pb.TokenLogprob] = []

    def take(self, kind: str, event: pb.GenerateEvent) -> None:
        if (add := _TAKE.get(kind)) is not None:
            add(self, event)

    def start(self, event: pb.GenerateEvent) -> None:
        self._part.CopyFrom(event.part_started)

    def update(self, event: pb.GenerateEvent) -> None:
        """Takes the part as the provider's tool left it: a medium keeps what it has, all else is replaced."""
        if not event.part_updated.HasField("media"):
            state = self._part.state if self._part.HasField("state") else None
            self._part = pb.Part(state=state)
        self._part.MergeFrom(event.part_updated)

    def text(self, event: pb.GenerateEvent) -> None:
        self._texts.append(event.text_delta)

    def refuse(self, event: pb.GenerateEvent) -> None:
        self._texts.append(event.refusal_delta)

    def argue(self, event: pb.GenerateEvent) -> None:
        self._texts.append(event.arguments_delta)

    def think(self, event: pb.GenerateEvent) -> None:
        self._thoughts.setdefault(event.text_index, []).append(event.reasoning_delta)

    def summarize(self, event: pb.GenerateEvent) -> None:
        self._summaries.setdefault(event.summary_delta.summary_index, []).append(event.summary_delta.text)

    def show(self, event: pb.GenerateEvent) -> None:
        self._data.append(event.media_delta.data)
        self._texts.append(event.media_delta.transcript)

    def cite(self, event: pb.GenerateEvent) -> None:
        citation = pb.Citation()
        citation.CopyFrom(event.citation)
        self._citations.append(citation)

    def weigh(self, event: pb.GenerateEvent) -> None:
        logprobs = pb.LogprobsDelta()
        logprobs.CopyFrom(event.logprobs)
        self._logprobs.extend(logprobs.logprobs)

    def sign(self, event: pb.GenerateEvent) -> None:
        self._part.state.CopyFrom(event.state)

    def whole(self) -> pb.Part:
        part = pb.Part()
        part.CopyFrom(self._part)
        text = "".join(self._texts)
        match part.WhichOneof("kind"):
            case "refusal":
                part.refusal.text += text
                part.refusal.logprobs.extend(self._logprobs)
            case "reasoning":
                _extend(part.reasoning.texts, self._thoughts)
                _extend(part.reasoning.summaries, self._summaries)
            case "tool_call" if part.tool_call.HasField("text"):
                part.tool_call.text += text
            case "tool_call":
                part.tool_call.arguments_json += text
            case "media" if self._data:
                part.media.data += b"".join(self._data)
                part.media.transcript += text
            case "text":
                part.text.text += text
                part.text.citations.extend(self._citations)
                part.text.logprobs.extend(self._logprobs)
            case _:
                pass  # whole in its start, or in its last update
        return part


_TAKE: dict[str, Callable[[_Part, pb.GenerateEvent], None]] = {
    "part_started": _Part.start,
    "part_updated": _Part.update,
    "text_delta": _Part.text,
    "reasoning_delta": _Part.think,
    "summary_delta": _Part.summarize,
    "arguments_delta": _Part.argue,
    "refusal_delta": _Part.refuse,
    "citation": _Part.cite,
    "logprobs": _Part.weigh,
    "state": _Part.sign,
    "media_delta": _Part.show,
}


def _extend(texts: MutableSequence[str], deltas: dict[int, list[str]]) -> None:
    """Adds to each text what continues it. An index that a provider skipped is an empty text."""
    for index, pieces in sorted(deltas.items()):
        place = min(index, len(texts) + MAX_SKIPPED)
        texts.extend([""] * (place + 1 - len(texts)))
        texts[place] += "".join(pieces)
