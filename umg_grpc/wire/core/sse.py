"""Server-sent events as bytes: split as they come, and written. All encoders write their events by `frame` and
`named_frame`.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb

MAX_EVENT_BYTES = 16 * 1024 * 1024
DONE = b"[DONE]"
BOM = b"\xef\xbb\xbf"

_END_OF_EVENT = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\r|\n)")  # CRLF is one end of a line, not two
_END_OF_LINE = re.compile(rb"\r\n|\r|\n")
_LF, _CR = b"\n\r"  # as integers: `in` looks for one byte many times as fast as for bytes
_BLANKS = bytes.maketrans(b"\n\r", b"  ")


class SseEvent(NamedTuple):
    """One event."""

    name: bytes  # its `event:` field, b"" without one
    data: bytes | None  # its `data:` lines joined by LF; None when they say nothing (a comment, a heartbeat)
    raw: bytes  # as it came, with the blank line that ends it


class SseSplitter:
    """Bytes cut anywhere -> bytes that end where an event ends."""

    def __init__(self, limit: int = MAX_EVENT_BYTES) -> None:
        self._rest = bytearray()  # of the event that is not complete
        self._limit = limit
        self._began = False

    def whole(self, data: bytes) -> bytes:
        """The bytes of all events that `data` completes, b"" for none. Raises UmgError(UPSTREAM_FAILED) for an endless
        event.
        """
        if not self._began:
            data = self._begin(data)
            if not self._began:
                return b""
        if not self._rest:
            if data.endswith((b"\n\n", b"\r\n\r\n")):  # as nearly every read does
                return data
            cut = _last_end(data, 0)
            if cut == len(data):
                return data
            self._rest += data[cut:]
            frames = data[:cut]
        else:
            seen = max(0, len(self._rest) - 3)  # an end may have been cut in two: at most CR LF CR
            self._rest += data
            cut = _last_end(self._rest, seen)
            frames = bytes(self._rest[:cut])
            del self._rest[:cut]
        if len(self._rest) > self._limit:
            message = f"the provider sent an event larger than {self._limit} bytes"
            raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).of(Failure.AMBIGUOUS)
        return frames

    def _begin(self, data: bytes) -> bytes:
        """The first bytes less a byte order mark, which the standard ignores there; b"" until that is known."""
        held = bytes(self._rest) + data
        if len(held) < len(BOM) and BOM.startswith(held):
            self._rest[:] = held
            return b""
        self._rest.clear()
        self._began = True
        return held.removeprefix(BOM)

    def rest(self) -> bytes:
        """What is left at the end of the stream, as a whole event: not every provider ends its last one. b"" for
        nothing.
        """
        rest, self._rest = bytes(self._rest), bytearray()
        return rest.rstrip(b"\r\n") + b"\n\n" if rest.strip(b"\r\n") else b""


def split(frames: bytes) -> Iterator[SseEvent]:
    """The events of whole frames, in order. Their `raw` joined are the frames."""
    if frames.startswith(b"data: "):  # most reads are one event, of one line
        line, size = frames.find(b"\n"), len(frames)
        if line == size - 2 and frames.endswith(b"\n") and frames.find(b"\r") < 0:
            return iter((SseEvent(b"", frames[6:line] or None, frames),))
        if line == size - 3 and frames.endswith(b"\r\n\r\n") and frames.find(b"\r") == size - 4:
            return iter((SseEvent(b"", frames[6:-4] or None, frames),))
    return _split(frames)


def _split(frames: bytes) -> Iterator[SseEvent]:
    end = b"\n\n"
    if b"\r" in frames:
        lines = frames.count(b"\r\n")
        if frames.count(b"\r") != lines or frames.count(b"\n") != lines:
            yield from _split_mixed(frames)
            return
        end = b"\r\n\r\n"
    start, size = 0, len(end)  # found one by one: a reader may need the first only
    while (cut := frames.find(end, start)) >= 0:
        raw = frames[start : cut + size]
        start = cut + size
        # Nearly all are one of these: a line of data, or a name before it.
        if raw.startswith(b"data: "):
            if raw.find(b"\n", 0, -size) < 0:
                yield SseEvent(b"", raw[6:-size] or None, raw)
                continue
        elif raw.startswith(b"event: "):
            second = raw.find(b"\n") + 1
            if raw.startswith(b"data: ", second) and raw.find(b"\n", second, -size) < 0:
                yield SseEvent(raw[7 : second - size // 2], raw[second + 6 : -size] or None, raw)
                continue
        yield _event(raw)
    if start < len(frames):
        yield _event(frames[start:])  # one more blank line


def _split_mixed(frames: bytes) -> Iterator[SseEvent]:
    """The same where lines end in one way and another."""
    start = 0
    for end in _END_OF_EVENT.finditer(frames):
        yield _event(frames[start : end.end()])
        start = end.end()
    if start < len(frames):
        yield _event(frames[start:])  # one more blank line


def frame(data: bytes) -> bytes:
    """Return one event without a name, on one line of data. `data` is JSON."""
    if _LF in data or _CR in data:
        data = one_line(data)
    return b"data: %b\n\n" % data


def named_frame(name: bytes, data: bytes) -> bytes:
    """Return one event with its name. `data` is JSON."""
    if _LF in data or _CR in data:
        data = one_line(data)
    return b"event: %b\ndata: %b\n\n" % (name, data)


def one_line(document: bytes) -> bytes:
    """Return the JSON document with blanks for its line ends, which in valid JSON stand between tokens."""
    return document.translate(_BLANKS)


def _last_end(buffer: bytes | bytearray, start: int) -> int:
    """Position after the last blank line that begins at or after `start`, 0 for none.

    LF, CR and CRLF end lines, nothing else; a CRLF whose LF is still to come ends none.
    """
    end = buffer.rfind(b"\n\n", start) + 2
    if buffer.find(b"\r", start) >= 0:
        stop = len(buffer) - buffer.endswith(b"\r\n\r")
        end = max(end, buffer.rfind(b"\n\r", start, stop) + 2, buffer.rfind(b"\r\r", start, stop) + 2)
        if buffer[end - 1 : end + 1] == b"\r\n":
            end += 1
    return end if end > 1 else 0


def _event(raw: bytes) -> SseEvent:
    name, lines = b"", list[bytes]()
    for line in _END_OF_LINE.split(raw):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            lines.append(value)
        elif field == b"event":
            name = value
    return SseEvent(name, b"\n".join(lines) if any(lines) else None, raw)
