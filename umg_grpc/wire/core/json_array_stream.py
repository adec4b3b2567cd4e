"""Streams that a provider sends as one JSON array. The native format does so without `alt=sse`, and some relays ignore
that parameter. Each element becomes a server-sent event.
"""

import re

import msgspec

from umg_grpc.wire.core import sse
from umg_grpc.wire.core.sse import BYTE_ORDER_MARK, MAX_EVENT_BYTES
from umg_grpc.wire.errors.provider_errors import unreadable

_STRUCTURE = re.compile(rb'[{}\[\]]|"(?:[^"\\]|\\.)*+(?P<open>"?)', re.DOTALL)
"""A bracket, or a string. The group `open` is empty for a string whose end was not received yet."""


def is_array(body: bytes) -> bool:
    """Return whether a body, or its first bytes, begins as a JSON array."""
    return body.removeprefix(BYTE_ORDER_MARK).lstrip()[:1] == b"["


class ArrayReader:
    """Reader of one JSON array that is received in any pieces. One instance per stream."""

    def __init__(self) -> None:
        self._rest = b""  # bytes from the beginning of the incomplete element on
        self._seen = 0  # bytes of the rest whose brackets were counted
        self._depth = 0
        self._begin = 0  # beginning of the incomplete element in the rest

    def feed(self, data: bytes) -> bytes:
        """Return, as server-sent events, the elements completed by the bytes of one read. Raise
        UmgError(UPSTREAM_FAILED) for an element that is no JSON, or too large.
        """
        self._rest += data
        frames = list[bytes]()
        done = 0
        for found in _STRUCTURE.finditer(self._rest, self._seen):
            if found[0][:1] == b'"':
                if not found["open"]:
                    self._seen = found.start()
                    break
            elif found[0] in b"{[":
                self._depth += 1
                if self._depth == 2:
                    self._begin = found.start()
            else:
                self._depth -= 1
                if self._depth == 1:
                    frames.append(_frame(self._rest[self._begin : found.end()]))
                    done = found.end()
            self._seen = found.end()
        self._rest, self._seen = self._rest[done:], self._seen - done
        self._begin = max(0, self._begin - done)
        if len(self._rest) > MAX_EVENT_BYTES:
            raise sse.too_large_event(MAX_EVENT_BYTES)
        return b"".join(frames)


def _frame(element: bytes) -> bytes:
    try:
        return sse.frame(msgspec.json.format(element, indent=-1))
    except (ValueError, RecursionError):
        raise unreadable() from None


def array_events(body: bytes) -> bytes:
    """Return the elements of a whole JSON array as events. Raise UmgError(UPSTREAM_FAILED) like `ArrayReader.feed`."""
    return ArrayReader().feed(body)
