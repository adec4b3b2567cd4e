"""Passthrough of a provider's responses stream: frames are forwarded unchanged, and parsed only if necessary."""

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.json_decoding import is_present
from umg_grpc.wire.core.lenient_number_reading import Count
from umg_grpc.wire.core.raw_json_edits import edit_values
from umg_grpc.wire.core.repeated_stream_indexes import BlockIndexes
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.core.stream_decoder import DECODED_FRAME, FrameDecoder, ModelMember
from umg_grpc.wire.errors.provider_errors import cut_off
from umg_grpc.wire.responses.decode_output import (
    Head,
    PassedResponse,
    SeenItem,
    check_status,
    decode_finish,
    decode_head,
    decode_used,
)
from umg_grpc.wire.responses.provider_stream_events import (
    BEGIN_EVENTS,
    END_EVENTS,
    HEAD_DECODER,
    RENAMED_ENDS,
    AnyEvent,
    stated_error,
)
from umg_grpc.wire.responses.response import mark_states
from umg_grpc.wire.responses.tool_calls import CALL_ITEMS

EVENT_START, DELTA_LINE, BLANK_LINE = b"event: response.", b".delta\ndata: {", b"\n\n"


class PassedEvent(AnyEvent, kw_only=True):
    """Members of a passed-through event that the gateway reads."""

    item: SeenItem | None = None
    output_index: Count = None


_EVENT = msgspec.json.Decoder(PassedEvent)
_RESPONSE = msgspec.json.Decoder(PassedResponse)


class PassthroughDecoder(FrameDecoder):
    """Decoder of a passed-through responses stream: forwards events, and emits events for the service. One per stream.

    It replaces a different model id, marks reasoning states that look wrapped by the gateway, drops events without
    data, which break clients, and gives items with the same index different ones. An error event raises the error of
    the call.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._model = ModelMember(request.model, parent="response")
        self._indexes = BlockIndexes()
        self._kinds: list[str] = []  # types of the items that are done
        self._refused = False

    def _plain(self, frames: bytes) -> tuple[bytes, int]:
        """Return (leading frames that are only deltas by their names, their length), or `DECODED_FRAME` for others."""
        if not self._started or self._indexes.is_wrong or not frames.startswith(EVENT_START):
            return DECODED_FRAME
        deltas = frames[: frames.find(BLANK_LINE, frames.rfind(DELTA_LINE)) + len(BLANK_LINE)]
        number = deltas.count(BLANK_LINE)
        if deltas.count(DELTA_LINE) != number or deltas.count(BLANK_LINE + EVENT_START) != number - 1:
            return DECODED_FRAME
        if deltas.count(b"\n") != 3 * number or not deltas.endswith(b"}\n\n") or b"\r" in deltas:
            return DECODED_FRAME
        return deltas, len(deltas)

    def _end(self) -> bytes:
        raise cut_off()

    def _frame(self, event: sse.SseEvent, events: list[pb.GenerateEvent]) -> bytes:
        data = event.data or b""
        if data.strip() == sse.DONE_DATA:
            return b""
        event = sse.without_id(event)
        passed = decode(_EVENT, data)
        if error := stated_error(event.name, passed):
            raise error
        kind = passed.type or event.name.decode("utf-8", "replace")
        if kind in END_EVENTS:
            return self._end_frame(event, passed, kind, events)
        if kind in BEGIN_EVENTS:
            return self._start_frame(event, passed, events)
        if passed.item is not None and kind == "response.output_item.done":
            self._record(passed.item)
        if passed.output_index is not None:
            event = self._with_right_index(event, int(passed.output_index), starts=kind == "response.output_item.added")
        return mark_states(event.raw) if self._started else b""  # clients expect `response.created` first

    def _with_right_index(self, event: sse.SseEvent, index: int, *, starts: bool) -> sse.SseEvent:
        own = self._indexes.start(index) if starts else self._indexes.current(index)
        if own == index:
            return event
        data = bytes(edit_values(Raw(event.data or b""), ("output_index",), lambda _: Raw(b"%d" % own)))
        return sse.new_event(event.name, data)

    def _record(self, item: SeenItem) -> None:
        self._kinds.append(item.type or "")
        self._refused = self._refused or any(content.type == "refusal" for content in item.content or ())

    def _start_frame(self, event: sse.SseEvent, passed: PassedEvent, events: list[pb.GenerateEvent]) -> bytes:
        head = decode(HEAD_DECODER, bytes(passed.response)) if is_present(passed.response) else Head()
        if not self._started:
            self._started = True
            started = pb.GenerateEvent()
            started.started.model = self._request.model or head.model or ""
            decode_head(head, started.started)
            events.append(started)
        return self._renamed(event, head.model)

    def _end_frame(self, event: sse.SseEvent, passed: PassedEvent, kind: str, events: list[pb.GenerateEvent]) -> bytes:
        response = decode(_RESPONSE, bytes(passed.response)) if is_present(passed.response) else PassedResponse()
        response.status = response.status or RENAMED_ENDS.get(kind, kind).removeprefix("response.")
        check_status(response)
        if kind in RENAMED_ENDS:
            event = _with_type(event, f"response.{response.status}")
        if not self._started:
            raise cut_off()
        if response.output:
            self._kinds, self._refused = [], False
            for item in response.output:
                self._record(item)
        used = pb.GenerateEvent()
        if decode_used(response, self._kinds.count("web_search_call"), used):
            events.append(used)
        ended = pb.GenerateEvent()
        decode_finish(response, any(call in self._kinds for call in CALL_ITEMS), self._refused, ended.finished)
        events.append(ended)
        self.done = True
        return self._renamed(event, response.model)

    def _renamed(self, event: sse.SseEvent, provider_model: str | None) -> bytes:
        marked = sse.SseEvent(event.name, mark_states(event.data or b""), mark_states(event.raw))
        return self._model.replace(marked, provider_model)


def _with_type(event: sse.SseEvent, kind: str) -> sse.SseEvent:
    value = Raw(msgspec.json.encode(kind))
    data = bytes(edit_values(Raw(event.data or b""), ("type",), lambda _: value))
    return sse.new_event(kind.encode(), data)
