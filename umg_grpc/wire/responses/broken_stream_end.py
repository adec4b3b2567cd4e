"""Events that end a passed-through stream after a failure; they repeat content that the provider sent before."""

import re

import msgspec
from msgspec import Raw, Struct

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, MEMBERS_DECODER, is_present
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.responses.errors import error_event, response_error
from umg_grpc.wire.responses.provider_stream_events import END_EVENTS

MAX_ITEMS_BYTES = 1 << 20  # maximum of the frames with finished items that the end repeats; further ones are left out
ITEM_DONE = b"response.output_item.done"

_NUMBER = re.compile(rb'"sequence_number"\s*:\s*(\d+)')


class _Seen(Struct):
    """Members of a passed-through event that are needed to end its stream after a failure."""

    type: str | None = None
    response: Raw = ABSENT_MEMBER
    item: Raw = ABSENT_MEMBER
    output_index: int | None = None


_SEEN = msgspec.json.Decoder(_Seen)


class PassedFrames:
    """Frames that `response.failed`, the end of a failed stream, repeats: the first ones (response object), those of
    finished items, and the last ones (sequence number).
    """

    def __init__(self) -> None:
        self._first = b""
        self._items = list[bytes]()
        self._items_size = 0
        self._last = b""

    def __bool__(self) -> bool:
        return bool(self._last)

    def feed(self, frames: bytes) -> None:
        """Keep the frames of a message (complete server-sent events) that the end of a failed stream would need."""
        self._first = self._first or frames
        self._last = frames
        if frames.rfind(ITEM_DONE) >= 0:  # a quarter of the time of `in`
            self._items_size += len(frames)
            if self._items_size <= MAX_ITEMS_BYTES:
                self._items.append(frames)

    def error(self, error: UmgError) -> bytes:
        """Return the events that end the stream after a failure: `response.failed`, if the response has begun and not
        ended, and `error`. `error` becomes the caller's error.
        """
        numbers = _NUMBER.findall(self._last)
        number = int(numbers[-1]) + 1 if numbers else 0
        try:
            failed = self._failed(error, number)
        except (ValueError, RecursionError):
            failed = b""
        return failed + error_event(error, number + 1 if failed else number, has_begun=True)

    def _failed(self, error: UmgError, number: int) -> bytes:
        began = next((event.response for event in _events(self._first) if is_present(event.response)), None)
        if began is None or any(event.type in END_EVENTS for event in _events(self._last)):
            return b""
        items = {
            event.output_index: event.item
            for frames in self._items
            for event in _events(frames)
            if event.type == ITEM_DONE.decode() and event.output_index is not None and is_present(event.item)
        }
        response = MEMBERS_DECODER.decode(began) | {
            "status": Raw(b'"failed"'),
            "error": Raw(msgspec.json.encode(response_error(error))),
            "output": Raw(msgspec.json.encode([items[index] for index in sorted(items)])),
        }
        data = {"type": "response.failed", "sequence_number": number, "response": response}
        return sse.named_frame(b"response.failed", msgspec.json.encode(data))


def _events(frames: bytes) -> list[_Seen]:
    return [decode(_SEEN, event.data) for event in sse.split(frames) if event.data is not None]
