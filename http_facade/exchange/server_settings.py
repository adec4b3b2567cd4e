"""Settings of the HTTP server, and the interface of the load shedder that it uses."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from http_facade.exchange.browser_sessions import FailureLimit, UsedForms
from http_facade.exchange.readiness_response import Readiness
from http_facade.exchange.sign_on_interface import BrowserSignOn
from umg_grpc.base.errors import UmgError
from umg_grpc.base.refused_request import RefusedRequest
from umg_grpc.wire.core.stream_memory_limits import StreamMemory

MAX_DRAWINGS = 4
"""Pages of the console that a process draws at once."""


class CallLimiter(Protocol):
    """Interface of the load shedder: it limits the model calls in flight in this process, and rejects calls above."""

    def admits(self) -> bool:
        """Return whether a new call would be admitted now; `enter` takes the slot of an admitted call."""

    def admits_pages(self) -> bool:
        """Return whether a page of the console may be drawn now: not while calls wait, before one is rejected."""

    def refusal(self) -> UmgError:
        """Count a rejection, and return the error UNAVAILABLE for the rejected call."""

    def check(self) -> None:
        """Raise UmgError(UNAVAILABLE) and count the rejection if a new call would not be admitted now."""

    async def enter(self, seconds: float) -> None:
        """Take a slot for an admitted call, which `leave` releases. Raises UmgError(UNAVAILABLE) after `seconds`."""

    def leave(self) -> None:
        """Release the slot of a call that ended."""

    def refused(self, reason: str) -> None:
        """Count a call that the HTTP server rejected by itself (`reason`: `connections` for its connection limit)."""


class NoLoadShedder:
    """Load shedder without a limit, which admits all calls."""

    def admits(self) -> bool:
        return True

    def admits_pages(self) -> bool:
        return True

    def refusal(self) -> UmgError:
        raise NotImplementedError  # never called: no call is rejected

    def check(self) -> None:
        """Do nothing: all calls are admitted."""

    async def enter(self, seconds: float) -> None:
        """Return at once: the number of calls is not limited."""

    def leave(self) -> None:
        """Do nothing: no slots are counted."""

    def refused(self, reason: str) -> None:
        """Do nothing: rejected calls are not counted."""


@dataclass
class Drain:
    """Flag that the servers of a process share: whether the shutdown of the process was announced."""

    is_announced: bool = False


async def no_credential(_token: str) -> None:
    """Return no credential of a session: each call reads the session by its token."""


@dataclass(frozen=True)
class Settings:
    """Settings of the HTTP server: limits, timeouts, and the process's objects for readiness, metrics and keys."""

    ready: Callable[[], Awaitable[Readiness] | Readiness]
    """Returns whether calls are served, for `/readyz`."""
    metrics: Callable[[], tuple[bytes, str]]
    """Returns the body and the content type of `/metrics`."""
    metrics_key: str | None = field(default=None, repr=False)
    """Bearer token that `/metrics` requires; None requires none."""
    body_limit_bytes: int = 64 * 2**20
    """Largest request body in bytes, before and after decompression."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call the gateway; `*` allows all."""
    pages: bool = True
    """Whether the pages are served to browsers."""
    heartbeat_seconds: float = 15
    """Seconds without an event after which a stream sends a heartbeat, which keeps proxies from closing it."""
    drain_seconds: float = 30
    """Seconds that answers in flight may still take at a shutdown."""
    drain: Drain = field(default_factory=Drain)
    """Whether a shutdown was announced: answers then have `connection: close`."""
    write_timeout_seconds: float = 600
    """Seconds for which a client may read nothing of its response before it is disconnected."""
    calls_are_logged: bool = False
    """Whether the service logs each call in the same log, so that the face does not."""
    find_key: Callable[[str], object] = lambda _authorization: None
    """Returns the key in this `authorization` if a service in the same process has recently validated it, else None;
    never raises and never waits. The key is passed on to the service, which does not look for it again.
    """
    valid_caller: Callable[[object], object] = lambda _key: None
    """Returns the holder of a key that `find_key` has returned; None if it has to be found again."""
    session_credential: Callable[[str], Awaitable[object]] = no_credential
    """Returns the session with a token, checked by a service in the same process for the calls of one page, which does
    not read it for each of them; None with a service in another process. Raises UmgError(INVALID_KEY) if it has ended.
    """
    sign_on: BrowserSignOn | None = None
    """Sign-on of people by a service in the same process; None without one."""
    sign_in_failures: FailureLimit = field(default_factory=FailureLimit)
    """Bound of failed sign-ins, which all paths share."""
    used_forms: UsedForms = field(default_factory=UsedForms)
    """Forms of the console that were sent."""
    drawings: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_DRAWINGS))
    """Places to draw a page of the console, so that calls come first."""
    key_fields: Callable[[str], Mapping[str, str]] = lambda _: {}
    """Returns the fields by which a log line names the key of an `authorization`; none for an unknown key."""
    note_refused: Callable[[RefusedRequest], None] = lambda _: None
    """Notes a request that was refused before the service was called for it, for the records of calls."""
    budget: StreamMemory = field(default_factory=StreamMemory)
    """Memory budget of the streams in flight for the text that their last events repeat."""
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """Turn to encode a piece of a large response."""
    load_shedder: CallLimiter = field(default_factory=NoLoadShedder)
    connections: int = 8192
    """Connection limit; beyond it only routes that need no key are served."""
    silent_seconds: float = 60
    """Seconds in which a new connection must send its first byte."""
    head_seconds: float = 10
    """Seconds in which the headers of a request must be complete, from their first byte on."""
    upload_seconds: float = 60
    """Seconds for which an upload may send nothing, and seconds for a whole body besides one for each 16 KiB."""
