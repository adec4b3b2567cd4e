"""Healing of refusals: a request that a provider refused for one of its members is sent once more without it, or with
it adapted.
"""

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.quirks import ChannelQuirks
from umg_grpc.routing import Target
from umg_grpc.service.pipeline.attempt_observers import AttemptObservers
from umg_grpc.service.resilience.learned_quirks import LearnedQuirks
from umg_grpc.wire.errors.refusal_mending import Mended, mend
from umg_grpc.wire.errors.refusal_reading import read_refusal


class RefusalHealing:
    """Healing of one call: at most one refusal is mended, and learned if the mended request succeeds."""

    def __init__(self, learned: LearnedQuirks, observers: AttemptObservers, *, is_strict: bool) -> None:
        """Create the healing of a call. `is_strict`: whether the caller accepts no change of the request, so that
        nothing is mended.
        """
        self._learned = learned
        self._observers = observers
        self._is_strict = is_strict
        self._target: Target | None = None  # whose refusal is mended; None while none is
        self._protocol = ""
        self._mended: list[Mended] = []
        self._refusal: UmgError | None = None
        self._refused_body = b""

    def quirks_of(self, target: Target) -> ChannelQuirks:
        """Return the quirks with which the request is encoded for the target."""
        if self._is_strict:
            return target.quirks
        quirks = self._learned.applied(target)
        if target is self._target:
            for each in self._mended:
                quirks = quirks.restricted(self._protocol, each.quirks)
        return quirks

    def can_mend(self, target: Target, error: UmgError) -> bool:
        """Return whether the target's refusal can be mended, and keep how. A second refusal of the same call is not
        mended.
        """
        refusal = error.refusal
        if refusal is None or self._is_strict or self._target is not None or not target.channel.heal:
            return False
        refused = read_refusal(refusal.protocol, refusal.status, refusal.body)
        mended = mend(refusal.protocol, refused, refusal.sent, target.quirks.written) if refused else []
        if not mended:
            return False
        self._target, self._protocol, self._mended = target, refusal.protocol, mended
        self._refusal, self._refused_body = error, refusal.sent
        return True

    def check_change(self, target: Target, body: bytes) -> None:
        """Raise the provider's refusal again if the request that was encoded for its repair is the refused one."""
        if target is self._target and self._refusal is not None and body == self._refused_body:
            raise self._refusal

    def refusal_of(self, target: Target) -> UmgError | None:
        """Return the refusal that is being mended for the target; None if there is none."""
        return self._refusal if target is self._target else None

    def note_success(self, target: Target) -> None:
        """Learn the restrictions under which the target accepted the mended request."""
        if target is not self._target:
            return
        self._learned.learn(target, self._protocol, self._mended)
        for each in self._mended:
            self._observers.mended(target.channel.name, target.model, each.member)
