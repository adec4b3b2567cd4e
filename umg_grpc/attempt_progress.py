"""Progress of one attempt's HTTP exchange with a provider: whether the request was sent, the status, the request id.

The HTTP client records it, and the code that makes attempts reads it from the context variable `ANSWER`.
"""

from collections.abc import Callable
from contextvars import ContextVar

import msgspec


class UpstreamAnswer(msgspec.Struct, eq=False):
    """Progress of one attempt at a provider: whether the request was sent, and the status and request id of the
    answer.
    """

    on_send: Callable[[], None] | None = None
    """Called once, immediately before the request is written."""
    is_sent: bool = False
    """Whether a request was, or is about to be, written to a provider over HTTP."""
    status: int = 0
    """HTTP status; 0 before the answer, and for upstreams that are not reached over HTTP."""
    request_id: str = ""
    """Request id of the provider; "" without one."""

    def record_send(self) -> None:
        """Record that the request is about to be written; called again if the write is repeated."""
        if not self.is_sent:
            self.is_sent = True
            if self.on_send is not None:
                self.on_send()


ANSWER: ContextVar[UpstreamAnswer | None] = ContextVar("upstream answer", default=None)
"""Answer of the current attempt. Set at the start of each attempt; its tasks inherit it."""
