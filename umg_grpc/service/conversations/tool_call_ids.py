"""Ids of tool calls, which pair calls with their results, for providers that send none or the same one twice. They are
set before the response is translated, so that the response to the caller, the stored conversation and the stored
reasoning have the same ids.
"""

import secrets
from collections.abc import Iterable
from functools import cached_property

from umg_grpc.v1 import pb
from umg_grpc.wire.core.tool_call_ids import CallIdPlaces, conversation_ids, unused_id


class NewCallIds:
    """Generator of the ids of the tool calls of one response. All of them differ, also from those of the conversation
    before it, since many clients pair calls and results by the id alone.
    """

    def __init__(self, conversation: pb.GenerateRequest) -> None:
        self._conversation = conversation
        self._used = dict[int, set[str]]()  # by candidate

    @cached_property
    def earlier(self) -> frozenset[str]:
        """Ids of the conversation, which are collected for the first call."""
        return conversation_ids(self._conversation)

    def complete(self, part: pb.Part, candidate: int = 0) -> None:
        """Set another id in a tool call that has none, or the id of an earlier call. Ignore parts of other kinds.
        `candidate`: index of the candidate, which is an alternative to the others.
        """
        if not part.HasField("tool_call"):
            return
        call, used = part.tool_call, self._used.setdefault(candidate, set())
        call_id = unused_id(call.call_id, self.earlier)
        if not call_id or call_id in used:
            call_id = f"call_{secrets.token_hex(12)}"
        if call_id != call.call_id:
            call.call_id = call_id
        used.add(call_id)


class PassedCallIds:
    """Ids of the tool calls of one passed-through response. Only the ids that the conversation before it has too are
    replaced; all other bytes are unchanged.
    """

    def __init__(self, places: CallIdPlaces, conversation: pb.GenerateRequest) -> None:
        self._places = places
        self._mark = places.mark
        self._conversation = conversation

    @cached_property
    def _earlier(self) -> frozenset[str]:
        return conversation_ids(self._conversation)

    def body(self, body: bytes) -> bytes:
        """Return the body of a response with the ids replaced."""
        names = self._names(self._places.ids_in(body))
        return self._places.renamed_body(body, names) if names else body

    def replace_in(self, message: pb.StreamGenerateResponse) -> None:
        """Replace the ids in the provider's events of one message of a stream, in place."""
        frames = message.source_frames
        if self._mark in frames and (names := self._names(self._places.ids_in(frames))):
            message.source_frames = self._places.renamed_frames(frames, names)

    def _names(self, found: Iterable[str]) -> dict[str, str]:
        return {call_id: unused_id(call_id, self._earlier) for call_id in found if call_id in self._earlier}
