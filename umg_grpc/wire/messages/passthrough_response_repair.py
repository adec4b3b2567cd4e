"""Repair of passed-through messages responses: blocks with equal indexes or no end, and a missing stop reason."""

import msgspec
from msgspec import Raw, Struct

from umg_grpc.wire.core import sse
from umg_grpc.wire.core.raw_json_edits import edit_values
from umg_grpc.wire.core.repeated_stream_indexes import BlockIndexes

START_EVENT, DELTA_EVENT, END_EVENT = b"content_block_start", b"content_block_delta", b"content_block_stop"


class _PassedBlock(Struct):
    type: str | None = None


class _Event(Struct):
    """Event of a content block, with the members that the repair needs."""

    index: int | None = None
    content_block: _PassedBlock | None = None


class _Body(Struct):
    content: list[_PassedBlock] | None = None


_EVENT = msgspec.json.Decoder(_Event)
_BODY = msgspec.json.Decoder(_Body)


class PassedBlocks:
    """Content blocks of one passed-through stream. Each gets a distinct index and an end. One instance per stream."""

    def __init__(self) -> None:
        self._indexes = BlockIndexes()
        self._open: dict[int, None] = {}  # own indexes, in order
        self.is_wrong = False  # whether deltas have to be rewritten
        self.calls = False  # whether a block calls a tool of the caller

    def frames(self, event: sse.SseEvent) -> bytes:
        """Return the frames of a block's event. An earlier block with its index and without an end is ended first."""
        if event.name == DELTA_EVENT and not self.is_wrong:
            return event.raw
        data = event.data or b""
        try:
            decoded = _EVENT.decode(data)
        except ValueError:
            return event.raw  # a form that only the client may know
        if (index := decoded.index) is None:
            return event.raw
        own, before = self._indexes.current(index), b""
        if event.name == START_EVENT:
            before = _end(own) if own in self._open else b""
            self._open.pop(own, None)
            own = self._indexes.start(index)
            self._open[own], self.is_wrong = None, self._indexes.is_wrong
            self.calls = self.calls or (decoded.content_block or _PassedBlock()).type == "tool_use"
        elif event.name == END_EVENT:
            self._open.pop(own, None)
        if own == index:
            return before + event.raw
        renamed = edit_values(Raw(data), ("index",), lambda _: Raw(b"%d" % own))
        return before + sse.named_frame(event.name, bytes(renamed))

    def ends(self) -> bytes:
        """Return the frames that end the open blocks whose ends the provider left out."""
        ends = b"".join(map(_end, self._open))
        self._open.clear()
        return ends


def stop_frame(reason: str, output_tokens: int) -> bytes:
    """Return the frame with the stop reason that a provider left out. `output_tokens`: number sent so far."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    event = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": output_tokens}}
    return sse.named_frame(b"message_delta", msgspec.json.encode(event))


def with_stop_reason(body: bytes) -> bytes:
    """Return a complete response that has no stop reason with the stop reason that follows from its content."""
    reason = stop_reason(any(block.type == "tool_use" for block in _BODY.decode(body).content or ()))
    members = msgspec.json.decode(body, type=dict[str, Raw])
    members["stop_reason"] = Raw(msgspec.json.encode(reason))
    return msgspec.json.encode(members)


def stop_reason(calls: bool) -> str:
    """Return the stop reason of a complete response. `calls`: whether it calls a tool of the caller."""
    return "tool_use" if calls else "end_turn"


def _end(index: int) -> bytes:
    return sse.named_frame(END_EVENT, b'{"type":"content_block_stop","index":%d}' % index)
