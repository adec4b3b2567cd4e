"""Decoding of a provider's messages stream: its events become canonical events."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Raw, Struct

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.finish_reason_conversion import Ended, failed_response
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER
from umg_grpc.wire.core.split_character_repair import SurrogateJoiner
from umg_grpc.wire.core.stream_decoder import EventDecoder
from umg_grpc.wire.core.streamed_text_buffers import Pieces, ToolInputs
from umg_grpc.wire.core.tool_argument_objects import free_text
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.errors.provider_errors import cut_off, is_error, unreadable
from umg_grpc.wire.messages.citations import decode_citation
from umg_grpc.wire.messages.decode_messages import decode_response_blocks, provider_state
from umg_grpc.wire.messages.errors import stated_error
from umg_grpc.wire.messages.provider_tool_names import tool_names
from umg_grpc.wire.messages.server_tools import update_search
from umg_grpc.wire.messages.shared_response_fields import Ending, Head, correct_finish, decode_finish
from umg_grpc.wire.messages.usage import SERVICE_TIERS, ProviderUsage, decode_usage


class Delta(Ending, kw_only=True):
    """Member `delta` of a `content_block_delta` and of a `message_delta`."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    citation: Raw = ABSENT_MEMBER


class Event(Struct, kw_only=True):
    """Event of any type; its members depend on the type."""

    type: str | None = None
    index: int | None = None
    delta: Delta | None = None
    content_block: Raw = ABSENT_MEMBER
    message: Head | None = None
    usage: ProviderUsage | None = None
    error: Raw = ABSENT_MEMBER


