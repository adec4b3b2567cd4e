"""Repair of tool calls in passed-through chat responses: several calls with one index, calls without an id or a list,
arguments as an object, a name in each piece.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.chat.shared_response_fields import Index
from umg_grpc.wire.chat.tool_calls import call_id
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, MEMBERS_DECODER
from umg_grpc.wire.core.raw_json_edits import EACH_ELEMENT, edit_values

TOOL_CALLS = b'"tool_calls"'
"""Name of the member with tool calls. It cannot be found inside a text: its quotes would be escaped there."""

Changes: TypeAlias = dict[str, object]
"""Member of a call -> its correct value, or a function that returns the correct value for the wrong one."""
NO_ID = b"\0"  # bytes that no chunk has, since JSON has no NUL


class _Function(Struct):
    name: str | None = None
    arguments: Raw = ABSENT_MEMBER


class Piece(Struct):
    """Tool call of a message, or piece of a call in a delta, with the members that are repaired."""

    index: Index | None = None
    id: str | int | None = None
    type: str | None = None
    function: _Function | None = None

    @property
    def known_id(self) -> str:
        """Id from the provider; "" without one, or for a number (TGI sends 0), which identifies no call."""
        return self.id if isinstance(self.id, str) else ""

    @property
    def name(self) -> str:
        return (self.function.name if self.function else "") or ""

    @property
    def is_object(self) -> bool:
        return self.function is not None and bytes(self.function.arguments)[:1] == b"{"

    def changes(self, made_id: str) -> Changes:
        """Return the changes for clients. `made_id`: id for a call without one; "" for a later piece of a call."""
        changes: Changes = {}
        if isinstance(self.id, int) or (made_id and not self.known_id):
            changes["id"] = made_id or None
        if self.type == "":
            changes["type"] = "function"
        if self.is_object:
            changes["function"] = _text_arguments
        return changes


class Calls(Struct):
    """Member `message` or `delta` of a choice, with only its tool calls decoded."""

    tool_calls: list[Piece] | Piece | None = None

    @property
    def pieces(self) -> list[Piece]:
        calls = self.tool_calls
        return [calls] if isinstance(calls, Piece) else calls or []


class _RightFunction(Struct):
    arguments: str = ""


class _RightCall(Struct):
    id: Annotated[str, Meta(min_length=1)]
    type: Annotated[str, Meta(min_length=1)] = "function"
    function: _RightFunction | None = None


class _RightCalls(Struct):
    tool_calls: list[_RightCall] | None = None


_CALLS = msgspec.json.Decoder(Calls)
_RIGHT_CALLS = msgspec.json.Decoder(_RightCalls)


class _Numbers:
    def __init__(self) -> None:
        self.ids: dict[int, str] = {}
        self._numbers: dict[int, int] = {}  # by the provider's index
        self._last: int | None = None
        self.names: dict[int, str] = {}

    def number(self, piece: Piece) -> int:
        """Return the number of a piece's call, by its index or as the last call. Another id starts a new call."""
        known, own_id = self._last if piece.index is None else self._numbers.get(piece.index), piece.known_id
        if known is None or (own_id and self.ids[known] and own_id != self.ids[known]):
            own = piece.index
            known = own if own is not None and own not in self.ids else max(self.ids, default=-1) + 1
            self.ids[known] = ""
        self.ids[known] = self.ids[known] or own_id
        self._numbers[known if piece.index is None else piece.index] = known
        self._last = known
        return known


class CallNumbers:
    """Numbers of the tool calls of one stream, since clients join pieces of two calls that have one `index`."""

    def __init__(self) -> None:
        self._candidates: dict[int, _Numbers] = {}
        self.last_id = NO_ID  # id of the last call, as JSON without its first quote
        self.is_wrong = False  # whether calls of the provider are repaired, so that every later piece is read

    def corrected(self, data: bytes, deltas: Iterable[tuple[int, bytes]], response_id: str) -> bytes:
        """Return a chunk with its tool calls corrected; the same object if they are correct. `deltas`: (candidate,
        delta) of its choices. `response_id`: source of missing ids. Raise ValueError for an unreadable delta.
        """
        changes, is_list = list[Changes](), True
        for candidate, delta in deltas:
            read = _CALLS.decode(delta) if TOOL_CALLS in delta else Calls()
            is_list = is_list and not isinstance(read.tool_calls, Piece)
            numbers = self._candidates.setdefault(candidate, _Numbers())
            for piece in read.pieces:
                changes.append(self._changes(piece, numbers, response_id))
                self.last_id = msgspec.json.encode(piece.known_id)[1:] if piece.known_id else self.last_id
        self.is_wrong = self.is_wrong or not is_list or any(changes)
        if not self.is_wrong or not changes:
            return data
        return _with_changes(data, "delta", changes)

    def _changes(self, piece: Piece, numbers: _Numbers, response_id: str) -> Changes:
        number = numbers.number(piece)
        known_name = numbers.names.get(number)
        begins = known_name is None and bool(piece.name) and not numbers.ids[number]
        made_id = call_id(pb.ToolCall(), response_id, number) if begins else ""
        changes = piece.changes(made_id)
        if piece.index != number:
            changes["index"] = number
        if known_name and piece.name == known_name and not piece.is_object:  # clients append the name of each piece
            changes["function"] = _without_name
        if piece.name and known_name is None:
            numbers.names[number] = piece.name
        return changes


def _has_right_calls(message: Raw) -> bool:
    try:
        _RIGHT_CALLS.decode(message)
    except msgspec.ValidationError:
        return False
    return True


def body_with_calls(body: bytes, messages: Sequence[Raw], response_id: str) -> bytes:
    """Return a response with its tool calls corrected; the same object if they are correct. `messages`: of its choices.
    Raise ValueError for a message that cannot be decoded.
    """
    if all(map(_has_right_calls, messages)):
        return body
    changes, is_list = list[Changes](), True
    for message in messages:
        read = _CALLS.decode(message) if TOOL_CALLS in bytes(message) else Calls()
        is_list = is_list and not isinstance(read.tool_calls, Piece)
        for position, piece in enumerate(read.pieces):
            changes.append(piece.changes(call_id(pb.ToolCall(), response_id, position)))
    return body if is_list and not any(changes) else _with_changes(body, "message", changes)


def _with_changes(data: bytes, content: str, changes: list[Changes]) -> bytes:
    remaining = iter(changes)
    path = ("choices", EACH_ELEMENT, content, "tool_calls")
    return bytes(edit_values(Raw(data), path, lambda calls: _changed_calls(calls, remaining)))


def _changed_calls(calls: Raw, changes: Iterator[Changes]) -> Raw:
    if bytes(calls).lstrip()[:1] == b"{":
        calls = Raw(b"[%b]" % bytes(calls))
    return edit_values(calls, (EACH_ELEMENT,), lambda call: _changed(call, next(changes)))


def _changed(call: Raw, changes: Changes) -> Raw:
    members = MEMBERS_DECODER.decode(call)
    for name, value in changes.items():
        if callable(value):
            members[name] = value(members[name])
        else:
            members[name] = Raw(msgspec.json.encode(value))
    return Raw(msgspec.json.encode(members)) if changes else call


def _text_arguments(function: Raw) -> Raw:
    members = MEMBERS_DECODER.decode(function)
    members["arguments"] = Raw(msgspec.json.encode(str(members["arguments"], "utf-8")))
    return Raw(msgspec.json.encode(members))


def _without_name(function: Raw) -> Raw:
    members = MEMBERS_DECODER.decode(function)
    del members["name"]
    return Raw(msgspec.json.encode(members))
