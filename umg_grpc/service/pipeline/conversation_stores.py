"""Stores that outlive a call, of conversations and reasoning, with the memory limit of answers that wait to be
stored.
"""

from dataclasses import dataclass, field
from functools import partial

from umg_grpc.errors import UmgError
from umg_grpc.service.conversations.message_threads import Threads
from umg_grpc.service.conversations.reasoning_store import ReasoningStore
from umg_grpc.service.conversations.stored_responses import Conversations
from umg_grpc.upstream.event_loop_budget import RoundBudget
from umg_grpc.v1 import pb
from umg_grpc.wire.core.stream_memory_limits import Budget


@dataclass(frozen=True)
class ConversationStores:
    """Stores that outlive a call; None for a store that the operator disabled."""

    conversations: Conversations | None = None
    threads: Threads | None = None
    reasoning: ReasoningStore | None = None
    budget: Budget = field(default_factory=Budget)
    """Memory of the streamed answers in flight that are stored at their end."""
    abandoned: RoundBudget = field(default_factory=partial(RoundBudget, 1))
    """Limit of usage estimates in one round of the event loop, for when many callers cancel at once."""

    @property
    def stored_responses(self) -> Conversations:
        """Stored responses. Raises UmgError(OBJECT_NOT_FOUND) if the operator disabled them."""
        if self.conversations is None:
            message = "this gateway stores no responses; send the whole conversation"
            raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message)
        return self.conversations
