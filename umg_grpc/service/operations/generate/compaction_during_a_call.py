"""Compaction inside a call for a response. If the conversation exceeds a number of tokens, the model first writes a
summary. Then it responds to the request with the summary in place of the conversation.
"""

import asyncio

import msgspec

from umg_grpc.access.conversation_summary_seals import SummarySeals
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.service.conversations.conversation_edits import edited_conversation
from umg_grpc.service.operations.generate.conversation_compaction import Summary
from umg_grpc.service.operations.generate.conversation_truncation import Truncation, replace_oldest, user_turn
from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb
from umg_grpc.wire.core.context_management_edits import EDITS_FIELD, SUMMARY_FORMAT, SUMMARY_TYPE, Compact
from umg_grpc.wire.core.response_to_events import part_to_events
from umg_grpc.wire.core.sealed_summaries import SEALED_PREFIX, summary_text
from umg_grpc.wire.facts_beside_request import DecodedRequest

HOPELESS_FAILURES = frozenset({Failure.CALLER, Failure.TOO_LARGE, Failure.CONTEXT, Failure.MODEL})
"""Failures of a request for a summary after which the call goes on without it, not at the next channel."""


class InlineCompaction(msgspec.Struct, eq=False):
    """Summary that the model writes in a call before the response, and that replaces the conversation of the call."""

    edit: Compact
    _whole: DecodedRequest[pb.GenerateRequest]  # with all messages of its conversation
    _counter: TokenCounter
    usage: pb.Usage | None = None
    has_failed: bool = False
    """Whether the summary could not be made, so that the call goes on without it."""
    _summary: Summary | None = None  # None for a conversation below the trigger
    _text: str = ""  # of the summary; "" until it is made
    _is_decided: bool = False

    @property
    def pending(self) -> Summary | None:
        """The summary that the next attempt requests; None for an attempt that requests the response."""
        return None if self._text or self.has_failed else self._summary

    @property
    def is_made(self) -> bool:
        """Whether the summary replaces the conversation."""
        return bool(self._text)

    @property
    def is_cut(self) -> bool:
        """Whether the summary leaves out the oldest turns."""
        return self._summary is not None and self._summary.is_cut

    async def decide(self) -> None:
        """Count the tokens of the conversation, once per call. If they exceed the trigger, request a summary."""
        if self._is_decided:
            return
        self._is_decided = True
        request, counter = self._whole.canonical, self._counter
        if request.ByteSize() - len(request.source.body) <= self.edit.trigger_tokens:
            return  # a token has at least one byte
        if counter.needs_thread(request):
            tokens = await asyncio.to_thread(self._tokens)
        else:
            tokens = self._tokens()
        if tokens > self.edit.trigger_tokens:
            self._summary = Summary(Truncation(request), instructions=self.edit.instructions)

    def _tokens(self) -> int:
        request, edits = self._whole.canonical, self._whole.notes.context_edits or ()
        return self._counter.count_request(edited_conversation(request, edits, self._counter).request)

    def compacted(self) -> DecodedRequest[pb.GenerateRequest]:
        """Return the request with the summary in place of its conversation. Instructions stay."""
        request = pb.GenerateRequest()
        request.CopyFrom(self._whole.canonical)
        replace_oldest(request, len(request.messages), user_turn(summary_text(self._text)))
        return DecodedRequest(request, self._whole.notes.with_edited("messages", EDITS_FIELD))

    def recovers_from(self, channel: str, error: UmgError) -> bool:
        """Return whether the call can go on after a failed request for a summary: in another form or without it."""
        if self._summary is not None and self._summary.recovers_from(channel, error, is_own=True):
            return True
        self.has_failed = error.failure in HOPELESS_FAILURES
        return self.has_failed

    def complete(self, response: pb.GenerateResponse, summary: Summary, owner: str, seals: SummarySeals) -> pb.Usage:
        """Take the summary from the model's response, which then contains the summary alone if the call pauses after
        it. Return the usage that the provider reported. Raise UmgError(UPSTREAM_FAILED) for a response without a
        summary.
        """
        reported, self._text = summary.read(response)
        self.usage = pb.Usage()
        self.usage.CopyFrom(response.usage)
        if self.edit.pauses:
            response.ClearField("candidates")
            paused = response.candidates.add(finish_reason=pb.FINISH_REASON_COMPACTION).message
            paused.role = pb.ROLE_ASSISTANT
            paused.parts.append(self._block(owner, seals))
            response.usage.Clear()
            response.usage.compaction.CopyFrom(self.usage)
        return reported

    def add_to(self, response: pb.GenerateResponse, owner: str, seals: SummarySeals) -> None:
        """Put the summary in front of the response's content, and report its usage beside that of the response."""
        if response.candidates:
            response.candidates[0].message.parts.insert(0, self._block(owner, seals))
        if self.usage is not None:
            response.usage.compaction.CopyFrom(self.usage)

    def events(self, owner: str, seals: SummarySeals) -> list[pb.GenerateEvent]:
        """Return the events of the summary, the first part of a streamed response."""
        return list(part_to_events(self._block(owner, seals)))

    def _block(self, owner: str, seals: SummarySeals) -> pb.Part:
        if self.edit.is_sealed:
            return pb.Part(
                compaction=pb.CompactionPart(encrypted_content=SEALED_PREFIX + seals.seal(owner, self._text))
            )
        block = msgspec.json.encode({"type": SUMMARY_TYPE, "content": self._text}).decode()
        return pb.Part(opaque=pb.OpaquePart(format=SUMMARY_FORMAT, type=SUMMARY_TYPE, json=block))
