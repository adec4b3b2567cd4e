"""Decoding of a Converse provider's stream: the frames of its AWS event stream become canonical events."""

from collections.abc import Iterable, Iterator

import msgspec
import pybase64

from umg_grpc.v1 import pb
from umg_grpc.wire.converse.citations import decode_citation
from umg_grpc.wire.converse.encode_parts import REDACTED_FORMAT, SIGNED_FORMAT
from umg_grpc.wire.converse.errors import stream_error
from umg_grpc.wire.converse.provider_tool_names import tool_names
from umg_grpc.wire.converse.response import (
    SERVER_CALL,
    blocked_message,
    decode_call,
    decode_finish,
    image_of,
    opaque_block,
)
from umg_grpc.wire.converse.schema import BlockStart, Delta, Event, ReasoningDelta, ToolUse
from umg_grpc.wire.converse.usage import decode_usage
from umg_grpc.wire.core.aws_event_stream import FrameSplitter, split_frames
from umg_grpc.wire.core.finish_reason_conversion import Ended, failed_response
from umg_grpc.wire.core.json_decoding import is_present
from umg_grpc.wire.core.split_character_repair import SurrogateJoiner
from umg_grpc.wire.core.sse import SseEvent
from umg_grpc.wire.core.stream_decoder import EventDecoder
from umg_grpc.wire.core.streamed_text_buffers import Pieces, ToolInputs
from umg_grpc.wire.core.tool_argument_objects import free_text
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.errors.provider_errors import cut_off, unreadable
from umg_grpc.wire.messages.shared_response_fields import correct_finish

EVENT_DECODER = msgspec.json.Decoder(Event)
KIND_HEADER, NAME_HEADER, EXCEPTION_HEADER, ERROR_CODE, ERROR_TEXT = (
    ":message-type",
    ":event-type",
    ":exception-type",
    ":error-code",
    ":error-message",
)
"""Headers of frames."""
DECODED_EVENTS = frozenset(
    {b"contentBlockStart", b"contentBlockDelta", b"contentBlockStop", b"messageStop", b"metadata"}
)
"""Types of events that are decoded once a message has started."""


class _Block:
    """State of a content block that has started and not ended."""

    def __init__(self, part: int, kind: str) -> None:
        self.part = part
        self.kind = kind  # text, reasoning, redacted, call, custom, image
        self.pieces = Pieces()  # pieces of an input that is sent whole
        self.has_arguments = False
        self.blobs = bytearray()  # redacted reasoning, of which each piece is base64 by itself
        self.joiner = SurrogateJoiner()


