"""Ids that pair tool calls with their results, where a provider sends none or the same one twice.

They are assigned here and not by the faces, so that the response to the caller, the stored conversation and the stored
reasoning have the same ids.
"""

import secrets

from umg_grpc.v1 import pb


class CallIds:
    """Generator of missing ids for the tool calls of one response."""

    def __init__(self) -> None:
        self._used_ids: set[str] = set()

    def complete(self, part: pb.Part) -> None:
        """Set a new id on a tool call that has none, or the id of an earlier call. Ignore parts of other kinds."""
        if not part.HasField("tool_call"):
            return
        call = part.tool_call
        if not call.call_id or call.call_id in self._used_ids:
            call.call_id = f"call_{secrets.token_hex(12)}"
        self._used_ids.add(call.call_id)
