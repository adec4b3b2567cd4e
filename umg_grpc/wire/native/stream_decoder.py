"""Decoding of a provider's native stream: its chunks become canonical events."""

from collections.abc import Iterable, Iterator

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.finish_reason_conversion import Ended, failed_response
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, is_present
from umg_grpc.wire.core.part_event_builder import PartEmitter
from umg_grpc.wire.core.reasoning_state_conversion import read
from umg_grpc.wire.core.split_character_repair import unescape_halves
from umg_grpc.wire.core.stream_decoder import EventDecoder
from umg_grpc.wire.core.streamed_text_buffers import Pieces
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.errors.provider_errors import cut_off, is_error
from umg_grpc.wire.native.errors import stated_error
from umg_grpc.wire.native.grounding_citations import MAX_CITED_CHARACTERS, SEARCH_TOOL, Text, decode_grounding
from umg_grpc.wire.native.provider_tool_names import tool_names
from umg_grpc.wire.native.shared_response_fields import (
    Head,
    PromptFeedback,
    ProviderCandidate,
    ProviderResponse,
    UnknownParts,
    correct_finish,
    decode_finish,
    decode_head,
    decode_logprobs,
    decode_ratings,
    decode_response_part,
    end_of,
    is_known,
)
from umg_grpc.wire.native.usage import UsageMetadata, decode_usage

_CHUNK = msgspec.json.Decoder(ProviderResponse)
TEXT_PART, THOUGHT_PART = "text", "reasoning"
EMPTY_SOURCES = (b"{}", b"null")  # sources of early chunks


def started_event(head: Head, model: str) -> pb.GenerateEvent:
    """Return the event that starts a stream, from its first chunk. `model`: caller's id, "" for the provider's."""
    event = pb.GenerateEvent()
    decode_head(head, event.started)
    event.started.model = model or head.model_version or ""
    return event


def usage_event(usage: UsageMetadata) -> pb.GenerateEvent:
    """Return the canonical event with the token counts of a usage, which must state prompt or candidate tokens."""
    event = pb.GenerateEvent()
    decode_usage(usage, event.usage)
    return event


def stated_usage(usage: UsageMetadata | None) -> pb.Usage | None:
    """Return the token counts of a usage; None if it has neither prompt nor candidate tokens."""
    return usage_event(usage).usage if usage is not None and usage.is_stated else None


def blocked_event(feedback: PromptFeedback) -> pb.GenerateEvent:
    """Return the canonical event that ends the response to a blocked prompt, with the reason and the safety ratings."""
    event = pb.GenerateEvent()
    event.finished.finish_reason = pb.FINISH_REASON_CONTENT_FILTER
    event.finished.block_reason = feedback.block_reason or ""
    event.finished.safety_ratings.extend(decode_ratings(feedback.safety_ratings))
    return event


def chunk_error(head: Head) -> UmgError | None:
    """Return the error in a chunk of a provider's stream, if any. `head`: decoded from the chunk."""
    if head.error is not ABSENT_MEMBER and is_error(head.error):
        return stated_error(head.error)
    return None