class TranslatingDecoder(EventDecoder):
    """Decoder of a Converse stream. One per stream. Only tool calls and images have a start event: texts and reasoning
    start with their first delta. The finish reason waits for the usage, in the last event.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._splitter = FrameSplitter()
        self._names: ToolNames | None = None
        self._inputs = ToolInputs()
        self._parts = 0
        self._blocks: dict[int, _Block] = {}  # open blocks, by the provider's index
        self._called = False
        self._usage: pb.Usage | None = None
        self._ending: Event | None = None

    def _split(self, frames: bytes) -> Iterable[SseEvent]:
        for headers, payload in split_frames(frames):
            match headers.get(KIND_HEADER):
                case "event":
                    yield SseEvent(headers.get(NAME_HEADER, "").encode(), payload, b"")
                case "exception":
                    raise stream_error(headers.get(EXCEPTION_HEADER, ""), payload)
                case "error":
                    stated = {"message": headers.get(ERROR_TEXT, "")}
                    raise stream_error(headers.get(ERROR_CODE, ""), msgspec.json.encode(stated))
                case _:  # a type that no frame has
                    raise unreadable()

    def _events(self, event: SseEvent) -> Iterator[pb.GenerateEvent]:
        decoded, data = self._read(EVENT_DECODER, event.data or b"{}")
        if event.name == b"messageStart":
            yield from self._message_started()
            return
        if event.name not in DECODED_EVENTS:  # events grow with the format: an unknown one is kept as raw JSON
            if self._started:
                name = event.name.decode("utf-8", "replace")
                yield pb.GenerateEvent(opaque=pb.OpaquePart(format="converse", type=name, json=data.decode()))
            return
        if not self._started:
            raise unreadable()
        index = self._parts if decoded.content_block_index is None else decoded.content_block_index
        match event.name:
            case b"contentBlockDelta" if decoded.delta is not None:
                yield from self._delta(index, decoded.delta, data)
            case b"contentBlockStart" if decoded.start is not None:
                yield from self._block_started(index, decoded.start, data)
            case b"contentBlockStop":
                if (block := self._blocks.pop(index, None)) is not None:
                    yield from self._block_ended(block)
            case b"messageStop":
                self._ending = decoded
            case b"metadata":
                yield from self._metadata(decoded)
            case _:  # an event without its content
                pass

    def _message_started(self) -> Iterator[pb.GenerateEvent]:
        if not self._started:
            self._started = True
            yield pb.GenerateEvent(started=pb.GenerationStarted(model=self._request.model))

    # --- blocks

    def _open(self, index: int, kind: str, part: pb.Part) -> Iterator[pb.GenerateEvent]:
        if (earlier := self._blocks.pop(index, None)) is not None:
            yield from self._block_ended(earlier)
        self._blocks[index] = _Block(self._parts, kind)
        self._parts += 1
        yield pb.GenerateEvent(part_index=self._blocks[index].part, part_started=part)

    def _block_started(self, index: int, start: BlockStart, data: bytes) -> Iterator[pb.GenerateEvent]:
        if start.tool_use is not None and start.tool_use.type != SERVER_CALL:
            yield from self._call_started(index, start.tool_use)
        elif start.image is not None:
            yield from self._open(index, "image", pb.Part(media=image_of(start.image)))
        else:
            yield from self._open(index, "other", pb.Part(opaque=opaque_block(msgspec.Raw(data))))

    def _call_started(self, index: int, call: ToolUse) -> Iterator[pb.GenerateEvent]:
        self._called = True
        if self._names is None:
            self._names = tool_names(self._request)
        part = decode_call(call, self._names)
        is_custom = part.tool_call.HasField("text")
        if is_custom:
            part.tool_call.text = ""
        else:
            part.tool_call.arguments_json = ""
        yield from self._open(index, "custom" if is_custom else "call", part)

    def _delta(self, index: int, delta: Delta, data: bytes) -> Iterator[pb.GenerateEvent]:
        if delta.text is not None:
            yield from self._text(index, "text", delta.text)
        elif delta.reasoning_content is not None:
            yield from self._reasoning(index, delta.reasoning_content)
        elif is_present(delta.citation):
            block, opening = self._of_kind(index, "text")
            yield from opening
            yield pb.GenerateEvent(part_index=block.part, citation=decode_citation(delta.citation))
        elif (block_ := self._blocks.get(index)) is None:
            raise unreadable()  # a delta of a block that was never started: dropping it would lose content
        elif delta.tool_use is not None:
            yield from self._input(block_, delta.tool_use.input or "")
        elif delta.image is not None and delta.image.source is not None and delta.image.source.bytes:
            image = pybase64.b64decode(delta.image.source.bytes, validate=True)
            yield pb.GenerateEvent(part_index=block_.part, media_delta=pb.MediaDelta(data=image))
        else:
            kept = pb.OpaquePart(format="converse", type="delta", json=data.decode())
            yield pb.GenerateEvent(part_index=block_.part, opaque=kept)

    def _of_kind(self, index: int, kind: str) -> tuple[_Block, list[pb.GenerateEvent]]:
        """Return (the open block, the events that open it). The block with the index stays if it is of the kind."""
        opening = list[pb.GenerateEvent]()
        block = self._blocks.get(index)
        if block is None or block.kind != kind:
            part = pb.Part()
            if kind == "text":
                part.text.SetInParent()
            else:
                part.reasoning.redacted = kind == "redacted"
                part.reasoning.SetInParent()
            opening += self._open(index, kind, part)
        return self._blocks[index], opening

    def _text(self, index: int, kind: str, text: str) -> Iterator[pb.GenerateEvent]:
        block, opening = self._of_kind(index, kind)
        yield from opening
        if self._has_halves:
            text = block.joiner.join(text)
        if text:
            yield _text_event(block, text)

    def _reasoning(self, index: int, delta: ReasoningDelta) -> Iterator[pb.GenerateEvent]:
        if delta.redacted_content is not None:
            block, opening = self._of_kind(index, "redacted")
            yield from opening
            block.blobs += pybase64.b64decode(delta.redacted_content, validate=True)
        if delta.text is not None:
            yield from self._text(index, "reasoning", delta.text)
        if delta.signature:
            block, opening = self._of_kind(index, "reasoning")
            yield from opening
            yield pb.GenerateEvent(
                part_index=block.part, state=pb.ReasoningState(data=delta.signature, format=SIGNED_FORMAT)
            )

    def _input(self, block: _Block, text: str) -> Iterator[pb.GenerateEvent]:
        if self._has_halves:
            text = block.joiner.join(text)
        if block.kind == "custom":
            self._inputs.append(block.pieces, text)
        elif block.kind == "call" and text:
            block.has_arguments = True
            yield pb.GenerateEvent(part_index=block.part, arguments_delta=text)

    def _block_ended(self, block: _Block) -> Iterator[pb.GenerateEvent]:
        rest = block.joiner.rest()
        if rest and block.kind in {"text", "reasoning"}:
            yield _text_event(block, rest)
        elif rest:
            yield from self._input(block, rest)
        if block.kind == "custom":
            yield pb.GenerateEvent(part_index=block.part, arguments_delta=free_text(self._inputs.take(block.pieces)))
        elif block.kind == "call" and not block.has_arguments:
            yield pb.GenerateEvent(part_index=block.part, arguments_delta="{}")
        elif block.blobs:
            data = pybase64.b64encode_as_string(block.blobs)
            yield pb.GenerateEvent(part_index=block.part, state=pb.ReasoningState(data=data, format=REDACTED_FORMAT))
        yield pb.GenerateEvent(part_index=block.part, part_ended=pb.PartEnded())

    # --- the end

    def _metadata(self, decoded: Event) -> Iterator[pb.GenerateEvent]:
        if (usage := decode_usage(decoded.usage, decoded.service_tier)) is not None:
            self._usage = usage
            yield pb.GenerateEvent(usage=usage)
        if self._ending is not None:
            self._ending.trace = decoded.trace
            yield from self._finished(self._ending)

    def _finish(self) -> Iterator[pb.GenerateEvent]:
        if not self._started or self._ending is None:
            raise cut_off()
        yield from self._finished(self._ending)

    def _finished(self, ending: Event) -> Iterator[pb.GenerateEvent]:
        self.done = True
        if (error := failed_response(Ended(ending.stop_reason))) is not None:
            raise error.with_usage(self._usage)
        for block in self._blocks.values():
            yield from self._block_ended(block)
        event = pb.GenerateEvent()
        event.finished.SetInParent()
        decode_finish(ending.stop_reason, ending.additional_model_response_fields, event.finished)
        event.finished.finish_message = blocked_message(ending.trace)
        correct_finish(event.finished, self._called)
        yield event


def _text_event(block: _Block, text: str) -> pb.GenerateEvent:
    if block.kind == "text":
        return pb.GenerateEvent(part_index=block.part, text_delta=text)
    return pb.GenerateEvent(part_index=block.part, reasoning_delta=text)
