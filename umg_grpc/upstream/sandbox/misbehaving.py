"""How a simulated call of one answer goes wrong when its words ask for it."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from umg_grpc.upstream.sandbox import faults


@dataclass(frozen=True)
class Deadlines:
    """Of a channel, in seconds."""

    first_byte: float
    total: float


async def misbehave(texts: Iterable[str], seconds: float, deadlines: Deadlines) -> None:
    """Raises UmgError as the first mark in the texts says. `[[slow]]` waits for the nearest deadline before."""
    mark = next((found for text in texts if "[[" in text and (found := faults.mark(text))), "")
    if mark in {faults.FAIL, faults.CUT}:
        raise faults.failed()
    if mark == faults.BUSY:
        raise faults.busy()
    if mark == faults.SLOW:
        whole = min(max(seconds, 0), deadlines.total)
        await asyncio.sleep(min(whole, deadlines.first_byte))
        raise faults.late("total" if whole <= deadlines.first_byte else "first_byte")
