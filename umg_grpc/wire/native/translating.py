"""The streamed answer of a provider: chunks -> canonical events."""

from collections.abc import Iterable, Iterator

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import sse
from umg_grpc.wire.frames import EventDecoder
from umg_grpc.wire.json import ABSENT, given
from umg_grpc.wire.names import ToolNames
from umg_grpc.wire.native.answer import (
    Head,
    PromptFeedback,
    ProviderAnswer,
    ProviderCandidate,
    decode_answer_part,
    decode_finish,
    decode_head,
    decode_logprobs,
    decode_ratings,
    is_known,
    settle,
    unknown_parts,
)
from umg_grpc.wire.native.errors import stated_error
from umg_grpc.wire.native.grounding import SEARCH, Text, decode_grounding
from umg_grpc.wire.native.names import tool_names
from umg_grpc.wire.native.usage import UsageMetadata, decode_usage
from umg_grpc.wire.provider_errors import cut_off, is_error
from umg_grpc.wire.ragged import Mender, placeheld
from umg_grpc.wire.state import read

_CHUNK = msgspec.json.Decoder(ProviderAnswer)
TEXT, THOUGHT = "text", "reasoning"
NOTHING = (b"{}", b"null")  # what early chunks have as sources


def begun(head: Head, model: str) -> pb.GenerateEvent:
    """The event with which a stream starts; `model` is the caller's name of it."""
    event = pb.GenerateEvent()
    decode_head(head, event.started)
    event.started.model = model or head.model_version or ""
    return event


def used(usage: UsageMetadata) -> pb.GenerateEvent:
    """The event that tells the usage."""
    event = pb.GenerateEvent()
    decode_usage(usage, event.usage)
    return event


def blocked(feedback: PromptFeedback) -> pb.GenerateEvent:
    """The event that ends an answer to a prompt that was blocked."""
    event = pb.GenerateEvent()
    event.finished.finish_reason = pb.FINISH_REASON_CONTENT_FILTER
    event.finished.block_reason = feedback.block_reason or ""
    event.finished.safety_ratings.extend(decode_ratings(feedback.safety_ratings))
    return event


def chunk_error(head: Head) -> UmgError | None:
    """The error that a chunk states, if it does."""
    if head.error is not ABSENT and is_error(head.error):
        return stated_error(head.error)
    return None


