"""Passthrough of a provider's chat stream: frames are forwarded unchanged and parsed only where that is needed."""

import re
from typing import NamedTuple, Self

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.passthrough_call_repair import TOOL_CALLS, CallNumbers
from umg_grpc.wire.chat.passthrough_response_repair import chunk_with_choices, finish_chunks, is_odd, with_totals
from umg_grpc.wire.chat.shared_response_fields import (
    FINISH_REASONS,
    Head,
    Index,
    choice_error,
    decode_finish,
    decode_head,
)
from umg_grpc.wire.chat.split_choice_joining import joined_chunk, joint_reason, wants_one
from umg_grpc.wire.chat.stream_decoder import event_error
from umg_grpc.wire.chat.usage import decode_usage, find_usage, missing_totals
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.finish_reason_conversion import Ended, failed_response
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.core.stream_decoder import DECODED_FRAME, FrameDecoder, ModelMember
from umg_grpc.wire.errors.provider_errors import cut_off, is_error

CALL_STARTS = b'"tool_calls":[{', b'"tool_calls": [{'
NAME_MEMBER = b'"name"'
NAME_STARTS = b'"name":"', b'"name": "'
FIRST_MEMBER = re.compile(rb'\{("role": ?"\w+", ?)?((?:"\w+": ?null, ?)*"\w+": ?(?:"|\[\{|null))')
"""Beginning of a delta, up to the type of its first value: a text, a list of objects, or null."""
PADDING_START, PADDING_END = b',"obfuscation":"', b'"}\n\n'


class PassedChoice(Struct):
    """Choice of a passed-through chunk: its index and finish reason decoded, its delta as raw JSON."""

    index: Index | None = None
    finish_reason: str | UnsetType | None = UNSET
    delta: Raw = ABSENT_MEMBER
    error: Raw = ABSENT_MEMBER
    usage: Raw = ABSENT_MEMBER


class PassedChunk(Head, kw_only=True):
    """Chunk of a passed-through stream, with the decoded members. `obfuscation` is padding of any length."""

    choices: list[PassedChoice] | None = None
    obfuscation: str | None = None


_CHUNK = msgspec.json.Decoder(PassedChunk)


class Template(NamedTuple):
    """Bytes around the delta of a chunk that only continues the output (no error, usage or finish reason). Later chunks
    with the same bytes pass without parsing.
    """

    head: bytes  # up to the first value of the delta
    tail: bytes  # from the delta to the end, or to the padding of any length (`obfuscation`)
    end: bytes  # end of the frame, after the padding if there is one
    lines: int  # line ends of one frame
    # beginning of a member `id`, as the provider writes it, and their number outside of the delta
    ids: tuple[bytes, int]

    @classmethod
    def learn(cls, raw: bytes, chunk: PassedChunk, *, first: bool) -> Self | None:
        """Return the template of a chunk that only continues the output; None for any other. `first`: the chunk may
        state a role that later chunks omit. It must have `finish_reason` (null): else the template would match the last
        chunk, too.
        """
        if chunk.usage is not None or not chunk.choices or len(chunk.choices) != 1:
            return None
        choice, lines = chunk.choices[0], raw.count(b"\n")  # no lines: they end in CR alone
        delta = bytes(choice.delta)
        if choice.finish_reason is not None or not delta or raw.count(delta) != 1 or not lines:
            return None
        head, _, tail = raw.partition(delta)
        ids = _ids(head + tail)
        if (start := FIRST_MEMBER.match(delta)) is not None:
            head += b"{" + start[2] if first else start[0]
        if chunk.obfuscation is None:
            return cls(head, tail, tail, lines, ids)
        padding = PADDING_START + chunk.obfuscation.encode() + PADDING_END
        if not tail.endswith(padding):
            return None
        tail = tail.removesuffix(padding) + PADDING_START
        return cls(head, tail, PADDING_END, lines, ids)


def _ids(frame: bytes) -> tuple[bytes, int]:
    member = b'"id": "' if b'": "' in frame else b'"id":"'
    return member, frame.count(member)


