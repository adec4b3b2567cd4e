"""The streamed answer of a provider: chunks -> canonical events."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import sse
from umg_grpc.wire.arguments import arguments_text, free_text
from umg_grpc.wire.chat.answer import (
    Head,
    Index,
    Logprob,
    Logprobs,
    ProviderAudio,
    ProviderCall,
    ProviderFunction,
    ProviderMessage,
    begun,
    content_text,
    decode_annotation,
    decode_audio,
    decode_finish,
    decode_image,
    decode_logprob,
    decode_url,
    settle,
    thoughts_of,
    used,
)
from umg_grpc.wire.chat.content import thought_signature
from umg_grpc.wire.chat.names import tool_names
from umg_grpc.wire.frames import EventDecoder
from umg_grpc.wire.names import ToolNames
from umg_grpc.wire.provider_errors import as_error, cut_off, from_provider, is_error
from umg_grpc.wire.ragged import Mender, placeheld


class ChunkChoice(Struct):
    """A choice of a chunk."""

    index: Index | None = None
    delta: ProviderMessage | None = None
    message: ProviderMessage | None = None  # some providers' name for a last, whole delta
    finish_reason: str | None = None
    logprobs: Logprobs | None = None


class Chunk(Head, kw_only=True):
    """One event."""

    choices: list[ChunkChoice] | None = None


_CHUNK = msgspec.json.Decoder(Chunk)


def event_error(event: sse.SseEvent, chunk: Head) -> UmgError | None:
    """The error that an event states, if it does."""
    if is_error(chunk.error):
        return from_provider(200, as_error(msgspec.json.decode(chunk.error)))
    if event.name == b"error" and event.data is not None:
        return from_provider(200, as_error(msgspec.json.decode(event.data)))
    return None


class _Call:
    """A tool call that is being streamed."""

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        self.part: int | None = None  # none until its name is known
        self.waiting: list[str] = []  # input that came before the name, or that is told when it is whole
        self.wrapped = False  # whether it is of a function that stands for a custom tool
        self.mender = Mender()


class _Candidate:
    """One candidate: opens, fills and ends its parts."""

    def __init__(self, index: int, request: pb.GenerateRequest, ragged: bool) -> None:
        self._request = request
        self.reason: str | None = None
        self.ragged = ragged
        self._index = index
        self._parts = 0
        self._open = ""  # kind of the part that is being written: text, reasoning, refusal
        self._part = 0
        self._text: int | None = None  # the last text part; open until the next or the end, for its sources come late
        self._begins = 0  # where that starts in the content, in characters
        self._length = 0
        self._mender = Mender()
        self._calls: dict[int, _Call] = {}  # by the provider's index
        self._last_call: _Call | None = None
        self._all_calls: list[_Call] = []
        self._audio: int | None = None  # part of the sound
        self._audio_id = ""
        self._called: ToolNames | None = None  # made with the first call
        self._refused = False
        self._cited = False

    def event(self, part: int = 0) -> pb.GenerateEvent:
        """An event of this candidate, to be filled."""
        return pb.GenerateEvent(candidate_index=self._index, part_index=part)

    def more(self, choice: ChunkChoice) -> pb.GenerateEvent | None:
        """The event of a delta that only goes on with the text or the thoughts that are open, as most do; None for any
        other.
        """
        delta = choice.delta
        if delta is None or choice.finish_reason or choice.logprobs is not None or self.ragged:
            return None
        if delta.refusal or delta.tool_calls or delta.function_call or delta.annotations or delta.extra_content:
            return None
        if delta.images or delta.audio or delta.reasoning:
            return None
        content, thoughts = delta.content, delta.reasoning_content
        if self._open == "text" and content and isinstance(content, str) and not thoughts:
            return self._delta(content)
        return self._delta(thoughts) if self._open == "reasoning" and thoughts and not content else None

    def take(self, delta: ProviderMessage, logprobs: Logprobs | None) -> Iterator[pb.GenerateEvent]:
        """The events of one delta."""
        if thoughts := thoughts_of(delta):
            yield from self._more("reasoning", thoughts)
        if content := content_text(delta.content):
            yield from self._more("text", content)
        if delta.refusal:
            self._refused = True
            yield from self._more("refusal", delta.refusal)
        if logprobs:
            yield from self._likelihoods("text", logprobs.content)
            yield from self._likelihoods("refusal", logprobs.refusal)
        for call in delta.tool_calls or ():
            yield from self._call(call)
        if delta.function_call:
            yield from self._function_call(delta.function_call)
        for raw in delta.annotations or ():
            yield from self.cite(decode_annotation(raw))
        yield from self._media(delta)
        if signature := thought_signature(delta.extra_content):
            if not self._open and self._text is None:
                yield from self._switch("text")
            event = self.event(self._part if self._open else self._text or 0)
            event.state.CopyFrom(signature)
            yield event

    def _media(self, delta: ProviderMessage) -> Iterator[pb.GenerateEvent]:
        for image in delta.images or ():
            if image.image_url:
                part = pb.Part()
                decode_image(image.image_url.url, part.media)
                yield from self._whole(part)
        if delta.audio:
            yield from self._hear(delta.audio)

    def _likelihoods(self, kind: str, entries: list[Logprob] | None) -> Iterator[pb.GenerateEvent]:
        if not entries:
            return
        if kind == "refusal" or self._text is None:
            yield from self._switch(kind)
        event = self.event(self._part if kind == "refusal" else self._text or 0)
        event.logprobs.logprobs.extend(decode_logprob(entry) for entry in entries)
        yield event

    def cite(self, citation: pb.Citation) -> Iterator[pb.GenerateEvent]:
        """A source of the text, whose offsets count from the start of its part."""
        if self._text is None:
            yield from self._switch("text")
        self._cited = True
        if citation.HasField("start_index"):
            citation.start_index = max(0, citation.start_index - self._begins)
            citation.end_index = max(0, citation.end_index - self._begins)
        event = self.event(self._text or 0)
        event.citation.CopyFrom(citation)
        yield event

    def finish(self, citations: list[msgspec.Raw]) -> Iterator[pb.GenerateEvent]:
        """Ends what is open, then the candidate. `citations`: the extension's addresses, unless the text has sources of
        its own.
        """
        if self._text is not None and not self._cited:
            for raw in citations:
                yield from self.cite(decode_url(raw))
        yield from self._switch("")
        if self._text is not None:
            yield self._ended(self._text)
        if self._audio is not None:
            yield self._ended(self._audio)
        for call in self._all_calls:
            if call.part is None:
                yield from self._name(call, "", custom=False)
            yield from self._argue(call, call.mender.rest())
            if call.wrapped:
                call.wrapped = False
                yield from self._argue(call, free_text("".join(call.waiting)))
            yield self._ended(call.part or 0)
        event = self.event()
        decode_finish(self.reason, event.finished)
        settle(event.finished, bool(self._all_calls), self._refused)
        yield event

    def _start(self, part: pb.Part) -> pb.GenerateEvent:
        event = self.event(self._parts)
        event.part_started.CopyFrom(part)
        self._parts += 1
        return event

    def _ended(self, part: int) -> pb.GenerateEvent:
        event = self.event(part)
        event.part_ended.SetInParent()
        return event

    def _whole(self, part: pb.Part) -> Iterator[pb.GenerateEvent]:
        """A part that comes at once."""
        started = self._start(part)
        yield started
        yield self._ended(started.part_index)

    def _switch(self, kind: str) -> Iterator[pb.GenerateEvent]:
        """Makes a new part of `kind` the one that is written; "" leaves none."""
        if self._open == kind:
            return
        if self._open:
            if rest := self._mender.rest():
                yield self._delta(rest)
            if self._open != "text":
                yield self._ended(self._part)
        self._open = kind
        if kind:
            part = pb.Part()
            (part.text if kind == "text" else part.reasoning if kind == "reasoning" else part.refusal).SetInParent()
            if kind == "text" and self._text is not None:
                yield self._ended(self._text)
            started = self._start(part)
            self._part = started.part_index
            if kind == "text":
                self._text, self._begins = self._part, self._length
            yield started

    def _more(self, kind: str, text: str) -> Iterator[pb.GenerateEvent]:
        yield from self._switch(kind)
        if self.ragged:
            text = self._mender.mend(text)
        if text:
            yield self._delta(text)

    def _delta(self, text: str) -> pb.GenerateEvent:
        if self._open == "text":
            self._length += len(text)
            return pb.GenerateEvent(candidate_index=self._index, part_index=self._part, text_delta=text)
        if self._open == "reasoning":
            return pb.GenerateEvent(candidate_index=self._index, part_index=self._part, reasoning_delta=text)
        return pb.GenerateEvent(candidate_index=self._index, part_index=self._part, refusal_delta=text)

    def _call(self, piece: ProviderCall) -> Iterator[pb.GenerateEvent]:
        """A piece of a call: of the one with its index, unless its id says that it is another."""
        known = self._last_call if piece.index is None else self._calls.get(piece.index)
        if known is None or (piece.id and known.call_id and piece.id != known.call_id):
            known = _Call(piece.id or "")
            self._all_calls.append(known)
        self._last_call = self._calls[len(self._all_calls) - 1 if piece.index is None else piece.index] = known
        known.call_id = known.call_id or piece.id or ""
        name = (piece.custom.name if piece.custom else piece.function.name if piece.function else None) or ""
        if known.part is None and name:
            yield from self._name(known, name, custom=piece.custom is not None)
        text = (
            (piece.custom.input or "")
            if piece.custom
            else arguments_text(piece.function.arguments)
            if piece.function
            else ""
        )
        yield from self._argue(known, known.mender.mend(text) if self.ragged else text)
        if (signature := thought_signature(piece.extra_content)) and known.part is not None:
            event = self.event(known.part)
            event.state.CopyFrom(signature)
            yield event

    def _function_call(self, piece: ProviderFunction) -> Iterator[pb.GenerateEvent]:
        """The older form: one call, without an id."""
        yield from self._call(ProviderCall(index=0, function=piece))

    def _name(self, call: _Call, name: str, custom: bool) -> Iterator[pb.GenerateEvent]:
        """Starts the call's part, now that its name is known."""
        yield from self._switch("")
        part = pb.Part()
        part.tool_call.call_id, part.tool_call.name = call.call_id, name
        call.wrapped = self._names().resolve(part.tool_call) and not custom  # sent as a function with one text
        if custom or call.wrapped:
            part.tool_call.text = ""
        else:
            part.tool_call.arguments_json = ""
        started = self._start(part)
        call.part = started.part_index
        yield started
        if not call.wrapped:
            yield from self._argue(call, "".join(call.waiting))

    def _names(self) -> ToolNames:
        if self._called is None:
            self._called = tool_names(self._request)
        return self._called

    def _argue(self, call: _Call, text: str) -> Iterator[pb.GenerateEvent]:
        if call.part is None or call.wrapped:
            call.waiting.append(text)
        elif text:
            event = self.event(call.part)
            event.arguments_delta = text
            yield event

    def _hear(self, piece: ProviderAudio) -> Iterator[pb.GenerateEvent]:
        """Sound in pieces, each in base64 of its own; when the provider forgets it comes last."""
        part = pb.Part()
        decode_audio(piece, part.media, self._request)
        if self._audio is None:
            part.media.ClearField("transcript")
            heard, part.media.data = part.media.data, b""
            started = self._start(part)
            self._audio, self._audio_id = started.part_index, part.media.media_id
            yield started
            part.media.data = heard
        if piece.data or piece.transcript:
            event = self.event(self._audio)
            event.media_delta.data, event.media_delta.transcript = part.media.data, piece.transcript or ""
            yield event
        if piece.expires_at:
            event = self.event(self._audio)
            part.media.ClearField("transcript")
            part.media.data, part.media.media_id = b"", part.media.media_id or self._audio_id
            event.part_updated.CopyFrom(part)
            yield event


