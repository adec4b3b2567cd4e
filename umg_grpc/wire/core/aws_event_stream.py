"""Frames of AWS event streams (`application/vnd.amazon.eventstream`): splitting of received bytes, and decoding.

A frame has its length, the length of its headers, a CRC-32 of both, the headers, the payload, and a CRC-32 of all.
Source: smithy.io, "Amazon Event Stream Specification"; botocore 1.44.8, eventstream.py.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from zlib import crc32

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.core.sse import MAX_EVENT_BYTES, too_large_event
from umg_grpc.wire.errors.provider_errors import unreadable

PRELUDE_FORMAT, CRC_FORMAT, SHORT_FORMAT = struct.Struct("!III"), struct.Struct("!I"), struct.Struct("!H")
CRC_AT = 8
"""Position of the checksum over the two lengths."""
SMALLEST_FRAME = PRELUDE_FORMAT.size + CRC_FORMAT.size
VALUE_SIZES: Mapping[int, int] = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Type of a header -> bytes of its value. Values of the types bytes (6) and text (7) are preceded by their length."""
BYTES_TYPE, TEXT_TYPE = 6, 7
DAMAGED_FRAME = ": a frame of its event stream is damaged"


class Frame(NamedTuple):
    """Decoded frame: its payload, and its headers with text values, by name."""

    headers: Mapping[str, str]
    payload: bytes


class FrameSplitter(msgspec.Struct, eq=False):
    """Splitter of one stream into complete frames of at most `limit` bytes, however the bytes are cut into reads."""

    limit: int = MAX_EVENT_BYTES
    _rest: bytearray = bytearray()
    _failure: UmgError | None = None

    def whole(self, data: bytes) -> bytes:
        if self._failure is not None:
            raise self._failure
        rest, cut = self._rest, 0
        rest += data
        try:
            while len(rest) - cut >= PRELUDE_FORMAT.size and len(rest) - cut >= (
                size := frame_size(rest, cut, self.limit)
            ):
                cut += size
        except UmgError as error:
            self._failure = error
            if not cut:
                raise
        frames = bytes(rest[:cut])
        del rest[:cut]
        return frames

    def is_between_events(self) -> bool:
        return not self._rest

    def rest(self) -> bytes:
        if self._failure is not None:
            raise self._failure
        return b""


def frame_size(data: bytes | bytearray, at: int, limit: int = MAX_EVENT_BYTES) -> int:
    """Return the size of the frame at a position. Raise UmgError(UPSTREAM_FAILED) for damaged or too large lengths."""
    size, headers_size, checksum = PRELUDE_FORMAT.unpack_from(data, at)
    if crc32(data[at : at + CRC_AT]) != checksum or size < SMALLEST_FRAME + headers_size:
        raise unreadable(DAMAGED_FRAME)
    if size > limit:
        raise too_large_event(limit)
    return int(size)


def split_frames(frames: bytes) -> Iterator[Frame]:
    """Yield the decoded frames in the bytes of complete frames. Raise UmgError(UPSTREAM_FAILED) for a damaged frame."""
    at = 0
    while at < len(frames):
        size = frame_size(frames, at)
        yield _decode(frames[at : at + size])
        at += size


def _decode(frame: bytes) -> Frame:
    end = len(frame) - CRC_FORMAT.size
    if crc32(frame[:end]) != CRC_FORMAT.unpack_from(frame, end)[0]:
        raise unreadable(DAMAGED_FRAME)
    body = PRELUDE_FORMAT.size + PRELUDE_FORMAT.unpack_from(frame)[1]
    try:
        headers = dict(_headers(frame[PRELUDE_FORMAT.size : body]))
    except (struct.error, IndexError, KeyError, UnicodeDecodeError):
        raise unreadable(DAMAGED_FRAME) from None
    return Frame(headers, frame[body:end])


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(data):
        name_end = at + 1 + data[at]
        name, kind, at = data[at + 1 : name_end].decode(), data[name_end], name_end + 1
        if kind in {BYTES_TYPE, TEXT_TYPE}:
            size, at = SHORT_FORMAT.unpack_from(data, at)[0], at + SHORT_FORMAT.size
        else:
            size = VALUE_SIZES[kind]
        if at + size > len(data):
            raise IndexError
        if kind == TEXT_TYPE:
            yield name, data[at : at + size].decode()
        at += size