class _Candidate:
    """One candidate: opens, fills and ends its parts.

    Texts stay open until the next text or the end, where sources are to come until the end: those come last.
    """

    def __init__(self, index: int, names: ToolNames, *, cited: bool) -> None:
        self.told: ProviderCandidate | None = None  # that with the reason
        self._index = index
        self._names = names
        self._cited = cited
        self._parts = 0
        self._open = ""  # kind of the part that is being written
        self._signed = False  # whether it has its state, behind which a new part begins
        self._part = 0
        self._texts: dict[int, list[str]] = {}  # text part -> its pieces
        self._ended: set[int] = set()
        self._grounding = msgspec.Raw()
        self._mender = Mender()
        self._called = False
        self.ragged = False

    def more(self, told: ProviderCandidate) -> pb.GenerateEvent | None:
        """The event of a chunk that only goes on with the text or the thoughts that are open, as most do; None for any
        other.
        """
        parts = told.content.parts if told.content is not None else None
        if told.finish_reason or told.grounding_metadata is not ABSENT or told.logprobs_result is not None:
            return None
        if not parts or len(parts) != 1 or self._signed or self.ragged:
            return None
        part = parts[0]
        if not part.text or part.thought_signature or self._open != (THOUGHT if part.thought else TEXT):
            return None
        return self._delta(part.text)

    def take(self, told: ProviderCandidate, chunk: bytes, place: int) -> Iterator[pb.GenerateEvent]:
        """The events of one chunk."""
        parts = (told.content and told.content.parts) or ()
        for position, part in enumerate(parts):
            if part.text is not None:
                yield from self._write(THOUGHT if part.thought else TEXT, part.text, part.thought_signature)
                continue
            raw = None if is_known(part) else unknown_parts(parts, chunk, place)[position]
            if raw is not None or is_known(part) or (part.thought and part.thought_signature):
                yield from self._whole(decode_answer_part(part, raw, self._names))
            elif part.thought_signature:
                yield from self._write(TEXT, "", part.thought_signature)
        if told.logprobs_result is not None and (logprobs := decode_logprobs(told.logprobs_result)):
            if not self._texts:
                yield from self._switch(TEXT)
            event = self._event(next(reversed(self._texts)))
            event.logprobs.logprobs.extend(logprobs)
            yield event
        if told.grounding_metadata is not ABSENT and bytes(told.grounding_metadata) not in NOTHING:
            self._grounding = told.grounding_metadata
        if told.finish_reason:
            self.told = told

    def finish(self) -> Iterator[pb.GenerateEvent]:
        """Ends what is open, then the candidate."""
        yield from self._switch("")
        grounding_json = ""
        if given(self._grounding):
            texts = [Text(part, -1, "".join(pieces)) for part, pieces in self._texts.items()]
            sources = decode_grounding(self._grounding, texts)
            for part, citation in sources.citations:
                if part not in self._ended:
                    event = self._event(part)
                    event.citation.CopyFrom(citation)
                    yield event
            grounding_json = sources.rest
            yield from self._end_texts()
            if sources.queries:
                search = pb.ServerToolCall(name=SEARCH, queries=sources.queries)
                yield from self._whole(pb.Part(server_tool_call=search))
        yield from self._end_texts()
        event, told = self._event(), self.told or ProviderCandidate()
        decode_finish(told.finish_reason, event.finished)
        settle(event.finished, called=self._called)
        event.finished.finish_message = told.finish_message or ""
        event.finished.safety_ratings.extend(decode_ratings(told.safety_ratings))
        event.finished.grounding_json = grounding_json
        yield event

    def _event(self, part: int = 0) -> pb.GenerateEvent:
        return pb.GenerateEvent(candidate_index=self._index, part_index=part)

    def _start(self, part: pb.Part) -> pb.GenerateEvent:
        event = self._event(self._parts)
        event.part_started.CopyFrom(part)
        self._parts += 1
        return event

    def _end(self, part: int) -> pb.GenerateEvent:
        event = self._event(part)
        event.part_ended.SetInParent()
        return event

    def _end_texts(self) -> Iterator[pb.GenerateEvent]:
        for part in self._texts.keys() - self._ended:
            self._ended.add(part)
            yield self._end(part)

    def _switch(self, kind: str) -> Iterator[pb.GenerateEvent]:
        """Makes a part of `kind` the one that is written; "" leaves none."""
        if self._open == kind and not self._signed:
            return
        if self._open:
            if rest := self._mender.rest():
                yield self._delta(rest)
            if self._open == THOUGHT:
                yield self._end(self._part)
        self._open, self._signed = kind, False
        if kind == TEXT and not self._cited:
            yield from self._end_texts()
        if kind:
            part = pb.Part()
            (part.text if kind == TEXT else part.reasoning).SetInParent()
            started = self._start(part)
            self._part = started.part_index
            if kind == TEXT:
                self._texts[self._part] = []
            yield started

    def _write(self, kind: str, text: str, signature: str | None) -> Iterator[pb.GenerateEvent]:
        if text:
            yield from self._switch(kind)
            if self.ragged:
                text = self._mender.mend(text)
            if text:
                yield self._delta(text)
        if signature:
            if self._open != kind or self._signed:
                yield from self._switch(kind)
            self._signed = True
            event = self._event(self._part)
            event.state.CopyFrom(read(signature, "native"))
            yield event

    def _delta(self, text: str) -> pb.GenerateEvent:
        if self._open == TEXT:
            self._texts[self._part].append(text)
            return pb.GenerateEvent(candidate_index=self._index, part_index=self._part, text_delta=text)
        return pb.GenerateEvent(candidate_index=self._index, part_index=self._part, reasoning_delta=text)

    def _whole(self, part: pb.Part) -> Iterator[pb.GenerateEvent]:
        """A part that comes at once; a call with its input and state behind its start."""
        yield from self._switch("")
        delta, state = "", part.state if part.HasField("state") else None
        if part.HasField("tool_call"):
            self._called = True
            call = part.tool_call
            delta = call.text or call.arguments_json
            if call.WhichOneof("input") == "text":
                call.text = ""
            else:
                call.arguments_json = ""
        started = self._start(part)
        if state is not None:
            started.part_started.ClearField("state")
        yield started
        if delta:
            event = self._event(started.part_index)
            event.arguments_delta = delta
            yield event
        if state is not None:
            event = self._event(started.part_index)
            event.state.CopyFrom(state)
            yield event
        yield self._end(started.part_index)


