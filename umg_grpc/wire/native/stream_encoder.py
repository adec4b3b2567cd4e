"""Encoding of a streamed native response: canonical events become `data:` lines, or one JSON array."""

from collections.abc import Iterator
from typing import assert_never

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.held_stream_parts import HeldPart
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.line_end_escapes import escaped
from umg_grpc.wire.core.reasoning_state_conversion import show
from umg_grpc.wire.core.streamed_text_buffers import Pieces
from umg_grpc.wire.native.errors import error_body, error_frame
from umg_grpc.wire.native.grounding_citations import MAX_CITED_CHARACTERS, Cited
from umg_grpc.wire.native.shared_response_fields import (
    blocked_name,
    encode_feedback,
    encode_logprobs,
    encode_ratings,
    encode_response_part,
    encode_sources,
    encode_time,
    finish_name,
    queries_of,
)
from umg_grpc.wire.native.usage import encode_usage

_encode = msgspec.json.Encoder().encode
CITATION_BYTES = 512  # memory of a citation beside its content
EMPTY_PART: JsonObject = {"text": ""}  # empty part of a line without content: callers expect parts


class _SentText:
    """Text part that is being sent: its citations, sent at the end, and the bytes of text before it."""

    def __init__(self, before: int) -> None:
        self.before = before
        self.pieces = Pieces()  # up to `MAX_CITED_CHARACTERS`
        self.citations: list[pb.Citation] = []


class _SentCandidate:
    """Candidate that is being sent: texts with citations, reasoning sent, and parts held until they are complete."""

    def __init__(self) -> None:
        self.texts: dict[int, _SentText] = {}  # by part
        self.thoughts: dict[int, tuple[int, bool]] = {}  # part -> (index written last, whether of a summary)
        self.held: dict[int, HeldPart] = {}
        self.queries: list[str] = []
        self.size = 0  # bytes of all text
        self.finished: pb.CandidateFinished | None = None


