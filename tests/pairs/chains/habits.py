"""Habits of servers, as data: each row of `habits/*.json` is a response that a server is known to write in its own way,
with its source and the effect that a caller of any format has to see.
"""

import gzip
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tests.pairs.table import STRICT_PROVIDERS
from tests.support.providers.aws_event_stream import event_or_exception

FOLDER = Path(__file__).parent / "habits"


class Effect(Struct, frozen=True, forbid_unknown_fields=True):
    """Content that a caller receives, in every format."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, Any]] = []
    finish: str = "STOP"
    usage: tuple[int, int] | None = None  # input, output; None if the gateway counts them itself
    error: str = ""  # reason without its prefix, for a call that fails before the first output
    broken: str = ""  # reason, for a stream that fails after the text
    message: str = ""  # words of the error
    retryable: bool = False  # whether another channel is called
    retry_after: int | None = None  # seconds


class Habit(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One habit of a server."""

    id: str
    server: str
    source: str  # outside of this project
    as_of: str
    effect: Effect
    protocol: Literal[STRICT_PROVIDERS] = "chat"  # evaluated when the rows are read
    status: int = 200
    headers: dict[str, str] | None = None  # None: content-type of the form; values have their own spelling
    body: Any = None  # complete answer: JSON, or text that is sent as it is
    chunks: list[Any] | None = None  # stream: JSON of data lines, or text that is sent as it is
    events: list[dict[str, Any]] | None = None  # stream of AWS frames: name of an event or exception -> payload
    framing: Literal["length", "chunked", "close"] = "length"
    coding: Literal["", "gzip"] = ""
    cut: bool = False  # whether the connection ends before the end of the body

    @property
    def forms(self) -> tuple[bool, ...]:
        """Whether the response is streamed; both for a response without a script of a stream that replaces it."""
        if self.body is None:
            return (True,)
        return (False, True) if self.status != 200 or self.effect.error else (False,)

    @property
    def data(self) -> bytes:
        """The body as the server sends it."""
        if self.events is not None:
            data = b"".join(event_or_exception(*next(iter(each.items()))) for each in self.events)
        elif self.chunks is None:
            data = self.body.encode() if isinstance(self.body, str) else msgspec.json.encode(self.body)
        else:
            data = b"".join(map(_frame, self.chunks))
        return gzip.compress(data, mtime=0) if self.coding else data

    @property
    def is_json(self) -> bool:
        """Whether the body is JSON, also if a stream was requested."""
        return self.data.lstrip().startswith(b"{")

    @property
    def head(self) -> bytes:
        """Status line and headers of the response."""
        headers = self.headers
        if headers is None:
            streamed = "application/vnd.amazon.eventstream" if self.chunks is None else "text/event-stream"
            headers = {"Content-Type": "application/json" if self.chunks is self.events else streamed}
        lines = [f"HTTP/1.1 {self.status} Some Reason", *(f"{name}: {value}" for name, value in headers.items())]
        if self.coding:
            lines.append(f"Content-Encoding: {self.coding}")
        if self.framing == "chunked":
            lines.append("transfer-encoding: chunked")
        elif self.framing == "close":
            lines.append("Connection: close")
        elif self.status != 204:
            lines.append(f"Content-Length: {len(self.data) + (99 if self.cut else 0)}")
        return "\r\n".join((*lines, "", "")).encode()


def _frame(chunk: Any) -> bytes:
    return chunk.encode() if isinstance(chunk, str) else b"data: %b\n\n" % msgspec.json.encode(chunk)


def read_habits() -> tuple[Habit, ...]:
    """Read the rows of all files."""
    files = sorted(FOLDER.glob("*.json"))
    return tuple(habit for file in files for habit in msgspec.json.decode(file.read_bytes(), type=list[Habit]))


HABITS = read_habits()
