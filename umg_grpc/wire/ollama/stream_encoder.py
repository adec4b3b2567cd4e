"""Encoding of a streamed response of Ollama's API as JSON lines. Each line is a response object with one piece."""

from collections.abc import Iterator

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.line_end_escapes import escaped
from umg_grpc.wire.core.sse import one_line
from umg_grpc.wire.ollama.errors import error_line
from umg_grpc.wire.ollama.response import Members, end_of, head_of, timing_of
from umg_grpc.wire.ollama.response_items import Item, ResponseItems
from umg_grpc.wire.text_format_interface import Elapsed

_encode = msgspec.json.Encoder().encode


class StreamEncoder:
    """Encoder of canonical events as JSON lines. One instance per stream.

    Tool calls and images are sent when they are complete. Each call has a separate line, since Zed reads only the first
    call of a line (`crates/language_models/src/provider/ollama.rs`). The last line has the finish reason, the usage and
    the durations. No line contains a line end, even if a call's arguments are indented. Unicode line ends are escaped,
    because the Python client splits lines at them.
    """

    def __init__(self, members: Members, request: pb.GenerateRequest, elapsed: Elapsed | None = None) -> None:
        self._members = members
        self._elapsed = elapsed
        self._model = request.model
        self._head: JsonObject = head_of(request.model, "")
        self._items = ResponseItems()
        self._first_output = 0  # in nanoseconds
        self._closed = False

    @property
    def retained_bytes(self) -> int:
        return self._items.retained_bytes

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        if self._closed:
            return b""
        return b"".join(line for event in message.events for line in self._lines(event))

    def close(self) -> bytes:
        if self._closed:
            return b""
        self._closed = True
        lines = [self._line(item) for item in self._items.close()]
        timing = {} if self._elapsed is None else timing_of(self._elapsed(), self._first_output)
        last = {**self._head, **self._members(()), **end_of(self._items, timing)}
        return b"".join([*lines, escaped(_encode(last)), b"\n"])

    def closing(self) -> Iterator[bytes]:
        yield self.close()

    def error(self, error: UmgError) -> bytes:
        self._closed = True
        return error_line(error)

    def _lines(self, event: pb.GenerateEvent) -> Iterator[bytes]:
        if event.HasField("started"):
            started = event.started
            created = started.create_time.ToJsonString() if started.HasField("create_time") else ""
            self._head = head_of(started.model or self._model, created)
        for item in self._items.feed(event):
            yield self._line(item)

    def _line(self, item: Item) -> bytes:
        if not self._first_output and self._elapsed is not None:
            self._first_output = self._elapsed()
        line = _encode({**self._head, **self._members((item,)), "done": False})
        return escaped(one_line(line)) + b"\n"
