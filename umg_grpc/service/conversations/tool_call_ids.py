"""Ids of tool calls, which pair calls with their results. They are set for providers that send none, or the same id
twice. This is done before the response is translated, so that the response to the caller, the stored conversation and
the stored reasoning have the same ids.
"""

import secrets
from collections.abc import Iterable
from functools import cached_property

from umg_grpc.v1 import pb
from umg_grpc.wire.core.tool_call_id_pairing import CallIdPlaces, conversation_ids, unused_id


class NewCallIds:
    """Generator of the ids of the tool calls of one response. Each id differs from all others in the response and in
    the conversation before it, since many clients pair calls and results by the id alone.
    """

    def __init__(self, conversation: pb.GenerateRequest) -> None:
        self._conversation = conversation
        self._used = dict[int, set[str]]()  # by candidate

    @cached_property
    def earlier(self) -> frozenset[str]:
        """Ids of tool calls in the conversation. They are collected only when the response has a tool call."""
        return conversation_ids(self._conversation)

    def complete(self, part: pb.Part, candidate: int = 0) -> None:
        """Set a new id in a tool call that has none, or that has the id of an earlier call. Ignore other parts.
        `candidate`: index of the alternative response (candidate) in which the part is.
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
    """Ids of the tool calls of a passed-through response; ids that occur in the conversation are replaced."""

    def __init__(self, places: CallIdPlaces, conversation: pb.GenerateRequest) -> None:
        self._places = places
        self._mark = places.mark
        self._conversation = conversation

    @cached_property
    def _earlier(self) -> frozenset[str]:
        return conversation_ids(self._conversation)

    def body(self, body: bytes) -> bytes:
        """Return the body of a response, with ids replaced that already occur in the conversation."""
        names = self._names(self._places.ids_in(body))
        return self._places.renamed_body(body, names) if names else body

    def replace_in(self, message: pb.StreamGenerateResponse) -> None:
        """Replace the ids in the provider's events of one message of a stream, in place."""
        frames = message.source_frames
        if self._mark in frames and (names := self._names(self._places.ids_in(frames))):
            message.source_frames = self._places.renamed_frames(frames, names)

    def _names(self, found: Iterable[str]) -> dict[str, str]:
        return {call_id: unused_id(call_id, self._earlier) for call_id in found if call_id in self._earlier}
