"""Ids of tool calls, which pair the calls with their results, for providers that send none or the same one twice.

They are set before the response is translated, so that the response to the caller, the stored conversation and the
stored reasoning have the same ids.
"""

import secrets

from umg_grpc.v1 import pb


class CallIds:
    """Generator of the missing ids of the tool calls of one response."""

    def __init__(self) -> None:
        self._used_ids: set[str] = set()

    def complete(self, part: pb.Part) -> None:
        """Set a new id in a tool call that has none or the id of an earlier call of the response. Ignore parts of other
        kinds.
        """
        if not part.HasField("tool_call"):
            return
        call = part.tool_call
        if not call.call_id or call.call_id in self._used_ids:
            call.call_id = f"call_{secrets.token_hex(12)}"
        self._used_ids.add(call.call_id)
