"""Authentication of each call by its API key. Keys are checked in memory; the database is read in the background."""

import asyncio
import itertools
import random
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.access.api_keys import ApiKeys, Key, hash_secret
from umg_grpc.access.cached_api_keys import MAX_KNOWN, REMOVED_KEY_TIME, KnownKey, KnownKeys, Rejection
from umg_grpc.access.caller_identity import Caller, KeyReference
from umg_grpc.access.sessions import UserSessions
from umg_grpc.access.token_authentication import TokenAuthenticator
from umg_grpc.access.token_callers import KnownToken
from umg_grpc.access.token_verification import is_token
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

FRESH_SECONDS = 2.0  # age up to which a known caller is served without a lookup
STALE_SECONDS = 4.0  # age up to which it is served during a background lookup; an older one waits for the lookup
MAX_STALE_SECONDS = 3600.0  # the same while the database is unavailable, unless the config has another
REFUSED_SECONDS = 5.0  # time in which an invalid secret is not looked up again
RETRY_SECONDS = 1.0  # time between two lookups while the database is unavailable, and that of `Retry-After`
KNOWN_WAIT_SECONDS = 1.0  # longest time that a known caller waits for the database
UNKNOWN_WAIT_SECONDS = 5.0  # the same for an unknown one
QUERY_SECONDS = 5.0
KEY_BATCH = 256  # secrets looked up by one query
CHANGES_SECONDS = 1.0  # longest time between two reads of the keys that were changed
RELOAD_JITTER = 0.2  # largest share of that time by which it is shortened, so that processes do not read together
RELOAD_SECONDS = 3600.0  # longest time between two loads of all keys
OUTAGE_RELOAD_SECONDS = 10.0  # the same after an outage: another server, without the last changes, may have replaced it
FIRST_LOAD_SECONDS = 2.0  # longest wait for the first load at the start
KEYS_PER_PAGE = 200  # keys loaded by one query, after which the event loop runs other tasks
MAX_QUEUED = 65_536
CREDENTIAL_SECONDS = 5.0  # longest time in which a page makes its calls with the session as it was at its first one

logger: FilteringBoundLogger = structlog.get_logger(__name__)

_Outcome = Caller | Rejection | None
"""Result of a lookup; None if the database did not answer."""


