"""The streamed answer of a provider: events -> canonical events."""

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import sse
from umg_grpc.wire.arguments import free_text
from umg_grpc.wire.frames import EventDecoder
from umg_grpc.wire.json import ABSENT
from umg_grpc.wire.messages.answer import Ending, Head, decode_finish, settle, update_search
from umg_grpc.wire.messages.citations import decode_citation
from umg_grpc.wire.messages.content import decode_answer, own_state
from umg_grpc.wire.messages.errors import stated_error
from umg_grpc.wire.messages.names import tool_names
from umg_grpc.wire.messages.usage import SERVICE_TIERS, ProviderUsage, decode_usage
from umg_grpc.wire.names import ToolNames
from umg_grpc.wire.provider_errors import cut_off, is_error, unreadable
from umg_grpc.wire.ragged import Mender, placeheld


class Delta(Ending, kw_only=True):
    """`delta` of a `content_block_delta` and of a `message_delta`."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    citation: Raw = ABSENT


class Event(Struct, kw_only=True):
    """Any event."""

    type: str | None = None
    index: int | None = None
    delta: Delta | None = None
    content_block: Raw = ABSENT
    message: Head | None = None
    usage: ProviderUsage | None = None
    error: Raw = ABSENT


class Begun(Struct):
    """What a `content_block_start` may already hold of what is streamed after it."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    input: Raw = ABSENT


EVENT = msgspec.json.Decoder(Event)
_BEGUN = msgspec.json.Decoder(Begun)

TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


PLAIN = b"event: content_block_delta\ndata: "


def only_deltas(frames: bytes) -> bool:
    """Whether whole frames are deltas and nothing else, as they are usually written: every event has two lines, and the
    first of each says so. In JSON there are no line ends.
    """
    if not frames.startswith(PLAIN) or b"\r" in frames:
        return False
    events = frames.count(b"\n\n")
    return frames.count(b"\n\n" + PLAIN) == events - 1 and frames.count(b"\n") == 3 * events


def event_error(event: Event, name: bytes, data: bytes) -> UmgError | None:
    """The error that an event states, if it does."""
    if is_error(event.error):
        return stated_error(event.error)
    if event.type == "error" or name == b"error":
        return stated_error(data)
    return None


def begun(message: Head, model: str) -> pb.GenerateEvent:
    """The event with which a stream starts; `model` is the caller's name of it."""
    event = pb.GenerateEvent()
    event.started.response_id, event.started.model = message.id or "", model or message.model or ""
    if message.usage is not None and message.usage.service_tier in SERVICE_TIERS:
        event.started.service_tier = message.usage.service_tier
    return event


def used(usage: ProviderUsage) -> pb.GenerateEvent:
    """The event that tells the usage."""
    event = pb.GenerateEvent()
    decode_usage(usage, event.usage)
    return event


class _Block:
    """A content block that is being streamed."""

    def __init__(self, part: int, kind: str | None) -> None:
        self.part = part
        self.kind = kind
        self.custom = False
        self.input = ""  # that the start held: of use where no deltas follow
        self.pieces: list[str] = []  # of an input that is told whole
        self.argued = False
        self.call: pb.Part | None = None  # the provider's own call
        self.mender = Mender()


