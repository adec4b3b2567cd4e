"""Signer with credentials that a blocking library reads, in a thread, once for all calls and before they expire."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from math import inf
from threading import Thread
from typing import NamedTuple, Protocol

import structlog

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.upstream.http.signing import Signer
from umg_grpc.upstream.http.signing.cached_token import NEW_SECONDS, RENEWED_SECONDS
from umg_grpc.upstream.http1.request import OutgoingRequest
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.error_message_redaction import clean

WAIT_SECONDS = 30.0
"""Longest wait of a call for credentials, also for a library that does not return: after it another read is started."""
MAX_HUNG_SECONDS = 3600.0
"""Longest time after which another read is started; it doubles with each one that hangs and keeps a thread."""
UNUSED_SECONDS = 10.0
"""Seconds before their expiry from which credentials are not used, but at most a tenth of their lifetime."""
RETRY_SECONDS = 2.0
"""Seconds after a failed read, without valid credentials, in which calls fail without another read."""
MAX_RETRY_SECONDS = 30.0
"""Longest time between failed reads while the credentials are valid; at most a quarter of their remaining time."""
MAX_CAUSE_CHARACTERS = 300
REFRESHED_OUTCOME, FAILED_OUTCOME = "refreshed", "failed"

logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Credentials(NamedTuple):
    """Credentials that were read, with the signer that uses them."""

    signer: Signer
    expiry: float = inf
    """Unix time from which they are rejected; infinite for permanent credentials."""
    renewal: float = inf
    """Unix time from which their issuer advises to replace them; infinite if it does not state any."""


class CredentialSource(Protocol):
    """Library of a cloud that finds credentials, and exchanges them for temporary ones."""

    @property
    def title(self) -> str:
        """Name of the cloud for messages."""
        ...

    def read(self) -> Credentials:
        """Read new credentials, not cached ones, and return them. Blocks. Raises any exception if there are none."""
        ...


class BearerToken:
    """Signer of requests by a bearer token. `headers`: further headers; headers of the channel take precedence."""

    def __init__(self, token: str, headers: Mapping[str, str] | None = None) -> None:
        self.token = token
        self._own = {"Authorization": f"Bearer {token}"}
        self._further = headers or {}

    async def headers(self, outgoing: OutgoingRequest) -> Mapping[str, str]:
        if not self._further:
            return self._own
        given = {name.lower() for name in outgoing.headers}
        return self._own | {name: value for name, value in self._further.items() if name.lower() not in given}

    def discard(self) -> bool:
        return False


USED_SIGNER: ContextVar[Signer | None] = ContextVar("credentials of the current attempt", default=None)
"""Credentials that signed the last request of the current task."""


class RefreshedSigner:
    """Signer with credentials of a source, read at the first call. Later calls have them read before they expire."""

    def __init__(
        self,
        source: CredentialSource,
        *,
        channel: str,
        count: Callable[[str, str], None] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Create a signer. `channel`: for messages; `count`: counts a read, by channel and `refreshed` or `failed`."""
        self._source = source
        self._channel = channel
        self._count = count
        self._now = now
        self._signer: Signer | None = None
        self._made = self._end = self._renewal = self._retry = 0.0
        self._is_rejected = False
        self._problem = ""  # cause of the last failed read
        self._refresh: asyncio.Future[None] | None = None
        self._began = 0.0
        self._hung = 0  # reads in a row that did not return in time

    @property
    def token(self) -> str:
        return "" if self._signer is None else self._signer.token

    async def headers(self, outgoing: OutgoingRequest) -> Mapping[str, str]:
        signer = self._signer
        if (now := self._now()) >= self._renewal or signer is None:
            self._start(now)
            if signer is None or self._is_rejected or now >= self._end:
                signer = await self._wait(outgoing.deadlines.total)
        USED_SIGNER.set(signer)
        return await signer.headers(outgoing)

    def discard(self) -> bool:
        used = USED_SIGNER.get()
        if self._signer is None or (used is not None and used is not self._signer):
            return True
        now = self._now()
        if now < self._renewal and now - self._made < NEW_SECONDS:
            return False
        self._is_rejected, self._renewal = True, 0.0
        return True

    def _start(self, now: float) -> None:
        """Start to read new credentials, unless they are being read or a read failed just before."""
        if now < self._retry or not self._is_free(now):
            return
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        # a thread of its own, which is not waited for at the end of the process: the library may block for long
        arguments = (loop, done, now)
        thread = Thread(target=self._read, args=arguments, name=f"credentials {self._channel}", daemon=True)
        self._refresh, self._began = done, now
        try:
            thread.start()
        except RuntimeError as error:  # no more threads
            self._finish(done, now, None, str(error))

    def _is_free(self, now: float) -> bool:
        """Return whether no read is running. One that does not return, for example of a hung program, is given up."""
        if self._refresh is None:
            return True
        seconds = min(WAIT_SECONDS * 2.0 ** min(self._hung, 10), MAX_HUNG_SECONDS)
        if now < self._began + seconds:
            return False
        self._hung += 1
        hung, self._refresh = self._refresh, None
        self._failed(f"the library did not return in {seconds:.0f} seconds", now)
        if not hung.done():
            hung.set_result(None)
        return True

    def _read(self, loop: asyncio.AbstractEventLoop, done: "asyncio.Future[None]", began: float) -> None:
        """Read the credentials in a thread, and pass the result to the event loop."""
        found, problem = None, ""
        try:
            found = self._source.read()
        except (Exception, SystemExit) as error:  # of any library; the gateway does not depend on their classes
            problem = f"{type(error).__name__}: {clean(str(error), MAX_CAUSE_CHARACTERS)}"
        with suppress(RuntimeError):  # the gateway has ended
            loop.call_soon_threadsafe(self._finish, done, began, found, problem)

    def _finish(self, done: "asyncio.Future[None]", began: float, found: Credentials | None, problem: str) -> None:
        """Use the result of a read. That of a read which was given up counts if no later read found credentials."""
        now = self._now()
        if found is not None and found.expiry <= now:
            found, problem = None, "the credentials that were found are expired"
        if done is not self._refresh and (found is None or self._made >= began):
            return
        waiting, self._refresh, self._is_rejected = self._refresh, None, False
        if found is None:
            left = max(self._end - now, 0.0)
            self._retry = now + (min(left / 4, MAX_RETRY_SECONDS) if left and self._signer else RETRY_SECONDS)
            self._failed(problem, now)
        else:
            self._use(found, now)
        for each in (done, waiting):
            if each is not None and not each.done():
                each.set_result(None)

    def _use(self, found: Credentials, now: float) -> None:
        valid = found.expiry - now
        self._signer, self._made, self._retry = found.signer, now, 0.0
        self._problem, self._hung = "", 0
        self._end = found.expiry - min(UNUSED_SECONDS, valid / 10) if valid != inf else inf
        latest = found.expiry - min(RENEWED_SECONDS, valid / 2) if valid != inf else inf
        # an issuer may return the same credentials again, also after the time at which it advises to replace them
        self._renewal = max(min(latest, found.renewal), now + valid / 4)
        if self._count is not None:
            self._count(self._channel, REFRESHED_OUTCOME)

    def _failed(self, problem: str, now: float) -> None:
        self._problem = problem
        left = max(self._end - now, 0.0)
        logger.warning(
            "the credentials of a channel could not be renewed",
            channel=self._channel,
            cause=problem,
            valid_seconds=round(left) if left != inf else None,
        )
        if self._count is not None:
            self._count(self._channel, FAILED_OUTCOME)

    async def _wait(self, seconds: float) -> Signer:
        """Wait for the current read of credentials, at most `seconds`, and return their signer."""
        if self._refresh is not None:
            left = min(seconds, self._began + WAIT_SECONDS - self._now())
            try:
                async with asyncio.timeout(max(left, 0.0)):
                    await asyncio.shield(self._refresh)  # for the other calls, too
            except TimeoutError:
                raise self._error("the credentials were not found in time") from None
        if self._signer is None or self._now() >= self._end:
            raise self._error(self._problem or "the credentials are expired")
        return self._signer

    def _error(self, cause: str) -> UmgError:
        message = (
            f"channel {self._channel}: no valid credentials of {self._source.title} could be got; the operator has to"
            " check `auth` of the channel (`umg check --live`)"
        )
        error = UmgError(pb.ERROR_REASON_UPSTREAM_UNREACHABLE, message)
        facts = ProviderFailure(FailureKind.WRONG_KEY, message=f"auth: {cause}")
        return error.with_failure(Failure.NOT_SENT, f"auth: {cause}").with_facts(facts)
