"""Order in which the channels of a call are tried."""

from collections.abc import Iterable, Mapping
from typing import Generic

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.routing import Target
from umg_grpc.service.pipeline.channel_attempt import AttemptT, RequestEncoder
from umg_grpc.service.resilience.channel_protection import Resilience
from umg_grpc.service.resilience.concurrency_limiter import ConcurrencyLimiter
from umg_grpc.wire.dropped_fields_report import header_name


class AttemptPlan(msgspec.Struct, Generic[AttemptT], eq=False):
    """Plan of the attempts of one call. Every channel is tried once, in the order of the targets, in three groups:
    channels with a free slot; channels that were deferred because they have no free slot or an open circuit breaker;
    channels whose format cannot express all of the request, fewest lost fields first. Channels that may be tried a
    second time are in a separate list.
    """

    targets: list[Target]
    """Channels for which the request was not encoded yet, best first."""
    encoder: RequestEncoder[AttemptT]
    shared: Resilience
    """Circuit breakers, limiters and retry budgets, which all calls share."""
    limiters: Mapping[str, ConcurrencyLimiter]
    """Channel -> concurrency limiter, at the call's start: a reload of the config may replace those of `shared`."""
    is_single: bool
    """Whether the call has only one target."""
    encoding_error: UmgError | None = None
    """First error with which the request could not be encoded for a channel; None if there was none."""
    refusals: tuple[str, ...] = ()
    """Channels for which it could not be encoded, each with the reason ("name: untranslatable seed")."""
    _again: Target | None = None  # the first of `targets`, if its request is encoded again
    _urgent: list[AttemptT] = []  # to try before all others
    _deferred: list[AttemptT] = []
    _lossy: list[AttemptT] = []
    _repeatable: list[AttemptT] = []

    @property
    def has_untried(self) -> bool:
        """Whether a channel is left that was not tried yet."""
        return bool(self.targets or self._deferred or self._lossy)

    @property
    def encodes_again(self) -> bool:
        """Whether the next attempt repeats a failed one at the same channel, with another encoding of the request."""
        return self._again is not None

    async def next(self) -> AttemptT | None:
        """Return the next attempt: a planned repetition, else the next channel not tried yet; None if none is left."""
        if self._urgent:
            return self._urgent.pop(0)
        while self.targets:
            target, again, self._again = self.targets.pop(0), self._again, None
            try:
                attempt = await self.encoder.encode(target)
            except UmgError as error:
                # for this channel only: another one may accept the request
                self.refuse(target, error)
                continue
            if self.is_single or target is again:  # fields that it loses now are the reason for the repetition
                return attempt
            if attempt.lost_fields:
                self._lossy.append(attempt)
            elif self._has_room(attempt):
                return attempt
            else:
                self._deferred.append(attempt)
        if self._deferred:
            soonest = min(self._deferred, key=self._expected_wait)
            self._deferred.remove(soonest)
            return soonest
        if not self._lossy:
            return None
        best = min(self._lossy, key=lambda attempt: attempt.lost_fields)
        self._lossy.remove(best)
        return best

    async def next_hedge(self, hedged: AttemptT) -> AttemptT | None:
        """Return an attempt at an untried channel that can run beside the attempt `hedged`; None if there is none. The
        channel is healthy and has a free slot, and its format expresses at least as many fields of the request.
        """
        skipped, found = list[AttemptT](), None
        while found is None and (self.targets or self._deferred) and (attempt := await self.next()) is not None:
            if attempt.lost_fields > hedged.lost_fields:
                self._lossy.append(attempt)
                break
            if self.shared.is_healthy(attempt.target) and self._has_room(attempt):
                found = attempt
            else:
                skipped.append(attempt)  # a hedge does not wait; it may be tried after both have failed
        self._deferred.extend(skipped)
        return found

    def refuse(self, target: Target, error: UmgError) -> None:
        """Record that the request cannot be encoded for a channel, because of `error`."""
        self.encoding_error = self.encoding_error or error
        field = error.metadata.get("field")
        reason = f"{error.name.lower()} {header_name(field)}" if field else error.name.lower()
        self.refusals += (f"{target.channel.name}: {reason}",)

    def defer(self, attempt: AttemptT) -> None:
        """Plan an attempt for later, after the channels that were not tried yet."""
        self._deferred.append(attempt)

    def try_immediately(self, attempt: AttemptT) -> None:
        """Plan the attempt as the next one, before all others, for example with another key of its channel."""
        self._urgent.append(attempt)

    def encode_again(self, target: Target) -> None:
        """Plan another attempt at the channel as the next one, for which the request is encoded again."""
        self.targets.insert(0, target)
        self._again = target

    def add_retry(self, attempt: AttemptT, *, first: bool = False) -> None:
        """Add a failed attempt, to repeat when no untried channel is left. `first`: before other repetitions."""
        self._repeatable.insert(0 if first else len(self._repeatable), attempt)

    def next_retry(self) -> AttemptT | None:
        """Return the next failed attempt to repeat, and remove it from the plan; None if there is none."""
        return self._repeatable.pop(0) if self._repeatable else None

    def skip_model(self, model: str) -> None:
        """Remove all further attempts at channels with the provider's model id `model`."""
        self.targets = [target for target in self.targets if target.model != model]
        self._deferred = [attempt for attempt in self._deferred if attempt.target.model != model]
        self._repeatable = [attempt for attempt in self._repeatable if attempt.target.model != model]
        self._lossy = [attempt for attempt in self._lossy if attempt.target.model != model]

    def _has_room(self, attempt: AttemptT) -> bool:
        return (limiter := self.limiters.get(attempt.channel)) is None or limiter.free > 0

    def _expected_wait(self, attempt: AttemptT) -> float:
        return 0.0 if (limiter := self.limiters.get(attempt.channel)) is None else limiter.expected_wait


def plan_attempts(
    targets: Iterable[Target], encoder: RequestEncoder[AttemptT], shared: Resilience
) -> AttemptPlan[AttemptT]:
    """Return the order in which the channels of a call are tried. `targets`: the channels, the preferred one first."""
    untried = list(targets)
    return AttemptPlan(untried, encoder, shared, shared.limiters, len(untried) == 1)
