"""Decoding of a provider's chat stream: its chunks become canonical events."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.provider_tool_names import tool_names
from umg_grpc.wire.chat.reasoning_carriers import (
    NO_MEMBERS,
    CarriedState,
    hidden_reasoning,
    message_members,
    read_message,
    to_canonical,
)
from umg_grpc.wire.chat.shared_response_fields import (
    Head,
    Index,
    Logprobs,
    ProviderAudio,
    ProviderMessage,
    choice_error,
    content_text,
    correct_finish_reason,
    decode_annotation,
    decode_audio,
    decode_finish,
    decode_head,
    decode_image,
    decode_url,
    provider_calls,
    reasoning_text,
)
from umg_grpc.wire.chat.split_answers import joint_reason, wants_one
from umg_grpc.wire.chat.thought_signatures import thought_signature
from umg_grpc.wire.chat.tool_calls import ProviderCall, ProviderFunction, call_state, provider_id
from umg_grpc.wire.chat.usage import decode_usage, find_usage
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.finish_reasons import Ended, failed_answer
from umg_grpc.wire.core.json import ABSENT
from umg_grpc.wire.core.logprobs import Logprob, decode_logprob
from umg_grpc.wire.core.part_events import PartEmitter
from umg_grpc.wire.core.split_characters import SurrogateJoiner
from umg_grpc.wire.core.stream_decoder import EventDecoder
from umg_grpc.wire.core.text_buffers import Pieces, ToolInputs
from umg_grpc.wire.core.tool_arguments import arguments_text, free_text
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.errors.provider_errors import as_error, cut_off, failure_in_answer, from_provider, is_error


class ChunkChoice(Struct):
    """Choice of a chunk."""

    index: Index | None = None
    delta: ProviderMessage | None = None
    message: ProviderMessage | None = None  # the name of a last, complete delta at some providers
    finish_reason: str | None = None
    logprobs: Logprobs | None = None
    error: msgspec.Raw = ABSENT
    usage: msgspec.Raw = ABSENT


class Chunk(Head, kw_only=True):
    """Chunk of the stream."""

    choices: list[ChunkChoice] | None = None


_CHUNK = msgspec.json.Decoder(Chunk)


def event_error(event: sse.SseEvent, chunk: Head, has_choices: bool) -> UmgError | None:
    """Return the error in a server-sent event, which states it by the name `error`, by the member `error`, or by a code
    and a message in place of choices; None for any other event. `chunk`: decoded from the event.
    """
    if chunk.error is ABSENT and event.name != b"error":
        return None if has_choices or chunk.usage is not None else failure_in_answer(event.data or b"")
    if is_error(chunk.error):
        return from_provider(200, as_error(msgspec.json.decode(chunk.error)))
    if event.name == b"error" and event.data is not None:
        return from_provider(200, as_error(msgspec.json.decode(event.data)))
    return None


class _Call:
    """State of a tool call that is being received: its id, its name as far as it is known, its part once the name is
    complete, and input that is not emitted yet.
    """

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        self.name = ""
        self.part: int | None = None  # None until its name is complete
        self.waiting = Pieces()  # input that came before the name, or that is sent only when it is complete
        self.wrapped = False  # whether it calls a function that stands for a custom tool
        self.joiner = SurrogateJoiner()


class _Candidate(PartEmitter):
    """Decoder of the deltas of one candidate (one of several alternative answers), with the state of its parts: the
    open text or reasoning, its tool calls, its audio.
    """

    def __init__(self, index: int, request: pb.GenerateRequest, has_halves: bool, inputs: ToolInputs) -> None:
        super().__init__(index, has_halves=has_halves, keeps_texts=False)
        self._request = request
        self._inputs = inputs
        self.reason: str | None = None
        self._text: int | None = None  # last text part
        self._text_offset = 0  # offset of that part in the content, in characters
        self._length = 0
        self._calls: dict[int, _Call] = {}  # by the provider's index
        self._last_call: _Call | None = None
        self._all_calls: list[_Call] = []
        self._audio: int | None = None  # part of the audio
        self._audio_id = ""
        self._cached_names: ToolNames | None = None  # created with the first call
        self._refused = False
        self._cited = False
        self._carried = CarriedState()  # reasoning state that is not emitted yet
        self._names_text = False  # whether the text of the reasoning comes in a member of its own
        self._stated: set[int] = set()  # calls whose reasoning state was emitted

    def text_started(self, part: int) -> None:
        self._text, self._text_offset = part, self._length

    def text_added(self, text: str) -> None:
        self._length += len(text)

    def continuation(self, choice: ChunkChoice) -> pb.GenerateEvent | None:
        """Return the event for a delta that only appends to the open text or reasoning, as most deltas do; None for any
        other delta, which `decode` handles. This only saves time.
        """
        delta = choice.delta
        if delta is None or choice.finish_reason or choice.logprobs is not None:
            return None
        if delta.refusal or delta.tool_calls or delta.function_call or delta.annotations or delta.extra_content:
            return None
        if delta.images or delta.audio or delta.reasoning or delta.reasoning_text:
            return None
        if message_members(delta) != NO_MEMBERS:
            return None
        content, thoughts = delta.content, delta.reasoning_content
        if self._kind == "text" and content and isinstance(content, str) and not thoughts:
            return self.delta(content)
        return self.delta(thoughts) if self._kind == "reasoning" and thoughts and not content else None

    def decode(self, delta: ProviderMessage, logprobs: Logprobs | None) -> Iterator[pb.GenerateEvent]:
        """Yield the canonical events of one delta. `logprobs`: log probabilities of the tokens in it, None
        without any.
        """
        thoughts = reasoning_text(delta)
        self._names_text = self._names_text or bool(thoughts)
        if state := read_message(delta):
            text = self._carried.add(state)
            thoughts = thoughts if self._names_text else text
        if thoughts:
            yield from self.append_text("reasoning", thoughts)
        if content := content_text(delta.content):
            yield from self.append_text("text", content)
        if delta.refusal:
            self._refused = True
            yield from self.append_text("refusal", delta.refusal)
        if logprobs:
            yield from self._logprobs("text", logprobs.content)
            yield from self._logprobs("refusal", logprobs.refusal)
        for call in provider_calls(delta):
            yield from self._append_call(call)
        if delta.function_call:
            yield from self._function_call(delta.function_call)
        for raw in delta.annotations or ():
            yield from self.add_citation(decode_annotation(raw))
        yield from self._media(delta)
        if signature := thought_signature(delta.extra_content):
            if not self._kind and self._text is None:
                yield from self.switch("text")
            event = self.event(self._part if self._kind else self._text or 0)
            event.state.CopyFrom(signature)
            yield event

    def _media(self, delta: ProviderMessage) -> Iterator[pb.GenerateEvent]:
        for image in delta.images or ():
            if image.image_url:
                part = pb.Part()
                decode_image(image.image_url.url, part.media)
                yield from self.whole(part)
        if delta.audio:
            yield from self._append_audio(delta.audio)

    def _logprobs(self, kind: str, entries: list[Logprob] | None) -> Iterator[pb.GenerateEvent]:
        if not entries:
            return
        if kind == "refusal" or self._text is None:
            yield from self.switch(kind)
        event = self.event(self._part if kind == "refusal" else self._text or 0)
        event.logprobs.logprobs.extend(decode_logprob(entry) for entry in entries)
        yield event

    def add_citation(self, citation: pb.Citation) -> Iterator[pb.GenerateEvent]:
        """Yield the event of a citation by the last text part, whose offsets are converted, in place, to count from the
        start of that part.
        """
        if self._text is None:
            yield from self.switch("text")
        self._cited = True
        if citation.HasField("start_index"):
            citation.start_index = max(0, citation.start_index - self._text_offset)
            citation.end_index = max(0, citation.end_index - self._text_offset)
        event = self.event(self._text or 0)
        event.citation.CopyFrom(citation)
        yield event

    def switch(self, kind: str) -> Iterator[pb.GenerateEvent]:
        """Yield the events of `PartEmitter.switch`, with the reasoning state that was received at the end of the
        reasoning. A state without reasoning waits for a call or the end, so that an answer without reasoning begins
        with its text.
        """
        if self._carried and self._kind == "reasoning" and kind != "reasoning":
            yield self._state_of(self._part)
        yield from super().switch(kind)

    def _state_of(self, part: int) -> pb.GenerateEvent:
        event = self.event(part)
        event.state.CopyFrom(to_canonical(self._carried.take()))
        return event

    def _late_state(self) -> Iterator[pb.GenerateEvent]:
        """Yield the reasoning state that was received after the reasoning: as that of the first call, else of the last
        text, or else in a reasoning part of its own.
        """
        if not self._carried:
            return
        call = self._all_calls[0].part if self._all_calls else None
        if call is not None and call not in self._stated:
            yield self._state_of(call)
        elif call is None and self._text is not None:
            yield self._state_of(self._text)
        else:
            yield from self.whole(hidden_reasoning(self._carried.take()))

    def finish(self, citations: list[msgspec.Raw]) -> Iterator[pb.GenerateEvent]:
        """Yield the ends of all open parts, then the end of the candidate with its finish reason.

        `citations`: elements of the extension `citations` (addresses of sources), used only if the text has no citation
        of its own.
        """
        if self._text is not None and not self._cited:
            for raw in citations:
                yield from self.add_citation(decode_url(raw))
        yield from self.switch("")
        yield from self._late_state()
        yield from self.end_texts()
        if self._audio is not None:
            yield self.end(self._audio)
        for call in self._all_calls:
            if call.part is None:
                yield from self._start_call(call, custom=False)
            yield from self._append_arguments(call, call.joiner.rest())
            if call.wrapped:
                call.wrapped = False
                yield from self._append_arguments(call, free_text(self._inputs.take(call.waiting)))
            yield self.end(call.part or 0)
        event = self.event()
        decode_finish(self.reason, event.finished)
        correct_finish_reason(event.finished, bool(self._all_calls), self._refused)
        yield event

    def _append_call(self, piece: ProviderCall) -> Iterator[pb.GenerateEvent]:
        """Yield the events of one piece of a tool call. It belongs to the call with its index, or to the last call if
        it has no index; an id that differs from that call's id starts a new call.
        """
        call_id = provider_id(piece)
        known = self._last_call if piece.index is None else self._calls.get(piece.index)
        if known is None or (call_id and known.call_id and call_id != known.call_id):
            known = _Call(call_id)
            self._all_calls.append(known)
        if self._last_call is not None and self._last_call is not known:
            yield from self._start_named(self._last_call)
        self._last_call = self._calls[len(self._all_calls) - 1 if piece.index is None else piece.index] = known
        known.call_id = known.call_id or call_id
        name = (piece.custom.name if piece.custom else piece.function.name if piece.function else None) or ""
        if known.part is None and name != known.name:  # some providers repeat the name, others send it in parts
            known.name += name
        text = (
            (piece.custom.input or "")
            if piece.custom
            else arguments_text(piece.function.arguments)
            if piece.function
            else ""
        )
        state = call_state(piece)
        if known.part is None and known.name and (text or piece.custom or state is not None):
            if state is not None and self._carried and self._kind != "reasoning":
                yield from self.whole(hidden_reasoning(self._carried.take()))
            yield from self._start_call(known, custom=piece.custom is not None)
        yield from self._append_arguments(known, known.joiner.join(text) if self.has_halves else text)
        if state is not None and known.part is not None:
            self._stated.add(known.part)
            event = self.event(known.part)
            event.state.CopyFrom(state)
            yield event

    def _function_call(self, piece: ProviderFunction) -> Iterator[pb.GenerateEvent]:
        """Yield the events of one piece of the older `function_call`: the only call of the message, without an id."""
        yield from self._append_call(ProviderCall(index=0, function=piece))

    def _start_named(self, call: _Call) -> Iterator[pb.GenerateEvent]:
        """Yield the event that starts the part of a call whose name is followed by no input, if it is not started."""
        if call.part is None and call.name:
            yield from self._start_call(call, custom=False)

    def _start_call(self, call: _Call, *, custom: bool) -> Iterator[pb.GenerateEvent]:
        """Yield the event that starts the part of a tool call, and the input received before its name. `custom`:
        whether the call is of a custom tool, which takes free text.
        """
        yield from self.switch("")
        part = pb.Part()
        part.tool_call.call_id, part.tool_call.name = call.call_id, call.name
        call.wrapped = self._names().resolve(part.tool_call) and not custom  # sent as a function with one text
        if custom or call.wrapped:
            part.tool_call.text = ""
        else:
            part.tool_call.arguments_json = ""
        if self._carried:
            part.state.CopyFrom(to_canonical(self._carried.take()))
            self._stated.add(self.count)
        started = self.start(part)
        call.part = started.part_index
        yield started
        if not call.wrapped:
            yield from self._append_arguments(call, self._inputs.take(call.waiting))

    def _names(self) -> ToolNames:
        if self._cached_names is None:
            self._cached_names = tool_names(self._request)
        return self._cached_names

    def _append_arguments(self, call: _Call, text: str) -> Iterator[pb.GenerateEvent]:
        if call.part is None or call.wrapped:
            self._inputs.append(call.waiting, text)
        elif text:
            event = self.event(call.part)
            event.arguments_delta = text
            yield event

    def _append_audio(self, piece: ProviderAudio) -> Iterator[pb.GenerateEvent]:
        """Yield the canonical events of one piece of audio: the start of the part with the first piece, its bytes and
        transcript, and at the end its expiry time. Each piece is base64 of its own. Raises UmgError(UPSTREAM_FAILED)
        for broken base64.
        """
        part = pb.Part()
        decode_audio(piece, part.media, self._request)
        if self._audio is None:
            part.media.ClearField("transcript")
            data, part.media.data = part.media.data, b""
            started = self.start(part)
            self._audio, self._audio_id = started.part_index, part.media.media_id
            yield started
            part.media.data = data
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
    """Decoder of a chat stream that is translated: chunks become canonical events. One instance per stream.

    The finish reason is kept until the end of the stream: calls, sources and the usage may follow it.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._candidates: dict[int, _Candidate] = {}
        self._inputs = ToolInputs()
        self._citations: list[msgspec.Raw] = []
        self._usage: pb.Usage | None = None

    def _events(self, event: sse.SseEvent) -> Iterable[pb.GenerateEvent]:
        data = event.data or b""
        if data.strip() == sse.DONE:
            if not self._candidates:
                raise cut_off()
            return self._finished()
        chunk, _ = self._read(_CHUNK, data)
        if error := event_error(event, chunk, bool(chunk.choices)):
            raise error
        if (more := self._continuation(chunk)) is not None:
            return (more,)
        return self._chunk(chunk)

    def _continuation(self, chunk: Chunk) -> pb.GenerateEvent | None:
        """Return the event of a chunk that only appends to the text of one candidate, as most chunks do; None for any
        other chunk, which has to be decoded completely. This only saves time.
        """
        choices = chunk.choices
        if not choices or len(choices) != 1 or chunk.usage is not None or chunk.citations or self._has_halves:
            return None
        candidate = self._candidates.get(choices[0].index or 0)
        return candidate.continuation(choices[0]) if candidate is not None else None

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
            index = 0  # an answer that is split over several choices
        candidate = self._candidates.get(index)
        if candidate is None:
            candidate = self._candidates[index] = _Candidate(index, self._request, self._has_halves, self._inputs)
        candidate.has_halves = self._has_halves
        if delta := choice.delta or choice.message:
            yield from candidate.decode(delta, choice.logprobs)
        if choice.finish_reason:
            candidate.reason = joint_reason((candidate.reason, choice.finish_reason))
        if choice.error is not ABSENT and is_error(choice.error):
            raise choice_error(choice.error)

    def _finish(self) -> Iterator[pb.GenerateEvent]:
        """Yield the last canonical events of a stream that has no end marker. Raises UmgError(UPSTREAM_CUT) if a
        candidate has no finish reason.
        """
        if not self._candidates or not all(candidate.reason for candidate in self._candidates.values()):
            raise cut_off()
        yield from self._finished()

    def _finished(self) -> Iterator[pb.GenerateEvent]:
        self.done = True
        if error := failed_answer(*(Ended(candidate.reason) for candidate in self._candidates.values())):
            raise error.with_usage(self._usage)
        for _, candidate in sorted(self._candidates.items()):
            yield from candidate.finish(self._citations)
