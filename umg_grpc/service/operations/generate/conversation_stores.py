"""Stores of conversations and reasoning, which outlive a call, and the memory limit of the streams to be stored."""

import secrets
from dataclasses import dataclass, field
from functools import partial

from umg_grpc.access.conversation_summary_seals import SummarySeals
from umg_grpc.base.errors import UmgError
from umg_grpc.service.conversations.message_threads import Threads
from umg_grpc.service.conversations.reasoning_store import ReasoningStore
from umg_grpc.service.conversations.stored_responses import Conversations
from umg_grpc.upstream.event_loop_budget import RoundBudget
from umg_grpc.v1 import pb
from umg_grpc.wire.core.stream_memory_limits import StreamMemory


@dataclass(frozen=True)
class ConversationStores:
    """Stores of responses, threads and reasoning; None for a store that the operator disabled."""

    conversations: Conversations | None = None
    threads: Threads | None = None
    reasoning: ReasoningStore | None = None
    budget: StreamMemory = field(default_factory=StreamMemory)
    """Limit of the memory for streamed responses in flight, which are collected to be stored at their end."""
    seals: SummarySeals = field(default_factory=lambda: SummarySeals(secrets.token_urlsafe()))
    """Seals of summaries, by default those of this process alone."""
    abandoned: RoundBudget = field(default_factory=partial(RoundBudget, 1))
    """Limit of usage estimates of cancelled calls per iteration of the event loop: many callers may cancel at once."""

    @property
    def stored_responses(self) -> Conversations:
        """Store of responses. Raises UmgError(OBJECT_NOT_FOUND) if the operator disabled it."""
        if self.conversations is None:
            message = "this gateway stores no responses; send the whole conversation"
            raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message)
        return self.conversations
