"""Passthrough of a provider's messages stream: frames are forwarded unchanged and parsed only where that is needed."""

from umg_grpc.v1 import pb
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.finish_reason_conversion import Ended, failed_response
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.core.stream_decoder import DECODED_FRAME, FrameDecoder, ModelMember
from umg_grpc.wire.errors.provider_errors import cut_off, unreadable
from umg_grpc.wire.messages.passthrough_response_repair import (
    DELTA_EVENT,
    END_EVENT,
    START_EVENT,
    PassedBlocks,
    stop_frame,
    stop_reason,
)
from umg_grpc.wire.messages.shared_response_fields import FINISH_REASONS, Ending, Head, decode_finish
from umg_grpc.wire.messages.stream_decoder import (
    DELTA_START,
    EVENT_DECODER,
    Delta,
    Event,
    event_error,
    only_deltas,
    started_event,
    stated_usage,
    usage_event,
)
from umg_grpc.wire.messages.usage import ProviderUsage

STOP_FRAME = sse.named_frame(b"message_stop", b'{"type":"message_stop"}')

# Types of events that may not come before `message_start`.
AFTER_START = frozenset(
    {"content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}
)
# Names of the events of content blocks, which have nothing that the service needs.
BLOCK_EVENTS = frozenset({START_EVENT, DELTA_EVENT, END_EVENT})


class PassthroughDecoder(FrameDecoder):
    """Decoder of a passed-through messages stream: forwards events, and emits events for the service. One per stream.

    It replaces a different model id in `message_start`, drops events without data or of another format (`[DONE]`),
    names events without `event:`, which clients ignore, adds missing stop reasons, ends of blocks and end markers, and
    gives blocks with the same index different ones.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._model = ModelMember(request.model, parent="message")
        self._usage = ProviderUsage()
        self._blocks = PassedBlocks()
        self._stopped = False  # the stop reason was emitted

    def _plain(self, frames: bytes) -> tuple[bytes, int]:
        if not self._started or self._blocks.is_wrong or not frames.startswith(DELTA_START):
            return DECODED_FRAME
        deltas = frames[: frames.find(b"\n\n", frames.rfind(DELTA_START)) + 2]
        return (deltas, len(deltas)) if only_deltas(deltas) else DECODED_FRAME

    def _end(self) -> bytes:
        if not self._stopped:
            raise cut_off()
        return STOP_FRAME

    def _frame(self, event: sse.SseEvent, events: list[pb.GenerateEvent]) -> bytes:
        data = event.data or b""
        if data.strip() == sse.DONE_DATA:
            return b""
        if self._started and event.name in BLOCK_EVENTS:
            return self._blocks.frames(event)
        decoded = decode(EVENT_DECODER, data)
        if error := event_error(decoded, event.name, data):
            raise error
        if not self._started and decoded.type in AFTER_START:
            raise unreadable()
        if not event.name:
            name = (decoded.type or "message").encode()
            event = sse.SseEvent(name, event.data, sse.named_frame(name, data))
        kept = event.raw
        match decoded.type:
            case "message_start":
                message = decoded.message or Head()
                self._start(message, events)
                kept = self._model.replace(event, message.model)
            case "content_block_start" | "content_block_delta" | "content_block_stop":
                kept = self._blocks.frames(event)
            case "message_delta":
                self._read_message_delta(decoded, events)
                kept = (self._blocks.ends() if self._stopped else b"") + kept
            case "message_stop":
                if decoded.usage is not None:
                    self._usage = self._usage.updated(decoded.usage)
                    self._append_usage(events)
                kept = self._missing_end(events) + kept
                self.done = True
            case _:  # all other events are passed through unread
                pass
        return kept if self._started else self._hold(kept)

    def _start(self, message: Head, events: list[pb.GenerateEvent]) -> None:
        if not self._started:
            self._started = True
            events.append(started_event(message, self._request.model))
            if message.usage is not None:
                self._usage = message.usage
                self._append_usage(events)

    def _missing_end(self, events: list[pb.GenerateEvent]) -> bytes:
        """Return the missing ends of blocks and the missing stop reason, which is appended to `events`, too."""
        ends = self._blocks.ends()
        if self._stopped:
            return ends
        reason = stop_reason(self._blocks.calls)
        self._read_message_delta(Event(delta=Delta(stop_reason=reason)), events)
        return ends + stop_frame(reason, int(self._usage.output_tokens or 0))

    def _read_message_delta(self, decoded: Event, events: list[pb.GenerateEvent]) -> None:
        """Append stop reason (once) and usage to `events`. Raise UmgError for the reason of a failure."""
        ending = decoded.delta or Ending()
        is_known = ending.stop_reason in FINISH_REASONS
        if not is_known and (error := failed_response(Ended(ending.stop_reason))) is not None:
            usage = self._usage if decoded.usage is None else self._usage.updated(decoded.usage)
            raise error.with_usage(stated_usage(usage))
        if ending.stop_reason is not None and not self._stopped:
            self._stopped = True
            finished = pb.GenerateEvent()
            decode_finish(ending, finished.finished)
            events.append(finished)
        if decoded.usage is not None:
            self._usage = self._usage.updated(decoded.usage)
            self._append_usage(events)

    def _append_usage(self, events: list[pb.GenerateEvent]) -> None:
        if self._usage.has_totals or (self._stopped and self._usage.is_stated):
            events.append(usage_event(self._usage))
