"""How a simulated call of one answer goes wrong when its words ask for it."""

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
    if mark == faults.CUT:  # one answer cannot break off in the middle
        raise faults.failed()
    await faults.befall(mark, seconds, first_byte=deadlines.first_byte, total=deadlines.total)
