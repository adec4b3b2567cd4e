"""Ids of tool calls, which pair calls with their results.

Clients expect each id once in a conversation, but some providers count from `call_0` again in every response. For the
client, a repeated id gets a suffix (`call_0_umg_repeat2`), which is removed in requests to providers. The suffix is the
only record of the renaming, so that any process can undo it.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.raw_json_edits import Path, edit_texts

REPEAT_MARK = "_umg_repeat"
"""Beginning of the suffix of a renamed id."""

_RENAMED = re.compile(rf"(.+){REPEAT_MARK}[1-9]\d{{0,8}}", re.DOTALL)
_ID_MEMBER = re.compile(rb'"(?:id|call_id)"\s*:\s*"([^"\\]*)"')


def original_id(call_id: str) -> str:
    """Return the id of a call as its provider sent it, without the suffix that made it unique."""
    if REPEAT_MARK not in call_id:
        return call_id
    renamed = _RENAMED.fullmatch(call_id)
    return renamed[1] if renamed else call_id


def unused_id(call_id: str, taken: Collection[str]) -> str:
    """Return the id unchanged if it is unused, else with the first numbered suffix that makes it unused."""
    unused, number = call_id, 1
    while unused in taken:
        number += 1
        unused = f"{call_id}{REPEAT_MARK}{number}"
    return unused


def conversation_ids(request: pb.GenerateRequest) -> frozenset[str]:
    """Return the ids of all tool calls and tool results in the messages of a request."""
    parts = [part for message in request.messages for part in message.parts]
    calls = {part.tool_call.call_id for part in parts if part.HasField("tool_call")}
    results = {part.tool_result.call_id for part in parts if part.HasField("tool_result")}
    return frozenset((calls | results) - {""})


@dataclass(frozen=True)
class CallIdPlaces:
    """Positions of the ids of tool calls in the bodies of one wire format."""

    mark: bytes
    """Bytes that every body and event with a tool call contains."""
    answers: tuple[Path, ...]
    """Paths of the ids in the body of a response, and in the data of an event of a stream."""
    requests: tuple[Path, ...] = ()
    """Paths of the ids in a request. Empty for providers that need a new id for each call: they get renamed ids."""

    def renamed_body(self, body: bytes, names: Mapping[str, str]) -> bytes:
        """Return a response body, or an event's data, with the ids in `names` (old -> new) replaced."""
        return bytes(edit_texts(Raw(body), self.answers, lambda call_id: names.get(call_id, call_id)))

    def renamed_frames(self, frames: bytes, names: Mapping[str, str]) -> bytes:
        """Return complete server-sent events in which the ids in `names` (old id -> new id) are replaced."""
        return b"".join(self._renamed_event(event, names) for event in sse.split(frames))

    def _renamed_event(self, event: sse.SseEvent, names: Mapping[str, str]) -> bytes:
        if event.data is None or self.mark not in event.data or not event.data.startswith(b"{"):
            return event.raw
        data = self.renamed_body(event.data, names)
        return event.raw if data == event.data else sse.encode_event(event.name, data)

    def ids_in(self, body: bytes) -> list[str]:
        """Return the values of all members of a body or event that may be the id of a tool call; [] without a tool
        call. They are found without parsing, so values of other members with the same name are included.
        """
        if not self.answers or self.mark not in body:
            return []
        return [found.decode("utf-8", "replace") for found in _ID_MEMBER.findall(body)]

    def restored_body(self, body: bytes, request: pb.GenerateRequest) -> bytes:
        """Return a request's body with the call ids as their provider sent them. Without tools it is not searched."""
        if not request.tools or not any(REPEAT_MARK in call_id for call_id in conversation_ids(request)):
            return body  # the ids are compared instead of a search through a body of megabytes
        return bytes(edit_texts(Raw(body), self.requests, original_id))


NO_CALL_IDS = CallIdPlaces(mark=b"", answers=())
"""Positions for a format without tool calls."""
