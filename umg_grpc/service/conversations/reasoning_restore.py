"""Restoration of data that a client has not sent back: the reasoning before tool calls, and the channels that made
reasoning states. A reasoning state is a provider's opaque data that belongs to its reasoning, for example a signature.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from umg_grpc.service.conversations.reasoning_state import digest_of, state_digest
from umg_grpc.v1 import pb

ENTRY_BYTES = 512  # memory of an entry beside its reasoning


@dataclass(frozen=True, slots=True)
class ReasoningEntry:
    """Entry of the reasoning store. The entry of a tool call has the reasoning before the call; that of a reasoning
    state or a provider's object only has the channel that made it.
    """

    channel: str
    thoughts: bytes
    """Reasoning before a tool call as `umg.v1.Message`: the reasoning parts between the beginning of the model's output
    and the call, in order, and a last part with nothing but the call's own reasoning state, if it had one. The calls of
    one output have the same message id. b"" in the entry of a reasoning state or object.
    """
    expires: datetime

    @property
    def size(self) -> int:
        """Approximate number of bytes of memory that the stored data takes."""
        return len(self.thoughts) + len(self.channel) + ENTRY_BYTES


class _Position(NamedTuple):
    """Position of a part in the request: index of the message, and index of the part in the message."""

    message: int
    part: int


class Restoration:
    """Restoration of the stored reasoning in one request. Consecutive assistant messages are treated as one output of
    the model: formats whose items are separate messages have the reasoning and the tool calls of one output in several.
    With `by_message` each message is an output, for a provider that gets the messages as the caller sent them.
    """

    def __init__(
        self,
        request: pb.GenerateRequest,
        known: dict[str, ReasoningEntry],
        channel: str | None,
        *,
        text_format: str | None = None,
        texts_of_others: bool = False,
        by_message: bool = False,
    ) -> None:
        """Prepare the restoration of `known` (digest -> entry of the reasoning store) in `request`.
        `channel`: only reasoning that this channel made is restored; None for that of all channels. `text_format`: only
        text of reasoning that has a state of this format is restored; None for all text. `texts_of_others`: whether
        the text of reasoning that other channels made is restored, too, without their states.
        """
        self._request = request
        self._known = known
        self._channel = channel
        self._text_format = text_format
        self._texts_of_others = texts_of_others
        self._by_message = by_message
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
        """Return a copy of the request with the stored reasoning; the request itself if nothing is to be restored."""
        start: _Position | None = None  # position for the reasoning of the next call
        thoughts = list[_Position]()  # positions of the reasoning parts that the request has before the next call
        for message_index, message in enumerate(self._request.messages):
            if self._by_message or message.role != pb.ROLE_ASSISTANT:
                start, thoughts = None, []
            if message.role != pb.ROLE_ASSISTANT:
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
        if (entry := self._known.get(state_digest(part.state))) is not None:
            state = pb.ReasoningState(data=part.state.data, format=part.state.format, channel=entry.channel)
            self._states[position] = state

    def _restore_call(self, position: _Position, part: pb.Part, start: _Position, present: list[_Position]) -> None:
        call_id = part.tool_call.call_id
        if not call_id or self._last_calls[call_id] != position:
            return
        entry = self._known.get(digest_of("call", call_id))
        if entry is None:
            return
        is_foreign = self._channel not in (None, entry.channel)
        if is_foreign and not self._texts_of_others:
            return
        turn = pb.Message.FromString(entry.thoughts)
        if is_foreign:
            _keep_texts(turn)
        own, wanted = turn.parts[-1], self._text_format
        thoughts = [part for part in turn.parts[:-1] if wanted is None or part.state.format == wanted]
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


def _keep_texts(turn: pb.Message) -> None:
    *thoughts, own = turn.parts
    del turn.parts[:]
    for part in (*(each for each in thoughts if any(each.reasoning.texts)), own):
        part.ClearField("state")
        turn.parts.append(part)
