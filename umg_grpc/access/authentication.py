"""Authentication of each call by its API key. Keys are checked in memory; the database is read in the background."""

import asyncio
import enum
import itertools
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.access.api_keys import Key, KeyChange, Keys, hash_secret
from umg_grpc.access.caller import Caller, KeyReference
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

FRESH_SECONDS = 2.0  # age up to which a known caller is served without a lookup
STALE_SECONDS = 4.0  # age up to which it is served during a background lookup; an older one waits for the lookup
MAX_STALE_SECONDS = 3600.0  # the same while the database is unavailable, unless the config has another
REFUSED_SECONDS = 5.0  # time in which an invalid secret is not looked up again
RETRY_SECONDS = 1.0  # time between two lookups while the database is unavailable, and that of `Retry-After`
KNOWN_WAIT_SECONDS = 1.0  # longest time that a known caller waits for the database
UNKNOWN_WAIT_SECONDS = 5.0  # the same for an unknown one
QUERY_SECONDS = 5.0
BATCH = 256  # secrets looked up by one query
MAX_KNOWN = 100_000
MAX_CHANGED = 10_000  # keys whose last change is remembered, for lookups in flight
CHANGES_SECONDS = 1.0  # longest time between two reads of the keys that were changed
JITTER = 0.2  # largest share of that time by which it is shortened, so that processes do not read together
RELOAD_SECONDS = 3600.0  # longest time between two loads of all keys
OUTAGE_RELOAD_SECONDS = 10.0  # the same after an outage: another server, without the last changes, may have replaced it
FIRST_LOAD_SECONDS = 2.0  # longest wait for the first load at the start
PAGE = 200  # keys loaded by one query, after which the event loop runs other tasks
MAX_REFUSED = 4096
MAX_QUEUED = 65_536
REMOVED = float("-inf")

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class _Rejection(enum.Enum):
    """Reason why an API key is invalid; its value is the error message for the caller."""

    UNKNOWN = "this API key is not known here; check it, or ask the gateway's operator for one"
    REVOKED = "this API key was revoked; ask the gateway's operator for another"


@dataclass(slots=True, eq=False)
class KnownKey:
    """Valid API key in memory: the caller that it belongs to, and the time of its last lookup in the database."""

    digest: str
    caller: Caller
    checked: float
    """REMOVED for a key that is not in memory any more."""


class _Refused(NamedTuple):
    """Invalid API key in memory: the reason, and the time of its last lookup in the database."""

    rejection: _Rejection
    checked: float
    key: KeyReference | None
    """Revoked key with the secret; None for an unknown secret."""


Value = TypeVar("Value")

_Outcome = Caller | _Rejection | None
"""Result of a lookup; None if the database did not answer."""


