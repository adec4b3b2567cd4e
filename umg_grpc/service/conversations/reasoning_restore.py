"""Restoration of stored reasoning and reasoning states into a request whose client has not sent them back."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from umg_grpc.service.conversations.reasoning_state import digest_of
from umg_grpc.v1 import pb

ENTRY_BYTES = 512  # memory of an entry beside its reasoning


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of the reasoning store: the reasoning before a tool call, or the channel that made a reasoning state or a
    provider's object.
    """

    channel: str
    thoughts: bytes
    """`umg.v1.Message`: its parts are the reasoning parts of the turn before the call, in order, and a last part with
    nothing but the call's own reasoning state, if it had one. All calls of a turn have the same message id. b"" for
    a state or object.
    """
    expires: datetime

    @property
    def size(self) -> int:
        """Approximate number of bytes that the entry takes in memory."""
        return len(self.thoughts) + len(self.channel) + ENTRY_BYTES


class _Position(NamedTuple):
    """Position of a part in the request: indexes of its message and of the part in it."""

    message: int
    part: int


class Restoration:
    """Restoration of the stored reasoning of one request.

    A model turn is a run of consecutive assistant messages: a format whose items are separate messages has the
    reasoning and the tool calls of one turn in several messages.
    """

    def __init__(
        self, request: pb.GenerateRequest, known: dict[str, Entry], channel: str | None, *, thoughts: bool = True
    ) -> None:
        """Restore into `request` the stored entries `known`, by their digests; with `channel` only the entries that
        this channel made. `thoughts`: whether to restore the text of reasoning, not only reasoning states and channels.
        """
        self._request = request
        self._known = known
        self._channel = channel
        self._thoughts = thoughts
        # Message id of a turn -> number of its reasoning parts restored so far.
        self._restored_counts: dict[str, int] = {}
        self._added: dict[_Position, list[pb.Part]] = {}  # reasoning parts to insert before a part
        self._removed: set[_Position] = set()
        self._states: dict[_Position, pb.ReasoningState] = {}
        # Some providers reuse call ids in the next turn: the stored reasoning is then that of the last call.
        self._last_calls = {
            part.tool_call.call_id: _Position(message_index, part_index)
            for message_index, message in enumerate(request.messages)
            if message.role == pb.ROLE_ASSISTANT
            for part_index, part in enumerate(message.parts)
            if part.HasField("tool_call")
        }

    def request(self) -> pb.GenerateRequest:
        """Return the request with all stored reasoning inserted, or the request itself if there is none."""
        start: _Position | None = None  # position for the reasoning of the next call
        thoughts = list[_Position]()  # positions of the reasoning parts that the request has before the next call
        for message_index, message in enumerate(self._request.messages):
            if message.role != pb.ROLE_ASSISTANT:
                start, thoughts = None, []
                continue
            for part_index, part in enumerate(message.parts):
                position = _Position(message_index, part_index)
                start = start or position
                self._restore_channel(position, part)
                if part.HasField("reasoning"):
                    thoughts.append(position)
                elif part.HasField("tool_call"):
                    self._restore_call(position, part, start, thoughts)
                    start, thoughts = None, []
        if not (self._added or self._states):
            return self._request
        return self._build_request()

    def _restore_channel(self, position: _Position, part: pb.Part) -> None:
        if not part.HasField("state") or part.state.channel:
            return
        if (entry := self._known.get(digest_of("state", part.state.data))) is not None:
            state = pb.ReasoningState(data=part.state.data, format=part.state.format, channel=entry.channel)
            self._states[position] = state

    def _restore_call(self, position: _Position, part: pb.Part, start: _Position, present: list[_Position]) -> None:
        call_id = part.tool_call.call_id
        if not call_id or self._last_calls[call_id] != position:
            return
        entry = self._known.get(digest_of("call", call_id))
        if entry is None or self._channel not in (None, entry.channel):
            return
        turn = pb.Message.FromString(entry.thoughts)
        thoughts, own = turn.parts[:-1] if self._thoughts else [], turn.parts[-1]
        restored_count = self._restored_counts.get(turn.message_id, 0)
        self._restored_counts[turn.message_id] = max(restored_count, len(thoughts))
        missing = thoughts[restored_count:]
        if own.HasField("state") and not part.HasField("state"):
            self._states[position] = own.state
        if not missing or any(self._part(each).HasField("state") for each in present):
            return
        if present and not any(thought.HasField("state") for thought in missing):
            return  # the caller sent this reasoning, or its own version of it
        self._removed.update(present)
        self._added[present[0] if present else start] = missing

    def _part(self, position: _Position) -> pb.Part:
        return self._request.messages[position.message].parts[position.part]

    def _build_request(self) -> pb.GenerateRequest:
        request = pb.GenerateRequest()
        request.CopyFrom(self._request)
        changed = {position.message for position in (*self._added, *self._states)} | {
            position.message for position in self._removed
        }
        for message_index in changed:
            parts = list[pb.Part]()
            for part_index, part in enumerate(self._request.messages[message_index].parts):
                position = _Position(message_index, part_index)
                parts.extend(self._added.get(position, ()))
                if position in self._removed:
                    continue
                parts.append(part)
                if position in self._states:
                    copy = parts[-1] = pb.Part()
                    copy.CopyFrom(part)
                    copy.state.CopyFrom(self._states[position])
            if not parts:  # the message had only reasoning, which is restored in another message
                del request.messages[message_index]
                continue
            message = request.messages[message_index]
            del message.parts[:]
            message.parts.extend(parts)
        return request
