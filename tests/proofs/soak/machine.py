"""Processor time of a run, and of other processes meanwhile: times mean little where these take much."""

import os
from pathlib import Path
from typing import NamedTuple, Self

TICKS = os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    """Seconds of a processor core, or shares of one."""

    gateway: float
    provider: float
    callers: float
    others: float

    @classmethod
    def until_now(cls, gateway: int, provider: int) -> Self:
        """Return the seconds since the start of the processes, which are given by their ids."""
        ours = (cpu_seconds(gateway), cpu_seconds(provider), cpu_seconds(os.getpid()))
        return cls(*ours, _machine_seconds() - sum(ours))

    def since(self, before: "Spent", seconds: float) -> "Spent":
        """Return the shares of a core during the given seconds."""
        return Spent(*((now - then) / seconds for now, then in zip(self, before, strict=True)))

    def __str__(self) -> str:
        return ", ".join(f"{name} {share:.0%}" for name, share in zip(self._fields, self, strict=True))


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, fields[11:13])) / TICKS


def _machine_seconds() -> float:
    _, user, nice, system, _, _, interrupt, soft, stolen, *_ = Path("/proc/stat").read_text().split()
    return sum(map(int, (user, nice, system, interrupt, soft, stolen))) / TICKS
