"""Ids that pair tool calls with their results, where a provider gives none or the same one twice.

They are given here and not by the faces, so that what the caller is told, what is stored for continuation and what is
remembered of the model's thoughts go by the same ids.
"""

import secrets

from umg_grpc.v1 import pb


class CallIds:
    """Of one answer."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def complete(self, part: pb.Part) -> None:
        """Gives the call an id of its own, if the part is one and has none."""
        if not part.HasField("tool_call"):
            return
        call = part.tool_call
        if not call.call_id or call.call_id in self._given:
            call.call_id = f"call_{secrets.token_hex(12)}"
        self._given.add(call.call_id)
