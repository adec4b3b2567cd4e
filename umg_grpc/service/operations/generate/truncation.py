"""Truncation of a conversation that is longer than the model's context (`truncation: auto` of responses), for providers
that do not truncate it themselves.
"""

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.service.operations.generate.compaction import KEPT_SHARE, MAX_CUTS, cut_after, remove_oldest
from umg_grpc.v1 import pb


class Truncation(msgspec.Struct, eq=False):
    """Truncation of the conversation of one call: each overflow leaves out more of the oldest turns."""

    _conversation: pb.GenerateRequest
    _begin: int = 0  # index of the first message that is sent
    _cuts: int = 0

    def recovers_from(self, error: UmgError) -> bool:
        """Return whether a shorter conversation may be accepted after the error, which `truncated` returns then."""
        if error.reason != pb.ERROR_REASON_CONTEXT_TOO_LONG or self._cuts >= MAX_CUTS:
            return False
        self._cuts += 1
        begin = cut_after(self._conversation.messages, 1 - KEPT_SHARE**self._cuts)
        if begin <= self._begin:
            return False
        self._begin = begin
        return True

    def truncated(self, request: pb.GenerateRequest) -> pb.GenerateRequest:
        """Return a request with the conversation without its oldest turns; the request itself if all are sent, or if
        the provider has a part of the conversation.
        """
        if not self._begin or len(request.messages) != len(self._conversation.messages):
            return request
        shorter = pb.GenerateRequest()
        shorter.CopyFrom(request)
        remove_oldest(shorter, self._begin)
        return shorter
