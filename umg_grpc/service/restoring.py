"""Puts what is known of a conversation's thoughts back into it. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from umg_grpc.service.states import digest_of
from umg_grpc.v1 import pb

ENTRY_BYTES = 512  # of memory that an entry takes beside its thoughts


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known by the id of a call, or of a state."""

    channel: str
    thoughts: bytes
    """`umg.v1.Message`: its parts are what was thought in the turn until the call, in order, and last one that holds
    nothing but the call's own state, if it had any. Its id is one for all calls of the turn. b"" for a state alone.
    """
    expires: datetime

    @property
    def size(self) -> int:
        return len(self.thoughts) + len(self.channel) + ENTRY_BYTES


class _Place(NamedTuple):
    """A part of the request."""

    message: int
    part: int


class Restoration:
    """Puts back what is known of one request. A turn of the model is a run of messages: formats whose items are
    messages have its thoughts and calls in several.
    """

    def __init__(
        self, request: pb.GenerateRequest, known: dict[str, Entry], channel: str | None, *, thoughts: bool = True
    ) -> None:
        """`thoughts`: whether what was thought is put back, and not the states of calls alone."""
        self._request = request
        self._known = known
        self._channel = channel
        self._thoughts = thoughts
        self._told: dict[str, int] = {}  # turn -> how many of its thoughts stand in the request by now
        self._added: dict[_Place, list[pb.Part]] = {}  # what stands before a part
        self._removed: set[_Place] = set()
        self._states: dict[_Place, pb.ReasoningState] = {}
        # Some providers use the ids of one turn in the next again: what is known is then the last one's.
        self._last = {
            part.tool_call.call_id: _Place(index, position)
            for index, message in enumerate(request.messages)
            if message.role == pb.ROLE_ASSISTANT
            for position, part in enumerate(message.parts)
            if part.HasField("tool_call")
        }

    def request(self) -> pb.GenerateRequest:
        """The request with all that is put back; itself when there was nothing."""
        start: _Place | None = None  # where the thoughts of the next call belong
        thoughts = list[_Place]()  # that stand there already
        for index, message in enumerate(self._request.messages):
            if message.role != pb.ROLE_ASSISTANT:
                start, thoughts = None, []
                continue
            for position, part in enumerate(message.parts):
                place = _Place(index, position)
                start = start or place
                self._find_channel(place, part)
                if part.HasField("reasoning"):
                    thoughts.append(place)
                elif part.HasField("tool_call"):
                    self._call(place, part, start, thoughts)
                    start, thoughts = None, []
        if not (self._added or self._states):
            return self._request
        return self._rebuilt()

    def _find_channel(self, place: _Place, part: pb.Part) -> None:
        if not part.HasField("state") or part.state.channel:
            return
        if (entry := self._known.get(digest_of("state", part.state.data))) is not None:
            state = pb.ReasoningState(data=part.state.data, format=part.state.format, channel=entry.channel)
            self._states[place] = state

    def _call(self, place: _Place, part: pb.Part, start: _Place, present: list[_Place]) -> None:
        call_id = part.tool_call.call_id
        if not call_id or self._last[call_id] != place:
            return
        entry = self._known.get(digest_of("call", call_id))
        if entry is None or self._channel not in (None, entry.channel):
            return
        turn = pb.Message.FromString(entry.thoughts)
        thoughts, own = turn.parts[:-1] if self._thoughts else [], turn.parts[-1]
        told = self._told.get(turn.message_id, 0)
        self._told[turn.message_id] = max(told, len(thoughts))
        fresh = thoughts[told:]
        if own.HasField("state") and not part.HasField("state"):
            self._states[place] = own.state
        if not fresh or any(self._part(there).HasField("state") for there in present):
            return
        if present and not any(thought.HasField("state") for thought in fresh):
            return  # the caller brought the same, or what it made of it
        self._removed.update(present)
        self._added[present[0] if present else start] = fresh

    def _part(self, place: _Place) -> pb.Part:
        return self._request.messages[place.message].parts[place.part]

    def _rebuilt(self) -> pb.GenerateRequest:
        request = pb.GenerateRequest()
        request.CopyFrom(self._request)
        changed = {place.message for place in (*self._added, *self._states)} | {
            place.message for place in self._removed
        }
        for index in changed:
            parts = list[pb.Part]()
            for position, part in enumerate(self._request.messages[index].parts):
                place = _Place(index, position)
                parts.extend(self._added.get(place, ()))
                if place in self._removed:
                    continue
                parts.append(part)
                if place in self._states:
                    signed = parts[-1] = pb.Part()
                    signed.CopyFrom(part)
                    signed.state.CopyFrom(self._states[place])
            if not parts:  # it held nothing but thoughts, which stand elsewhere now
                del request.messages[index]
                continue
            message = request.messages[index]
            del message.parts[:]
            message.parts.extend(parts)
        return request