class PassthroughDecoder(FrameDecoder):
    """Decoder of a passed-through chat stream: forwards chunks, and emits events for the service. One per stream.

    It replaces a different model id, drops events without data and a usage chunk that the caller did not request, adds
    a missing end marker or finish reason, repairs choices and calls that typed clients cannot read, and joins choices
    into which a provider splits one candidate. A failed response raises an error.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._model = ModelMember(request.model)
        self._template: Template | None = None
        self._head: JsonObject = {}  # members of the first chunk, for chunks that the provider left out
        self._seen: set[int] = set()  # candidates
        self._finished: set[int] = set()
        self._numbers = CallNumbers()
        self._called = False  # whether a tool was called, which overrides the provider's finish reason
        self._usage: pb.Usage | None = None
        self._failed: UmgError | None = None  # error of a response that failed, raised with its usage at the end
        self._is_split = False  # whether one candidate comes as several choices
        self._joint_reason: str | None = None  # finish reason of these, sent at the end

    def _plain(self, frames: bytes) -> tuple[bytes, int]:
        """Return (leading chunks that match the template, with the caller's model id; their received length)."""
        if not self._called and TOOL_CALLS in frames:
            self._called = CALL_STARTS[0] in frames or CALL_STARTS[1] in frames
        if self._template is None:
            return DECODED_FRAME
        head, tail, end, lines, ids = self._template
        if not frames.startswith(head):
            return DECODED_FRAME
        plain = frames[: frames.find(end, frames.rfind(tail)) + len(end)]
        count = plain.count(end + head) + 1
        if plain.count(b"\n") != count * lines or plain.count(tail) != count:
            return DECODED_FRAME
        if self._called:
            if NAME_MEMBER in plain and (NAME_STARTS[0] in plain or NAME_STARTS[1] in plain):
                return DECODED_FRAME  # a call starts, or repeats its name
            added = plain.count(ids[0]) - count * ids[1]
            if (added or self._numbers.is_wrong) and self._may_start_call(plain, ids[0], added):
                return DECODED_FRAME
        renamed = self._model.replace_all(plain, count)
        return DECODED_FRAME if renamed is None else (renamed, len(plain))

    def _may_start_call(self, frames: bytes, member: bytes, added: int) -> bool:
        if self._numbers.is_wrong and TOOL_CALLS in frames:
            return True
        return added != frames.count(member + b'"') + frames.count(member + self._numbers.last_id)

    def _end(self) -> bytes:
        if self._failed is not None:
            raise self._failed.with_usage(self._usage)
        if self._is_split and self._joint_reason:
            return self._finish_frames([]) + sse.frame(sse.DONE_DATA)
        if len(self._finished) < max(1, self._request.candidate_count):
            raise cut_off()
        return sse.frame(sse.DONE_DATA)

    def _frame(self, event: sse.SseEvent, events: list[pb.GenerateEvent]) -> bytes:
        data = event.data or b""
        if data.strip() == sse.DONE_DATA:
            return self._done(event, events)
        chunk = decode(_CHUNK, data)
        if error := event_error(event, chunk, bool(chunk.choices)):
            raise error
        if chunk.choices is None and chunk.usage is None:
            return b""  # not a chunk: JS clients read its choices
        stated = chunk.choices or []
        if chunk.choices is None or any(map(is_odd, chunk.choices)):
            event, chunk = self._readable(event, chunk)
            data = event.data or b""
        if not self._started and (chunk.choices or chunk.id or chunk.usage):
            self._start(chunk, events)
        self._read_choices(stated, events)
        if (usage := find_usage(chunk, stated)) is not None:
            counted = pb.GenerateEvent()
            if decode_usage(usage, counted.usage, chunk.service_tier):
                self._usage = counted.usage
                events.append(counted)
                if chunk.usage is not None and (totals := missing_totals(usage, counted.usage)):
                    data = with_totals(data, totals)
                    event = sse.new_event(event.name, data)
            if not chunk.choices and not self._request.face_hints.include_usage:
                return b""  # requested by the gateway, not by the caller
        if self._failed is not None:
            return b""  # its finish reason is no word of this format
        event = sse.without_id(event)
        if self._is_split and chunk.choices:
            data = joined_chunk(data)
            event, chunk = sse.new_event(event.name, data), _CHUNK.decode(data)
        event = self._with_right_indexes(event, chunk.choices or [])
        if wants_one(self._request) and not self._is_split:  # of several candidates a chunk may hold several
            self._template = Template.learn(event.raw, chunk, first=self._template is None) or self._template
        frame = self._model.replace(event, chunk.model)
        return frame if self._started else self._hold(frame)

    def _readable(self, event: sse.SseEvent, chunk: PassedChunk) -> tuple[sse.SseEvent, PassedChunk]:
        reasons = [choice.finish_reason for choice in chunk.choices or () if choice.finish_reason]
        if wants_one(self._request) and any(failed_response(Ended(reason)) for reason in reasons):
            return event, chunk
        data = chunk_with_choices(event.data or b"")
        return sse.new_event(event.name, data), _CHUNK.decode(data)

    def _done(self, event: sse.SseEvent, events: list[pb.GenerateEvent]) -> bytes:
        """Return the frames of finish reasons that the provider left out, followed by the end marker, `event`."""
        if not self._started:
            raise cut_off()
        self.done = True
        if self._failed is not None:
            raise self._failed.with_usage(self._usage)
        return self._finish_frames(events) + event.raw

    def _start(self, chunk: PassedChunk, events: list[pb.GenerateEvent]) -> None:
        self._started = True
        started = pb.GenerateEvent()
        decode_head(chunk, self._request.model, started.started)
        events.append(started)
        model = self._request.model or chunk.model
        self._head = {"id": chunk.id or "", "created": chunk.created or 0, "model": model}

    def _read_choices(self, choices: list[PassedChoice], events: list[pb.GenerateEvent]) -> None:
        for position, choice in enumerate(choices):
            index = position if choice.index is None else choice.index
            if index and wants_one(self._request):
                self._is_split, index = True, 0
            self._seen.add(index)
            if choice.error is not ABSENT_MEMBER and is_error(choice.error):
                raise choice_error(choice.error)
            if choice.finish_reason:
                self._read_reason(index, choice.finish_reason, events)

    def _read_reason(self, index: int, reason: str, events: list[pb.GenerateEvent]) -> None:
        """Append a candidate's end to `events`. Keep the error of a failed one until usage is received."""
        if reason not in FINISH_REASONS and wants_one(self._request):
            self._failed = self._failed or failed_response(Ended(reason))
        if self._is_split:
            self._joint_reason = joint_reason((self._joint_reason, reason))
        elif self._failed is None and index not in self._finished:
            self._finish(index, reason, events)

    def _finish(self, index: int, reason: str, events: list[pb.GenerateEvent]) -> None:
        self._finished.add(index)
        finished = pb.GenerateEvent(candidate_index=index)
        decode_finish(reason, finished.finished)
        if self._called and finished.finished.finish_reason == pb.FINISH_REASON_STOP:
            finished.finished.finish_reason = pb.FINISH_REASON_TOOL_CALLS
        events.append(finished)

    def _finish_frames(self, events: list[pb.GenerateEvent]) -> bytes:
        """Return frames with the finish reasons that the provider did not send before its end marker."""
        unfinished = sorted(self._seen - self._finished)
        if not unfinished:
            return b""
        reason = self._joint_reason or "stop"
        if self._called and reason == "stop":
            reason = "function_call" if self._request.face_hints.legacy_functions else "tool_calls"
        for index in unfinished:
            self._finish(index, reason, events)
        return b"".join(map(sse.frame, finish_chunks(self._head, reason, unfinished)))

    def _with_right_indexes(self, event: sse.SseEvent, choices: list[PassedChoice]) -> sse.SseEvent:
        data = event.data or b""
        if TOOL_CALLS not in data:
            return event
        deltas = [
            (position if choice.index is None else choice.index, bytes(choice.delta) or b"{}")
            for position, choice in enumerate(choices)
        ]
        try:
            corrected = self._numbers.corrected(data, deltas, str(self._head.get("id", "")))
        except ValueError:
            return event  # a form of calls that only the client may know
        return event if corrected is data else sse.new_event(event.name, corrected)
