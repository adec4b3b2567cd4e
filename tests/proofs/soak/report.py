"""Report of a run: measured figures, beside the demanded ones."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """One figure. `holds` is None where there is no demand."""

    name: str
    measured: str
    demanded: str = ""
    holds: bool | None = None
    timed: bool = False
    """Whether the figure depends more on the machine and its load than on the gateway. Tests do not judge it."""


@dataclass(frozen=True)
class Report:
    title: str
    verdicts: Sequence[Verdict]
    notes: Sequence[str] = ()

    @property
    def holds(self) -> bool:
        return not self.broken()

    def broken(self, *, timed: bool = True) -> list[Verdict]:
        """Return the figures that fail their demands; without `timed`, only figures that do not depend on the time."""
        return [verdict for verdict in self.verdicts if verdict.holds is False and (timed or not verdict.timed)]

    def __str__(self) -> str:
        rows = [("", "measured", "demanded", ""), *map(_row, self.verdicts)]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)) for row in rows]
        text = [self.title, "", *(f"  {line.rstrip()}" for line in lines)]
        return "\n".join([*text, *(["", *(f"  {note}" for note in self.notes)] if self.notes else []), ""])


def _row(verdict: Verdict) -> tuple[str, str, str, str]:
    result = {None: "", True: "ok", False: "FAILED"}[verdict.holds]
    return verdict.name, verdict.measured, verdict.demanded, result


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def mebibytes(count: int) -> str:
    return f"{count / 2**20:.1f} MiB"
