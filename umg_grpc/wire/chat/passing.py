"""The streamed answer of a provider for a chat caller: whole frames as they came, looked into only where that is
needed.
"""

import re
from typing import NamedTuple, Self

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from umg_grpc.v1 import pb
from umg_grpc.wire import sse
from umg_grpc.wire.chat.answer import Head, Index, begun, decode_finish, used
from umg_grpc.wire.chat.translating import event_error
from umg_grpc.wire.frames import FrameDecoder
from umg_grpc.wire.json import ABSENT
from umg_grpc.wire.provider_errors import cut_off
from umg_grpc.wire.ragged import decode


class PassedChoice(Struct):
    """What a choice that is passed on is looked at for."""

    index: Index | None = None
    finish_reason: str | UnsetType | None = UNSET
    delta: Raw = ABSENT


class PassedChunk(Head, kw_only=True):
    """A chunk that is passed on."""

    choices: list[PassedChoice] | None = None
    obfuscation: str | None = None


CALLED, CALLS = b'"tool_calls"', (b'"tool_calls":[{', b'"tool_calls": [{')
PADDING, PADDED = b',"obfuscation":"', b'"}\n\n'

_CHUNK = msgspec.json.Decoder(PassedChunk)
_NUMBERED = re.compile(rb"(?:^|[\r\n])id:")


class Template(NamedTuple):
    """What surrounds the delta in a plain chunk, to the byte: one that only moves the answer on (no error, usage or
    finish). A read of nothing but such frames needs no parsing: all in it that is not a delta was seen before.
    """

    head: bytes  # of the frame, up to the delta
    tail: bytes  # from the delta to the end of the frame, or to its padding
    padded: bool  # whether frames end with padding of any length (`obfuscation`)
    lines: int  # line ends of one frame
    theirs: bytes  # the member `model` as it stands there, once in a frame
    ours: bytes  # the same with the caller's model id

    @classmethod
    def learn(cls, raw: bytes, chunk: PassedChunk, theirs: bytes, ours: bytes) -> Self | None:
        """The template of a plain chunk; None for any other. One that says nothing of its end would also fit a last
        chunk, whose reason would be taken for a part of the delta.
        """
        if chunk.usage is not None or not chunk.choices or len(chunk.choices) != 1:
            return None
        choice = chunk.choices[0]
        delta = bytes(choice.delta)
        if choice.finish_reason is not None or not delta or raw.count(delta) != 1 or not raw.startswith(b"data:"):
            return None
        head, _, tail = raw.partition(delta)
        lines = raw.count(b"\n")
        if lines == 0:
            return None  # lines that end in CR alone
        if chunk.obfuscation is None:
            return cls(head, tail, padded=False, lines=lines, theirs=theirs, ours=ours)
        place = tail.find(PADDING)
        if place < 0 or tail[place:] != PADDING + chunk.obfuscation.encode() + PADDED:
            return None  # padding that is not the last member, or spelled in another way
        return cls(head, tail[:place], padded=True, lines=lines, theirs=theirs, ours=ours)

    def apply(self, frames: bytes) -> bytes | None:
        """Frames under the caller's model id; None unless all of them are plain."""
        if not frames.startswith(self.head):
            return None
        if self.padded:
            count = frames.count(PADDED + self.head) + 1
            if frames.count(self.tail + PADDING) != count or not frames.endswith(PADDED):
                return None
        elif frames.endswith(self.tail) and len(frames) >= len(self.head) + len(self.tail):
            count = frames.count(self.tail + self.head) + 1
        else:
            return None
        if frames.count(b"\n") != count * self.lines:
            return None
        return self._renamed(frames, count)

    def run_end(self, frames: bytes, place: int) -> int:
        """Where the last frame ends that has this tail, if one with this head begins at `place`; else 0."""
        if not frames.startswith(self.head, place):
            return 0
        if not self.padded:
            return frames.rfind(self.tail) + len(self.tail)
        return frames.find(b"\n\n", frames.rfind(self.tail + PADDING)) + 2

    def apply_one(self, frame: bytes) -> bytes | None:
        """The same for what is known to be one frame."""
        if not frame.startswith(self.head) or len(frame) < len(self.head) + len(self.tail):
            return None
        if not frame.endswith(PADDED if self.padded else self.tail):
            return None
        if self.padded and frame.count(self.tail + PADDING) != 1:
            return None
        return self._renamed(frame, 1)

    def _renamed(self, frames: bytes, count: int) -> bytes | None:
        if self.theirs == self.ours:
            return frames
        renamed = frames.replace(self.theirs, self.ours)
        grown = len(self.ours) - len(self.theirs)
        once = len(renamed) - len(frames) == count * grown if grown else frames.count(self.theirs) == count
        return renamed if once else None  # a delta has that member too


