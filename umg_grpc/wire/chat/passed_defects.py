"""Repair of defects in passed-through chat answers: several tool calls with one index, and no finish reason."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw, Struct

from umg_grpc.wire.chat.shared_response_fields import Index
from umg_grpc.wire.core.json import JsonObject
from umg_grpc.wire.core.raw_json_edits import EACH, edit_values

CALLED = b'"tool_calls"'
"""Name of the member with tool calls. It cannot be found inside a text: its quotes would be escaped there."""

NO_ID = b"\0"
"""Bytes that no chunk has, since JSON has no NUL."""


class _Piece(Struct):
    """Piece of a tool call in a delta, with the members that identify the call."""

    index: Index | None = None
    id: str | None = None


class _Delta(Struct):
    tool_calls: list[_Piece] | None = None


_DELTA = msgspec.json.Decoder(_Delta)


class _Calls:
    """Tool calls of one candidate of a stream, by their numbers."""

    def __init__(self) -> None:
        self._ids: dict[int, str] = {}
        self._numbers: dict[int, int] = {}  # by the provider's index
        self._last: int | None = None

    def number(self, piece: _Piece) -> int:
        """Return the number of the call to which a piece belongs: by its index, or the last call if it has none; an id
        that differs from that call's id starts a new call.
        """
        known = self._last if piece.index is None else self._numbers.get(piece.index)
        if known is None or (piece.id and self._ids[known] and piece.id != self._ids[known]):
            own = piece.index
            known = own if own is not None and own not in self._ids else max(self._ids, default=-1) + 1
            self._ids[known] = ""
        self._ids[known] = self._ids[known] or piece.id or ""
        self._numbers[known if piece.index is None else piece.index] = known
        self._last = known
        return known


class CallNumbers:
    """Numbers of the tool calls of one stream. Clients join the pieces of a call by its `index`, so that two calls with
    the same index, which some providers send, would be one. One instance per stream.
    """

    def __init__(self) -> None:
        self._candidates: dict[int, _Calls] = {}
        self.last_id = NO_ID
        """Id of the last call, as JSON without its first quote."""
        self.is_wrong = False
        """Whether the provider's indexes are wrong, so that every later piece has to be read."""

    def corrected(self, data: bytes, deltas: Iterable[tuple[int, bytes]]) -> bytes:
        """Return the data of a chunk with right indexes of its tool calls, unchanged if they are right.

        `deltas`: (candidate, delta) of each choice in it, in order. Raise ValueError for a delta that cannot be
        decoded.
        """
        numbers = list[int]()
        for candidate, delta in deltas:
            pieces = _DELTA.decode(delta).tool_calls or [] if CALLED in delta else []
            calls = self._candidates.setdefault(candidate, _Calls())
            for piece in pieces:
                numbers.append(calls.number(piece))
                self.is_wrong = self.is_wrong or piece.index != numbers[-1]
                self.last_id = msgspec.json.encode(piece.id)[1:] if piece.id else self.last_id
        if not self.is_wrong or not numbers:
            return data
        remaining = iter(numbers)
        path = ("choices", EACH, "delta", "tool_calls", EACH)
        return bytes(edit_values(Raw(data), path, lambda piece: _with_member(piece, "index", next(remaining))))


def finish_chunks(head: JsonObject, reason: str, candidates: Iterable[int]) -> Iterator[bytes]:
    """Yield the data of a last chunk for each candidate that has no finish reason. `head`: members of the chunks."""
    for index in candidates:
        choice = {"index": index, "delta": {}, "finish_reason": reason}
        yield msgspec.json.encode({**head, "object": "chat.completion.chunk", "choices": [choice]})


def with_finish_reasons(body: bytes) -> bytes:
    """Return a complete response in which each choice without a finish reason has one."""
    return bytes(edit_values(Raw(body), ("choices", EACH), _finished))


def _finished(choice: Raw) -> Raw:
    members = msgspec.json.decode(choice, type=dict[str, Raw])
    if msgspec.json.decode(members.get("finish_reason", Raw(b"null"))):
        return choice
    message = msgspec.json.decode(members.get("message", Raw(b"null")), type=_Delta | None)
    return _with_member(choice, "finish_reason", "tool_calls" if message and message.tool_calls else "stop")


def _with_member(raw: Raw, name: str, value: object) -> Raw:
    members = msgspec.json.decode(raw, type=dict[str, Raw])
    members[name] = Raw(msgspec.json.encode(value))
    return Raw(msgspec.json.encode(members))
