"""Syntax of the paths that select a fault, called orders: `/NAME[,NAME...][@SHARE][+MILLISECONDS]/v1`.

`reset-mid` applies to every call, `reset-mid@20` to 20 % of the calls, `status-500,reset-mid@20+50` one or the other to
20 %, and every answer begins 50 ms after the request. Beside the names of faults there are mixes: `any`, `before`
(faults that strike before the first content) and `after`. The nonce of a call and the seed decide whether a fault
strikes it, and which one: see `struck`.
"""

import re
import zlib
from functools import lru_cache
from typing import NamedTuple

from tests.support.providers.faulty.faults import FAULTS, NONE, Fault, Strikes

FORM = re.compile(r"([a-z0-9.,-]+)(?:@(\d+))?(?:\+(\d+))?")


class Order(NamedTuple):
    """Order: the faults that the path of a request selects, their share of calls, and the delay of answers."""

    names: tuple[str, ...]
    share: int = 100  # per cent of the calls
    seconds: float = 0  # before each answer

    def __str__(self) -> str:
        share = "" if self.share == 100 else f"@{self.share}"
        return ",".join(self.names) + share + (f"+{round(self.seconds * 1000)}" if self.seconds else "")


@lru_cache(maxsize=4096)
def parsed(text: str) -> Order | None:
    """Return the order at the start of a path; None if it is invalid."""
    found = FORM.fullmatch(text)
    if found is None:
        return None
    names = tuple(found[1].split(","))
    if not all(name in FAULTS or name in MIXES for name in names):
        return None
    return Order(names, int(found[2] or 100), int(found[3] or 0) / 1000)


def struck(order: Order | str, nonce: str, *, streamed: bool, seed: int = 0) -> Fault:
    """Return the fault that strikes a call with the nonce, NONE for none. Equal arguments give the same fault."""
    made = parsed(order) if isinstance(order, str) else order
    assert made is not None, order
    drawn = zlib.crc32(f"{seed} {nonce}".encode())
    if drawn % 100 >= made.share:
        return NONE
    applicable = _applicable(made.names, streamed)
    return applicable[drawn // 100 % len(applicable)] if applicable else NONE


@lru_cache(maxsize=4096)
def _applicable(names: tuple[str, ...], streamed: bool) -> list[Fault]:
    found = [fault for name in names for fault in MIXES.get(name) or [FAULTS[name]]]
    return [fault for fault in found if fault.strikes(streamed=streamed) is not None]


def _mix(*strikes: Strikes) -> list[Fault]:
    """Return the faults that strike a stream (or else a whole response) at the given times."""
    return [
        fault
        for fault in FAULTS.values()
        if fault.mixes
        and not fault.callers
        and (fault.strikes(streamed=True) or fault.strikes(streamed=False)) in strikes
    ]


MIXES = {"any": _mix(*Strikes), "before": _mix(Strikes.BEFORE), "after": _mix(Strikes.AFTER)}
