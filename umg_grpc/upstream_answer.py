"""Facts of a provider's successful answer, which the upstream reports to the attempt that called it."""

from contextvars import ContextVar


class UpstreamAnswer:
    """Status and request id of a provider's answer."""

    __slots__ = ("request_id", "status")

    def __init__(self) -> None:
        self.status = 0
        """HTTP status; 0 before the answer, and for upstreams that are not reached over HTTP."""
        self.request_id = ""
        """Request id of the provider; "" without one."""


ANSWER: ContextVar[UpstreamAnswer | None] = ContextVar("upstream answer", default=None)
"""Answer of the current attempt. Set at the start of each attempt; its tasks inherit it."""
