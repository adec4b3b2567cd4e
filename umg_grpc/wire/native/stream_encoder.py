"""The streamed answer towards a caller: canonical events -> lines, or one array of them."""

from collections.abc import Iterator
from typing import assert_never

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import sse
from umg_grpc.wire.json import JsonObject
from umg_grpc.wire.native.answer import (
    blocked_name,
    encode_answer_part,
    encode_feedback,
    encode_logprobs,
    encode_ratings,
    encode_sources,
    encode_time,
    finish_name,
    queries_of,
)
from umg_grpc.wire.native.errors import error_body, error_frame
from umg_grpc.wire.native.grounding import Cited
from umg_grpc.wire.native.lines import escaped
from umg_grpc.wire.native.usage import encode_usage
from umg_grpc.wire.state import show

_encode = msgspec.json.Encoder().encode
NOTHING: JsonObject = {"text": ""}  # a part for a line that says something else: callers look for its parts


class _Text:
    """A text part: what was said of it, and where it starts in all text, in bytes."""

    def __init__(self, before: int) -> None:
        self.before = before
        self.pieces: list[str] = []
        self.citations: list[pb.Citation] = []


class _Held:
    """A part that is told when it is whole. Its pieces are joined then: a long one is not copied at each of them."""

    def __init__(self, started: pb.Part) -> None:
        self.part = pb.Part()
        self.part.CopyFrom(started)
        self.inputs: list[str] = []
        self.data: list[bytes] = []

    def whole(self) -> pb.Part:
        """The part with its pieces."""
        if self.inputs and self.part.tool_call.WhichOneof("input") == "text":
            self.part.tool_call.text += "".join(self.inputs)
        elif self.inputs:
            self.part.tool_call.arguments_json += "".join(self.inputs)
        if self.data:
            self.part.media.data += b"".join(self.data)
        return self.part


class _Candidate:
    """What was said of one candidate."""

    def __init__(self) -> None:
        self.texts: dict[int, _Text] = {}  # by part
        self.thoughts: dict[int, tuple[int, bool]] = {}  # part -> (the piece that was told last, whether a summary is)
        self.held: dict[int, _Held] = {}
        self.queries: list[str] = []
        self.size = 0  # bytes of all text
        self.finished: pb.CandidateFinished | None = None


