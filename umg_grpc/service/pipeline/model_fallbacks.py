"""Fallbacks: if the model of a call fails, the call is repeated with other models, which depend on the cause."""

import copy
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.price_calculation import Prices
from umg_grpc.routing import PublicModel
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.resilience.circuit_breaker import has_no_quota
from umg_grpc.v1 import pb
from umg_grpc.wire.core.gateway_headers import ROUTE_HEADER
from umg_grpc.wire.facts_beside_request import RequestNotes

UNAVAILABLE_FAILURES = frozenset(
    {
        *(Failure.DOWN, Failure.NOT_SENT, Failure.TRANSIENT, Failure.OVERLOADED),
        *(Failure.MODEL, Failure.OTHER_KEY, Failure.AMBIGUOUS),
    }
)
"""Failures of all channels, which are none of the request."""
TOO_LONG = frozenset({pb.ERROR_REASON_CONTEXT_TOO_LONG, pb.ERROR_REASON_UPSTREAM_TOO_LARGE})

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class RequestOfModel(Protocol):
    """Request message of an operation that names its model."""

    model: str


RequestT = TypeVar("RequestT", bound=RequestOfModel)


def cause_of(error: UmgError) -> str:
    """Return the cause of a failure, a key of the config; "" for errors of the caller, of limits and of budgets."""
    if error.reason in TOO_LONG and error.failure in (Failure.CONTEXT, None):
        return "context"
    if error.reason == pb.ERROR_REASON_UPSTREAM_RATE_LIMITED and error.failure is Failure.CONTEXT:
        return "context"  # the request alone exceeds the tokens of a minute
    if error.reason == pb.ERROR_REASON_CONTENT_BLOCKED:
        return "content"
    if error.failure not in UNAVAILABLE_FAILURES:
        return ""
    return "quota" if has_no_quota(error) else "unavailable"


class ModelFallbacks(msgspec.Struct, Generic[RequestT], eq=False):
    """Fallbacks of one call's model. The cause of its failure selects a list; each model in it is tried once."""

    model: PublicModel
    """Model that the caller requested."""
    request: RequestT
    """Request as it was before the rules of a model were applied."""
    notes: RequestNotes
    cause: str = ""
    """Cause of the failure of the model; "" before it."""
    _errors: list[UmgError] = []  # that of the model, until the end
    _names: list[str] = []  # of the fallbacks that are left
    _name: str = ""  # of the current fallback
    _attempts: int = 0  # of the call before the current fallback
    _prices: Prices | None = None  # by which the last attempts are charged

    def names_for(self, cause: str) -> Sequence[str]:
        """Return the models to call after a failure of the current model with this cause; none if the cause is ""."""
        names: Sequence[str] = self._names if self._errors else getattr(self.model.fallbacks, cause, ())
        return names

    def next_request(self, call: Call, error: UmgError) -> RequestT:
        """Return the request for the next fallback model. If none is left, raise the error of the requested model."""
        if not self._errors:
            self.cause, self._prices = cause_of(error), call.charges.prices
            self._names = [*self.names_for(self.cause)]
            self._errors.append(error.with_traceback(None))
        elif call.facts.attempts == self._attempts:
            call.facts.failed_before += (f"{self._name}: {error.name.lower()}",)
        else:
            self._prices = call.charges.prices
        if not self._names or call.seconds_left() <= 0:
            del error  # its own frame would refer to it
            raise self._end(call) from None
        self._name, self._attempts = self._names.pop(0), call.facts.attempts
        request = copy.deepcopy(self.request)
        request.model = self._name
        return request

    def take_over(self, call: Call) -> None:
        """Take note that the call now uses the current fallback model."""
        call.facts.requested_model, call.facts.fallback_cause = self.model.id, self.cause
        call.facts.fallback_route = f"fallback={self._name}; cause={self.cause}; "
        logger.warning(
            "a fallback is called",
            request_id=call.arrival.request_id,
            model=self.model.id,
            fallback=self._name,
            cause=self.cause,
        )

    def _end(self, call: Call) -> UmgError:
        """End the fallbacks, since none is left. Return the error of the requested model, which the caller gets."""
        facts = call.facts
        facts.model, facts.requested_model, facts.fallback_cause, facts.fallback_route = self.model.id, "", "", ""
        call.charges.prices = self._prices
        if call.caller.show_route and self.cause:
            reason = ", ".join(facts.failed_before)
            call.headers[ROUTE_HEADER] = f"channel={facts.channel}; attempts={facts.attempts}; reason={reason}"
        return self._errors.pop()
