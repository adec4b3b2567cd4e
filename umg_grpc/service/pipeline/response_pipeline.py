"""Pipeline of the operations with a response (all but videos): admission, cache, routing, attempts with failover and
hedging, completion. Each operation adds a decoder, an encoder, preferences for channels, and the completion of its
responses with usage and cost.
"""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Generic, TypeAlias, TypeVar

from google.protobuf.message import Message

from umg_grpc.access.limit_errors import model_unpriced
from umg_grpc.base.errors import UmgError
from umg_grpc.operations.canonical_message_unions import CanonicalRequest, CanonicalResponse
from umg_grpc.routing import ModelOperation, RoutePreferences, is_priced
from umg_grpc.service.caching.response_cache_lookup import CacheEntry
from umg_grpc.service.guardrails.guard_driver import GuardRun, clear_field
from umg_grpc.service.guardrails.guarded_bodies import FoundRest
from umg_grpc.service.pipeline.base_pipeline import Admitted, AdmittedT, Pipeline, PipelineContext, RequestStep
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.channel_attempt import AttemptT, RequestEncoder
from umg_grpc.service.pipeline.channel_attempt_order import plan_attempts
from umg_grpc.service.pipeline.failover import FailoverLoop
from umg_grpc.service.pipeline.hedged_requests import first_response
from umg_grpc.service.pipeline.in_flight_usage_record import UsageInFlight
from umg_grpc.service.pipeline.limits_and_budget import acquire_limits, reserve_budget
from umg_grpc.service.pipeline.maximum_call_cost import highest_bound
from umg_grpc.service.pipeline.rate_limit_token_estimates import estimate_tokens
from umg_grpc.service.pipeline.request_validation import validate
from umg_grpc.service.pipeline.requested_end_user import requested_end_user
from umg_grpc.service.pipeline.step_order import (
    ATTEMPTS,
    BUDGET,
    CACHE,
    DECODE,
    GUARD_RESPONSE,
    LIMITS,
    PIPELINE_STEPS,
    PLAN,
    PRICE,
    RESOLVE,
    VALIDATE,
    Step,
)
from umg_grpc.wire.core.gateway_headers import CACHE_HEADER
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest

RequestT = TypeVar("RequestT", bound=CanonicalRequest)
ResponseT = TypeVar("ResponseT", bound=CanonicalResponse)
ResponseStep: TypeAlias = Callable[[AdmittedT, AttemptT, ResponseT], Awaitable[None] | None]
"""Step that completes a successful response, None unless it has to wait. An UmgError fails the attempt."""