class _CandidateDecoder(PartEmitter):
    """Decoder of the chunks of one candidate. If citations are expected, which come last, a text stays open until the
    end; otherwise until the next text. A part ends when its reasoning state is received.
    """

    def __init__(self, index: int, names: ToolNames, *, has_halves: bool, cited: bool) -> None:
        super().__init__(index, has_halves=has_halves, keeps_texts=cited)
        self.ending: ProviderCandidate | None = None  # chunk with the finish reason
        self._names = names
        self._texts: dict[int, Pieces] = {}  # text part -> its beginning, in which citations have positions
        self._grounding = msgspec.Raw()
        self._called = False

    def text_started(self, part: int) -> None:
        self._texts[part] = Pieces()

    def text_added(self, text: str) -> None:
        if (pieces := self._texts[self._part]).size < MAX_CITED_CHARACTERS:
            pieces.append(text)

    def continue_text(self, provider_candidate: ProviderCandidate) -> pb.GenerateEvent | None:
        """Return the event of a chunk that only appends, as most do, to save time; None for any other chunk."""
        parts = provider_candidate.content.parts if provider_candidate.content is not None else None
        if (
            provider_candidate.finish_reason
            or provider_candidate.grounding_metadata is not ABSENT_MEMBER
            or provider_candidate.logprobs_result is not None
        ):
            return None
        if not parts or len(parts) != 1 or self._sealed or self.has_halves:
            return None
        part = parts[0]
        if not part.text or part.thought_signature or self.kind != (THOUGHT_PART if part.thought else TEXT_PART):
            return None
        return self.delta(part.text)

    def read_chunk(
        self, provider_candidate: ProviderCandidate, unknown: UnknownParts, position: int
    ) -> Iterator[pb.GenerateEvent]:
        """Yield the events of one chunk; citations and the finish reason wait for `finish`. `unknown`: raw JSON of
        parts of unknown kinds. `position`: index of the candidate in the chunk.
        """
        parts = (provider_candidate.content and provider_candidate.content.parts) or ()
        for part, raw in zip(parts, unknown.of(parts, position), strict=True):
            if part.text is not None:
                yield from self._write(THOUGHT_PART if part.thought else TEXT_PART, part.text, part.thought_signature)
                continue
            if raw is not None or is_known(part) or (part.thought and part.thought_signature):
                yield from self._whole_part(decode_response_part(part, raw, self._names))
            elif part.thought_signature:
                yield from self._write(TEXT_PART, "", part.thought_signature)
        if provider_candidate.logprobs_result is not None and (
            logprobs := decode_logprobs(provider_candidate.logprobs_result)
        ):
            if not self._texts:
                yield from self.switch(TEXT_PART)
            event = self.event(next(reversed(self._texts)))
            event.logprobs.logprobs.extend(logprobs)
            yield event
        if (
            provider_candidate.grounding_metadata is not ABSENT_MEMBER
            and bytes(provider_candidate.grounding_metadata) not in EMPTY_SOURCES
        ):
            self._grounding = provider_candidate.grounding_metadata
        if provider_candidate.finish_reason:
            self.ending = provider_candidate

    @property
    def ended(self) -> Ended:
        return end_of(self.ending or ProviderCandidate(), has_content=self.count > 0)

    def finish(self) -> Iterator[pb.GenerateEvent]:
        """Yield the ends of open parts with the citations of their texts, then the candidate's end with its reason."""
        yield from self.switch("")
        grounding_json = ""
        if is_present(self._grounding):
            texts = [Text(part, -1, pieces.text()) for part, pieces in self._texts.items()]
            grounding = msgspec.Raw(unescape_halves(bytes(self._grounding))) if self.has_halves else self._grounding
            sources = decode_grounding(grounding, texts)
            for part, citation in sources.citations:
                if part in self._open_texts:
                    event = self.event(part)
                    event.citation.CopyFrom(citation)
                    yield event
            grounding_json = sources.rest
            yield from self.end_texts()
            if sources.queries:
                search = pb.ServerToolCall(name=SEARCH_TOOL, queries=sources.queries)
                yield from self._whole_part(pb.Part(server_tool_call=search))
        yield from self.end_texts()
        event, provider_candidate = self.event(), self.ending or ProviderCandidate()
        decode_finish(provider_candidate.finish_reason, event.finished)
        correct_finish(event.finished, called=self._called)
        event.finished.finish_message = provider_candidate.finish_message or ""
        event.finished.safety_ratings.extend(decode_ratings(provider_candidate.safety_ratings))
        event.finished.grounding_json = grounding_json
        yield event

    def _write(self, kind: str, text: str, signature: str | None) -> Iterator[pb.GenerateEvent]:
        if text:
            yield from self.append_text(kind, text)
        if signature:
            yield from self.switch(kind)
            self._sealed = True
            event = self.event(self._part)
            event.state.CopyFrom(read(signature, "native"))
            yield event

    def _whole_part(self, part: pb.Part) -> Iterator[pb.GenerateEvent]:
        self._called = self._called or part.HasField("tool_call")
        yield from self.switch("")
        yield from self.whole(part)