@dataclass(frozen=True, slots=True)
class SessionCredential:
    """Session that was checked for a page, as the credential of the page's calls in this process."""

    caller: Caller
    end: float
    """Time of the monotonic clock until which it is valid."""


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
        keys: ApiKeys,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
        note: Callable[[Key], None] = lambda _: None,
        max_stale: float = MAX_STALE_SECONDS,
        permanent: Collection[str] = (),
        every: float = CHANGES_SECONDS,
        tokens: TokenAuthenticator | None = None,
        sessions: UserSessions | None = None,
    ) -> None:
        """Create an authenticator for the keys of a database. `chance`: returns a random number, for the time of loads;
        `note`: called with each valid key that is read from the database. `max_stale`: seconds for which keys are valid
        without the database; `permanent`: secrets for which this bound does not hold; `every`: seconds between two
        reads of changes; `tokens`: authenticator of tokens of issuers, None if there are none; `sessions`: those
        of people, None if they are no credentials.
        """
        self._keys = keys
        self._tokens = tokens
        self._sessions = sessions
        self._known_tokens: Mapping[str, KnownToken] = tokens.by_digest if tokens is not None else {}
        self._memory = KnownKeys(note)
        self._chance = chance
        self._monotonic = monotonic
        self._now = now
        self._max_stale = max_stale
        self._permanent = frozenset(map(hash_secret, permanent))
        self._every = every
        self._last_change = 0
        self._current_at = float("-inf")
        """Time up to which all changes are in memory."""
        self._reload_at = float("-inf")
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
        return len(self._memory.valid)

    async def start(self) -> None:
        """Start the background look-ups. Load all valid keys, but wait only a bounded time for the database."""
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
        """Return the caller with this API key if it is in memory and valid. For None, `authenticate` decides."""
        digest = hash_secret(secret)
        known = self._memory.valid.get(digest) or self._known_tokens.get(digest)
        return None if known is None else self.valid_caller(known)

    def find(self, authorization: str) -> KnownKey | KnownToken | None:
        """Return the key or token in `authorization` metadata at once; None if it is invalid or not in memory."""
        scheme, _, secret = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        digest = hash_secret(secret.strip())
        known = self._memory.valid.get(digest) or self._known_tokens.get(digest)
        return known if known is not None and self.valid_caller(known) is not None else None

    def valid_caller(self, known: object) -> Caller | None:
        """Return the caller of a key or token that `find` returned, or of a session that was checked for a page. Return
        None for any other object, and for one that has become invalid or must be looked up again.
        """
        if not isinstance(known, KnownKey):
            if isinstance(known, SessionCredential):
                return known.caller if known.end > self._monotonic() else None
            return self._token_caller(known) if isinstance(known, KnownToken) else None
        if not self._is_usable(known):
            return None
        caller = known.caller
        return caller if caller.expires_at is None or caller.expires_at > self._now() else None

    def reference(self, secret: str) -> KeyReference | None:
        """Return the id and prefix of the key with this secret, also an invalid one, or of a token's caller; None if it
        is not in memory.
        """
        digest = hash_secret(secret)
        if (token := self._known_tokens.get(digest)) is not None:
            return KeyReference(token.row.caller.key_id, token.row.caller.key_prefix)
        if (known := self._memory.valid.get(digest)) is not None:
            return KeyReference(known.caller.key_id, known.caller.key_prefix)
        refused = self._memory.rejected.get(digest)
        return None if refused is None else refused.key

    async def learn(self, secret: str) -> None:
        """Load a valid key into memory before its use, so that it stays valid while the database is unavailable."""
        with suppress(UmgError):
            await self.authenticate(secret)

    async def authenticate(self, secret: str) -> Caller:
        """Return the caller with this API key or token, which is looked up if it is not in memory. Raises
        UmgError: MISSING_KEY, INVALID_KEY, KEY_EXPIRED, or UNAVAILABLE if the database is needed and does not answer.
        """
        if not secret:
            message = "no API key was sent; send `Authorization: Bearer KEY`"
            raise UmgError(pb.ERROR_REASON_MISSING_KEY, message)
        digest = hash_secret(secret)
        outcome: _Outcome
        if (known := self._memory.valid.get(digest)) is not None and self._is_usable(known):
            outcome = known.caller
        else:
            outcome = self._rejection(digest)
        if outcome is None:
            if self._tokens is not None and is_token(secret):
                return await self._authenticate_token(self._tokens, secret, digest)
            outcome = await self._look_up(digest)
        if outcome is None:
            message = "the API key cannot be checked at the moment; try again"
            raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds=f"{RETRY_SECONDS:g}")
        if isinstance(outcome, Rejection):
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, outcome.value)
        if outcome.expires_at is not None and outcome.expires_at <= self._now():
            raise UmgError(
                pb.ERROR_REASON_KEY_EXPIRED, "this API key has expired; ask the gateway's operator for another"
            )
        return outcome

    def usable_row(self, digest: str) -> KnownKey | None:
        known = self._memory.valid.get(digest)
        return known if known is not None and self._is_usable(known) else None

    async def look_up_row(self, digest: str) -> KnownKey | Rejection | None:
        outcome = await self._look_up(digest)
        return self._memory.valid.get(digest) if isinstance(outcome, Caller) else outcome

    async def _authenticate_token(self, tokens: TokenAuthenticator, token: str, digest: str) -> Caller:
        known = self._known_tokens.get(digest)
        caller = self._token_caller(known) if known is not None else None
        if caller is not None:
            return caller
        known = await tokens.authenticate(token, digest, self)
        return known.caller_of(known.row.caller)

    def _token_caller(self, known: KnownToken) -> Caller | None:
        if known.expires_at <= self._now():
            return None
        base = self.valid_caller(known.row)
        return None if base is None else known.caller_of(base)

    async def authenticate_session(self, token: str) -> Caller:
        """Return the subject of the calls of a session. Raise UmgError(INVALID_KEY) if it has ended."""
        if self._sessions is None:
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, "there are no sessions here; send an API key")
        return await self._sessions.authenticate(token)

    async def session_credential(self, token: str) -> SessionCredential:
        """Return a session as the credential of the calls of one page, so that not each of them reads it again. Raise
        UmgError as `authenticate_session`.
        """
        return SessionCredential(await self.authenticate_session(token), self._monotonic() + CREDENTIAL_SECONDS)

    def _is_usable(self, known: KnownKey) -> bool:
        """Return whether the state of the key in memory is recent enough. If it is old, request a look-up."""
        if known.checked == REMOVED_KEY_TIME:
            return False
        now = self._monotonic()
        if (age := now - max(known.checked, self._current_at)) > FRESH_SECONDS:
            if age > STALE_SECONDS and (self._unavailable_since is None or self._is_outdated(known)):
                return False
            if now >= self._retry_at:
                self._request_lookup(known.digest)
        return True

    def _is_outdated(self, known: KnownKey) -> bool:
        """Return whether the key's state is too old to use the key before the database answers again."""
        age = self._monotonic() - max(known.checked, self._current_at)
        return age > self._max_stale and known.digest not in self._permanent

    def _rejection(self, digest: str) -> Rejection | None:
        refused = self._memory.rejected.get(digest)
        if refused is None or self._monotonic() - refused.checked > REFUSED_SECONDS:
            return None
        return refused.rejection

    def _request_lookup(self, digest: str) -> asyncio.Future[_Outcome]:
        future = self._in_flight.get(digest) or self._queued.get(digest)
        if future is None:
            future = self._queued[digest] = asyncio.get_running_loop().create_future()
            self._work.set()
        return future

    async def _look_up(self, digest: str) -> _Outcome:
        known = self._memory.valid.get(digest)
        if known is None and len(self._queued) >= MAX_QUEUED:  # invalid keys arrive faster than the database answers
            return None
        quick = known is not None or self._unavailable_since is not None
        future = self._request_lookup(digest)
        await asyncio.wait([future], timeout=KNOWN_WAIT_SECONDS if quick else UNKNOWN_WAIT_SECONDS)
        if not future.done():
            self._mark_unavailable("it does not answer")
        outcome = future.result() if future.done() else None
        if outcome is None and known is not None and known.checked != REMOVED_KEY_TIME and not self._is_outdated(known):
            return known.caller
        return outcome

    async def _keep_loaded(self) -> None:
        while True:
            try:
                if self._monotonic() >= self._reload_at:
                    await self._load()
                    self._reload_at = self._monotonic() + RELOAD_SECONDS * (1 - RELOAD_JITTER * self._chance())
                await self._read_changes()
                self._mark_available()
            except Exception as error:  # drivers raise various exceptions if the database is unavailable
                self._mark_unavailable(str(error) or type(error).__name__)
                reload_at = self._monotonic() + OUTAGE_RELOAD_SECONDS * self._chance()
                self._reload_at = min(self._reload_at, reload_at)
            self._loaded.set()
            await asyncio.sleep(self._every * (1 - RELOAD_JITTER * self._chance()))

    async def _read_changes(self) -> None:
        while True:
            began = self._monotonic()
            async with asyncio.timeout(QUERY_SECONDS):
                changes = await self._keys.changes(self._last_change, KEYS_PER_PAGE)
            for change in changes:
                for digest in self._memory.record_change(change, began, self._monotonic()):
                    self._request_lookup(digest)
                self._last_change = change.number
            if len(changes) < KEYS_PER_PAGE:
                break
        self._current_at = began

    async def _load(self) -> None:
        """Load all valid keys from the database, and remove revoked and deleted ones from memory."""
        began, last, count = self._monotonic(), "", 0
        last_change = await self._keys.last_change()
        while count < MAX_KNOWN:
            started = self._monotonic()
            async with asyncio.timeout(QUERY_SECONDS):
                page, last = await self._keys.live_page(last, KEYS_PER_PAGE)
            count += len(page)
            for digest, key in page.items():
                if self._memory.last_check(digest) <= started:  # a later lookup may have found a revocation
                    self._memory.record(digest, key, started)
            if not last:
                break
        self._last_change = last_change
        if last:
            return  # keys that were not loaded may be live
        self._memory.remove_unchecked_since(began)

    async def _run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._queued:
                self._in_flight = dict(itertools.islice(self._queued.items(), KEY_BATCH))
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
            outcomes = {each: self._memory.record_lookup(each, keys.get(each), started) for each in self._in_flight}
            self._mark_available()
        except Exception as error:  # drivers raise various exceptions if the database is unavailable
            self._mark_unavailable(str(error) or type(error).__name__)
        finished, self._in_flight = self._in_flight, {}
        for digest, future in finished.items():
            if not future.done():
                future.set_result(outcomes.get(digest))

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
