"""Server-sent events: splitting and encoding. All encoders write their events by `frame` and `named_frame`."""

import re
from collections.abc import Iterable, Iterator

import msgspec

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb

MAX_EVENT_BYTES = 16 * 1024 * 1024
EVENT_STREAM = "text/event-stream; charset=utf-8"
DONE_DATA = b"[DONE]"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_END_OF_EVENT = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\r|\n)")  # CRLF is one line end, not two
_END_OF_LINE = re.compile(rb"\r\n|\r|\n")
_NUMBERED = re.compile(rb"(?:^|[\r\n])id:")
_LF, _CR = b"\n\r"  # as integers: `in` finds one byte many times faster than a `bytes` object
_FIRST_LINE = re.compile(rb"\s*(?:data:|event:|id:|retry:|error:|:)")
_ERROR_LINE = re.compile(rb"\s*\{\s*\"error\"\s*:")
_BLANKS = bytes.maketrans(b"\n\r", b"  ")


def too_large_event(limit: int) -> UmgError:
    """Return the error for an event of a provider's stream with more than `limit` bytes."""
    message = f"an event of the provider's response is larger than {limit / 2**20:g} MiB; request less in one call"
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.TOO_LARGE)


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """Server-sent event: its name (b"" if there is none), data (None without data lines), and bytes as received."""

    name: bytes  # value of its `event:` field, b"" without one
    data: bytes | None  # its `data:` lines joined by LF; None without data (a comment, a heartbeat)
    raw: bytes  # as received, with the blank line that ends it


class SseSplitter(msgspec.Struct, eq=False):
    """Splitter of one stream into complete events of at most `limit` bytes, however the bytes are cut into reads."""

    limit: int = MAX_EVENT_BYTES
    _rest: bytearray = bytearray()  # bytes of the incomplete event
    _started: bool = False

    def whole(self, data: bytes) -> bytes:
        if not self._started:  # the standard ignores a byte order mark there
            data = bytes(self._rest) + data
            if len(data) < len(BYTE_ORDER_MARK) and BYTE_ORDER_MARK.startswith(data):
                self._rest[:] = data
                return b""
            self._rest.clear()
            self._started, data = True, data.removeprefix(BYTE_ORDER_MARK)
        if not self._rest:
            if data.endswith((b"\n\n", b"\r\n\r\n")):  # fast path for nearly every read
                return data
            cut = _last_end(data, 0)
            if cut == len(data):
                return data
            self._rest += data[cut:]
            frames = data[:cut]
        else:
            # the blank line may be split between two reads: at most CR LF CR is here
            seen = max(0, len(self._rest) - 3)
            self._rest += data
            cut = _last_end(self._rest, seen)
            frames = bytes(self._rest[:cut])
            del self._rest[:cut]
        if len(self._rest) > self.limit:
            raise too_large_event(self.limit)
        return frames

    def is_between_events(self) -> bool:
        return not self._rest

    def rest(self) -> bytes:
        rest, self._rest = bytes(self._rest), bytearray()
        return rest.rstrip(b"\r\n") + b"\n\n" if rest.strip(b"\r\n") else b""


def is_event_stream(body: bytes) -> bool:
    """Return whether a body begins as server-sent events do, unlike JSON."""
    return _FIRST_LINE.match(body) is not None


def is_keep_alive(chunk: bytes) -> bool:
    """Return whether the bytes of one read begin with a comment or are blank lines, by which a server shows that it is
    alive. False for bytes that only continue an event.
    """
    return chunk.lstrip()[:1] in {b"", b":"}


def split(frames: bytes) -> Iterable[SseEvent]:
    """Return the events in the bytes of complete events, in order. Their `raw` bytes add up to `frames`."""
    if frames.startswith(b"data: "):  # fast path: most reads are one event with one line
        line, size = frames.find(b"\n"), len(frames)
        if line == size - 2 and frames.endswith(b"\n") and frames.find(b"\r") < 0:
            return (SseEvent(b"", frames[6:line] or None, frames),)
        if line == size - 3 and frames.endswith(b"\r\n\r\n") and frames.find(b"\r") == size - 4:
            return (SseEvent(b"", frames[6:-4] or None, frames),)
    return _split(frames)


