"""Base of the pipelines of all operations: the steps of a call up to its attempts, in the order of `STEPS`."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

import msgspec
from google.protobuf.message import Message

from umg_grpc.access.key_limits import KeyLimits
from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.routing import ModelOperation, PublicModel
from umg_grpc.service.caching.cache_lookup import CacheLookup
from umg_grpc.service.pipeline.attempt_observers import AttemptObservers
from umg_grpc.service.pipeline.call import Call
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.pipeline.model_access import Access, ModelAccess
from umg_grpc.service.pipeline.steps import Step, in_order
from umg_grpc.service.resilience.channel_protection import Resilience
from umg_grpc.wire.request_notes import RequestNotes


class ModelRequest(Protocol):
    """Request of an operation, with the name of its model."""

    model: str


ModelRequestT = TypeVar("ModelRequestT", bound=ModelRequest)


@dataclass(frozen=True)
class PipelineContext:
    """Components of the process that the pipelines of all operations share: channels, limits, circuit breakers,
    caches.
    """

    channels: Channels
    limits: KeyLimits
    body_limit: int
    """Maximum size in bytes of a caller's body in a request, as at the HTTP server."""
    shared: Resilience
    observers: AttemptObservers
    cache: CacheLookup
    usage: UsageLog | None = None
    """Log of usage records; None if the operator disabled usage records."""
    note_unpriced: Callable[[str], None] = lambda _: None
    """Function that is called with the id of a called model without a price."""


class Admitted(msgspec.Struct, Generic[ModelRequestT], kw_only=True, eq=False):
    """Call on its way through the pipeline, which each step completes."""

    call: Call
    message: Message
    """gRPC message that contains the request, on which the rules of the schema are checked."""
    request: ModelRequestT  # as the caller sent it
    notes: RequestNotes
    """Facts about the caller's body for the encoders, known once it is decoded."""
    stream: bool = False
    """Whether a stream is requested."""
    is_canonical: bool = False
    """Whether the caller sent the canonical form, which no codec has checked; set by the step `decode`."""
    access: Access = None  # type: ignore[assignment]  # set by the step `resolve model`
    """Access of the caller's key to the model."""
    model: PublicModel = None  # type: ignore[assignment]  # set by the step `resolve model`


AdmittedT = TypeVar("AdmittedT", bound=Admitted)  # type: ignore[type-arg]  # with any request
RequestStep: TypeAlias = Callable[[AdmittedT], Awaitable[None] | None]
"""Step that runs before the attempts. It returns None unless it has to wait. Raises UmgError, which ends the call."""


class Pipeline(ABC, Generic[AdmittedT]):
    """Pipeline of one operation: runs its steps (`steps`) for each call, in the order of `STEPS`."""

    def __init__(
        self, context: PipelineContext, operation: ModelOperation, note_unpriced: Callable[[str], None] = lambda _: None
    ) -> None:
        """Create the pipeline, and check the order of its steps. `note_unpriced`: called with the id of a resolved
        model without a price. Raise ValueError if a step lacks one that it needs.
        """
        self._context = context
        self._operation = operation
        self._access = ModelAccess(context.channels, operation, note_unpriced)
        taken = self._request_steps()
        self.steps = in_order({*taken, *self._enclosing_steps()})
        self._entrance = tuple(taken[step] for step in self.steps if step in taken)

    @abstractmethod
    def _request_steps(self) -> Mapping[Step, RequestStep[AdmittedT]]:
        """Return the steps that run one after the other, each with its method."""

    def _enclosing_steps(self) -> Collection[Step]:
        """Return the steps behind them, which enclose each other, so that the pipeline has a method for all of them."""
        return ()

    def _resolve(self, admitted: AdmittedT) -> None:
        """Find the model that the request names. Raise UmgError as `ModelAccess.resolve` does."""
        access: Access = self._access.resolve(admitted.call.known_caller, admitted.request.model)
        admitted.access, admitted.model = access, access.resolved.model