class TranslatingDecoder(EventDecoder):
    """Decoder of a translated native stream. One per stream. There is no end marker: a response is complete if the
    stream ends and each candidate has a finish reason. Each chunk's usage is the total so far.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._names = tool_names(request)
        self._cited = request.HasField("search") or any(tool.HasField("web_search") for tool in request.tools)
        self._candidates: dict[int, _CandidateDecoder] = {}
        self._usage: UsageMetadata | None = None
        self._emitted_usage: UsageMetadata | None = None  # the usage emitted last
        self._feedback: PromptFeedback | None = None

    def _take(self, frames: bytes) -> pb.StreamGenerateResponse | None:
        message = super()._take(frames)
        if self._usage is None or not self._usage.is_stated or self._usage == self._emitted_usage:
            return message
        self._emitted_usage, message = self._usage, message or pb.StreamGenerateResponse()
        decode_usage(self._usage, message.events.add().usage)
        return message

    def _events(self, event: sse.SseEvent) -> Iterable[pb.GenerateEvent]:
        data = event.data or b""
        # from a gateway that writes another format's marker
        if data.startswith(b"[") and data.strip() == sse.DONE_DATA:
            return ()
        chunk, data = self._read(_CHUNK, data)
        if error := chunk_error(chunk):
            raise error
        if (more := self._continue_candidate(chunk)) is not None:
            return (more,)
        return self._chunk(chunk, data)

    def _continue_candidate(self, chunk: ProviderResponse) -> pb.GenerateEvent | None:
        """Return the event of a chunk that only appends to one candidate, to save time; None otherwise."""
        candidates = chunk.candidates
        if not candidates or len(candidates) != 1 or chunk.prompt_feedback is not None:
            return None
        candidate = self._candidates.get(candidates[0].index or 0)
        more = candidate.continue_text(candidates[0]) if candidate is not None and not self._has_halves else None
        if more is not None:
            self._usage = chunk.usage_metadata or self._usage
        return more

    def _chunk(self, chunk: ProviderResponse, data: bytes) -> Iterator[pb.GenerateEvent]:
        if not self._started and (chunk.candidates or chunk.response_id or chunk.usage_metadata):
            self._started = True
            yield started_event(chunk, self._request.model)
        unknown = UnknownParts(data)
        for position, provider_candidate in enumerate(chunk.candidates or ()):
            candidate = self._candidate(provider_candidate, position)
            if (more := candidate.continue_text(provider_candidate)) is not None:
                yield more
            else:
                yield from candidate.read_chunk(provider_candidate, unknown, position)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason:
            self._feedback = chunk.prompt_feedback
        self._usage = chunk.usage_metadata or self._usage

    def _candidate(self, provider_candidate: ProviderCandidate, position: int) -> _CandidateDecoder:
        index = position if provider_candidate.index is None else provider_candidate.index
        candidate = self._candidates.get(index)
        if candidate is None:
            candidate = self._candidates[index] = _CandidateDecoder(
                index, self._names, has_halves=self._has_halves, cited=self._cited
            )
        candidate.has_halves = self._has_halves
        return candidate

    def _finish(self) -> Iterator[pb.GenerateEvent]:
        self.done = True
        if self._feedback is not None:
            if not self._started:
                yield started_event(Head(), self._request.model)
            yield blocked_event(self._feedback)
            return
        if not self._candidates or not all(candidate.ending for candidate in self._candidates.values()):
            raise cut_off()
        if error := failed_response(*(candidate.ended for candidate in self._candidates.values())):
            raise error.with_usage(stated_usage(self._usage))
        for _, candidate in sorted(self._candidates.items()):
            yield from candidate.finish()
