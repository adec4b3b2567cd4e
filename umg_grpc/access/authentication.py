"""From a secret to its caller, at every call: a hash and a look into a dict, with the database out of the way."""

import asyncio
import enum
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.access.caller import Caller
from umg_grpc.access.keys import Key, Keys, hash_secret
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

FRESH_SECONDS = 1.0  # a caller is served without a further look
STALE_SECONDS = 10.0  # is served, and looked up meanwhile; after that looked up first
REFUSED_SECONDS = 5.0  # a secret that is no good is not looked up again
RETRY_SECONDS = 1.0  # between two looks at a database that does not answer
KNOWN_WAIT_SECONDS = 1.0  # a known caller waits for the database no longer than this
UNKNOWN_WAIT_SECONDS = 5.0
QUERY_SECONDS = 5.0
BATCH = 256  # secrets looked up by one query
MAX_KNOWN = 65_536
MAX_REFUSED = 4096
MAX_ASKED = 65_536

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class _Refusal(enum.Enum):
    """Why a secret is no good."""

    UNKNOWN = "this API key is not known here; check it, or ask the gateway's operator for one"
    REVOKED = "this API key was revoked; ask the gateway's operator for another"


@dataclass(slots=True)
class _Known:
    caller: Caller
    checked: float


Value = TypeVar("Value")

_Outcome = Caller | _Refusal | None
"""What a look found; None if the database did not answer."""