def _split(frames: bytes) -> Iterator[SseEvent]:
    end = b"\n\n"
    if b"\r" in frames:
        lines = frames.count(b"\r\n")
        if frames.count(b"\r") != lines or frames.count(b"\n") != lines:
            yield from _split_mixed(frames)
            return
        end = b"\r\n\r\n"
    start, size = 0, len(end)  # searched one by one: a reader may need only the first
    while (cut := frames.find(end, start)) >= 0:
        raw = frames[start : cut + size]
        start = cut + size
        # Fast path for nearly all events: one data line, with or without an event name before it.
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
        yield _event(frames[start:])  # an additional blank line


def _split_mixed(frames: bytes) -> Iterator[SseEvent]:
    start = 0
    for end in _END_OF_EVENT.finditer(frames):
        yield _event(frames[start : end.end()])
        start = end.end()
    if start < len(frames):
        yield _event(frames[start:])  # an additional blank line


def frame(data: bytes) -> bytes:
    """Encode a server-sent event without a name, with one data line. `data` is JSON."""
    if _LF in data or _CR in data:
        data = one_line(data)
    return b"data: %b\n\n" % data


def named_frame(name: bytes, data: bytes) -> bytes:
    """Encode a server-sent event with a name. `data` is JSON."""
    if _LF in data or _CR in data:
        data = one_line(data)
    return b"event: %b\ndata: %b\n\n" % (name, data)


def encode_event(name: bytes, data: bytes) -> bytes:
    """Encode a server-sent event; without a name if `name` is b"". `data` is JSON."""
    return named_frame(name, data) if name else frame(data)


def new_event(name: bytes, data: bytes) -> SseEvent:
    """Return an event with its encoded bytes; without a name if `name` is b"". `data` is JSON."""
    return SseEvent(name, data, encode_event(name, data))


def without_id(event: SseEvent) -> SseEvent:
    """Return an event without its line `id:`. With it, the openai client takes the blank line for another event."""
    if b"id:" in event.raw and event.data is not None and _NUMBERED.search(event.raw):
        return new_event(event.name, event.data)
    return event


def count_data_events(frames: bytes) -> int:
    """Return the number of complete events if each is one line `data: {...}` with the same line ends. Return 0 for
    others, which have to be split. This shortcut saves time.
    """
    end = b"\r\n" if frames.endswith(b"\r\n") else b"\n"
    events = frames.count(end + end)
    regular = (
        frames.startswith(b"data: {")
        and frames.endswith(b"}" + end + end)
        and frames.count(b"\n") == 2 * events
        and frames.count(b"\r") == (2 * events if end == b"\r\n" else 0)
        and (events == 1 or frames.count(b"}" + end + end + b"data: {") == events - 1)
    )
    return events if regular else 0


def one_line(document: bytes) -> bytes:
    """Return the JSON document with spaces in place of line ends, which valid JSON has only between tokens."""
    return document.translate(_BLANKS)


def _last_end(buffer: bytes | bytearray, start: int) -> int:
    """Return the position after the last blank line from `start` on, where the last complete event ends; 0 without one.
    Only LF, CR and CRLF end lines. CR LF CR at the end is incomplete, because an LF may follow.
    """
    last = buffer.rfind(b"\n", start)  # one byte is found a hundred times faster than two, which matters in long lines
    end = buffer.rfind(b"\n\n", start, last + 1) + 2
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
        elif field == b"error":
            name = b"error"
            lines.append(value)
        elif _ERROR_LINE.match(line):
            name = b"error"
            lines.append(line)
    return SseEvent(name, b"\n".join(lines) if any(lines) else None, raw)
