"""Base of the pipelines of all operations: the steps of a call up to its attempts, in the order of `PIPELINE_STEPS`."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec
from google.protobuf.message import Message

from umg_grpc.access.key_limits import KeyLimits
from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.base.errors import UmgError
from umg_grpc.routing import ModelOperation, PublicModel
from umg_grpc.service.caching.response_cache_lookup import CacheLookup
from umg_grpc.service.guardrails.guard_driver import Checked, GuardRun
from umg_grpc.service.guardrails.guard_selection import GuardPlan
from umg_grpc.service.pipeline.attempt_observers import AttemptObservers
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.pipeline.key_model_access import Access, ModelAccess
from umg_grpc.service.pipeline.limits_and_budget import release_model
from umg_grpc.service.pipeline.model_fallbacks import ModelFallbacks, RequestOfModel
from umg_grpc.service.pipeline.step_order import (
    BUDGET,
    CONVERSATION,
    GUARD_REQUEST,
    INPUTS,
    LIMITS,
    PRICE,
    RESOLVE,
    RULES,
    Step,
    in_order,
)
from umg_grpc.service.resilience.channel_protection import Resilience
from umg_grpc.wire.facts_beside_request import RequestNotes

ModelRequestT = TypeVar("ModelRequestT", bound=RequestOfModel)
RequestT = TypeVar("RequestT", bound=RequestOfModel)
REPEATED_STEPS = frozenset({RESOLVE, PRICE, RULES, LIMITS, GUARD_REQUEST, CONVERSATION, BUDGET, INPUTS})
"""Steps that a call takes again for each fallback of its model."""


@dataclass(frozen=True)
class PipelineContext:
    """Components of the process that all pipelines share: channels, limits, circuit breakers, caches."""

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
    """Admitted call with its request, model and channels. Each step of the pipeline adds to it."""

    call: Call
    message: Message
    """gRPC message that contains the request, on which the rules of the schema are checked."""
    request: ModelRequestT  # as the caller sent it
    notes: RequestNotes
    """Facts about the caller's body for the encoders, known once it is decoded."""
    stream: bool = False
    is_canonical: bool = False
    """Whether the caller sent the canonical form, which no codec has checked; set by the step `decode`."""
    access: Access = None  # type: ignore[assignment]  # set by the step `resolve model`
    model: PublicModel = None  # type: ignore[assignment]  # set by the step `resolve model`
    sent: ModelRequestT | None = None
    """Request before the defaults of the model were set, if the step `validate` sets them; else None."""
    is_pinned: bool = False
    """Whether the call needs data that only one channel has, so that no other model can be called."""
    fallbacks: ModelFallbacks[ModelRequestT] | None = None
    """Models that may be called in place of the requested one, set by the step `resolve model`; None without any."""


AdmittedT = TypeVar("AdmittedT", bound=Admitted)  # type: ignore[type-arg]  # with any request
RequestStep: TypeAlias = Callable[[AdmittedT], Awaitable[object] | None]
"""Step that runs before the attempts. It returns None unless it has to wait. Raises UmgError, which ends the call."""


class Pipeline(ABC, Generic[AdmittedT]):
    """Pipeline of one operation: runs its steps (`step_order`) for each call, in the order of `PIPELINE_STEPS`."""

    _repeated_steps: ClassVar[Collection[Step]] = REPEATED_STEPS

    def __init__(
        self, context: PipelineContext, operation: ModelOperation, note_unpriced: Callable[[str], None] = lambda _: None
    ) -> None:
        """Create the pipeline, and check the order of its steps. `note_unpriced`: called with the id of a resolved
        model without a price. Raise ValueError if a step needs another step that the operation does not have.
        """
        self._context = context
        self._operation = operation
        self._access = ModelAccess(context.channels, operation, note_unpriced)
        taken = self._request_steps()
        guarded: Mapping[Step, RequestStep[AdmittedT]] = {GUARD_REQUEST: self._run_request_guards, **taken}
        self.steps = in_order({*guarded, *self._enclosing_steps()})
        self._entrance = tuple(taken[step] for step in self.steps if step in taken)
        self._guarded_entrance = tuple(guarded[step] for step in self.steps if step in guarded)
        again = [step for step in self.steps if step in guarded and step in self._repeated_steps]
        self._entrance_again = (*(guarded[step] for step in again), self._take_over)

    @abstractmethod
    def _request_steps(self) -> Mapping[Step, RequestStep[AdmittedT]]:
        """Return the steps that run one after the other before a response, each with its method."""

    def _enclosing_steps(self) -> Collection[Step]:
        """Return the steps after the request steps. They enclose each other, as one method of the pipeline."""
        return ()

    def _resolve(self, admitted: AdmittedT) -> None:
        """Find the model that the request names. Raise UmgError as `ModelAccess.resolve` does."""
        access: Access = self._access.resolve(admitted.call.known_caller, admitted.request.model)
        admitted.access, admitted.model = access, access.resolved.model
        if admitted.fallbacks is not None:  # its state may be of the channels of another model
            admitted.access = access._replace(has_several=True)
        elif admitted.model.fallbacks is not None and not admitted.is_pinned:
            sent = admitted.request if admitted.sent is None else admitted.sent
            admitted.fallbacks = ModelFallbacks(admitted.model, sent, admitted.notes)

    # --- guards

    def _run_request_guards(self, admitted: AdmittedT) -> Awaitable[None] | None:
        guards = admitted.access.guards
        return self._guard_request(admitted, guards) if guards is not None and guards.request else None

    async def _guard_request(self, admitted: AdmittedT, guards: GuardPlan) -> None:
        run = GuardRun(guards, admitted.call, admitted.model.id, "request", admitted.notes)
        checked = await run.check(admitted.request)
        if checked.changed:
            self._take_request(admitted, checked)

    def _take_request(self, admitted: AdmittedT, checked: Checked[Any]) -> None:
        """Continue with the request that the guards have changed, and its body."""
        admitted.request = checked.message

    # --- fallbacks

    def _has_fallback(self, fallbacks: ModelFallbacks[Any], call: Call, cause: str) -> bool:
        for name in fallbacks.names_for(cause):
            with suppress(UmgError):
                if not self._access.resolve(call.known_caller, name).is_unpriced:
                    return True
        return False

    async def _fall_back(self, admitted: AdmittedT, fallbacks: ModelFallbacks[Any], error: UmgError) -> None:
        """Admit the call again with the next fallback model, after the current model failed with `error`."""
        while True:
            admitted.request, admitted.notes = self._next_request(admitted.call, fallbacks, error), fallbacks.notes
            try:
                await self._leave_model(admitted)
                for step in self._entrance_again:
                    if (waiting := step(admitted)) is not None:
                        await waiting
                return
            except UmgError as refusal:
                error = refusal

    def _next_request(self, call: Call, fallbacks: ModelFallbacks[RequestT], error: UmgError) -> RequestT:
        request = fallbacks.next_request(call, error)
        release_model(call, self._context.usage)
        return request

    def _take_over(self, admitted: AdmittedT) -> None:
        if (fallbacks := admitted.fallbacks) is not None:
            fallbacks.take_over(admitted.call)
            self._context.observers.fell_back(fallbacks.model.id, admitted.model.id, fallbacks.cause)

    async def _leave_model(self, admitted: AdmittedT) -> None:
        """Release the resources that the operation holds for the failed model. The default has none."""