class StreamEncoder:
    """Canonical events -> `data:` lines. One instance a stream.

    Every line is an answer of its own, with the candidate's parts, the usage until then, model, time and id. Calls and
    media are told whole; sources, the reason and the final usage in the last line, which has no marker behind it. Lines
    end in LF, which every client reads, also those that look for two of them.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        self._candidates: dict[int, _Candidate] = {}
        self._usage = pb.Usage()
        self._head: JsonObject = {"modelVersion": request.model}
        self._tail = b""
        self._passed = False  # the provider's own frames were sent: they hold all there is to say
        self._closed = False
        self._renew()

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        """All frames of one upstream read, for one write."""
        if message.source_frames:
            self._passed = True
            return message.source_frames
        if self._passed or self._closed:
            return b""
        return b"".join(line for event in message.events for line in self._lines(event))

    def close(self) -> bytes:
        """The end of a whole answer: what is still held, then for each candidate why it stopped."""
        if self._passed or self._closed:
            return b""
        self._closed = True
        lines = list[bytes]()
        for index in sorted(self._candidates) or [0]:
            candidate = self._candidate(index)
            for part in list(candidate.held):
                lines += self._release(index, part)
            lines.append(self._last(index, candidate))
        return b"".join(lines)

    def error(self, error: UmgError) -> bytes:
        """The event that ends a broken answer."""
        self._closed = True
        return error_frame(error)

    def _renew(self) -> None:
        """What ends each line from now on."""
        rest = escaped(_encode({"usageMetadata": encode_usage(self._usage), **self._head}))
        self._tail = b'}],"role":"model"},"index":%d,"safetyRatings":[]}],' + rest[1:].replace(b"%", b"%%")

    def _candidate(self, index: int) -> _Candidate:
        if index not in self._candidates:
            self._candidates[index] = _Candidate()
        return self._candidates[index]

    def _lines(self, event: pb.GenerateEvent) -> Iterator[bytes]:  # noqa: PLR0912 - one case a kind
        index, part = event.candidate_index, event.part_index
        match event.WhichOneof("kind"):
            case "text_delta":
                yield from self._say(index, part, event.text_delta)
            case "reasoning_delta":
                yield from self._think(index, part, event.reasoning_delta, event.text_index, summary=False)
            case "arguments_delta":
                self._argue(index, part, event.arguments_delta)
            case "started":
                self._start(event.started)
            case "part_started":
                yield from self._part(index, part, event.part_started)
            case "summary_delta":
                piece = event.summary_delta
                yield from self._think(index, part, piece.text, piece.summary_index, summary=True)
            case "refusal_delta":
                yield from self._say(index, part, event.refusal_delta)
            case "citation":
                self._text(index, part).citations.append(event.citation)
            case "state":
                yield from self._state(index, part, event.state)
            case "logprobs":
                yield self._line(index, NOTHING, encode_logprobs(event.logprobs.logprobs))
            case "media_delta":
                if (held := self._candidate(index).held.get(part)) is not None:
                    held.data.append(event.media_delta.data)
            case "part_updated":
                self._update(index, part, event.part_updated)
            case "part_ended":
                yield from self._release(index, part)
            case "finished":
                self._candidate(index).finished = event.finished
            case "usage":
                self._usage = event.usage
                self._renew()
            case "opaque" | None:
                pass  # another format's event, or a kind newer than this build
            case unhandled:
                assert_never(unhandled)

    def _start(self, started: pb.GenerationStarted) -> None:
        self._head = {"modelVersion": started.model}
        if started.HasField("create_time"):
            self._head["createTime"] = encode_time(started.create_time)
        if started.response_id:
            self._head["responseId"] = started.response_id
        self._renew()

    def _text(self, index: int, part: int) -> _Text:
        candidate = self._candidate(index)
        if part not in candidate.texts:
            candidate.texts[part] = _Text(candidate.size)
        return candidate.texts[part]

    def _part(self, index: int, part: int, started: pb.Part) -> Iterator[bytes]:
        candidate = self._candidate(index)
        match started.WhichOneof("kind"):
            case "text":
                text = self._text(index, part)
                text.citations.extend(started.text.citations)
                yield from self._say(index, part, started.text.text)
            case "refusal":
                yield from self._say(index, part, started.refusal.text)
            case "reasoning" if not started.reasoning.redacted:
                for number, thought in enumerate(started.reasoning.texts):
                    yield from self._think(index, part, thought, number, summary=False)
            case None:
                return  # a kind newer than this build
            case _:
                candidate.held[part] = _Held(started)
                return
        if started.HasField("state"):
            yield from self._state(index, part, started.state)

    def _say(self, index: int, part: int, text: str) -> Iterator[bytes]:
        if not text:
            return
        self._text(index, part).pieces.append(text)
        self._candidate(index).size += len(text) if text.isascii() else len(text.encode())
        said = b'{"candidates":[{"content":{"parts":[{"text":' + escaped(_encode(text))
        yield sse.frame(said + self._tail % index)

    def _think(self, index: int, part: int, text: str, number: int, *, summary: bool) -> Iterator[bytes]:
        """A piece of the thoughts; of thoughts that are told themselves the summaries are not."""
        if not text:
            return
        thoughts = self._candidate(index).thoughts
        last = thoughts.get(part)
        if last is not None:
            if summary and not last[1]:
                return
            if last[0] != number:
                text = "\n\n" + text
        thoughts[part] = (number, summary)
        said = b'{"candidates":[{"content":{"parts":[{"thought":true,"text":' + escaped(_encode(text))
        yield sse.frame(said + self._tail % index)

    def _argue(self, index: int, part: int, text: str) -> None:
        if (held := self._candidate(index).held.get(part)) is not None:
            held.inputs.append(text)

    def _state(self, index: int, part: int, state: pb.ReasoningState) -> Iterator[bytes]:
        """On the part that is held, else on an empty piece of the part that it belongs to."""
        candidate = self._candidate(index)
        if part in candidate.held:
            candidate.held[part].part.state.CopyFrom(state)
            return
        signed: JsonObject = {"text": "", "thoughtSignature": show(state, "native")}
        if part not in candidate.texts:
            signed["thought"] = True
        yield self._line(index, signed)

    def _update(self, index: int, part: int, updated: pb.Part) -> None:
        """What the provider's own tool has left; of sound that was told in pieces it says nothing of the sound."""
        held = self._candidate(index).held
        if part in held and not updated.HasField("media"):
            held[part] = _Held(updated)

    def _release(self, index: int, part: int) -> Iterator[bytes]:
        candidate = self._candidate(index)
        held = candidate.held.pop(part, None)
        if held is None:
            return
        whole = held.whole()
        candidate.queries.extend(queries_of(whole))
        if (encoded := encode_answer_part(whole)) is not None:
            yield self._line(index, encoded)

    def _line(self, index: int, part: object, more: JsonObject | None = None) -> bytes:
        """A line with one part; `more` are further members of its candidate."""
        encoded = escaped(_encode(part))
        said = b'{"candidates":[{'
        if more:
            said += escaped(_encode(more))[1:-1] + b","
        return sse.frame(said + b'"content":{"parts":[' + encoded[:-1] + self._tail % index)

    def _last(self, index: int, candidate: _Candidate) -> bytes:
        finished = candidate.finished or pb.CandidateFinished(finish_reason=pb.FINISH_REASON_STOP)
        reason = finish_name(finished.finish_reason, finished.provider_reason)
        if finished.block_reason:
            reason = blocked_name(finished.block_reason)
        fields: JsonObject = {
            "content": {"parts": [NOTHING], "role": "model"},
            "finishReason": reason,
            "index": index,
            "safetyRatings": [] if finished.block_reason else encode_ratings(finished.safety_ratings),
        }
        if finished.finish_message:
            fields["finishMessage"] = finished.finish_message
        cited = [Cited("".join(text.pieces), text.citations, None, text.before) for text in candidate.texts.values()]
        fields |= encode_sources(cited, candidate.queries, finished.grounding_json)
        line: JsonObject = {"candidates": [fields]}
        if finished.block_reason:
            line["promptFeedback"] = encode_feedback(finished.block_reason, finished.safety_ratings)
        line["usageMetadata"] = encode_usage(self._usage)
        return sse.frame(escaped(_encode(line | self._head)))


class ArrayEncoder:
    """The same stream as one JSON array, for callers who ask for no events. One instance a stream."""

    def __init__(self, request: pb.GenerateRequest) -> None:
        self._encoder = StreamEncoder(request)
        self._begun = False
        self._ended = False

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        """The elements of one upstream read."""
        return self._elements(self._encoder.feed(message))

    def close(self) -> bytes:
        """The last elements and the end of the array."""
        if self._ended:
            return b""
        self._ended = True
        last = self._elements(self._encoder.close())
        return last + (b"]" if self._begun else b"[]")

    def error(self, error: UmgError) -> bytes:
        """The error as the last element, and the end of the array."""
        self._ended = True
        return self._element(error_body(error)) + b"]"

    def _elements(self, frames: bytes) -> bytes:
        return b"".join(self._element(event.data) for event in sse.split(frames) if event.data is not None)

    def _element(self, data: bytes) -> bytes:
        before, self._begun = b",\r\n" if self._begun else b"[", True
        return before + sse.one_line(data)