class TranslatingDecoder(EventDecoder):
    """Chunks -> canonical events. One instance a stream.

    The format has no end marker: the answer is whole when the stream ends and each candidate has said why it stopped.
    The usage of a chunk is that until then.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._names = tool_names(request)
        self._cited = request.HasField("search") or any(tool.HasField("web_search") for tool in request.tools)
        self._candidates: dict[int, _Candidate] = {}
        self._started = False
        self._ragged = False
        self._usage: UsageMetadata | None = None
        self._told: UsageMetadata | None = None  # what was told of it
        self._feedback: PromptFeedback | None = None

    def _take(self, frames: bytes) -> pb.StreamGenerateResponse | None:
        """The events of whole frames, with the usage that the last of them tells."""
        message = super()._take(frames)
        if self._usage is None or not self._usage.is_whole or self._usage == self._told:
            return message
        self._told, message = self._usage, message or pb.StreamGenerateResponse()
        decode_usage(self._usage, message.events.add().usage)
        return message

    def _events(self, event: sse.SseEvent) -> Iterable[pb.GenerateEvent]:
        data = event.data or b""
        if data.startswith(b"[") and data.strip() == sse.DONE:  # of a gateway that writes another format's marker
            return ()
        chunk, data = self._read(data)
        if error := chunk_error(chunk):
            raise error
        if (more := self._more(chunk)) is not None:
            return (more,)
        return self._chunk(chunk, data)

    def _more(self, chunk: ProviderAnswer) -> pb.GenerateEvent | None:
        """The event of a chunk that only goes on with one candidate, as most do; None for any other."""
        candidates = chunk.candidates
        if not candidates or len(candidates) != 1 or chunk.prompt_feedback is not None:
            return None
        candidate = self._candidates.get(candidates[0].index or 0)
        more = candidate.more(candidates[0]) if candidate is not None else None
        if more is not None:
            self._usage = chunk.usage_metadata or self._usage
        return more

    def _chunk(self, chunk: ProviderAnswer, data: bytes) -> Iterator[pb.GenerateEvent]:
        if not self._started and (chunk.candidates or chunk.response_id or chunk.usage_metadata):
            self._started = True
            yield begun(chunk, self._request.model)
        for place, told in enumerate(chunk.candidates or ()):
            candidate = self._candidate(told, place)
            if (more := candidate.more(told)) is not None:
                yield more
            else:
                yield from candidate.take(told, data, place)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason:
            self._feedback = chunk.prompt_feedback
        self._usage = chunk.usage_metadata or self._usage

    def _read(self, data: bytes) -> tuple[ProviderAnswer, bytes]:
        try:
            return _CHUNK.decode(data), data
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError):
            data = placeheld(data)
            chunk = _CHUNK.decode(data)
        self._ragged = True
        for candidate in self._candidates.values():
            candidate.ragged = True
        return chunk, data

    def _candidate(self, told: ProviderCandidate, place: int) -> _Candidate:
        index = place if told.index is None else told.index
        candidate = self._candidates.get(index)
        if candidate is None:
            candidate = self._candidates[index] = _Candidate(index, self._names, cited=self._cited)
            candidate.ragged = self._ragged
        return candidate

    def _finish(self) -> Iterator[pb.GenerateEvent]:
        self._done = True
        if self._feedback is not None:
            if not self._started:
                yield begun(Head(), self._request.model)
            yield blocked(self._feedback)
            return
        if not self._candidates or not all(candidate.told for candidate in self._candidates.values()):
            raise cut_off()
        for _, candidate in sorted(self._candidates.items()):
            yield from candidate.finish()
