"""Encoding of the events of a streamed response as bytes, with their sequence numbers."""

import msgspec

from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.sse import named_frame

_encode = msgspec.json.Encoder().encode


class Writer:
    """Collector of one stream's server-sent events; it numbers the events in order from 0 (`sequence_number`)."""

    def __init__(self) -> None:
        self.number = 0
        self.frames: list[bytes] = []
        self.retained_bytes = 0  # approximate memory that all items hold

    def take(self) -> bytes:
        """Return the events written since the last call."""
        frames = b"".join(self.frames)
        self.frames.clear()
        return frames

    def event(self, name: str, fields: JsonObject) -> None:
        self.raw(name.encode(), b"," + _encode(fields)[1:] if fields else b"}")

    def raw(self, name: bytes, rest: bytes) -> None:
        """Write an encoded event. `rest`: its JSON after the sequence number, from the comma to the closing brace."""
        self.frames.append(named_frame(name, b'{"type":"%b","sequence_number":%d%b' % (name, self.number, rest)))
        self.number += 1


class Delta:
    """Encoder of one text's delta events. All bytes except sequence number and text are encoded once, to save time."""

    def __init__(self, name: str, location: JsonObject, tail: bytes = b"}") -> None:
        self._name = name.encode()
        self._head = b'{"type":"%b","sequence_number":' % self._name
        self._location = b"," + _encode(location)[1:-1] + b',"delta":'
        self._tail = tail

    def write(self, writer: Writer, text: str) -> None:
        """Write the delta event that appends `text`, with the next sequence number of `writer`."""
        data = b"%b%d%b%b%b" % (self._head, writer.number, self._location, _encode(text), self._tail)
        writer.frames.append(named_frame(self._name, data))
        writer.number += 1
