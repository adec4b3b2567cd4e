"""What the HTTP face is given by who runs it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol


class Gate(Protocol):
    """Lets calls of models in, as many as the process takes on."""

    @property
    def is_tight(self) -> bool:
        """Whether `check` may refuse."""

    def check(self) -> None:
        """Takes a call on, before anything is done for it. Raises UmgError(UNAVAILABLE)."""

    async def enter(self, seconds: float) -> None:
        """Lets a call in that was checked, within `seconds`; it is to `leave`. Raises UmgError(UNAVAILABLE)."""

    def leave(self) -> None:
        """Ends a call that was let in."""

    def refused(self, reason: str) -> None:
        """Counts a call that the face refused for a reason of its own."""


class OpenGate:
    """Lets all in."""

    is_tight = False

    def check(self) -> None:
        """Nothing."""

    async def enter(self, seconds: float) -> None:
        """At once."""

    def leave(self) -> None:
        """Nothing."""

    def refused(self, reason: str) -> None:
        """Nothing."""


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
    """How long a client may leave an answer unread."""
    calls_are_logged: bool = False
    """Whether the service writes a line for each call into the same log, so that the face needs not."""
    gate: Gate = field(default_factory=OpenGate)
    """Asked before a model is."""
    connections: int = 8192
    """Most connections; above them only what needs no key is answered."""
    silent_seconds: float = 60
    """How long a new connection may say nothing."""
    head_seconds: float = 10
    """How long the head of a request may take, from its first byte on."""
    upload_seconds: float = 60
    """How long an upload may stand still, and how long a body may take beside one second for each 16 KiB of it."""
