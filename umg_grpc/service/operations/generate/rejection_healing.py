"""Repair of refused requests. If a provider refuses a request because of a member, the request is sent once more
without the member, or with it adapted. If it does not serve a protocol, another protocol of the channel is used.
"""

from umg_grpc.base.errors import UmgError
from umg_grpc.base.provider_failure import FailureKind, ProviderRefusal
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, ChannelQuirks, Quirks
from umg_grpc.routing import Target
from umg_grpc.service.pipeline.attempt_observers import AttemptObservers
from umg_grpc.service.resilience.learned_quirks import LearnedQuirks
from umg_grpc.wire import TEXT_UPSTREAMS
from umg_grpc.wire.errors.rejection_adaptation import Mended, mend
from umg_grpc.wire.errors.rejection_reading import PATH_STATUSES, read_refusal

NOT_SERVED = Mended("path", "", Quirks(served=False), lasting=True)
"""Restriction of a protocol at whose path the provider serves nothing."""


class RefusalHealing:
    """Repairs of one call's refused requests at one channel: once by a change of members, and by another protocol if
    the path is missing. The restriction is learned if the changed request succeeds.
    """

    def __init__(self, learned: LearnedQuirks, observers: AttemptObservers, *, is_strict: bool) -> None:
        """Create the repairs of a call. `is_strict`: the caller accepts no changed request, so nothing is changed."""
        self._learned = learned
        self._observers = observers
        self._is_strict = is_strict
        self._target: Target | None = None  # whose refusal is mended; None while none is
        self._mended: list[tuple[str, Mended]] = []  # with the protocol of each
        self._refusal: UmgError | None = None
        self._refused_body = b""

    def quirks_of(self, target: Target) -> ChannelQuirks:
        """Return the quirks with which the request is encoded for the target."""
        if self._is_strict:
            return target.quirks
        quirks = self._learned.applied(target)
        if target is self._target:
            for protocol, each in self._mended:
                quirks = quirks.restricted(protocol, each.quirks)
        return quirks

    def can_mend(self, target: Target, error: UmgError) -> bool:
        """Return whether the target may accept a changed request, for which `quirks_of` then has the change. Members
        are changed once in a call.
        """
        refusal = error.refusal
        if refusal is None or self._is_strict or not target.channel.heal or self._target not in (None, target):
            return False
        is_path = refusal.status in PATH_STATUSES
        if is_path:
            mended = [NOT_SERVED] if _misses_path(error) and self._has_other(target, refusal.protocol) else []
        else:
            mended = self._mended_members(target, refusal)
        if not mended:
            return False
        self._mended += [(refusal.protocol, each) for each in mended]
        is_elsewhere = is_path or any(each.quirks.streams_tools is False for each in mended)  # the body may be the same
        self._target, self._refusal, self._refused_body = target, error, b"" if is_elsewhere else refusal.sent
        return True

    def _mended_members(self, target: Target, refusal: ProviderRefusal) -> list[Mended]:
        """Return the restrictions under which the target may accept the refused request; empty if none is known."""
        if any(each is not NOT_SERVED for _, each in self._mended):
            return []
        refused = read_refusal(refusal.protocol, refusal.status, refusal.body)
        return mend(refusal.protocol, refused, refusal.sent, target.quirks.written) if refused else []

    def _has_other(self, target: Target, protocol: str) -> bool:
        known = self.quirks_of(target).by_protocol
        others = (name for name in target.channel.protocols if name in TEXT_UPSTREAMS and name != protocol)
        return any(known.get(name, NO_QUIRKS).served is not False for name in others)

    def check_change(self, target: Target, body: bytes) -> None:
        """Raise the provider's refusal again if the newly encoded request equals the refused one."""
        if target is self._target and self._refusal is not None and body == self._refused_body:
            raise self._refusal

    def refusal_of(self, target: Target) -> UmgError | None:
        """Return the refusal after which the request to the target was changed; None if it was not changed."""
        return self._refusal if target is self._target else None

    def note_success(self, target: Target) -> None:
        """Store the restrictions under which the target accepted the changed request."""
        if target is not self._target:
            return
        for protocol, each in self._mended:
            self._learned.learn(target, protocol, [each])
            self._observers.mended(target.channel.name, target.model, each.member)


def _misses_path(error: UmgError) -> bool:
    facts = error.facts
    return facts is not None and facts.kind is FailureKind.WRONG_ADDRESS and not facts.right_base_url
