"""Decoding of one candidate of a provider's chat stream: its deltas become canonical events."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.chat.provider_reasoning_members import (
    NO_MEMBERS,
    CarriedState,
    hidden_reasoning,
    message_members,
    read_message,
    to_canonical,
)
from umg_grpc.wire.chat.provider_tool_names import tool_names
from umg_grpc.wire.chat.shared_response_fields import (
    Index,
    Logprobs,
    ProviderAudio,
    ProviderMessage,
    content_text,
    correct_finish_reason,
    decode_annotation,
    decode_audio,
    decode_filtered,
    decode_finish,
    decode_image,
    decode_url,
    provider_calls,
    reasoning_text,
)
from umg_grpc.wire.chat.thought_signatures import thought_signature
from umg_grpc.wire.chat.tool_calls import ProviderCall, ProviderFunction, call_state, provider_id
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER
from umg_grpc.wire.core.logprobs import Logprob, decode_logprob
from umg_grpc.wire.core.part_event_builder import PartEmitter
from umg_grpc.wire.core.split_character_repair import SurrogateJoiner
from umg_grpc.wire.core.streamed_text_buffers import Pieces, ToolInputs
from umg_grpc.wire.core.tool_argument_objects import arguments_text, free_text
from umg_grpc.wire.core.tool_name_conversion import ToolNames


class ChunkChoice(Struct):
    """Choice of a chunk."""

    index: Index | None = None
    delta: ProviderMessage | None = None
    message: ProviderMessage | None = None  # the name of a last, complete delta at some providers
    finish_reason: str | None = None
    logprobs: Logprobs | None = None
    content_filter_results: msgspec.Raw = ABSENT_MEMBER
    error: msgspec.Raw = ABSENT_MEMBER
    usage: msgspec.Raw = ABSENT_MEMBER


class _OpenCall:
    """Tool call being received: id, name so far, part (once the name is complete), and input not yet emitted."""

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        self.name = ""
        self.part: int | None = None  # None until its name is complete
        self.waiting = Pieces()  # input that came before the name, or that is sent only when it is complete
        self.wrapped = False  # whether it calls a function that stands for a custom tool
        self.joiner = SurrogateJoiner()


class StreamCandidate(PartEmitter):
    """Decoder of the deltas of one candidate: its open text or reasoning, its tool calls, its audio."""

    def __init__(self, index: int, request: pb.GenerateRequest, has_halves: bool, inputs: ToolInputs) -> None:
        super().__init__(index, has_halves=has_halves, keeps_texts=False)
        self._request = request
        self._inputs = inputs
        self.reason: str | None = None
        self.filtered = ABSENT_MEMBER  # findings of a content filter that ended the response
        self._text: int | None = None  # last text part
        self._text_offset = 0  # offset of that part in the content, in characters
        self._length = 0
        self._calls: dict[int, _OpenCall] = {}  # by the provider's index
        self._last_call: _OpenCall | None = None
        self._all_calls: list[_OpenCall] = []
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

    def continued_text(self, choice: ChunkChoice) -> str | None:
        """Return the text of a delta that only appends to the open text or reasoning; None for any other delta."""
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
        if self.kind == "text" and content and isinstance(content, str) and not thoughts:
            return content
        return thoughts if self.kind == "reasoning" and thoughts and not content else None

    def decode(self, delta: ProviderMessage, logprobs: Logprobs | None) -> Iterator[pb.GenerateEvent]:
        """Yield the canonical events of one delta and the log probabilities of its tokens, if any."""
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
            if not self.kind and self._text is None:
                yield from self.switch("text")
            event = self.event(self._part if self.kind else self._text or 0)
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
        """Yield a citation for the last text part. Its offsets are changed in place to count from that part's start."""
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
        if self._carried and self.kind == "reasoning" and kind != "reasoning":
            yield self._state_of(self._part)
        yield from super().switch(kind)

    def _state_of(self, part: int) -> pb.GenerateEvent:
        event = self.event(part)
        event.state.CopyFrom(to_canonical(self._carried.take()))
        return event

    def _late_state(self) -> Iterator[pb.GenerateEvent]:
        """Yield reasoning state that came late: in the first call, else in the last text, else in a part of its own."""
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
        """Yield the ends of all parts and of the candidate. `citations` count if the text has none of its own."""
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
        decode_filtered(self.filtered, event.finished)
        correct_finish_reason(event.finished, bool(self._all_calls), self._refused)
        yield event

    def _append_call(self, piece: ProviderCall) -> Iterator[pb.GenerateEvent]:
        call_id = provider_id(piece)
        known = self._last_call if piece.index is None else self._calls.get(piece.index)
        if known is None or (call_id and known.call_id and call_id != known.call_id):
            known = _OpenCall(call_id)
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
            if state is not None and self._carried and self.kind != "reasoning":
                yield from self.whole(hidden_reasoning(self._carried.take()))
            yield from self._start_call(known, custom=piece.custom is not None)
        yield from self._append_arguments(known, known.joiner.join(text) if self.has_halves else text)
        if state is not None and known.part is not None:
            self._stated.add(known.part)
            event = self.event(known.part)
            event.state.CopyFrom(state)
            yield event

    def _function_call(self, piece: ProviderFunction) -> Iterator[pb.GenerateEvent]:
        yield from self._append_call(ProviderCall(index=0, function=piece))

    def _start_named(self, call: _OpenCall) -> Iterator[pb.GenerateEvent]:
        if call.part is None and call.name:
            yield from self._start_call(call, custom=False)

    def _start_call(self, call: _OpenCall, *, custom: bool) -> Iterator[pb.GenerateEvent]:
        """Yield the event that starts a tool call's part, then the input that was received before the call's name."""
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

    def _append_arguments(self, call: _OpenCall, text: str) -> Iterator[pb.GenerateEvent]:
        if call.part is None or call.wrapped:
            self._inputs.append(call.waiting, text)
        elif text:
            event = self.event(call.part)
            event.arguments_delta = text
            yield event

    def _append_audio(self, piece: ProviderAudio) -> Iterator[pb.GenerateEvent]:
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
