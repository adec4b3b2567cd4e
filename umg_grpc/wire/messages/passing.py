"""The streamed answer of a provider for a caller of the same format: whole frames as they came, looked into only where
that is needed.
"""

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire import sse
from umg_grpc.wire.frames import FrameDecoder
from umg_grpc.wire.messages.answer import Ending, Head, decode_finish
from umg_grpc.wire.messages.translating import Event, begun, event_error, only_deltas, used
from umg_grpc.wire.messages.usage import ProviderUsage
from umg_grpc.wire.provider_errors import cut_off, unreadable
from umg_grpc.wire.ragged import decode

STOP = sse.named_frame(b"message_stop", b'{"type":"message_stop"}')

_EVENT = msgspec.json.Decoder(Event)

# What may not come before the answer was started.
LATER = frozenset({"content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"})
# Nothing in these concerns the service.
UNREAD = frozenset({b"content_block_delta", b"content_block_start", b"content_block_stop", b"ping"})


class PassingDecoder(FrameDecoder):
    """Events -> the same events, with the canonical ones that the service needs. One instance a stream.

    Changed are: the model id in `message_start`, if the provider's is another; events without data or of another
    format (`[DONE]`), which go; events without an `event:` line, which clients drop, get one; the end marker, which is
    added when the provider leaves it out.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._started = False
        self._early: list[bytes] = []  # frames before the one that starts the answer
        self._usage = ProviderUsage()
        self._stopped = False  # the reason to stop was told

    def _plain(self, frames: bytes) -> bytes | None:
        return frames if self._started and only_deltas(frames) else None

    def _end(self) -> bytes:
        if not self._stopped:
            raise cut_off()
        return STOP

    def _frame(self, event: sse.SseEvent, events: list[pb.GenerateEvent]) -> bytes:
        data = event.data
        if data is None:  # a comment keeps the connection alive
            return event.raw if self._started and event.raw.startswith(b":") else b""
        if data.strip() == sse.DONE:
            return b""
        if self._started and event.name in UNREAD:
            return event.raw
        said = decode(_EVENT, data)
        if error := event_error(said, event.name, data):
            raise error
        if not self._started and said.type in LATER:
            raise unreadable()
        kept = event.raw if event.name else _named(said.type, data)
        match said.type:
            case "message_start":
                kept = self._start(said.message or Head(), event, kept, events)
            case "message_delta":
                self._note(said, events)
            case "message_stop":
                self._done = True
        if not self._started:
            self._early.append(kept)
            return b""
        frames, self._early = b"".join([*self._early, kept]), []
        return frames

    def _start(self, message: Head, event: sse.SseEvent, kept: bytes, events: list[pb.GenerateEvent]) -> bytes:
        if not self._started:
            self._started = True
            events.append(begun(message, self._request.model))
            if message.usage is not None:
                self._usage = message.usage
                self._tell(events)
        theirs, ours = message.model, self._request.model
        if theirs is None or theirs == ours or not ours:
            return kept
        for name in (b'"model":', b'"model": '):
            spelled = name + msgspec.json.encode(theirs)
            if kept.count(b'"model"') == 1 and spelled in kept:
                return kept.replace(spelled, name + msgspec.json.encode(ours))
        fields = msgspec.json.decode(event.data or b"{}", type=dict[str, Raw])
        members = msgspec.json.decode(fields["message"], type=dict[str, Raw])
        members["model"] = Raw(msgspec.json.encode(ours))
        fields["message"] = Raw(msgspec.json.encode(members))
        return _named("message_start", msgspec.json.encode(fields))

    def _note(self, said: Event, events: list[pb.GenerateEvent]) -> None:
        """What a `message_delta` tells the service."""
        ending = said.delta or Ending()
        if ending.stop_reason is not None and not self._stopped:
            self._stopped = True
            finished = pb.GenerateEvent()
            decode_finish(ending, finished.finished)
            events.append(finished)
        if said.usage is not None:
            self._usage = self._usage.updated(said.usage)
            self._tell(events)

    def _tell(self, events: list[pb.GenerateEvent]) -> None:
        if self._usage.is_whole:
            events.append(used(self._usage))


def _named(kind: str | None, data: bytes) -> bytes:
    """The event with the name that clients need."""
    return sse.named_frame((kind or "message").encode(), data)
