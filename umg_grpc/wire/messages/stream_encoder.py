"""Encoding of a streamed messages response: canonical events become events of this format."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import assert_never

import msgspec
from msgspec import Raw

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.context_management_edits import EDITS_FIELD, SUMMARY_FORMAT, SUMMARY_TYPE
from umg_grpc.wire.core.json_decoding import JsonObject, parse
from umg_grpc.wire.core.sse import named_frame
from umg_grpc.wire.core.tool_argument_objects import RAW_ARGUMENTS
from umg_grpc.wire.messages.citations import encode_citation
from umg_grpc.wire.messages.context_management import encode_management
from umg_grpc.wire.messages.errors import error_frame
from umg_grpc.wire.messages.server_tools import encode_server_call, server_input
from umg_grpc.wire.messages.shared_response_fields import (
    REASONING_SEPARATOR,
    encode_blocks,
    encode_finish,
    media_note,
    signature,
)
from umg_grpc.wire.messages.streamed_block_encoding import OpenPart
from umg_grpc.wire.messages.tool_calls import call_id, call_state, encode_call, states_of_calls
from umg_grpc.wire.messages.usage import encode_usage, estimated_usage

DELTA_MEMBERS = ("content", "encrypted_content")  # members of a summary's block that the vendor sends in a delta
DELTA_START, DELTA_END = b"event: content_block_delta\ndata: ", b"}}\n\n"
EVENT_BYTES = 512  # memory of an event beside its content

_encode = msgspec.json.Encoder().encode


class StreamEncoder:
    """Encoder of canonical events as events of the messages format. One instance per stream.

    Blocks are numbered 0, 1, 2, ... and one is open at a time. Other parts wait, unless the open part is a text, which
    they interrupt, or a call with complete arguments, which they end. A block opens with its first content, so that
    none is empty. The stop reason is sent at the end, with the usage known then.

    Arguments that begin as an object are written as received, even if they are cut off later; others at their end, in
    an object that contains their text.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        self.retained_bytes = 0
        self._request = request
        self._response_id = ""
        self._usage: pb.Usage | None = None
        self._has_started = False
        self._passes_through = False  # the provider's own frames were sent, which are complete
        self._closed = False
        self._finished = pb.CandidateFinished()
        self._context_management: pb.ContextManagement | None = None
        self._blocks = 0
        self._called = False
        self._current: OpenPart | None = None
        self._text: OpenPart | None = None  # `_current` while its text block is open
        self._text_head = b""
        self._interrupted: dict[int, str] = {}  # texts whose block was ended before they were
        # part -> its events so far, in the order of the parts
        self._waiting = OrderedDict[int, list[pb.GenerateEvent]]()
        self._states: dict[int, pb.ReasoningState] = {}  # of calls, known before they begin
        self._states_read = False  # whether `_states` has those of the message that is being encoded

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        if passed := message.source_frames:
            return self.pass_frames(passed)
        if self._passes_through or self._closed:
            return b""
        frames, events, encode = list[bytes](), message.events, _encode
        self._states_read = False
        open_index, head = self._next_delta()
        for event in events:
            if event.candidate_index:
                continue  # this format has one response
            if (text := event.text_delta) and event.part_index == open_index:  # by far the most frequent
                frames.append(head + encode(text) + DELTA_END)
            else:
                frames += self._event(event, events)
                open_index, head = self._next_delta()
        return b"".join(frames)

    def _next_delta(self) -> tuple[int, bytes]:
        """Return the index of the part whose text block is open, -1 if none is, and the beginning of its deltas."""
        return (-1, b"") if self._text is None else (self._text.index, DELTA_START + self._text_head)

    def pass_frames(self, frames: bytes) -> bytes:
        """Return the provider's own frames, which are the whole response."""
        self._passes_through = True
        return frames

    def close(self) -> bytes:
        if self._passes_through or self._closed:
            return b""
        self._closed = True
        frames = list(self._start_message(pb.GenerationStarted(model=self._request.model), ()))
        while self._current is not None:
            frames += self._end_part()
            frames += self._write_waiting()
        delta = encode_finish(self._finished, self._called, self._finished.block_reason)
        usage = encode_usage(self._usage or pb.Usage(), "")
        ending: JsonObject = {"type": "message_delta", "delta": delta, "usage": usage}
        if self._context_management is not None:
            ending[EDITS_FIELD] = encode_management(self._context_management)
        frames.append(_frame("message_delta", ending))
        frames.append(_frame("message_stop", {"type": "message_stop"}))
        return b"".join(frames)

    def closing(self) -> Iterator[bytes]:
        yield self.close()

    def error(self, error: UmgError) -> bytes:
        self._closed = True
        return error_frame(error, has_begun=self._passes_through or self._has_started)

    def _event(self, event: pb.GenerateEvent, message_events: Iterable[pb.GenerateEvent]) -> Iterator[bytes]:
        match event.WhichOneof("kind"):
            case "started":
                yield from self._start_message(event.started, message_events)
            case "usage":
                self._usage = event.usage
            case "finished":
                self._finished = event.finished
            case "opaque" | "logprobs" | None:
                pass  # content of another format, or that this format cannot express
            case "part_started":
                if not self._states_read and event.part_started.HasField("tool_call"):
                    self._states_read = True
                    self._states.update(states_of_calls(message_events))
                yield from self._start_message(pb.GenerationStarted(model=self._request.model), message_events)
                yield from self._dispatch(event)
                yield from self._write_waiting()
            case (
                "text_delta"
                | "refusal_delta"
                | "reasoning_delta"
                | "summary_delta"
                | "arguments_delta"
                | "media_delta"
                | "citation"
                | "state"
                | "part_updated"
                | "part_ended"
            ):
                yield from self._dispatch(event)
                yield from self._write_waiting()
            case unhandled:
                assert_never(unhandled)

    def _start_message(
        self, started: pb.GenerationStarted, message_events: Iterable[pb.GenerateEvent]
    ) -> Iterator[bytes]:
        if self._has_started:
            return
        self._has_started, self._response_id = True, started.response_id
        if started.HasField(EDITS_FIELD):
            self._context_management = started.context_management
        usage = next((event.usage for event in message_events if event.HasField("usage")), None)
        if usage is None:
            usage = estimated_usage(self._request)
        message: JsonObject = {
            "id": started.response_id,
            "type": "message",
            "role": "assistant",
            "model": started.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "stop_details": None,
            "usage": encode_usage(usage, started.service_tier),
        }
        yield _frame("message_start", {"type": "message_start", "message": message})

    # --- order of the parts

    def _dispatch(self, event: pb.GenerateEvent) -> Iterator[bytes]:
        kind, part, current = event.WhichOneof("kind"), event.part_index, self._current
        if kind == "part_started":
            if current is not None and not current.interruptible:
                yield from self._hold_back(event)
                return
            yield from self._interrupt()
            yield from self._start_part(part, event.part_started)
        elif current is not None and current.index == part:
            yield from self._write_event(current, event)
        elif part in self._waiting:
            yield from self._hold_back(event)
        elif part in self._interrupted and kind in {"text_delta", "refusal_delta"}:
            if current is not None and not current.interruptible:
                yield from self._hold_back(event)
                return
            yield from self._interrupt()
            self._current = resumed = OpenPart(part, pb.Part(text=pb.TextPart()))
            yield from self._write_event(resumed, event)
        elif kind == "part_ended":
            self._interrupted.pop(part, None)
        # a citation of a text whose block is ended is lost

    def _hold_back(self, event: pb.GenerateEvent) -> Iterator[bytes]:
        self._waiting.setdefault(event.part_index, []).append(event)
        self.retained_bytes += EVENT_BYTES + event.ByteSize()
        if self._current is not None and self._current.is_complete():
            yield from self._end_part()

    def _write_waiting(self) -> Iterator[bytes]:
        """Yield the frames of waiting parts up to the first that has not ended. Called functions must not call it
        again: each frame would pass through one generator for each level of recursion.
        """
        while self._waiting and (self._current is None or self._current.interruptible):
            for event in self._waiting.popitem(last=False)[1]:
                self.retained_bytes -= EVENT_BYTES + event.ByteSize()
                yield from self._dispatch(event)
            if self._current is not None and self._waiting and self._current.is_complete():
                yield from self._end_part()

    def _interrupt(self) -> Iterator[bytes]:
        if self._current is not None:
            self._interrupted[self._current.index] = ""
            yield from self._close_block(self._current)
            self._current = None

    # --- blocks

    def _start_part(self, index: int, part: pb.Part) -> Iterator[bytes]:
        self._current = current = OpenPart(index, part)
        match current.kind:
            case "text":
                if part.text.text:
                    yield from self._write_text(current, part.text.text)
                for citation in part.text.citations:
                    yield from self._write_citation(current, citation)
            case "refusal" if part.refusal.text:
                yield from self._write_text(current, part.refusal.text)
            case "reasoning":
                for number, text in enumerate(part.reasoning.texts):
                    yield from self._write_reasoning(current, number, text)
            case "tool_call":
                yield from self._call(current)
            case "media":
                current.size = len(part.media.data)
            case "refusal" | "tool_result" | "server_tool_call" | "server_tool_result" | "opaque" | "compaction" | None:
                pass  # empty, or written when the part ends
            case unhandled:
                assert_never(unhandled)

    def _write_event(self, current: OpenPart, event: pb.GenerateEvent) -> Iterator[bytes]:
        match event.WhichOneof("kind"):
            case "text_delta" | "refusal_delta":
                yield from self._write_text(current, event.text_delta or event.refusal_delta)
            case "citation":
                yield from self._write_citation(current, event.citation)
            case "reasoning_delta":
                yield from self._write_reasoning(current, event.text_index, event.reasoning_delta)
            case "summary_delta":
                if current.piece is None or current.piece < 0:  # the reasoning itself is preferred to its summaries
                    yield from self._write_reasoning(
                        current, -1 - event.summary_delta.summary_index, event.summary_delta.text
                    )
            case "arguments_delta":
                yield from self._write_arguments(current, event.arguments_delta)
            case "state":
                current.set_state(event.state)
            case "part_updated":
                current.update(event.part_updated)
            case "media_delta":
                current.size += len(event.media_delta.data)
                current.append_transcript(event.media_delta.transcript)
            case "part_ended":
                yield from self._end_part()
            case "started" | "usage" | "finished" | "opaque" | "logprobs" | "part_started" | None:
                pass  # not sent to an open part by `_event`
            case unhandled:
                assert_never(unhandled)

    def _open_block(self, current: OpenPart, block: object) -> Iterator[bytes]:
        current.block = self._blocks
        self._blocks += 1
        started = {"type": "content_block_start", "index": current.block, "content_block": block}
        yield _frame("content_block_start", started)

    def _close_block(self, current: OpenPart) -> Iterator[bytes]:
        if current.block is not None:
            yield _frame("content_block_stop", {"type": "content_block_stop", "index": current.block})
        current.block = self._text = None

    def _write_block(self, current: OpenPart, block: object) -> Iterator[bytes]:
        yield from self._open_block(current, block)
        yield from self._close_block(current)

    def _write_text(self, current: OpenPart, text: str) -> Iterator[bytes]:
        if not text:
            return
        if current.block is None:
            yield from self._open_text(current)
        yield _delta(self._text_head, text)

    def _open_text(self, current: OpenPart) -> Iterator[bytes]:
        yield from self._open_block(current, {"type": "text", "text": ""})
        self._text_head = _delta_head(current.block or 0, b"text_delta", b"text")
        self._text = current

    def _write_citation(self, current: OpenPart, citation: pb.Citation) -> Iterator[bytes]:
        encoded = encode_citation(citation)
        if encoded is None:
            return
        if current.block is None:
            yield from self._open_text(current)
        yield _delta(_delta_head(current.block or 0, b"citations_delta", b"citation"), encoded)

    def _write_reasoning(self, current: OpenPart, piece: int, text: str) -> Iterator[bytes]:
        if not text:
            return
        if current.block is None:
            yield from self._open_block(current, {"type": "thinking", "thinking": "", "signature": ""})
        elif current.piece != piece:
            text = REASONING_SEPARATOR + text
        current.piece = piece
        yield _delta(_delta_head(current.block or 0, b"thinking_delta", b"thinking"), text)

    def _call(self, current: OpenPart) -> Iterator[bytes]:
        self._called = True
        call, state = current.part.tool_call, self._states.pop(current.index, current.part.state)
        if (shown := call_state(state)) is not None:
            yield from self._write_block(current, shown)
        own_id = call_id(call, self._response_id, current.index)
        yield from self._open_block(current, encode_call(own_id, call.name, {}))
        if call.WhichOneof("input") == "text":
            yield from self._write_arguments(current, call.text)
        elif call.arguments_json:
            yield from self._write_arguments(current, call.arguments_json)

    def _write_arguments(self, current: OpenPart, text: str) -> Iterator[bytes]:
        if not text or current.block is None:
            return
        current.retained_bytes += len(text)
        self.retained_bytes += len(text)
        if current.part.tool_call.WhichOneof("input") == "text":  # free text is the one member of the input
            text = _encode(text).decode()[1:-1]
            text = text if current.arguments else '{"input":"' + text
        elif not current.arguments and not (text := current.first_arguments(text)):
            return
        current.arguments.append(text)
        yield _delta(_delta_head(current.block, b"input_json_delta", b"partial_json"), text)

    def _end_part(self) -> Iterator[bytes]:
        """Yield the rest of the open part's content and the end of its block; nothing if no part is open."""
        current, self._current = self._current, None
        if current is None:
            return
        self.retained_bytes -= current.retained_bytes
        part = current.part
        match current.kind:
            case "reasoning" if not part.reasoning.redacted:
                if current.block is None and part.HasField("state"):
                    yield from self._open_block(current, {"type": "thinking", "thinking": "", "signature": ""})
                if current.block is not None:
                    head = _delta_head(current.block, b"signature_delta", b"signature")
                    yield _delta(head, signature(part))
            case "tool_call" if part.tool_call.WhichOneof("input") == "text" and current.block is not None:
                rest = '"}' if current.arguments else '{"input":""}'
                yield _delta(_delta_head(current.block, b"input_json_delta", b"partial_json"), rest)
            case "tool_call" if current.unreadable and current.block is not None:
                wrapped = _encode({RAW_ARGUMENTS: "".join(current.held)}).decode()
                yield _delta(_delta_head(current.block, b"input_json_delta", b"partial_json"), wrapped)
            case "server_tool_call":
                yield from self._server_call(current)
            case "media":
                yield from self._write_text(current, media_note(part.media, current.size))
            case "opaque" if part.opaque.type == SUMMARY_TYPE and part.opaque.format == SUMMARY_FORMAT:
                yield from self._summary(current)
            case "reasoning" | "server_tool_result" | "opaque":
                yield from self._whole_blocks(current)
            case "text" | "refusal" | "tool_call" | "tool_result" | "compaction" | None:
                pass  # written already, or nothing to write
            case unhandled:
                assert_never(unhandled)
        yield from self._close_block(current)

    def _whole_blocks(self, current: OpenPart) -> Iterator[bytes]:
        for block in encode_blocks(current.part, self._response_id, current.index):
            yield from self._write_block(current, block)

    def _summary(self, current: OpenPart) -> Iterator[bytes]:
        block = parse(dict[str, Raw], current.part.opaque.json.encode())
        members = {name: value for name, value in block.items() if name in DELTA_MEMBERS}
        yield from self._open_block(current, {**block, **dict.fromkeys(members)})
        delta = {"type": "compaction_delta", **members}
        yield _frame("content_block_delta", {"type": "content_block_delta", "index": current.block, "delta": delta})

    def _server_call(self, current: OpenPart) -> Iterator[bytes]:
        call = current.part.server_tool_call
        block = encode_server_call(call, self._response_id)
        if block is None:
            return
        yield from self._open_block(current, {**block, "input": {}})
        arguments = _encode(server_input(call)).decode()
        yield _delta(_delta_head(current.block or 0, b"input_json_delta", b"partial_json"), arguments)


def _frame(name: str, event: JsonObject) -> bytes:
    return named_frame(name.encode(), _encode(event))


def _delta_head(index: int, kind: bytes, member: bytes) -> bytes:
    head = b'{"type":"content_block_delta","index":%d,' % index
    return head + b'"delta":{"type":"%b","%b":' % (kind, member)


def _delta(head: bytes, value: object) -> bytes:
    return named_frame(b"content_block_delta", b"%b%b}}" % (head, _encode(value)))