class StartedBlock(Struct):
    """Content block of a `content_block_start` event, without content that later events add."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    input: Raw = ABSENT_MEMBER


EVENT_DECODER = msgspec.json.Decoder(Event)
_STARTED_BLOCK = msgspec.json.Decoder(StartedBlock)

DELTA_MEMBERS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


DELTA_START = b"event: content_block_delta\ndata: "


def only_deltas(frames: bytes) -> bool:
    """Return whether all frames are deltas in their usual form: two lines, first `event: content_block_delta`."""
    if not frames.startswith(DELTA_START) or b"\r" in frames:
        return False
    events = frames.count(b"\n\n")
    return frames.count(b"\n\n" + DELTA_START) == events - 1 and frames.count(b"\n") == 3 * events


def event_error(event: Event, name: bytes, data: bytes) -> UmgError | None:
    """Return the error in an event, whose name and data are `name` and `data`; None if there is none."""
    if is_error(event.error):
        return stated_error(event.error)
    if event.type == "error" or name == b"error":
        return stated_error(data)
    return None


def started_event(message: Head, model: str) -> pb.GenerateEvent:
    """Return the event that starts a stream, from `message_start`. `model`: the caller's; "" selects the provider's."""
    event = pb.GenerateEvent()
    event.started.response_id, event.started.model = message.id or "", model or message.model or ""
    if message.usage is not None and message.usage.service_tier in SERVICE_TIERS:
        event.started.service_tier = message.usage.service_tier
    return event


def usage_event(usage: ProviderUsage) -> pb.GenerateEvent:
    """Return the canonical event with the token counts of a usage that has at least one of the totals."""
    event = pb.GenerateEvent()
    decode_usage(usage, event.usage)
    return event


def stated_usage(usage: ProviderUsage) -> pb.Usage | None:
    """Return the token counts of a usage; None if it has neither input nor output tokens."""
    return usage_event(usage).usage if usage.is_stated else None


class _OpenBlock:
    """State of a content block that has started and not ended."""

    def __init__(self, part: int, kind: str | None) -> None:
        self.part = part
        self.kind = kind
        self.custom = False
        self.input = ""  # input in the start event: used where no deltas follow
        self.pieces = Pieces()  # pieces of an input that is sent whole
        self.has_arguments = False
        self.call: pb.Part | None = None  # the provider's own call
        self.joiner = SurrogateJoiner()


class TranslatingDecoder(EventDecoder):
    """Decoder of a translated messages stream. One per stream. The stop reason waits for the usage after it."""

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._names: ToolNames | None = None
        self._inputs = ToolInputs()
        self._parts = 0
        self._blocks: dict[int, _OpenBlock] = {}  # open blocks, by the provider's index
        self._called = False
        self._usage = ProviderUsage()
        self._ending: Ending | None = None
        self._continued: tuple[int, _OpenBlock] | None = None  # block of the learned frame, with the provider's index

    def _take(self, frames: bytes) -> pb.StreamGenerateResponse | None:
        if self._text_frames is not None and frames.startswith(self._text_frames.head):
            return super()._take(frames)
        return self._decode_deltas(frames) or super()._take(frames)

    def _decode_deltas(self, frames: bytes) -> pb.StreamGenerateResponse | None:
        """Decode the frames of one read if all are deltas of open blocks, as most are; else return None."""
        if self._has_halves or self.done or not only_deltas(frames):
            return None
        events = list[pb.GenerateEvent]()
        try:
            for frame in frames[:-2].split(b"\n\n"):
                decoded = EVENT_DECODER.decode(memoryview(frame)[len(DELTA_START) :])
                index, delta = -1 if decoded.index is None else decoded.index, decoded.delta
                block = self._blocks.get(index)
                if block is None or delta is None or block.custom:
                    return None
                if block.kind == "text" and delta.text:
                    self._learn_text(frame, index, block, delta.text)
                    events.append(pb.GenerateEvent(part_index=block.part, text_delta=delta.text))
                elif block.kind == "reasoning" and delta.thinking:
                    events.append(pb.GenerateEvent(part_index=block.part, reasoning_delta=delta.thinking))
                elif block.kind == "tool_call" and delta.partial_json:
                    block.has_arguments = True
                    events.append(pb.GenerateEvent(part_index=block.part, arguments_delta=delta.partial_json))
                else:
                    return None
        except (ValueError, RecursionError):
            return None
        return pb.StreamGenerateResponse(events=events)

    def _learn_text(self, frame: bytes, index: int, block: _OpenBlock, text: str) -> None:
        if self._continued is not None and self._continued[1] is block:
            return
        if self._learns(frame + b"\n\n", text, lambda changed: _text_of(changed, index)):
            self._continued = index, block

    def _appends(self, texts: Sequence[str], message: pb.StreamGenerateResponse) -> bool:
        if self._continued is None or self._has_halves:
            return False
        index, block = self._continued
        if self._blocks.get(index) is not block:
            return False
        for text in texts:
            event = message.events.add()
            event.part_index, event.text_delta = block.part, text
        return True

    def _events(self, event: sse.SseEvent) -> Iterator[pb.GenerateEvent]:  # noqa: PLR0912 - one case a type
        data = event.data or b""
        if data.strip() == sse.DONE_DATA:
            return  # another format's end marker
        decoded, _ = self._read(EVENT_DECODER, data)
        if error := event_error(decoded, event.name, data):
            raise error
        match decoded.type:
            case "content_block_delta":
                yield from self._delta(decoded, data)
            case "content_block_start":
                yield from self._block_started(decoded)
            case "content_block_stop":
                if (block := self._blocks.pop(-1 if decoded.index is None else decoded.index, None)) is not None:
                    yield from self._block_ended(block)
            case "message_start":
                yield from self._message_started(decoded)
            case "message_delta":
                if not self._started:
                    raise unreadable()
                self._ending = decoded.delta or self._ending
                if decoded.usage is not None:
                    self._usage = self._usage.updated(decoded.usage)
                    yield from self._usage_events()
            case "message_stop":
                if decoded.usage is not None:
                    self._usage = self._usage.updated(decoded.usage)
                    yield from self._usage_events()
                yield from self._finished()
            case "ping":
                pass
            case unknown:  # events grow with the format: an unknown one is kept as raw JSON
                kept = pb.OpaquePart(format="messages", type=unknown or "", json=data.decode())
                if self._started:
                    yield pb.GenerateEvent(opaque=kept)

    def _message_started(self, decoded: Event) -> Iterator[pb.GenerateEvent]:
        if self._started:
            return
        self._started, message = True, decoded.message or Head()
        yield started_event(message, self._request.model)
        if message.usage is not None:
            self._usage = message.usage
            yield from self._usage_events()

    def _usage_events(self) -> Iterator[pb.GenerateEvent]:
        if self._usage.has_totals:
            yield usage_event(self._usage)

    def _block_started(self, decoded: Event) -> Iterator[pb.GenerateEvent]:
        if not self._started:
            raise unreadable()
        raw, index = decoded.content_block, self._parts if decoded.index is None else decoded.index
        if (open_block := self._blocks.pop(index, None)) is not None:
            yield from self._block_ended(open_block)
        started = _STARTED_BLOCK.decode(raw)
        part = _decode_block(raw)
        block = self._blocks[index] = _OpenBlock(self._parts, part.WhichOneof("kind"))
        self._parts += 1
        initial_text = (started.text or started.thinking or "") if block.kind in {"text", "reasoning"} else ""
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
        if initial_text:
            yield from self._text_events(block, initial_text)

    def _call_started(self, block: _OpenBlock, part: pb.Part) -> None:
        self._called = True
        if self._names is None:
            self._names = tool_names(self._request)
        call = part.tool_call
        block.input, block.custom = call.arguments_json, self._names.resolve(call)
        if block.custom:
            call.text = ""
        else:
            call.arguments_json = ""

    def _delta(self, decoded: Event, data: bytes) -> Iterator[pb.GenerateEvent]:
        block, delta = self._blocks.get(-1 if decoded.index is None else decoded.index), decoded.delta
        if delta is None:
            return
        if block is None:
            if delta.text or delta.thinking or delta.partial_json:
                raise unreadable()  # deltas of a block that was never started: dropping them would lose content
            return
        if (text := delta.text or delta.thinking or delta.partial_json) is not None:
            yield from self._text_events(block, text)
        elif delta.type == "signature_delta":
            if delta.signature:
                yield pb.GenerateEvent(part_index=block.part, state=provider_state(delta.signature))
        elif delta.type == "citations_delta":
            yield pb.GenerateEvent(part_index=block.part, citation=decode_citation(delta.citation))
        elif delta.type not in DELTA_MEMBERS:
            kept = pb.OpaquePart(format="messages", type=delta.type or "", json=data.decode())
            yield pb.GenerateEvent(part_index=block.part, opaque=kept)

    def _text_events(self, block: _OpenBlock, text: str) -> Iterator[pb.GenerateEvent]:
        if self._has_halves:
            text = block.joiner.join(text)
        if text:
            yield from self._delta_events(block, text)

    def _delta_events(self, block: _OpenBlock, text: str) -> Iterator[pb.GenerateEvent]:
        match block.kind:
            case "text":
                yield pb.GenerateEvent(part_index=block.part, text_delta=text)
            case "reasoning":
                yield pb.GenerateEvent(part_index=block.part, reasoning_delta=text)
            case "tool_call" if not block.custom:
                block.has_arguments = True
                yield pb.GenerateEvent(part_index=block.part, arguments_delta=text)
            case "tool_call" | "server_tool_call":
                self._inputs.append(block.pieces, text)
            case _:  # block of a type that only this format has
                pass

    def _block_ended(self, block: _OpenBlock) -> Iterator[pb.GenerateEvent]:
        if rest := block.joiner.rest():
            yield from self._delta_events(block, rest)
        arguments = self._inputs.take(block.pieces) or block.input or "{}"
        if block.kind == "tool_call" and block.custom:
            yield pb.GenerateEvent(part_index=block.part, arguments_delta=free_text(arguments))
        elif block.kind == "tool_call" and not block.has_arguments:
            yield pb.GenerateEvent(part_index=block.part, arguments_delta=arguments)
        elif block.call is not None:
            update_search(block.call.server_tool_call, arguments)
            yield pb.GenerateEvent(part_index=block.part, part_updated=block.call)
        yield pb.GenerateEvent(part_index=block.part, part_ended=pb.PartEnded())

    def _finish(self) -> Iterator[pb.GenerateEvent]:
        if not self._started or self._ending is None or self._ending.stop_reason is None:
            raise cut_off()
        yield from self._finished()

    def _finished(self) -> Iterator[pb.GenerateEvent]:
        if not self._started:
            raise unreadable()
        self.done = True
        if self._ending is not None and (error := failed_response(Ended(self._ending.stop_reason))) is not None:
            raise error.with_usage(stated_usage(self._usage))
        if self._usage.is_stated and not self._usage.has_totals:
            yield usage_event(self._usage)
        for block in self._blocks.values():
            yield from self._block_ended(block)
        event = pb.GenerateEvent()
        event.finished.SetInParent()
        if self._ending is not None:
            decode_finish(self._ending, event.finished)
        correct_finish(event.finished, self._called)
        yield event


def _decode_block(raw: Raw) -> pb.Part:
    message = pb.Message()
    decode_response_blocks([raw], message)
    return message.parts[0]


def _text_of(frame: bytes, index: int) -> str | None:
    """Return the text that a frame of the usual form adds to the block with the provider's index; None for others."""
    decoded = EVENT_DECODER.decode(memoryview(frame)[len(DELTA_START) :])
    return decoded.delta.text if decoded.delta is not None and (decoded.index or 0) == max(index, 0) else None
