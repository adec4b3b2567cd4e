"""Parts of an answer that the gateway keeps after the call, and the stores that keep them."""

from dataclasses import dataclass, field
from functools import partial

from umg_grpc.errors import UmgError
from umg_grpc.service.conversations.reasoning_store import ReasoningStore
from umg_grpc.service.conversations.stored_responses import Conversations
from umg_grpc.service.conversations.threads import Thread, Threads
from umg_grpc.service.pipeline.generation_encoder import GenerationCall
from umg_grpc.upstream.round_budget import RoundBudget
from umg_grpc.v1 import pb
from umg_grpc.wire.core.stream_memory import Budget


@dataclass(frozen=True)
class Memory:
    """Stores of the gateway that live longer than a call; None for a disabled one."""

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


@dataclass(slots=True)
class Retention:
    """Parts of one answer that are stored."""

    response: bool = False
    """The answer, for a call that names it by its id."""
    thread: Thread | None = None
    """The answer, in this thread."""
    reasoning: bool = False
    """The reasoning, for the call that returns the results of the answer's tool calls."""
    ids: bool = False
    """The provider's ids of objects, which the caller may name later."""

    @property
    def any(self) -> bool:
        """Whether anything is stored."""
        return self.response or self.reasoning or self.ids or self.thread is not None

    @property
    def answer(self) -> bool:
        """Whether the answer is stored for a call that continues it."""
        return self.response or self.thread is not None


def retention_of(admitted: GenerationCall, memory: Memory) -> Retention:
    """Return the parts to store of the answer to a call."""
    request, notes, face = admitted.request, admitted.notes, admitted.face
    stores = face is not None and face.stores_by_default
    response = memory.conversations is not None and (request.store if request.HasField("store") else stores)
    thread = admitted.continued if isinstance(admitted.continued, Thread) else None
    if memory.reasoning is None:
        return Retention(response, thread)
    ids = (
        (response and stores)
        or admitted.access.has_several  # the channel of stored items, generated audio and reasoning states matters
        or "audio" in request.output_modalities
        # the provider compares the request with earlier ones, which the caller names by the ids of their answers
        or bool(request.prompt_cache_options_json)
        or "diagnostics" in notes.uncarried
        # the provider may run its own tools in a container, which the caller names later
        or "container" in notes.indispensable
    )
    for tool in request.tools:
        ids = ids or tool.HasField("opaque")
    return Retention(response, thread, bool(admitted.full_request.tools), ids)
