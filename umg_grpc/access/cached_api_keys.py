"""API keys in memory: the valid ones with their callers, and the invalid ones that were used recently."""

import enum
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from umg_grpc.access.account_levels import closed_level
from umg_grpc.access.api_keys import Key, KeyChange
from umg_grpc.access.caller_identity import Caller, KeyReference

MAX_KNOWN = 100_000
MAX_CHANGED = 10_000  # keys whose last change is remembered, for lookups in flight
MAX_REJECTED = 4096
REMOVED_KEY_TIME = float("-inf")


class Rejection(enum.Enum):
    """Reason why an API key is invalid; its value is the error message for the caller."""

    UNKNOWN = "this API key is not known here; check it, or ask the gateway's operator for one"
    REVOKED = "this API key was revoked; ask the gateway's operator for another"
    CLOSED = "the project of this API key, or its organisation, is closed; ask the gateway's operator"
    DISABLED = "the user who owns this API key is disabled; ask the gateway's operator"


@dataclass(slots=True, eq=False)
class KnownKey:
    """Valid API key in memory: the caller that it belongs to, and the time of its last lookup in the database."""

    digest: str
    caller: Caller
    checked: float
    """REMOVED for a key that is not in memory any more."""


class RejectedKey(NamedTuple):
    """Invalid API key in memory: the reason, and the time of its last lookup in the database."""

    rejection: Rejection
    checked: float
    key: KeyReference | None
    """Revoked key with the secret; None for an unknown secret."""


class KnownKeys:
    """API keys in memory by the hashes of their secrets, each with the time at which its state was read. An older state
    never replaces a newer one, also if lookups and changes arrive out of order.
    """

    def __init__(self, note: Callable[[Key], None]) -> None:
        """Create an empty memory. `note` is called with each valid key that is stored."""
        self.valid: dict[str, KnownKey] = {}
        self.rejected: dict[str, RejectedKey] = {}
        self._note = note
        self._secrets = dict[str, set[str]]()
        """Hashes of the secrets in `valid`, by the id of their key."""
        self._changed = OrderedDict[str, float]()
        """Times at which the last changes of keys were read, by id: a lookup that began before may be outdated."""

    def last_check(self, digest: str) -> float:
        """Return the time at which the state of this key was read; minus infinity if it is not in memory."""
        found = self.valid.get(digest) or self.rejected.get(digest)
        return float("-inf") if found is None else found.checked

    def record_change(self, change: KeyChange, began: float, ended: float) -> list[str]:
        """Store the state of a changed key, which was read between `began` and `ended`. Return the keys to look up
        again: if another look-up ran at the same time, it is unknown which state is newer.
        """
        self._changed.pop(change.key_id, None)
        self._changed[change.key_id] = ended
        if len(self._changed) > MAX_CHANGED:
            self._changed.popitem(last=False)
        for digest in self._secrets.get(change.key_id, set()) - change.keys.keys():
            self._remove(digest)
        doubtful = [digest for digest in change.keys if self.last_check(digest) > began]
        for digest, key in change.keys.items():
            self.record(digest, key, began)
        return doubtful

    def record_lookup(self, digest: str, key: Key | None, started: float) -> Caller | Rejection:
        """Store the result of a lookup as `record` does, unless the key was changed since the lookup began."""
        if key is not None and _rejection(key) is None and self._changed.get(key.key_id, REMOVED_KEY_TIME) > started:
            return caller_of(key)
        return self.record(digest, key, started)

    def record(self, digest: str, key: Key | None, checked: float) -> Caller | Rejection:
        """Store the state of a key (None: unknown) as read at `checked`. Return its caller, or why it is invalid."""
        rejection = Rejection.UNKNOWN if key is None else _rejection(key)
        if key is None or rejection is not None:
            self._remove(digest)
            rejection = rejection or Rejection.UNKNOWN
            reference = None if key is None else KeyReference(key.key_id, key.prefix)
            self.rejected.pop(digest, None)  # the dict is in the order of the last lookups
            self.rejected[digest] = RejectedKey(rejection, checked, reference)
            if len(self.rejected) > MAX_REJECTED:
                del self.rejected[next(iter(self.rejected))]
            return rejection
        self.rejected.pop(digest, None)
        self._note(key)
        caller = caller_of(key)
        known = self.valid.get(digest)
        if known is not None and known.caller.key_id != key.key_id:  # the secret of a deleted key was given to another
            self._remove(digest)
            known = None
        if known is None:
            if len(self.valid) >= MAX_KNOWN:
                self._remove(next(iter(self.valid)))
            self.valid[digest] = KnownKey(digest, caller, checked)
            self._secrets.setdefault(key.key_id, set()).add(digest)
            return caller
        known.checked = checked
        if known.caller != caller:  # an equal caller is not replaced, since it has compiled its patterns
            known.caller = caller
        return known.caller

    def remove_unchecked_since(self, time: float) -> None:
        """Remove the valid keys whose state was read before `time`."""
        for digest in [digest for digest, known in self.valid.items() if known.checked < time]:
            self._remove(digest)

    def _remove(self, digest: str) -> None:
        """Remove a key from memory, and mark it as removed for calls that still refer to it."""
        if (known := self.valid.pop(digest, None)) is not None:
            known.checked = REMOVED_KEY_TIME
            secrets = self._secrets[known.caller.key_id]
            secrets.discard(digest)
            if not secrets:
                del self._secrets[known.caller.key_id]


def _rejection(key: Key) -> Rejection | None:
    if key.revoke_time is not None:
        return Rejection.REVOKED
    if key.is_user_disabled:
        return Rejection.DISABLED
    return None if closed_level(key.levels) is None else Rejection.CLOSED


def caller_of(key: Key) -> Caller:
    """Return the caller that an API key identifies, with the key's id, permissions and limits."""
    return Caller(
        key_id=key.key_id,
        name=key.name,
        key_prefix=key.prefix,
        model_patterns=key.model_patterns,
        requests_per_minute=key.requests_per_minute,
        expires_at=key.expire_time.timestamp() if key.expire_time else None,
        channels=key.channels,
        show_route=key.show_route,
        operations=frozenset(key.operations),
        administrator=key.administrator,
        tokens_per_minute=key.tokens_per_minute,
        concurrent_requests=key.concurrent_requests,
        budget_micro_credits=key.budget_micro_credits,
        budget_period=key.budget_period,
        further_budgets=key.budgets,
        levels=key.levels,
        user_id=key.user_id,
    )
