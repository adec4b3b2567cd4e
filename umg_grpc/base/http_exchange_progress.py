"""Progress of one attempt's HTTP exchange with a provider. The HTTP client records it, and the code that makes attempts
reads it from the context variable `ATTEMPT_PROGRESS`.
"""

import time
from collections.abc import Callable
from contextvars import ContextVar
from math import inf

import msgspec


class StreamStart(msgspec.Struct, eq=False):
    """Progress of a stream before its first message, which decides when headers are sent. Times are monotonic."""

    began_at: float
    answered_at: float = inf
    """Time when a provider answered 200; infinite before, and after a failure of that provider."""


class AttemptProgress(msgspec.Struct, eq=False):
    """Progress of one attempt at a provider: whether the request was sent; the response's status and request id."""

    on_send: Callable[[], None] | None = None
    """Called once, immediately before the request is written."""
    is_sent: bool = False
    """Whether a request was, or is about to be, written to a provider over HTTP."""
    status: int = 0
    """HTTP status; 0 before the response, and for upstreams that are not reached over HTTP."""
    request_id: str = ""
    refuses_changes: bool = False
    """Whether the call is refused if a gateway behind this one changes it: only this gateway got `x-umg-strict`."""
    affinity: bytes = b""
    """Affinity key of the call, by which a channel with several API keys selects one; empty to use them in turn."""
    stream_start: StreamStart | None = None
    """Progress of the call before its first message; None for a call without a stream."""

    def record_send(self) -> None:
        """Record that the request is about to be written; called again if the request is written once more."""
        if not self.is_sent:
            self.is_sent = True
            if self.on_send is not None:
                self.on_send()

    def record_success_status(self) -> None:
        """Record that the provider answered 200, before any byte of the stream that follows."""
        if self.stream_start is not None and self.stream_start.answered_at == inf:
            self.stream_start.answered_at = time.monotonic()


ATTEMPT_PROGRESS: ContextVar[AttemptProgress | None] = ContextVar("attempt progress", default=None)
"""Progress of the current attempt. Set at the start of each attempt; its tasks inherit it."""
