"""Rules for failed attempts: which attempts may be repeated at their channel, and which failure the caller gets."""

import re

import msgspec

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.provider_failure import MAX_MESSAGE_CHARACTERS, FailureKind, ProviderFailure
from umg_grpc.routing import PublicModel, Target, model_not_found
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.error_message_redaction import clean
from umg_grpc.wire.errors.failure_kinds import Evidence, kind_of

REPEATABLE_FAILURES = frozenset({Failure.NOT_SENT, Failure.TRANSIENT, Failure.AMBIGUOUS, Failure.MODEL})
"""Failures that are often temporary, after which the same channel may be tried again."""
FINAL_FAILURES = frozenset({None, Failure.CALLER, Failure.TOO_LARGE})
"""Failures after which no other channel is tried: the request is invalid or too large, or the deadline is over."""
FAILURE_PRECEDENCE = (
    Failure.DOWN,
    Failure.NOT_SENT,
    Failure.AMBIGUOUS,
    Failure.TRANSIENT,
    Failure.MODEL,
    Failure.OVERLOADED,
    Failure.CONTEXT,
)
"""Failures by rising importance: of several ones the caller gets the most important, of equal ones the latest."""
NO_SLOT_PRECEDENCE = FAILURE_PRECEDENCE.index(Failure.TRANSIENT) + 0.5
"""Importance of a healthy channel without a free slot, above temporary failures: a retry may soon succeed."""


def is_repeatable(error: UmgError) -> bool:
    """Return whether the same channel may be tried again; not after a time limit, which would be reached again."""
    return error.failure in REPEATABLE_FAILURES and "deadline" not in error.metadata


class FailureLog(msgspec.Struct, eq=False):
    """Failures of the attempts of one call. The most important one becomes the error for the caller."""

    route: tuple[str, ...] = ()
    """Channels that failed, each with the reason ("name: overloaded"), for the header `x-umg-route`."""
    _failures: tuple[UmgError, ...] = ()
    _channels_of_refused_keys: tuple[str, ...] = ()

    def add(self, error: UmgError, channel: str = "") -> None:
        """Add a failure. `channel`: name of the channel; "" if no provider was called."""
        self._failures += (error,)
        if channel:
            self.route += (f"{channel}: {error.failure.value if error.failure else error.name.lower()}",)

    def count_refused_key(self, channel: str) -> int:
        """Count a refused key of the channel. Return the number of the channel's keys that were refused in the call."""
        self._channels_of_refused_keys += (channel,)
        return self._channels_of_refused_keys.count(channel)

    def take_most_important(self) -> UmgError | None:
        """Remove all failures, and return the most important one; None if there was none."""
        failures, self._failures = self._failures, ()  # avoids a reference cycle: a raised error holds this call
        return max(reversed(failures), key=_precedence, default=None)


def _precedence(error: UmgError) -> tuple[float, float]:
    """Return the sort key of a failure: the greatest one is the most important, which the caller gets."""
    failure = error.failure
    if failure is Failure.NOT_SENT and error.reason == pb.ERROR_REASON_UNAVAILABLE:
        return NO_SLOT_PRECEDENCE, 0.0
    if failure is Failure.OTHER_KEY:  # a failure of one key ranks as the same failure of the whole channel
        failure = Failure.DOWN if error.retry_after is None else Failure.OVERLOADED
    return FAILURE_PRECEDENCE.index(failure) if failure in FAILURE_PRECEDENCE else -1, -(error.retry_after or 0.0)


def facts_of(error: UmgError) -> ProviderFailure:
    """Return the facts about a provider's failure (kind, status, message) that an error contains."""
    status = int(error.metadata.get("upstream_status", "0"))
    kind = kind_of(Evidence(error.reason, status))
    return ProviderFailure(kind, status, message=clean(error.message, MAX_MESSAGE_CHARACTERS))


def with_channel(error: UmgError, target: Target, model: PublicModel, requested_model: str) -> UmgError:
    """Return the error of an attempt with facts for operators; `error` gets the facts too. A provider's error about an
    unknown model is an error of the caller if callers choose the provider's model name by a pattern. If the config
    names the model, it is an error of the config. `requested_model`: id or alias in the request.
    """
    missing = error.failure is Failure.DOWN and error.metadata.get("upstream_status") == "404"
    is_chosen = missing and all(served.id != model.id for served in target.channel.models)
    unknown = is_chosen
    if error.failure is not None:
        facts = error.facts or facts_of(error)  # errors of upstreams in the gateway have none
        is_wrong_model = facts.kind is FailureKind.WRONG_MODEL
        unknown = is_chosen or (missing and target.is_listed and is_wrong_model)
        is_callers = is_chosen and is_wrong_model
        error.facts = facts._replace(model=target.model, kind=FailureKind.REQUEST if is_callers else facts.kind)
    if not unknown:
        return error
    not_found = model_not_found(requested_model).with_failure(Failure.CONTEXT)
    not_found.refusal = error.refusal  # the channel may have the model in another protocol
    return not_found.with_facts(error.facts).with_usage(error.usage)


def under_public_name(error: UmgError, target: Target, model: str) -> UmgError:
    """Return a provider's error with the caller's `model` in place of the provider's model id, which is private."""
    if target.model in (model, "") or target.model not in error.message:
        return error
    # the longer id first: either may be a part of the other one, and the message may have the public id already
    ids = "|".join(re.escape(each) for each in sorted((target.model, model), key=len, reverse=True))
    named = re.compile(rf"(?<![\w.-])(?:{ids})(?![\w-]|\.\w)")
    return error.with_message(named.sub(lambda _: model, error.message))


def too_slow() -> UmgError:
    """Return the error of a slow attempt that was cancelled, since the hedge beside it answered first."""
    message = "the provider was too slow to begin; another answered"
    return UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline="first_byte").with_failure(Failure.AMBIGUOUS)


def circuit_open(model: str, seconds: float, *, is_unpaid: bool = False) -> UmgError:
    """Return the error for open circuit breakers. `seconds`: until a call is possible. `is_unpaid`: without credit."""
    wait = max(1, round(seconds))
    message = f"the providers of the model {model} do not answer now; try again in {wait} s"
    error = UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds=str(wait)).with_failure(Failure.DOWN)
    return error.with_facts(ProviderFailure(FailureKind.UNPAID)) if is_unpaid else error


def no_channel(model: str) -> UmgError:
    """Return the error for a model of which no channel can be tried at the moment."""
    message = f"no channel of the model {model} can serve now; try again"
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, message).with_failure(Failure.DOWN)
