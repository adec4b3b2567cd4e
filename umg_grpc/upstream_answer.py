"""Facts of one attempt's exchange with a provider, which the upstream reports to the attempt."""

from collections.abc import Callable
from contextvars import ContextVar


class UpstreamAnswer:
    """Status and request id of a provider's answer, and whether the request was sent."""

    __slots__ = ("_on_send", "is_sent", "request_id", "status")

    def __init__(self, on_send: Callable[[], None] | None = None) -> None:
        """Call `on_send` once, immediately before the request is written."""
        self._on_send = on_send
        self.is_sent = False
        """Whether a request was, or is about to be, written to a provider over HTTP."""
        self.status = 0
        """HTTP status; 0 before the answer, and for upstreams that are not reached over HTTP."""
        self.request_id = ""
        """Request id of the provider; "" without one."""

    def record_send(self) -> None:
        """Record that the request is about to be written, which may be repeated."""
        if not self.is_sent:
            self.is_sent = True
            if self._on_send is not None:
                self._on_send()


ANSWER: ContextVar[UpstreamAnswer | None] = ContextVar("upstream answer", default=None)
"""Answer of the current attempt. Set at the start of each attempt; its tasks inherit it."""
