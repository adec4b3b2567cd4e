"""What the HTTP face is given by who runs it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """How the face behaves."""

    ready: Callable[[], Awaitable[bool] | bool]
    """Whether calls would be served, for `/readyz`."""
    metrics: Callable[[], tuple[bytes, str]]
    """Body and content type of `/metrics`."""
    body_limit_bytes: int = 64 * 2**20
    """Largest body of a request, compressed or not."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call; `*` is all of them."""
    heartbeat_seconds: float = 15
    """A stream that says nothing for so long gets a heartbeat, which keeps proxies from closing it."""
    drain_seconds: float = 30
    """How long answers under way may take when the face is told to end."""
    stalled_seconds: float = 600
    """How long a client may leave a stream unread."""
    calls_are_logged: bool = False
    """Whether the service writes a line for each call into the same log, so that the face needs not."""
    upload_idle_seconds: float = 60
    """How long an upload may stand still."""
