"""What a run takes of the machine, and what others take meanwhile: times are worth little where they take much."""

import os
from pathlib import Path
from typing import NamedTuple, Self

TICKS = os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    """Seconds of a core, or the share of one."""

    gateway: float
    provider: float
    callers: float
    others: float

    @classmethod
    def until_now(cls, gateway: int, provider: int) -> Self:
        """Since each began; the processes by their ids."""
        ours = (cpu_seconds(gateway), cpu_seconds(provider), cpu_seconds(os.getpid()))
        return cls(*ours, _machine_seconds() - sum(ours))

    def since(self, before: "Spent", seconds: float) -> "Spent":
        """The shares of so many seconds."""
        return Spent(*((now - then) / seconds for now, then in zip(self, before, strict=True)))

    def __str__(self) -> str:
        return ", ".join(f"{name} {share:.0%}" for name, share in zip(self._fields, self, strict=True))


def cpu_seconds(process: int) -> float:
    """Time of a core that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, fields[11:13])) / TICKS


def _machine_seconds() -> float:
    _, user, nice, system, _, _, interrupt, soft, stolen, *_ = Path("/proc/stat").read_text().split()
    return sum(map(int, (user, nice, system, interrupt, soft, stolen))) / TICKS