class StreamEncoder:
    """Encoder of canonical events as native `data:` lines. One instance per stream.

    Every line is a complete response, with new parts, the usage so far, model, time and id. Calls and media are encoded
    when complete; citations, the finish reason and the final usage in the last line. Lines end in LF: some clients look
    for two of them.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        self.retained_bytes = 0
        self._candidates: dict[int, _SentCandidate] = {}
        self._usage = pb.Usage()
        self._head: JsonObject = {"modelVersion": request.model}
        self._tail = b""
        self._passes_through = False  # the provider's own frames were sent, which are complete
        self._closed = False
        self._update_tail()

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        if message.source_frames:
            self._passes_through = True
            return message.source_frames
        if self._passes_through or self._closed:
            return b""
        return b"".join(line for event in message.events for line in self._lines(event))

    def close(self) -> bytes:
        if self._passes_through or self._closed:
            return b""
        self._closed = True
        lines = list[bytes]()
        for index in sorted(self._candidates) or [0]:
            candidate = self._candidate(index)
            for part in list(candidate.held):
                lines += self._release(index, part)
            lines.append(self._last(index, candidate))
        return b"".join(lines)

    def closing(self) -> Iterator[bytes]:
        yield self.close()

    def error(self, error: UmgError) -> bytes:
        self._closed = True
        return error_frame(error)

    def _update_tail(self) -> None:
        rest = escaped(_encode({"usageMetadata": encode_usage(self._usage), **self._head}))
        self._tail = b'}],"role":"model"},"index":%d,"safetyRatings":[]}],' + rest[1:].replace(b"%", b"%%")

    def _candidate(self, index: int) -> _SentCandidate:
        if index not in self._candidates:
            self._candidates[index] = _SentCandidate()
        return self._candidates[index]

    def _lines(self, event: pb.GenerateEvent) -> Iterator[bytes]:  # noqa: PLR0912 - one case a kind
        index, part = event.candidate_index, event.part_index
        match event.WhichOneof("kind"):
            case "text_delta":
                yield from self._text_line(index, part, event.text_delta)
            case "reasoning_delta":
                yield from self._reasoning_line(index, part, event.reasoning_delta, event.text_index, summary=False)
            case "arguments_delta":
                self._append_arguments(index, part, event.arguments_delta)
            case "started":
                self._start(event.started)
            case "part_started":
                yield from self._part(index, part, event.part_started)
            case "summary_delta":
                piece = event.summary_delta
                yield from self._reasoning_line(index, part, piece.text, piece.summary_index, summary=True)
            case "refusal_delta":
                yield from self._text_line(index, part, event.refusal_delta)
            case "citation":
                self._text(index, part).citations.append(event.citation)
                self.retained_bytes += CITATION_BYTES + event.citation.ByteSize()
            case "state":
                yield from self._state(index, part, event.state)
            case "logprobs":
                yield self._line(index, EMPTY_PART, encode_logprobs(event.logprobs.logprobs))
            case "media_delta":
                if (held := self._candidate(index).held.get(part)) is not None:
                    self.retained_bytes += held.append_data(event.media_delta.data)
            case "part_updated":
                self._update(index, part, event.part_updated)
            case "part_ended":
                yield from self._release(index, part)
            case "finished":
                self._candidate(index).finished = event.finished
            case "usage":
                self._usage = event.usage
                self._update_tail()
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
        self._update_tail()

    def _text(self, index: int, part: int) -> _SentText:
        candidate = self._candidate(index)
        if part not in candidate.texts:
            candidate.texts[part] = _SentText(candidate.size)
        return candidate.texts[part]

    def _part(self, index: int, part: int, started: pb.Part) -> Iterator[bytes]:
        candidate = self._candidate(index)
        match started.WhichOneof("kind"):
            case "text":
                text = self._text(index, part)
                text.citations.extend(started.text.citations)
                yield from self._text_line(index, part, started.text.text)
            case "refusal":
                yield from self._text_line(index, part, started.refusal.text)
            case "reasoning" if not started.reasoning.redacted:
                for number, thought in enumerate(started.reasoning.texts):
                    yield from self._reasoning_line(index, part, thought, number, summary=False)
            case "compaction" | None:
                return  # only responses have it; a kind newer than this build
            case (
                "reasoning"
                | "tool_call"
                | "tool_result"
                | "media"
                | "server_tool_call"
                | "server_tool_result"
                | "opaque"
            ):
                held = candidate.held[part] = HeldPart(started)
                self.retained_bytes += held.size
                return
            case unhandled:
                assert_never(unhandled)
        if started.HasField("state"):
            yield from self._state(index, part, started.state)

    def _text_line(self, index: int, part: int, text: str) -> Iterator[bytes]:
        if not text:
            return
        pieces = self._text(index, part).pieces
        if pieces.size < MAX_CITED_CHARACTERS:
            pieces.append(text)
        self._candidate(index).size += len(text) if text.isascii() else len(text.encode())
        line = b'{"candidates":[{"content":{"parts":[{"text":' + escaped(_encode(text))
        yield sse.frame(line + self._tail % index)

    def _reasoning_line(self, index: int, part: int, text: str, number: int, *, summary: bool) -> Iterator[bytes]:
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
        line = b'{"candidates":[{"content":{"parts":[{"thought":true,"text":' + escaped(_encode(text))
        yield sse.frame(line + self._tail % index)

    def _append_arguments(self, index: int, part: int, text: str) -> None:
        if (held := self._candidate(index).held.get(part)) is not None:
            self.retained_bytes += held.append_input(text)

    def _state(self, index: int, part: int, state: pb.ReasoningState) -> Iterator[bytes]:
        """Set the state of a held part; for any other part, yield a line with an empty piece and the state."""
        candidate = self._candidate(index)
        if part in candidate.held:
            candidate.held[part].part.state.CopyFrom(state)
            return
        signed: JsonObject = {"text": "", "thoughtSignature": show(state, "native")}
        if part not in candidate.texts:
            signed["thought"] = True
        yield self._line(index, signed)

    def _update(self, index: int, part: int, updated: pb.Part) -> None:
        held = self._candidate(index).held
        if part in held and not updated.HasField("media"):
            self.retained_bytes -= held[part].size
            held[part] = HeldPart(updated)
            self.retained_bytes += held[part].size

    def _release(self, index: int, part: int) -> Iterator[bytes]:
        candidate = self._candidate(index)
        held = candidate.held.pop(part, None)
        if held is None:
            return
        self.retained_bytes -= held.size
        whole = held.whole()
        candidate.queries.extend(queries_of(whole))
        if (encoded := encode_response_part(whole)) is not None:
            yield self._line(index, encoded)

    def _line(self, index: int, part: object, more: JsonObject | None = None) -> bytes:
        encoded = escaped(_encode(part))
        line = b'{"candidates":[{'
        if more:
            line += escaped(_encode(more))[1:-1] + b","
        return sse.frame(line + b'"content":{"parts":[' + encoded[:-1] + self._tail % index)

    def _last(self, index: int, candidate: _SentCandidate) -> bytes:
        finished = candidate.finished or pb.CandidateFinished(finish_reason=pb.FINISH_REASON_STOP)
        reason = finish_name(finished.finish_reason, finished.provider_reason)
        if finished.block_reason:
            reason = blocked_name(finished.block_reason)
        fields: JsonObject = {
            "content": {"parts": [EMPTY_PART], "role": "model"},
            "finishReason": reason,
            "index": index,
            "safetyRatings": [] if finished.block_reason else encode_ratings(finished.safety_ratings),
        }
        if finished.finish_message:
            fields["finishMessage"] = finished.finish_message
        cited = [Cited(text.pieces.text(), text.citations, None, text.before) for text in candidate.texts.values()]
        fields |= encode_sources(cited, candidate.queries, finished.grounding_json)
        line: JsonObject = {"candidates": [fields]}
        if finished.block_reason:
            line["promptFeedback"] = encode_feedback(finished.block_reason, finished.safety_ratings)
        line["usageMetadata"] = encode_usage(self._usage)
        return sse.frame(escaped(_encode(line | self._head)))


class ArrayEncoder:
    """Encoder of a native stream as one JSON array, for callers that do not use server-sent events. One per stream."""

    def __init__(self, request: pb.GenerateRequest) -> None:
        self._encoder = StreamEncoder(request)
        self._begun = False
        self._ended = False

    @property
    def retained_bytes(self) -> int:
        return self._encoder.retained_bytes

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        return self._elements(self._encoder.feed(message))

    def close(self) -> bytes:
        if self._ended:
            return b""
        self._ended = True
        last = self._elements(self._encoder.close())
        return last + (b"]" if self._begun else b"[]")

    def closing(self) -> Iterator[bytes]:
        yield self.close()

    def error(self, error: UmgError) -> bytes:
        self._ended = True
        return self._element(error_body(error)) + b"]"

    def _elements(self, frames: bytes) -> bytes:
        return b"".join(self._element(event.data) for event in sse.split(frames) if event.data is not None)

    def _element(self, data: bytes) -> bytes:
        before, self._begun = b",\r\n" if self._begun else b"[", True
        return before + sse.one_line(data)
