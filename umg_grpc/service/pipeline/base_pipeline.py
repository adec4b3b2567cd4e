"""Pipeline that the calls of all operations except videos go through: admission, cache, routing, attempts with failover
and hedging, completion of the response.

An operation adds its decoder, its encoder, its preferences for channels, and the completion of its responses with usage
and cost.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec
from google.protobuf.message import Message

from umg_grpc.access.key_limits import KeyLimits
from umg_grpc.access.limit_errors import model_unpriced
from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.routing import Operation, PublicModel, RoutePreferences, is_priced
from umg_grpc.service.caching.cache_lookup import CacheLookup
from umg_grpc.service.pipeline.attempt import AttemptT, RequestEncoder
from umg_grpc.service.pipeline.attempt_observers import AttemptObservers
from umg_grpc.service.pipeline.attempt_plan import plan_attempts
from umg_grpc.service.pipeline.call import Call
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.pipeline.failover import FailoverLoop
from umg_grpc.service.pipeline.hedged_requests import first_to_answer
from umg_grpc.service.pipeline.limits_and_budget import acquire_limits, reserve_budget
from umg_grpc.service.pipeline.maximum_cost import highest_bound
from umg_grpc.service.pipeline.model_access import Access, ModelAccess
from umg_grpc.service.pipeline.schema_validation import check
from umg_grpc.service.pipeline.token_estimates import estimate_tokens
from umg_grpc.service.pipeline.usage_recording import UsageInFlight
from umg_grpc.service.resilience.channel_protection import Resilience
from umg_grpc.v1 import pb
from umg_grpc.wire.core.gateway_headers import CACHE
from umg_grpc.wire.request_notes import NO_NOTES, DecodedRequest, RequestNotes

RequestT = TypeVar("RequestT", bound=pb.GenerateRequest | pb.EmbedRequest | pb.RerankRequest | pb.GenerateImageRequest)
ResponseT = TypeVar(
    "ResponseT", bound=pb.GenerateResponse | pb.EmbedResponse | pb.RerankResponse | pb.GenerateImageResponse
)


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


class Admitted(msgspec.Struct, Generic[RequestT], kw_only=True, eq=False):
    """Call that the pipeline has admitted: its decoded request, the model, and the access of its key to the model."""

    call: Call
    request: RequestT  # as the caller sent it
    notes: RequestNotes
    access: Access
    model: PublicModel


AdmittedT = TypeVar("AdmittedT", bound=Admitted)  # type: ignore[type-arg]  # with any request


class Pipeline(ABC, Generic[RequestT, ResponseT, AdmittedT, AttemptT]):
    """Base class of the pipelines of the operations, with the steps that all share."""

    def __init__(self, context: PipelineContext, operation: Operation, response_type: type[ResponseT]) -> None:
        self._context = context
        self._operation = operation
        self._access = ModelAccess(context.channels, operation, context.note_unpriced)
        self._response_type: type[ResponseT] = response_type

    async def read(
        self, call: Call, message: Message, request: RequestT, *, counted: bool = False
    ) -> tuple[RequestT, RequestNotes, Access]:
        """Return the decoded request of a call, facts about its body for the encoders, and the access of its key to the
        model.

        `message`: gRPC message that contains `request`, on which the rules of the schema are checked. `counted`:
        whether only the tokens of the request are counted. Raise UmgError if a rule is broken, if the key may not use
        its model, or if the key has a budget and its model no price. A request that is decoded from a caller's body is
        not validated again: the rules of the codecs are as strict (tested for every codec), and validation of a long
        conversation takes longer than all other steps here.
        """
        notes = call.arrival.notes or NO_NOTES
        if not request.HasField("source"):
            await self._validate(message if message is request or not request.ListFields() else request)
        elif call.arrival.notes is None:
            request, notes = await self._decode(request, counted=counted)
        self._check_content(request)
        access = self._access.resolve(call.known_caller, request.model)
        if access.is_unpriced and not counted:
            raise model_unpriced(request.model)
        return request, notes, access

    async def count_and_reserve(self, call: Call, access: Access, request: RequestT, notes: RequestNotes) -> None:
        """Count the call against the limits of its key and model, and reserve its maximum cost from the budget, both
        until the call ends. `access`: access of its key to the model. `notes`: facts about the decoded body. Raise
        UmgError: RATE_LIMITED, QUOTA_EXHAUSTED.
        """
        model = access.resolved.model
        if access.has_limits:
            await self.count_request(call, model, request)
        call.facts.model = model.id  # set here, since the call may reach no channel
        if access.has_budget:
            await self.reserve_cost(call, access, DecodedRequest(request, notes))
        call.charges.prices = model.prices

    async def count_request(self, call: Call, model: PublicModel, request: RequestT) -> None:
        """Count the call against the limits of its key and model, until the call ends. Raise UmgError(RATE_LIMITED)."""
        estimate = estimate_tokens(request, model.described)
        await acquire_limits(call, self._context.limits, model, estimate, request.source.format)

    async def reserve_cost(self, call: Call, access: Access, decoded: DecodedRequest[RequestT]) -> None:
        """Reserve the maximum cost of a call from the budget of its key until the call ends, and limit the response to
        the length that the budget pays for. `access`: access of the key to the model. `decoded`: request with all
        messages of its conversation. Raise UmgError(QUOTA_EXHAUSTED).
        """
        described = access.resolved.model.described
        now = self._context.usage.clock.now() if self._context.usage is not None else None
        bound = highest_bound(decoded, described, access.price_lists, strict=call.strict, now=now)
        await reserve_budget(call, self._context.usage, bound.least, bound.most)
        if call.charges.reservation is not None:
            call.charges.output_limit = bound.affordable_tokens(call.charges.reservation.micro_credits)

    async def answer(self, admitted: AdmittedT, *, use_cache: bool = True) -> ResponseT:
        """Return the response to an admitted call: the cached one, else that of the first channel that succeeds,
        completed for the caller, with its usage recorded. `use_cache`: False in the call that makes the response for
        the cache. Raise UmgError.
        """
        call: Call = admitted.call
        if use_cache and (admitted.model.cache or CACHE in call.arrival.metadata):
            entry = await self._context.cache.entry(call, admitted.model, admitted.request, admitted.notes)
            if entry is not None:
                return await entry.whole(lambda: self.answer(admitted, use_cache=False), self._response_type)
        attempts = await self.attempts(admitted)
        while True:
            async with attempts:
                response: ResponseT
                if (hedge := admitted.model.hedge) is None or not attempts.has_others:
                    response = await attempts.attempt.call.send(call.seconds_left())
                else:
                    response = await first_to_answer(
                        attempts, hedge, lambda attempt: attempt.call.send(call.seconds_left())
                    )
                attempt = attempts.attempt
                if attempt.span is not None:
                    attempt.span.read_response(response)
                return await self._settle(admitted, attempt, response)

    async def attempts(self, admitted: AdmittedT, *, stream: bool = False) -> FailoverLoop[AttemptT]:
        """Return the loop over the attempts of an admitted call, best channel first. `stream`: whether a stream is
        requested. Raise UmgError if no channel can be tried.
        """
        context, model, access = self._context, admitted.model, admitted.access
        call: Call = admitted.call
        if context.usage is not None:
            call.charges.usage_in_flight = UsageInFlight(context.usage, call, admitted.request, model.described)
        if call.span is not None:
            call.span.describe(self._operation, admitted.request, stream=stream)
        preferences, encoder = await self._plan(admitted, stream=stream)
        router = context.channels.router
        if access.only_target is not None and access.router is router:  # else a reload has replaced the channels
            targets = [access.only_target]
        else:
            targets = router.channels(model.id, self._operation, preferences)
            if access.skips_unpriced:
                targets = [target for target in targets if is_priced(target.prices, self._operation)]
        plan = plan_attempts(targets, encoder, context.shared)
        return FailoverLoop(call, model, admitted.request.model, plan, context.observers, access.caller.show_route)

    async def _validate(self, message: Message) -> None:
        """Check a request by the rules of the schema. Raise UmgError for the first one that the message breaks."""
        check(message)

    def _check_content(self, request: RequestT) -> None:
        """Raise UmgError for a request that no model can serve, for example one without messages. The default accepts
        all.
        """

    @abstractmethod
    async def _decode(self, given: RequestT, *, counted: bool) -> DecodedRequest[RequestT]:
        """Return the request decoded from the caller's body in `given.source`. Raise UmgError with the messages of the
        body's format. `counted`: whether only the tokens of the request are counted.
        """

    @abstractmethod
    async def _plan(self, admitted: AdmittedT, *, stream: bool) -> tuple[RoutePreferences, RequestEncoder[AttemptT]]:
        """Return the preferences for the order of the channels of a call, and the encoder of its request for each
        channel.
        """

    @abstractmethod
    async def _settle(self, admitted: AdmittedT, attempt: AttemptT, response: ResponseT) -> ResponseT:
        """Return the response of a successful attempt, completed for the caller, and record its usage and cost."""
