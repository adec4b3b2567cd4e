"""Live parts of pages, which are drawn once for all people that have them open."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field

LIVE_HEADER = "live-parts"
"""Header with which the script of a live page requests its live parts alone."""
LIVE_LAYOUT = "live_parts.html"
MIN_SHARED_SECONDS, MAX_SHARED_SECONDS = 4.0, 15.0
"""Age until which drawn parts are shown to others. The least is less than the period of the script, so that one person
alone gets new ones each time.
"""
DRAWING_SHARE = 0.01
"""Share of the time that drawing takes, as far as the greatest age permits: while calls are many, drawing is slow."""


@dataclass(frozen=True)
class LiveParts:
    """Live parts of a page as they were drawn."""

    tag: str
    """Entity tag of the page."""
    html: bytes
    """Document without anything of a person or a session."""


@dataclass
class _Shared:
    parts: LiveParts | None = None
    end: float = 0.0
    """Time from which the parts are too old."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class SharedLiveParts:
    """Live parts that were drawn in the last seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._shared = now, dict[Hashable, _Shared]()

    async def get(self, audience: Hashable, draw: Callable[[], Awaitable[LiveParts]]) -> LiveParts:
        """Return the parts that `audience` sees, drawn by `draw` if there are none yet. Raise its errors."""
        self._shared = {key: each for key, each in self._shared.items() if each.turn.locked() or self._now() < each.end}
        shared = self._shared.setdefault(audience, _Shared())
        async with shared.turn:
            began = self._now()
            if shared.parts is None or began >= shared.end:
                shared.parts = await draw()
                took = self._now() - began
                shared.end = began + min(max(MIN_SHARED_SECONDS, took / DRAWING_SHARE), MAX_SHARED_SECONDS)
            return shared.parts