class PassingDecoder(FrameDecoder):
    """Chunks -> the same chunks, with the events that the service needs. One instance a stream.

    Changed are: the model id, if the provider's is another; the usage chunk, which goes when the caller did not ask
    for it; events without data, which break clients; the end marker, which is added when the provider leaves it out.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._template: Template | None = None
        self._started = False
        self._early: list[bytes] = []  # frames before the one that starts the answer
        self._finished: set[int] = set()
        self._called = False  # whether a tool was called, which overrides why the provider says it stopped

    def _plain(self, frames: bytes) -> bytes | None:
        if not self._called and CALLED in frames:
            self._called = CALLS[0] in frames or CALLS[1] in frames
        return None if self._template is None else self._template.apply(frames)

    def _end(self) -> bytes:
        if len(self._finished) < max(1, self._request.candidate_count):
            raise cut_off()
        return sse.frame(sse.DONE)

    def _frames(self, frames: bytes, passed: list[bytes], events: list[pb.GenerateEvent]) -> None:
        """Frame by frame, plain ones together where they follow one another; only the others are parsed."""
        place = self._run(frames, 0, passed)
        place = self._some_frames(frames, place, passed, events)
        if 0 < place < len(frames) and not self._done:  # a template was learned on the way
            self._some_frames(frames, self._run(frames, place, passed), passed, events, to_the_end=True)

    def _run(self, frames: bytes, place: int, passed: list[bytes]) -> int:
        """Where the plain frames end that begin at `place`; they go to `passed`."""
        end = 0 if self._template is None else self._template.run_end(frames, place)
        if self._template is None or end <= place:
            return place
        plain = self._template.apply(frames[place:end])
        if plain is None:
            return place
        passed.append(plain)
        return end

    def _some_frames(
        self,
        frames: bytes,
        place: int,
        passed: list[bytes],
        events: list[pb.GenerateEvent],
        *,
        to_the_end: bool = False,
    ) -> int:
        """Where it stopped: behind the first frame from which a template was learned, or at the end."""
        known = self._template
        for event in sse.split(frames[place:]):
            place += len(event.raw)
            plain = self._template.apply_one(event.raw) if self._template is not None else None
            kept = self._frame(event, events) if plain is None else plain
            if kept:
                passed.append(kept)
            if self._done or (self._template is not known and not to_the_end):
                break
        return place

    def _frame(self, event: sse.SseEvent, events: list[pb.GenerateEvent]) -> bytes:
        """The frame as it is passed on, b"" if it is not; what the service needs of it goes to `events`."""
        data = event.data
        if data is None:  # a comment keeps the connection alive; an event without data breaks the openai client
            return event.raw if self._started and event.raw.startswith(b":") else b""
        if data.strip() == sse.DONE:
            if not self._started:
                raise cut_off()
            self._done = True
            return event.raw
        # With an `id:` openai's client reads the blank line behind it as an event.
        if b"id:" in event.raw and _NUMBERED.search(event.raw):
            event = event._replace(raw=sse.frame(data))
        chunk = decode(_CHUNK, data)
        if error := event_error(event, chunk):
            raise error
        if chunk.choices is None:
            return b""  # no chunk: JS clients look for its choices
        if not self._started and (chunk.choices or chunk.id or chunk.usage):
            self._started = True
            events.append(begun(chunk, self._request.model))
        for place, choice in enumerate(chunk.choices):
            self._finish(place if choice.index is None else choice.index, choice.finish_reason or None, events)
        if chunk.usage is not None:
            if chunk.usage.is_whole:
                events.append(used(chunk.usage))
            if not chunk.choices and not self._request.include_usage:
                return b""  # we asked for it, the caller did not
        self._early.append(self._renamed(event, chunk))
        if not self._started:
            return b""
        frames, self._early = b"".join(self._early), []
        return frames

    def _finish(self, index: int, reason: str | None, events: list[pb.GenerateEvent]) -> None:
        if reason and index not in self._finished:
            self._finished.add(index)
            event = pb.GenerateEvent(candidate_index=index)
            decode_finish(reason, event.finished)
            if self._called and event.finished.finish_reason == pb.FINISH_REASON_STOP:
                event.finished.finish_reason = pb.FINISH_REASON_TOOL_CALLS
            events.append(event)

    def _renamed(self, event: sse.SseEvent, chunk: PassedChunk) -> bytes:
        """The frame under the caller's model id, all else byte for byte; it is the template of those like it."""
        theirs, ours = chunk.model, self._request.model
        if theirs is None or theirs == ours or not ours:
            self._learn(event, chunk, b"", b"")
            return event.raw
        for name in (b'"model":', b'"model": '):
            spelled, wanted = name + msgspec.json.encode(theirs), name + msgspec.json.encode(ours)
            if event.raw.count(b'"model"') == 1 and spelled in event.raw:
                self._learn(event, chunk, spelled, wanted)
                return event.raw.replace(spelled, wanted)
        fields = msgspec.json.decode(event.data or b"{}", type=dict[str, Raw])
        fields["model"] = Raw(msgspec.json.encode(ours))
        return sse.frame(msgspec.json.encode(fields))

    def _learn(self, event: sse.SseEvent, chunk: PassedChunk, theirs: bytes, ours: bytes) -> None:
        """Where several choices were asked for, a chunk may hold several, of which a template would see one."""
        if self._request.candidate_count <= 1:
            self._template = Template.learn(event.raw, chunk, theirs, ours) or self._template