class Authenticator:
    """Knows callers by the hashes of their secrets, from `start` to `aclose`.

    A caller that was seen once is served from memory, and looked up behind its back (at most once a second), so a
    revoked key is refused after 10 seconds at the latest, or after a second where it is used all the time. While the
    database is away whoever is known stays known, until its key expires. All looks are made by one task, many secrets
    in one query: a flood of wrong keys is one query at a time.
    """

    def __init__(
        self, keys: Keys, *, monotonic: Callable[[], float] = time.monotonic, now: Callable[[], float] = time.time
    ) -> None:
        self._keys = keys
        self._monotonic = monotonic
        self._now = now
        self._known: dict[str, _Known] = {}
        self._refused: dict[str, tuple[_Refusal, float]] = {}
        self._asked: dict[str, asyncio.Future[_Outcome]] = {}
        self._answering: dict[str, asyncio.Future[_Outcome]] = {}
        self._work = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._away_since: float | None = None
        self._retry_at = 0.0

    async def start(self) -> None:
        """From now on secrets can be looked up."""
        if self._owner is None:
            self._owner = asyncio.create_task(self._run(), name="key lookups")

    async def aclose(self) -> None:
        """Ends the lookups; whoever waits for one is told that the gateway cannot serve."""
        if self._owner is not None:
            self._owner.cancel()
            await asyncio.wait([self._owner])
            self._owner = None
        for future in (*self._asked.values(), *self._answering.values()):
            if not future.done():
                future.set_result(None)

    def cached(self, secret: str) -> Caller | None:
        """The caller, if that needs no waiting; else `authenticate` knows more."""
        caller = self._remembered(hash_secret(secret))
        return caller if caller is not None and not self._expired(caller) else None

    async def authenticate(self, secret: str) -> Caller:
        """The caller whose secret it is.

        Raises UmgError: MISSING_KEY, INVALID_KEY, KEY_EXPIRED, and UNAVAILABLE if the secret was never seen and the
        database does not answer.
        """
        if not secret:
            message = "no API key was sent; send `Authorization: Bearer KEY`"
            raise UmgError(pb.ERROR_REASON_MISSING_KEY, message)
        digest = hash_secret(secret)
        outcome: _Outcome = self._remembered(digest) or self._refusal(digest)
        if outcome is None:
            outcome = await self._look_up(digest)
        if outcome is None:
            raise UmgError(pb.ERROR_REASON_UNAVAILABLE, "the API key cannot be checked at the moment; try again")
        if isinstance(outcome, _Refusal):
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, outcome.value)
        if self._expired(outcome):
            raise UmgError(
                pb.ERROR_REASON_KEY_EXPIRED, "this API key has expired; ask the gateway's operator for another"
            )
        return outcome

    def _expired(self, caller: Caller) -> bool:
        return caller.expires_at is not None and caller.expires_at <= self._now()

    def _remembered(self, digest: str) -> Caller | None:
        known = self._known.get(digest)
        if known is None:
            return None
        age = self._monotonic() - known.checked
        if age > FRESH_SECONDS:
            if age > STALE_SECONDS and self._away_since is None:
                return None
            if self._monotonic() >= self._retry_at:
                self._ask(digest)
        return known.caller

    def _refusal(self, digest: str) -> _Refusal | None:
        refusal, checked = self._refused.get(digest, (None, 0.0))
        return refusal if self._monotonic() - checked <= REFUSED_SECONDS else None

    def _ask(self, digest: str) -> asyncio.Future[_Outcome]:
        """What a look that begins now, or is under way, will find."""
        future = self._answering.get(digest) or self._asked.get(digest)
        if future is None:
            future = self._asked[digest] = asyncio.get_running_loop().create_future()
            self._work.set()
        return future

    async def _look_up(self, digest: str) -> _Outcome:
        known = self._known.get(digest)
        if known is None and len(self._asked) >= MAX_ASKED:  # the database is slower than a flood of wrong keys
            return None
        quick = known is not None or self._away_since is not None
        future = self._ask(digest)
        await asyncio.wait([future], timeout=KNOWN_WAIT_SECONDS if quick else UNKNOWN_WAIT_SECONDS)
        if not future.done():
            self._away("it does not answer")
        outcome = future.result() if future.done() else None
        return known.caller if outcome is None and known is not None else outcome

    async def _run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._asked:
                self._answering = dict(itertools.islice(self._asked.items(), BATCH))
                for digest in self._answering:
                    del self._asked[digest]
                await self._answer()

    async def _answer(self) -> None:
        """Looks up what is being answered. Whatever goes wrong, those who wait go on."""
        began = self._monotonic()
        outcomes: dict[str, _Outcome] = {}
        try:
            async with asyncio.timeout(QUERY_SECONDS):
                keys = await self._keys.by_hash(self._answering)
            outcomes = {digest: self._note(digest, keys.get(digest), began) for digest in self._answering}
            self._back()
        except Exception as error:  # a driver says in many ways that its database is away
            self._away(str(error) or type(error).__name__)
        answered, self._answering = self._answering, {}
        for digest, future in answered.items():
            if not future.done():
                future.set_result(outcomes.get(digest))

    def _note(self, digest: str, key: Key | None, checked: float) -> _Outcome:
        """Remembers what the database says of the secret."""
        if key is None or key.revoke_time is not None:
            self._known.pop(digest, None)
            refusal = _Refusal.UNKNOWN if key is None else _Refusal.REVOKED
            _put(self._refused, digest, (refusal, checked), MAX_REFUSED)
            return refusal
        self._refused.pop(digest, None)
        caller = caller_of(key)
        known = self._known.get(digest)
        if known is None:
            _put(self._known, digest, _Known(caller, checked), MAX_KNOWN)
            return caller
        known.checked = checked
        if known.caller != caller:  # else the old one, which has its patterns compiled
            known.caller = caller
        return known.caller

    def _away(self, reason: str) -> None:
        self._retry_at = self._monotonic() + RETRY_SECONDS
        if self._away_since is None:
            self._away_since = self._monotonic()
            logger.warning("the keys' database is away; callers that are known stay known", reason=reason)

    def _back(self) -> None:
        if self._away_since is not None:
            logger.info("the keys' database is back", seconds=round(self._monotonic() - self._away_since, 1))
            self._away_since = None
            self._retry_at = 0.0


def caller_of(key: Key) -> Caller:
    """Who holds the key."""
    return Caller(
        key_id=key.key_id,
        name=key.name,
        model_patterns=key.model_patterns,
        requests_per_minute=key.requests_per_minute,
        expires_at=key.expire_time.timestamp() if key.expire_time else None,
        channels=key.channels,
        show_route=key.show_route,
    )


def _put(memory: dict[str, Value], digest: str, value: Value, size: int) -> None:
    """Remembers the value as the latest, and forgets the oldest beyond the size."""
    memory.pop(digest, None)
    memory[digest] = value
    if len(memory) > size:
        del memory[next(iter(memory))]