class TranslatingDecoder(EventDecoder):
    """Events -> canonical events. One instance a stream.

    The reason to stop is kept until the end of the stream.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._names: ToolNames | None = None
        self._started = False
        self._ragged = False
        self._parts = 0
        self._blocks: dict[int, _Block] = {}  # the open ones, by the provider's index
        self._called = False
        self._usage = ProviderUsage()
        self._ending: Ending | None = None

    def _take(self, frames: bytes) -> pb.StreamGenerateResponse | None:
        return self._plain(frames) or super()._take(frames)

    def _plain(self, frames: bytes) -> pb.StreamGenerateResponse | None:
        """A read of nothing but more of what is open, which is most of a stream; None for any other. For speed only."""
        if self._ragged or self._done or not only_deltas(frames):
            return None
        events = list[pb.GenerateEvent]()
        try:
            for frame in frames[:-2].split(b"\n\n"):
                said = EVENT.decode(memoryview(frame)[len(PLAIN) :])
                block, delta = self._blocks.get(-1 if said.index is None else said.index), said.delta
                if block is None or delta is None or block.custom:
                    return None
                if block.kind == "text" and delta.text:
                    events.append(pb.GenerateEvent(part_index=block.part, text_delta=delta.text))
                elif block.kind == "reasoning" and delta.thinking:
                    events.append(pb.GenerateEvent(part_index=block.part, reasoning_delta=delta.thinking))
                elif block.kind == "tool_call" and delta.partial_json:
                    block.argued = True
                    events.append(pb.GenerateEvent(part_index=block.part, arguments_delta=delta.partial_json))
                else:
                    return None
        except (ValueError, RecursionError):
            return None
        return pb.StreamGenerateResponse(events=events)

    def _events(self, event: sse.SseEvent) -> Iterator[pb.GenerateEvent]:  # noqa: PLR0912 - one case a type
        data = event.data or b""
        if data.strip() == sse.DONE:
            return  # another format's end marker
        said = self._read(data)
        if error := event_error(said, event.name, data):
            raise error
        match said.type:
            case "content_block_delta":
                yield from self._delta(said, data)
            case "content_block_start":
                yield from self._block_started(said)
            case "content_block_stop":
                if (block := self._blocks.pop(-1 if said.index is None else said.index, None)) is not None:
                    yield from self._block_ended(block)
            case "message_start":
                yield from self._message_started(said)
            case "message_delta":
                if not self._started:
                    raise unreadable()
                self._ending = said.delta or self._ending
                if said.usage is not None:
                    self._usage = self._usage.updated(said.usage)
                    yield from self._told_usage()
            case "message_stop":
                yield from self._finished()
            case "ping":
                pass
            case unknown:
                kept = pb.OpaquePart(format="messages", type=unknown or "", json=data.decode())
                if self._started:
                    yield pb.GenerateEvent(opaque=kept)

    def _read(self, data: bytes) -> Event:
        try:
            return EVENT.decode(data)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError):
            said = EVENT.decode(placeheld(data))
        self._ragged = True
        return said

    def _message_started(self, said: Event) -> Iterator[pb.GenerateEvent]:
        if self._started:
            return
        self._started, message = True, said.message or Head()
        yield begun(message, self._request.model)
        if message.usage is not None:
            self._usage = message.usage
            yield from self._told_usage()

    def _told_usage(self) -> Iterator[pb.GenerateEvent]:
        if self._usage.is_whole:
            yield used(self._usage)

    def _block_started(self, said: Event) -> Iterator[pb.GenerateEvent]:
        if not self._started:
            raise unreadable()
        raw, index = said.content_block, self._parts if said.index is None else said.index
        if (open_block := self._blocks.pop(index, None)) is not None:
            yield from self._block_ended(open_block)
        started = _BEGUN.decode(raw)
        part = _decode_block(raw)
        block = self._blocks[index] = _Block(self._parts, part.WhichOneof("kind"))
        self._parts += 1
        said_already = (started.text or started.thinking or "") if block.kind in {"text", "reasoning"} else ""
        if block.kind == "text":
            part.text.text = ""
        elif block.kind == "reasoning":
            del part.reasoning.texts[:]
        elif block.kind == "tool_call":
            self._call_started(block, part)
        elif block.kind == "server_tool_call":
            block.input, block.call = part.server_tool_call.input_json, pb.Part()
            block.call.CopyFrom(part)
        yield pb.GenerateEvent(part_index=block.part, part_started=part)
        if said_already:
            yield from self._more(block, said_already)

    def _call_started(self, block: _Block, part: pb.Part) -> None:
        self._called = True
        if self._names is None:
            self._names = tool_names(self._request)
        call = part.tool_call
        block.input, block.custom = call.arguments_json, self._names.resolve(call)
        if block.custom:
            call.text = ""
        else:
            call.arguments_json = ""

    def _delta(self, said: Event, data: bytes) -> Iterator[pb.GenerateEvent]:
        block, delta = self._blocks.get(-1 if said.index is None else said.index), said.delta
        if delta is None:
            return
        if block is None:
            if delta.text or delta.thinking or delta.partial_json:
                raise unreadable()  # of a block that was never started: silence would lose what it says
            return
        if (text := delta.text or delta.thinking or delta.partial_json) is not None:
            yield from self._more(block, text)
        elif delta.type == "signature_delta":
            if delta.signature:
                yield pb.GenerateEvent(part_index=block.part, state=own_state(delta.signature))
        elif delta.type == "citations_delta":
            yield pb.GenerateEvent(part_index=block.part, citation=decode_citation(delta.citation))
        elif delta.type not in TEXTS:
            kept = pb.OpaquePart(format="messages", type=delta.type or "", json=data.decode())
            yield pb.GenerateEvent(part_index=block.part, opaque=kept)

    def _more(self, block: _Block, text: str) -> Iterator[pb.GenerateEvent]:
        if self._ragged:
            text = block.mender.mend(text)
        if text:
            yield from self._told(block, text)

    def _told(self, block: _Block, text: str) -> Iterator[pb.GenerateEvent]:
        match block.kind:
            case "text":
                yield pb.GenerateEvent(part_index=block.part, text_delta=text)
            case "reasoning":
                yield pb.GenerateEvent(part_index=block.part, reasoning_delta=text)
            case "tool_call" if not block.custom:
                block.argued = True
                yield pb.GenerateEvent(part_index=block.part, arguments_delta=text)
            case "tool_call" | "server_tool_call":
                block.pieces.append(text)
            case _:
                pass  # of a block that only this format knows

    def _block_ended(self, block: _Block) -> Iterator[pb.GenerateEvent]:
        if rest := block.mender.rest():
            yield from self._told(block, rest)
        asked = "".join(block.pieces) or block.input or "{}"
        if block.kind == "tool_call" and block.custom:
            yield pb.GenerateEvent(part_index=block.part, arguments_delta=free_text(asked))
        elif block.kind == "tool_call" and not block.argued:
            yield pb.GenerateEvent(part_index=block.part, arguments_delta=asked)
        elif block.call is not None:
            update_search(block.call.server_tool_call, asked)
            yield pb.GenerateEvent(part_index=block.part, part_updated=block.call)
        yield pb.GenerateEvent(part_index=block.part, part_ended=pb.PartEnded())

    def _finish(self) -> Iterator[pb.GenerateEvent]:
        """Without an end marker the answer must have said why it stopped."""
        if not self._started or self._ending is None or self._ending.stop_reason is None:
            raise cut_off()
        yield from self._finished()

    def _finished(self) -> Iterator[pb.GenerateEvent]:
        if not self._started:
            raise unreadable()
        self._done = True
        for block in self._blocks.values():
            yield from self._block_ended(block)
        event = pb.GenerateEvent()
        event.finished.SetInParent()
        if self._ending is not None:
            decode_finish(self._ending, event.finished)
        settle(event.finished, self._called)
        yield event


def _decode_block(raw: Raw) -> pb.Part:
    """The part that a block begins, as far as it is known."""
    message = pb.Message()
    decode_answer([raw], message)
    return message.parts[0]
