"""Frames of AWS event streams, as providers write them. `botocore.eventstream` is the judge of them in tests."""

import struct
import zlib
from collections.abc import Callable

from tests.support.providers.common import compact
from tests.support.providers.server import Json


def frame(payload: bytes, **headers: str) -> bytes:
    """Return a frame with headers that are texts; `message_type` is the header `:message-type`."""
    encoded = b"".join(
        bytes([len(name)]) + name + b"\7" + struct.pack("!H", len(value.encode())) + value.encode()
        for name, value in ((f":{key.replace('_', '-')}".encode(), value) for key, value in headers.items())
    )
    prelude = struct.pack("!II", 16 + len(encoded) + len(payload), len(encoded))
    head = prelude + struct.pack("!I", zlib.crc32(prelude)) + encoded + payload
    return head + struct.pack("!I", zlib.crc32(head))


def with_payload(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a frame with the payload that `change` makes of its own."""
    [size] = struct.unpack_from("!I", data, 4)
    headers, payload = data[12 : 12 + size], change(data[12 + size : -4])
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    head = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + payload
    return head + struct.pack("!I", zlib.crc32(head))


def event(name: str, payload: Json) -> bytes:
    body = compact(payload).encode()
    return frame(body, event_type=name, content_type="application/json", message_type="event")


def exception(name: str, message: str) -> bytes:
    return event_or_exception(name, {"message": message})


def event_or_exception(name: str, payload: Json) -> bytes:
    """Return the frame of an event, or of an exception if the name is that of one."""
    if not name.endswith("Exception"):
        return event(name, payload)
    body = compact(payload).encode()
    return frame(body, exception_type=name, content_type="application/json", message_type="exception")
