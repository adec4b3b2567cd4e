"""Table of the proof, as printed and in `docs/chaos.md`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.proofs.chaos.events import Event
from tests.proofs.chaos.judge import Verdict

PAGE = Path(__file__).parents[3] / "docs/chaos.md"
BEGIN, END = "<!-- table -->", "<!-- end of the table -->"
COLUMNS: dict[str, Callable[[Verdict], int | float]] = {
    "calls": lambda verdict: verdict.calls,
    "failed": lambda verdict: verdict.failed,
    "of these at the provider": lambda verdict: verdict.cut,
    "kept": lambda verdict: verdict.kept,
    "slowest, s": lambda verdict: verdict.slowest_seconds,
    "sent twice": lambda verdict: verdict.repeated,
    "records lost": lambda verdict: verdict.lost_records,
    "over": lambda verdict: verdict.over,
    "under": lambda verdict: verdict.under,
    "overspent": lambda verdict: verdict.overspent,
    "beyond limits": lambda verdict: verdict.exceeded,
    "tasks": lambda verdict: verdict.tasks.submitted,
    "doubled": lambda verdict: len(verdict.tasks.doubled),
    "hanging": lambda verdict: len(verdict.tasks.hanging),
    "lost": lambda verdict: len(verdict.tasks.lost),
    "unconfirmed": lambda verdict: len(verdict.tasks.unconfirmed),
}
"""Columns of numbers."""


@dataclass(frozen=True)
class Row:
    event: Event
    proxy: str
    verdict: Verdict

    @property
    def cells(self) -> tuple[str, ...]:
        values = (value(self.verdict) for value in COLUMNS.values())
        numbers = (f"{value:.1f}" if isinstance(value, float) else f"{value:,}" for value in values)
        return (self.event.name, self.proxy, *numbers)


def table(rows: Sequence[Row]) -> str:
    heads = (("event", "proxy", *COLUMNS), ("---", "---", *("---:" for _ in COLUMNS)))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (*heads, *(row.cells for row in rows))) + "\n"


def write(rows: Sequence[Row]) -> None:
    """Write the table into the page, in place of the one that is there."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(rows)}{END}{after}", encoding="utf-8")
