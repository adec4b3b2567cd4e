"""Truncation of a conversation that is longer than the model's context. It is used for `truncation: auto` of the
responses format, at providers that do not truncate themselves, and for requests for summaries.
"""

from collections.abc import Sequence

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

MAX_CUTS = 5
KEPT_SHARE = 2 / 3
"""Share of the conversation, in bytes, that each further cut keeps."""
INSTRUCTING_ROLES = frozenset({pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER})
CUT_NOTICE = "[The beginning of the conversation was left out, because it is longer than the model's context.]"
"""Text of the user's turn in place of the oldest turns."""


class Truncation(msgspec.Struct, eq=False):
    """Truncation of the conversation of one call: each overflow leaves out more of the oldest turns."""

    conversation: pb.GenerateRequest
    begin: int = 0
    """Index of the first message that is sent."""
    _cuts: int = 0

    def recovers_from(self, error: UmgError) -> bool:
        """Return whether a shorter conversation may be accepted after the error, which `truncated` returns then."""
        if error.reason != pb.ERROR_REASON_CONTEXT_TOO_LONG or self._cuts >= MAX_CUTS:
            return False
        self._cuts += 1
        begin = cut_after(self.conversation.messages, 1 - KEPT_SHARE**self._cuts)
        if begin <= self.begin:
            return False
        self.begin = begin
        return True

    def truncated(self, request: pb.GenerateRequest) -> pb.GenerateRequest:
        """Return the request without its oldest turns; unchanged if none is left out, or the provider stores some."""
        if not self.begin or len(request.messages) != len(self.conversation.messages):
            return request
        shorter = pb.GenerateRequest()
        shorter.CopyFrom(request)
        replace_oldest(shorter, self.begin, user_turn(CUT_NOTICE))
        return shorter


def cut_after(messages: Sequence[pb.Message], share: float) -> int:
    """Return the number of the oldest messages to leave out, so that `share` of the bytes of all messages goes. It is
    smaller if necessary: the last message always stays, and no call is separated from its result.
    """
    sizes = [message.ByteSize() for message in messages]
    wanted, removed, cut, unanswered = share * sum(sizes), 0, 0, set[str]()
    for index, message in enumerate(messages[:-1]):
        removed += sizes[index]
        for part in message.parts:
            if part.HasField("tool_call"):
                unanswered.add(part.tool_call.call_id)
            elif part.HasField("tool_result"):
                unanswered.discard(part.tool_result.call_id)
        if not unanswered and not _has_result(messages[index + 1]):
            cut = index + 1
            if removed >= wanted:
                break
    return cut


def replace_oldest(request: pb.GenerateRequest, count: int, *turns: pb.Message) -> None:
    """Replace the `count` oldest messages of a conversation by `turns`. Instructions stay."""
    left_out, rest = request.messages[:count], request.messages[count:]
    kept = [message for message in left_out if message.role in INSTRUCTING_ROLES]
    del request.messages[:]
    request.messages.extend([*kept, *turns, *rest])


def user_turn(text: str) -> pb.Message:
    """Return a message of the user with a text."""
    return pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=text))])


def _has_result(message: pb.Message) -> bool:
    return any(part.HasField("tool_result") for part in message.parts)