class Authenticator:
    """Authenticator of callers by the hashes of their API keys; runs from `start` to `aclose`.

    All valid keys, at most `MAX_KNOWN`, are loaded at the start, and each second the keys that were changed since. So a
    revoked key is rejected after about a second, and each process has all keys while the database is unavailable; their
    callers then stay valid for `max_stale` seconds, at most until the keys expire.

    A key is looked up alone if it is not in memory, or if the changes were not read for some seconds. One task makes
    all lookups, many keys in one query, so that a flood of invalid keys causes only one query at a time.
    """

    def __init__(
        self,
        keys: Keys,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
        note: Callable[[Key], None] = lambda _: None,
        max_stale: float = MAX_STALE_SECONDS,
        permanent: Collection[str] = (),
        every: float = CHANGES_SECONDS,
    ) -> None:
        """Create an authenticator for the keys of a database.

        `monotonic`, `now`: clocks; `chance`: returns a random number, for the time of loads; `note`: called with each
        valid key that is read from the database. `max_stale`: seconds for which keys are valid without the database;
        `permanent`: secrets for which this bound does not hold; `every`: seconds between two reads of changes.
        """
        self._keys = keys
        self._note = note
        self._chance = chance
        self._monotonic = monotonic
        self._now = now
        self._max_stale = max_stale
        self._permanent = frozenset(map(hash_secret, permanent))
        self._every = every
        self._known: dict[str, KnownKey] = {}
        self._secrets = dict[str, set[str]]()
        """Hashes of the secrets in memory, by the id of their key."""
        self._changed = OrderedDict[str, float]()
        """Times at which the last changes of keys were read, by id: a lookup that began before may be outdated."""
        self._last_change = 0
        self._current_at = float("-inf")
        """Time up to which all changes are in memory."""
        self._reload_at = float("-inf")
        self._refused: dict[str, _Refused] = {}
        self._queued: dict[str, asyncio.Future[_Outcome]] = {}
        self._in_flight: dict[str, asyncio.Future[_Outcome]] = {}
        self._work = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._refresher: asyncio.Task[None] | None = None
        self._loaded = asyncio.Event()
        self._unavailable_since: float | None = None
        self._retry_at = 0.0

    @property
    def known(self) -> int:
        """Number of valid API keys in memory."""
        return len(self._known)

    async def start(self) -> None:
        """Start the background lookups, and load all valid keys, with a bounded wait for the database."""
        if self._owner is None:
            self._owner = asyncio.create_task(self._run(), name="key lookups")
            self._loaded.clear()
            self._refresher = asyncio.create_task(self._keep_loaded(), name="loads of all keys")
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_LOAD_SECONDS):
                    await self._loaded.wait()

    async def aclose(self) -> None:
        """Stop the background lookups. Calls that wait for one fail with UNAVAILABLE."""
        tasks = [task for task in (self._owner, self._refresher) if task is not None]
        self._owner = self._refresher = None
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for future in (*self._queued.values(), *self._in_flight.values()):
            if not future.done():
                future.set_result(None)

    def cached(self, secret: str) -> Caller | None:
        """Return the caller with this API key if the key is in memory and valid, without waiting.

        None for any other key, about which `authenticate` decides.
        """
        known = self._known.get(hash_secret(secret))
        return None if known is None else self.valid_caller(known)

    def find(self, authorization: str) -> KnownKey | None:
        """Return the key in the `authorization` metadata of a call if it is in memory and valid, without waiting;
        otherwise None.
        """
        scheme, _, secret = authorization.partition(" ")
        known = self._known.get(hash_secret(secret.strip())) if scheme.lower() == "bearer" else None
        return known if known is not None and self.valid_caller(known) is not None else None

    def valid_caller(self, known: object) -> Caller | None:
        """Return the caller of a key that `find` returned; None if it has become invalid or must be looked up in the
        database again.

        None also for any other object.
        """
        if not isinstance(known, KnownKey):
            return None
        if not self._is_usable(known):
            return None
        caller = known.caller
        return caller if caller.expires_at is None or caller.expires_at > self._now() else None

    def reference(self, secret: str) -> KeyReference | None:
        """Return the id and prefix of the key with this secret, for the log; None if it is not in memory.

        Expired and revoked keys are found too.
        """
        digest = hash_secret(secret)
        if (known := self._known.get(digest)) is not None:
            return KeyReference(known.caller.key_id, known.caller.key_prefix)
        refused = self._refused.get(digest)
        return None if refused is None else refused.key

    async def learn(self, secret: str) -> None:
        """Load a key into memory before its first use, so that it stays valid if the database becomes unavailable.

        Does nothing for an invalid key.
        """
        with suppress(UmgError):
            await self.authenticate(secret)

    async def authenticate(self, secret: str) -> Caller:
        """Return the caller with this API key, which is looked up in the database if it is not in memory.

        Raises UmgError: MISSING_KEY, INVALID_KEY, KEY_EXPIRED, or UNAVAILABLE if the key is not in memory and the
        database does not answer.
        """
        if not secret:
            message = "no API key was sent; send `Authorization: Bearer KEY`"
            raise UmgError(pb.ERROR_REASON_MISSING_KEY, message)
        digest = hash_secret(secret)
        outcome: _Outcome
        if (known := self._known.get(digest)) is not None and self._is_usable(known):
            outcome = known.caller
        else:
            outcome = self._rejection(digest)
        if outcome is None:
            outcome = await self._look_up(digest)
        if outcome is None:
            message = "the API key cannot be checked at the moment; try again"
            raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds=f"{RETRY_SECONDS:g}")
        if isinstance(outcome, _Rejection):
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, outcome.value)
        if outcome.expires_at is not None and outcome.expires_at <= self._now():
            raise UmgError(
                pb.ERROR_REASON_KEY_EXPIRED, "this API key has expired; ask the gateway's operator for another"
            )
        return outcome

    def _is_usable(self, known: KnownKey) -> bool:
        """Return whether the state of the key is recent enough to rely on. Request a lookup if it is old."""
        if known.checked == REMOVED:
            return False
        now = self._monotonic()
        if (age := now - max(known.checked, self._current_at)) > FRESH_SECONDS:
            if age > STALE_SECONDS and (self._unavailable_since is None or self._is_outdated(known)):
                return False
            if now >= self._retry_at:
                self._request_lookup(known.digest)
        return True

    def _is_outdated(self, known: KnownKey) -> bool:
        """Return whether the key must not be used any more without the database."""
        age = self._monotonic() - max(known.checked, self._current_at)
        return age > self._max_stale and known.digest not in self._permanent

    def _rejection(self, digest: str) -> _Rejection | None:
        refused = self._refused.get(digest)
        if refused is None or self._monotonic() - refused.checked > REFUSED_SECONDS:
            return None
        return refused.rejection

    def _request_lookup(self, digest: str) -> asyncio.Future[_Outcome]:
        """Return the future of the database lookup of the key with the hash `digest`, which is queued unless one is in
        flight.
        """
        future = self._in_flight.get(digest) or self._queued.get(digest)
        if future is None:
            future = self._queued[digest] = asyncio.get_running_loop().create_future()
            self._work.set()
        return future

    async def _look_up(self, digest: str) -> _Outcome:
        known = self._known.get(digest)
        if known is None and len(self._queued) >= MAX_QUEUED:  # invalid keys arrive faster than the database answers
            return None
        quick = known is not None or self._unavailable_since is not None
        future = self._request_lookup(digest)
        await asyncio.wait([future], timeout=KNOWN_WAIT_SECONDS if quick else UNKNOWN_WAIT_SECONDS)
        if not future.done():
            self._mark_unavailable("it does not answer")
        outcome = future.result() if future.done() else None
        if outcome is None and known is not None and known.checked != REMOVED and not self._is_outdated(known):
            return known.caller
        return outcome

    async def _keep_loaded(self) -> None:
        while True:
            try:
                if self._monotonic() >= self._reload_at:
                    await self._load()
                    self._reload_at = self._monotonic() + RELOAD_SECONDS * (1 - JITTER * self._chance())
                await self._read_changes()
                self._mark_available()
            except Exception as error:  # drivers raise various exceptions if the database is unavailable
                self._mark_unavailable(str(error) or type(error).__name__)
                reload_at = self._monotonic() + OUTAGE_RELOAD_SECONDS * self._chance()
                self._reload_at = min(self._reload_at, reload_at)
            self._loaded.set()
            await asyncio.sleep(self._every * (1 - JITTER * self._chance()))

    async def _read_changes(self) -> None:
        """Read all changes of keys since the last call from the database."""
        while True:
            began = self._monotonic()
            async with asyncio.timeout(QUERY_SECONDS):
                changes = await self._keys.changes(self._last_change, PAGE)
            for change in changes:
                self._apply(change, began)
                self._last_change = change.number
            if len(changes) < PAGE:
                break
        self._current_at = began

    def _apply(self, change: KeyChange, began: float) -> None:
        """Store the state of a changed key in memory. `began`: time at which the read of the change began."""
        self._changed.pop(change.key_id, None)
        self._changed[change.key_id] = self._monotonic()
        if len(self._changed) > MAX_CHANGED:
            self._changed.popitem(last=False)
        for digest in self._secrets.get(change.key_id, set()) - change.keys.keys():
            self._remove(digest)
        for digest, key in change.keys.items():
            if self._last_check(digest) > began:  # a lookup at the same time: either may be the later one
                self._request_lookup(digest)
            self._record_result(digest, key, began)

    async def _load(self) -> None:
        """Load all valid keys from the database, and remove revoked and deleted ones from memory."""
        began, last, count = self._monotonic(), "", 0
        last_change = await self._keys.last_change()
        while count < MAX_KNOWN:
            started = self._monotonic()
            async with asyncio.timeout(QUERY_SECONDS):
                page, last = await self._keys.live_page(last, PAGE)
            count += len(page)
            for digest, key in page.items():
                if self._last_check(digest) <= started:  # a later lookup may have found a revocation
                    self._record_result(digest, key, started)
            if not last:
                break
        self._last_change = last_change
        if last:
            return  # keys that were not loaded may be live
        for digest in [digest for digest, known in self._known.items() if known.checked < began]:
            self._remove(digest)

    async def _run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._queued:
                self._in_flight = dict(itertools.islice(self._queued.items(), BATCH))
                for digest in self._in_flight:
                    del self._queued[digest]
                await self._run_query()

    async def _run_query(self) -> None:
        """Look up all queued keys in one query, and complete their futures, also if the query fails."""
        started = self._monotonic()
        outcomes: dict[str, _Outcome] = {}
        try:
            async with asyncio.timeout(QUERY_SECONDS):
                keys = await self._keys.by_hash(self._in_flight)
            outcomes = {digest: self._record_lookup(digest, keys.get(digest), started) for digest in self._in_flight}
            self._mark_available()
        except Exception as error:  # drivers raise various exceptions if the database is unavailable
            self._mark_unavailable(str(error) or type(error).__name__)
        finished, self._in_flight = self._in_flight, {}
        for digest, future in finished.items():
            if not future.done():
                future.set_result(outcomes.get(digest))

    def _last_check(self, digest: str) -> float:
        found = self._known.get(digest) or self._refused.get(digest)
        return float("-inf") if found is None else found.checked

    def _record_lookup(self, digest: str, key: Key | None, started: float) -> _Outcome:
        """Store the result of a lookup in memory, unless the key was changed since it began. Return it as
        `_record_result` does.
        """
        if key is not None and key.revoke_time is None and self._changed.get(key.key_id, REMOVED) > started:
            return caller_of(key)
        return self._record_result(digest, key, started)

    def _record_result(self, digest: str, key: Key | None, checked: float) -> _Outcome:
        """Store the result of a lookup in memory, and return it: the caller, or the reason why the key is invalid.

        `digest`: hash of the secret; `key`: key in the database, None if there is none; `checked`: time of the lookup.
        """
        if key is None or key.revoke_time is not None:
            self._remove(digest)
            rejection, reference = _Rejection.UNKNOWN, None
            if key is not None:
                rejection, reference = _Rejection.REVOKED, KeyReference(key.key_id, key.prefix)
            _put_bounded(self._refused, digest, _Refused(rejection, checked, reference), MAX_REFUSED)
            return rejection
        self._refused.pop(digest, None)
        self._note(key)
        caller = caller_of(key)
        known = self._known.get(digest)
        if known is not None and known.caller.key_id != key.key_id:  # the secret of a deleted key was given to another
            self._remove(digest)
            known = None
        if known is None:
            if len(self._known) >= MAX_KNOWN:
                self._remove(next(iter(self._known)))
            self._known[digest] = KnownKey(digest, caller, checked)
            self._secrets.setdefault(key.key_id, set()).add(digest)
            return caller
        known.checked = checked
        if known.caller != caller:  # an equal caller is not replaced, since it has compiled its patterns
            known.caller = caller
        return known.caller

    def _remove(self, digest: str) -> None:
        """Remove the key with the hash `digest` from memory, and mark it as removed for calls that already have it from
        `find`.
        """
        if (known := self._known.pop(digest, None)) is not None:
            known.checked = REMOVED
            secrets = self._secrets[known.caller.key_id]
            secrets.discard(digest)
            if not secrets:
                del self._secrets[known.caller.key_id]

    def _mark_unavailable(self, reason: str) -> None:
        self._retry_at = self._monotonic() + RETRY_SECONDS
        if self._unavailable_since is None:
            self._unavailable_since = self._monotonic()
            logger.warning("the keys' database is away; callers that are known stay known", reason=reason)

    def _mark_available(self) -> None:
        if self._unavailable_since is not None:
            logger.info("the keys' database is back", seconds=round(self._monotonic() - self._unavailable_since, 1))
            self._unavailable_since = None
            self._retry_at = 0.0


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
    )


def _put_bounded(memory: dict[str, Value], digest: str, value: Value, size: int) -> None:
    """Store `value` under `digest` as the newest entry of `memory`; delete the oldest entry if there are more than
    `size`.
    """
    memory.pop(digest, None)
    memory[digest] = value
    if len(memory) > size:
        del memory[next(iter(memory))]