class ResponsePipeline(Pipeline[AdmittedT], Generic[RequestT, ResponseT, AdmittedT, AttemptT]):
    """Base class of the pipelines of operations with a response. It has the steps that these operations share."""

    def __init__(
        self,
        context: PipelineContext,
        operation: ModelOperation,
        response_type: type[ResponseT],
        call_type: type[AdmittedT],
    ) -> None:
        super().__init__(context, operation, context.note_unpriced)
        self._response_type: type[ResponseT] = response_type
        self._call_type: type[AdmittedT] = call_type
        steps = self._response_steps()
        self._completion = tuple(steps[step] for step in PIPELINE_STEPS if step in steps)
        guarded: Mapping[Step, ResponseStep[AdmittedT, AttemptT, ResponseT]] = {
            GUARD_RESPONSE: self._run_response_guards,
            **steps,
        }
        self._guarded_completion = tuple(guarded[step] for step in PIPELINE_STEPS if step in guarded)

    def _request_steps(self) -> Mapping[Step, RequestStep[AdmittedT]]:
        return {
            DECODE: self._decode,
            VALIDATE: self._validate,
            RESOLVE: self._resolve,
            PRICE: self._refuse_unpriced,
            LIMITS: self._count,
            BUDGET: self._reserve,
        }

    def _enclosing_steps(self) -> Collection[Step]:
        return [CACHE, PLAN, ATTEMPTS, GUARD_RESPONSE, *self._response_steps()]

    @abstractmethod
    def _response_steps(self) -> Mapping[Step, ResponseStep[AdmittedT, AttemptT, ResponseT]]:
        """Return the steps that complete a response, each with its method."""

    async def admit(self, call: Call, message: Message, request: RequestT, *, stream: bool = False) -> AdmittedT:
        """Run the steps before the attempts. Return the admitted call; if a step fails, its resources are released.
        `message`: gRPC message that contains `request`, checked by the schema. Raise UmgError.
        """
        notes = call.arrival.notes or NO_NOTES
        admitted = self._call_type(call=call, message=message, request=request, notes=notes, stream=stream)
        try:
            for step in self._entrance if self._context.channels.guards is None else self._guarded_entrance:
                if (waiting := step(admitted)) is not None:
                    await waiting
        except BaseException:  # cancellation too
            if (waiting := self._release(admitted)) is not None:
                await waiting
            raise
        return admitted

    def _release(self, admitted: AdmittedT) -> Awaitable[None] | None:
        return None

    async def response_to(self, admitted: AdmittedT, *, use_cache: bool = True) -> ResponseT:
        """Return the response to an admitted call: the cached response, or the response of the first channel that
        succeeds. The response is completed for the caller, and its usage recorded. If all channels fail, the fallbacks
        of the model are called. `use_cache`: False in the call that makes the response for the cache. Raise UmgError.
        """
        call: Call = admitted.call
        attempts: FailoverLoop[AttemptT] | None = None
        while True:
            try:
                if attempts is None:
                    if use_cache and self._may_cache(admitted):
                        entry = await self._cache_entry(admitted)
                        if entry is not None:
                            return await entry.whole(
                                lambda: self.response_to(admitted, use_cache=False), self._response_type
                            )
                    attempts = await self._planned(admitted)
                async with attempts:
                    response: ResponseT
                    if (hedge := admitted.model.hedge) is None or not attempts.has_others:
                        response = await attempts.attempt.call.send(call.seconds_left())
                    else:
                        response = await first_response(
                            attempts, hedge, lambda attempt: attempt.call.send(call.seconds_left())
                        )
                    attempt = attempts.attempt
                    for step in self._completion if admitted.access.guards is None else self._guarded_completion:
                        if (waiting := step(admitted, attempt, response)) is not None:
                            await waiting
                    if attempt.span is not None:
                        attempt.span.read_response(response)  # as the guards have left it
                    if not attempt.is_followed:
                        return response
            except UmgError as error:
                if not use_cache or admitted.fallbacks is None:
                    raise
                attempts = None
                await self._fall_back(admitted, admitted.fallbacks, error)

    # --- guards

    def _run_response_guards(
        self, admitted: AdmittedT, attempt: AttemptT, response: ResponseT
    ) -> Awaitable[None] | None:
        guards = admitted.access.guards
        if guards is None or not guards.response:
            return None
        run = GuardRun(guards, admitted.call, admitted.model.id, "response")
        return self._guard_response(admitted, attempt, response, run)

    async def _guard_response(self, admitted: AdmittedT, attempt: AttemptT, response: ResponseT, run: GuardRun) -> None:
        try:
            run.rest = await self._rest(admitted, response)
            checked = await run.check(response)
        except UmgError:  # the provider charges the response all the same
            if (waiting := self._charge_refused(admitted, attempt, response)) is not None:
                await waiting
            raise
        if checked.changed:
            clear_field(checked.message, "source")  # the provider's body, which has the original
            response.Clear()
            response.MergeFromString(checked.message.SerializeToString())

    async def _rest(self, admitted: AdmittedT, response: ResponseT) -> FoundRest | None:
        """Return the texts of the provider's body that the response does not contain. The default has none."""
        return None

    @abstractmethod
    def _charge_refused(self, admitted: AdmittedT, attempt: AttemptT, response: ResponseT) -> Awaitable[None] | None:
        """Record the usage of a response that a guard refused, so that the caller does not get it."""

    # --- steps before the attempts

    def _decode(self, admitted: AdmittedT) -> Awaitable[None] | None:
        if not admitted.request.HasField("source"):
            admitted.is_canonical = True
        elif admitted.call.arrival.notes is None:
            return self._decode_body(admitted)
        return None

    @abstractmethod
    async def _decode_body(self, admitted: AdmittedT) -> None:
        """Decode the caller's body in `request.source`, and note facts about it for the encoders. Raise UmgError."""

    def _validate(self, admitted: AdmittedT) -> Awaitable[None] | None:
        if admitted.is_canonical:
            return validate(checked_message(admitted))
        return None

    def _refuse_unpriced(self, admitted: AdmittedT) -> None:
        if admitted.access.is_unpriced:
            raise model_unpriced(admitted.request.model)

    def _count(self, admitted: AdmittedT) -> Awaitable[None] | None:
        if admitted.access.has_limits:
            return self._acquire_limits(admitted)
        admitted.call.facts.model = admitted.model.id  # set here, since the call may reach no channel
        return None

    async def _acquire_limits(self, admitted: AdmittedT) -> None:
        model, request = admitted.model, admitted.request
        estimate = estimate_tokens(request, model.described)
        await acquire_limits(admitted.call, self._context.limits, model, estimate, request.source.format)
        admitted.call.facts.model = model.id

    def _reserve(self, admitted: AdmittedT) -> Awaitable[None] | None:
        if admitted.access.has_budget:
            return self._reserve_cost(admitted)
        self._admit(admitted)
        return None

    async def _reserve_cost(self, admitted: AdmittedT) -> None:
        """Reserve the maximum cost of the call, and limit the response to the length that the budget pays for."""
        call, access, usage = admitted.call, admitted.access, self._context.usage
        now = usage.clock.now() if usage is not None else None
        bound = highest_bound(
            self._whole_request(admitted), admitted.model.described, access.price_lists, strict=call.strict, now=now
        )
        if (reserved := await reserve_budget(call, usage, bound.least, bound.most)) is not None:
            call.charges.output_limit = bound.affordable_tokens(reserved)
        self._admit(admitted)

    def _admit(self, admitted: AdmittedT) -> None:
        """Note the facts of a call that has a usage record from now on."""
        admitted.call.charges.prices = admitted.model.prices
        admitted.call.facts.end_user = requested_end_user(admitted.request)

    def _whole_request(self, admitted: AdmittedT) -> DecodedRequest[RequestT]:
        return DecodedRequest(admitted.request, admitted.notes)

    # --- cache, plan and attempts

    def _may_cache(self, admitted: AdmittedT) -> bool:
        return bool(admitted.model.cache) or CACHE_HEADER in admitted.call.arrival.metadata

    async def _cache_entry(self, admitted: AdmittedT) -> CacheEntry | None:
        guards = admitted.access.guards
        return await self._context.cache.entry(
            *(admitted.call, admitted.model, admitted.request, admitted.notes),
            guards="" if guards is None else guards.digest,
        )

    async def _planned(self, admitted: AdmittedT) -> FailoverLoop[AttemptT]:
        """Return the loop over the attempts of an admitted call, best channel first."""
        context, model, access = self._context, admitted.model, admitted.access
        call: Call = admitted.call
        if context.usage is not None:
            call.charges.usage_in_flight = UsageInFlight(context.usage, admitted.request, model.described)
        if call.span is not None:
            call.span.describe(admitted.request, stream=admitted.stream)
        preferences, encoder = await self._plan(admitted)
        router = context.channels.router
        if access.only_target is not None and access.router is router:  # else a reload has replaced the channels
            targets = [access.only_target]
        else:
            targets = router.channels(model.id, self._operation, preferences)
            if access.skips_unpriced:
                targets = [target for target in targets if is_priced(target.prices, self._operation)]
        plan = plan_attempts(targets, encoder, context.shared)
        attempts = FailoverLoop(call, model, admitted.request.model, plan, context.observers, access.caller.show_route)
        if admitted.fallbacks is not None:
            attempts.has_fallback = self._has_fallback(admitted.fallbacks, call, "unavailable")
        return attempts

    @abstractmethod
    async def _plan(self, admitted: AdmittedT) -> tuple[RoutePreferences, RequestEncoder[AttemptT]]:
        """Return a call's preferences for the order of the channels, and the encoder of its request for each."""


def checked_message(admitted: Admitted[RequestT]) -> Message:
    """Return the message to check by the schema: the request or, if it is empty, the message that has it."""
    message, request = admitted.message, admitted.request
    return message if message is request or not request.ListFields() else request