class TranslatingDecoder(EventDecoder):
    """Chunks -> canonical events. One instance a stream.

    The finish reason is kept until the end of the stream: calls, sources and the usage may come behind it.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._candidates: dict[int, _Candidate] = {}
        self._started = False
        self._ragged = False
        self._citations: list[msgspec.Raw] = []

    def _events(self, event: sse.SseEvent) -> Iterable[pb.GenerateEvent]:
        data = event.data or b""
        if data.strip() == sse.DONE:
            if not self._candidates:
                raise cut_off()
            return self._finished()
        chunk = self._read(data)
        if error := event_error(event, chunk):
            raise error
        if (more := self._more(chunk)) is not None:
            return (more,)
        return self._chunk(chunk)

    def _more(self, chunk: Chunk) -> pb.GenerateEvent | None:
        """The event of a chunk that only goes on with one candidate, as most do; None for any other."""
        choices = chunk.choices
        if not choices or len(choices) != 1 or chunk.usage is not None or chunk.citations:
            return None
        candidate = self._candidates.get(choices[0].index or 0)
        return candidate.more(choices[0]) if candidate is not None else None

    def _chunk(self, chunk: Chunk) -> Iterator[pb.GenerateEvent]:
        if not self._started and (chunk.choices or chunk.id or chunk.usage):
            self._started = True
            yield begun(chunk, self._request.model)
        for place, choice in enumerate(chunk.choices or ()):
            yield from self._choice(choice, place)
        self._citations = chunk.citations or self._citations
        if chunk.usage is not None and chunk.usage.is_whole:
            yield used(chunk.usage)

    def _read(self, data: bytes) -> Chunk:
        try:
            return _CHUNK.decode(data)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError):
            chunk = _CHUNK.decode(placeheld(data))
        self._ragged = True
        for candidate in self._candidates.values():
            candidate.ragged = True
        return chunk

    def _choice(self, choice: ChunkChoice, place: int) -> Iterator[pb.GenerateEvent]:
        index = place if choice.index is None else choice.index
        candidate = self._candidates.get(index)
        if candidate is None:
            candidate = self._candidates[index] = _Candidate(index, self._request, self._ragged)
        if delta := choice.delta or choice.message:
            yield from candidate.take(delta, choice.logprobs)
        candidate.reason = choice.finish_reason or candidate.reason

    def _finish(self) -> Iterator[pb.GenerateEvent]:
        """Without an end marker every candidate must have said why it stopped."""
        if not self._candidates or not all(candidate.reason for candidate in self._candidates.values()):
            raise cut_off()
        yield from self._finished()

    def _finished(self) -> Iterator[pb.GenerateEvent]:
        self._done = True
        for _, candidate in sorted(self._candidates.items()):
            yield from candidate.finish(self._citations)
