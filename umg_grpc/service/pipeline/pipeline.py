"""Pipeline of an operation: admission, cached response, routing, attempts with failover and hedging, settlement.

All operations go through these steps. An operation adds its decoder, its encoder and route preferences, and its
settlement.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from google.protobuf.message import Message

from umg_grpc.access.key_limits import KeyLimits
from umg_grpc.access.limited import LimitedModel
from umg_grpc.access.usage import UsageLog
from umg_grpc.errors import UmgError
from umg_grpc.routing import Operation, PublicModel, RoutePreferences
from umg_grpc.service.caching.cached_responses import CacheLookup
from umg_grpc.service.pipeline.attempt import AttemptT, RequestEncoder
from umg_grpc.service.pipeline.attempt_plan import AttemptPlan
from umg_grpc.service.pipeline.call import Call
from umg_grpc.service.pipeline.channels import Channels
from umg_grpc.service.pipeline.cost_bounds import cost_bound
from umg_grpc.service.pipeline.failover import FailoverLoop
from umg_grpc.service.pipeline.hedging import first_to_answer
from umg_grpc.service.pipeline.model_access import Access, ModelAccess
from umg_grpc.service.pipeline.token_estimates import estimate_tokens
from umg_grpc.service.pipeline.usage import UsageInFlight
from umg_grpc.service.pipeline.validation import check
from umg_grpc.service.resilience.shared import Resilience
from umg_grpc.v1 import pb
from umg_grpc.wire import headers_of_limits
from umg_grpc.wire.core.headers import CACHE
from umg_grpc.wire.request_notes import NO_NOTES, DecodedRequest, RequestNotes

RequestT = TypeVar("RequestT", bound=pb.GenerateRequest | pb.EmbedRequest | pb.RerankRequest | pb.GenerateImageRequest)
ResponseT = TypeVar(
    "ResponseT", bound=pb.GenerateResponse | pb.EmbedResponse | pb.RerankResponse | pb.GenerateImageResponse
)


@dataclass(frozen=True)
class PipelineContext:
    """State of the process that all pipelines share."""

    channels: Channels
    limits: KeyLimits
    body_limit: int
    """Maximum size of a source document in bytes, as on the HTTP face."""
    shared: Resilience
    cache: CacheLookup
    usage: UsageLog | None = None
    """None without usage records."""


@dataclass(slots=True, kw_only=True)  # not frozen: creating a frozen one takes twice as long
class Admitted(Generic[RequestT]):
    """Call that the pipeline has admitted, with its decoded request and its model."""

    call: Call
    request: RequestT  # as the caller sent it
    notes: RequestNotes
    model: PublicModel


AdmittedT = TypeVar("AdmittedT", bound=Admitted)  # type: ignore[type-arg]  # with any request


class Pipeline(ABC, Generic[RequestT, ResponseT, AdmittedT, AttemptT]):
    """Pipeline of one operation, with the steps that all operations share."""

    def __init__(self, context: PipelineContext, operation: Operation, response_type: type[ResponseT]) -> None:
        self._context = context
        self._operation = operation
        self._access = ModelAccess(context.channels, operation)
        self._response_type: type[ResponseT] = response_type

    async def read(
        self, call: Call, message: Message, request: RequestT, *, counted: bool = False
    ) -> tuple[DecodedRequest[RequestT], Access]:
        """Return the request, decoded from its source document unless the caller has decoded it, and the access to its
        model. Raise UmgError if it breaks a rule of the schema (checked on `message`, which contains the request), or
        for a model that the key may not use. `counted`: only its tokens are counted.

        A decoded request is not validated again: the rules of the codecs are as strict (tested for every codec), and
        validation of a long conversation takes longer than all other steps here.
        """
        notes = call.arrival.notes or NO_NOTES
        if not request.HasField("source"):
            await self._validate(message if message is request or not request.ListFields() else request)
        elif call.arrival.notes is None:
            request, notes = await self._decode(request, counted=counted)
        self._check_content(request)
        return DecodedRequest(request, notes), self._access.resolve(call.caller, request.model)

    async def count_request(self, call: Call, access: Access, request: RequestT) -> None:
        """Count the call against the limits of its key and model, until the call ends. Raise UmgError(RATE_LIMITED)."""
        if access.has_limits:
            await self._acquire(call, access, request)
        call.facts.model = access.resolved.model.id  # set here, since the call may reach no channel

    async def _acquire(self, call: Call, access: Access, request: RequestT) -> None:
        """Count the call against the limits of its key, then those of its model. Raise UmgError(RATE_LIMITED)."""
        limits, caller, model = self._context.limits, access.caller, access.resolved.model
        estimate = estimate_tokens(request, model.described)
        own = [limits.open(caller)] if caller.has_limits else []
        shared = [] if model.limits is None else [limits.open(LimitedModel(model.id, model.limits))]
        call.charges.admissions = (*own, *shared)
        try:
            for admission in call.charges.admissions:
                await admission.acquire(estimate)
        finally:
            for admission in own:
                headers = headers_of_limits(request.source.format)
                call.headers.update(headers(admission.status, datetime.now(UTC)))

    async def reserve_cost(self, call: Call, access: Access, decoded: DecodedRequest[RequestT]) -> None:
        """Reserve the maximum cost of the call until it ends, if its key has a budget, and limit the answer to it.
        `decoded`: with the whole conversation. Raise UmgError(QUOTA_EXHAUSTED).
        """
        model = access.resolved.model
        if access.has_budget:
            await self._reserve(call, model, decoded)
        call.charges.prices = model.prices

    async def _reserve(self, call: Call, model: PublicModel, decoded: DecodedRequest[RequestT]) -> None:
        """Reserve the maximum cost of a call of a key with a budget. Raise UmgError."""
        if self._context.usage is None:
            message = "this API key has a budget, and the gateway keeps no usage records; set `usage: {enabled: true}`"
            raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message)
        bound = cost_bound(decoded, model.described, model.prices, strict=call.strict)
        budgets = self._context.usage.budgets
        call.charges.reservation = await budgets.reserve(call.caller, bound.least, bound.most)
        if call.charges.reservation is not None:
            call.charges.output_limit = bound.affordable_tokens(call.charges.reservation.micro_credits)

    async def answer(self, admitted: AdmittedT) -> ResponseT:
        """Return the cached response, else the response of the first channel that answers, with its usage counted and
        stored as required. Raise UmgError.
        """
        call: Call = admitted.call
        entry = None
        if admitted.model.cache or CACHE in call.arrival.metadata:
            entry = await self._context.cache.entry(call, admitted.model, admitted.request, admitted.notes)
        if entry is None:
            return await self._call_channels(admitted)
        return await entry.whole(lambda: self._call_channels(admitted), self._response_type)

    async def attempts(self, admitted: AdmittedT, *, stream: bool = False) -> FailoverLoop[AttemptT]:
        """Return the attempts of the call, best channel first."""
        shared, router = self._context.shared, self._context.channels.router
        if self._context.usage is not None:
            admitted.call.charges.usage_in_flight = UsageInFlight(
                self._context.usage, admitted.call, admitted.request, admitted.model.described
            )
        if admitted.call.span is not None:
            admitted.call.span.describe(self._operation, admitted.request, stream=stream)
        preferences, encoder = await self._plan(admitted, stream=stream)
        targets = router.channels(admitted.model.id, self._operation, preferences)
        plan: AttemptPlan[AttemptT] = AttemptPlan(targets, encoder, shared)
        return FailoverLoop(admitted.call, admitted.model, admitted.request.model, plan)

    async def _call_channels(self, admitted: AdmittedT) -> ResponseT:
        """Return the response of the first channel that answers, with its usage counted and stored as required."""
        call: Call = admitted.call
        attempts = await self.attempts(admitted)
        while True:
            with await attempts.next():
                response: ResponseT
                if (hedge := admitted.model.hedge) is None or not attempts.has_others:
                    response = await attempts.attempt.call.send(call.seconds_left())
                else:
                    response = await first_to_answer(
                        attempts, hedge, lambda attempt: attempt.call.send(call.seconds_left())
                    )
                if attempts.attempt.span is not None:
                    attempts.attempt.span.read_response(response)
                return await self._settle(admitted, attempts.attempt, response)

    async def _validate(self, message: Message) -> None:
        """Raise UmgError for the first rule of the schema that the message breaks."""
        check(message)

    def _check_content(self, request: RequestT) -> None:
        """Raise UmgError for a request that no model can answer."""

    @abstractmethod
    async def _decode(self, given: RequestT, *, counted: bool) -> DecodedRequest[RequestT]:
        """Decode the source document of a request. Raise UmgError with the messages of its own format."""

    @abstractmethod
    async def _plan(self, admitted: AdmittedT, *, stream: bool) -> tuple[RoutePreferences, RequestEncoder[AttemptT]]:
        """Return the preferences for the order of the channels, and the encoder of the request."""

    @abstractmethod
    async def _settle(self, admitted: AdmittedT, attempt: AttemptT, response: ResponseT) -> ResponseT:
        """Complete the response of the attempt, and account for it."""
