"""Table of the proof, as printed and in `docs/chaos.md`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.events import Event
from tests.chaos.judge import Verdict

PAGE = Path(__file__).parents[2] / "docs/chaos.md"
BEGIN, END = "<!-- table -->", "<!-- end of the table -->"
COLUMNS = (
    *(
        "event",
        "proxy",
        "calls",
        "failed",
        "of these at the provider",
        "kept",
        "slowest, s",
        "records lost",
        "over",
        "under",
    ),
    *("overspent", "beyond limits", "tasks", "doubled", "hanging", "lost", "unconfirmed"),
)


@dataclass(frozen=True)
class Row:
    """Row of the table."""

    event: Event
    proxy: str
    verdict: Verdict

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells in the order of `COLUMNS`."""
        verdict, tasks = self.verdict, self.verdict.tasks
        counts = (
            *(verdict.lost_records, verdict.over, verdict.under, verdict.overspent, verdict.exceeded),
            *(tasks.submitted, len(tasks.doubled), len(tasks.hanging), len(tasks.lost), len(tasks.unconfirmed)),
        )
        calls = (
            self.event.name,
            self.proxy,
            f"{verdict.calls:,}",
            f"{verdict.failed:,}",
            f"{verdict.cut:,}",
            f"{verdict.kept:,}",
        )
        return (*calls, f"{verdict.slowest_seconds:.1f}", *(f"{count:,}" for count in counts))


def table(rows: Sequence[Row]) -> str:
    """Return the table as Markdown."""
    lines = [COLUMNS, tuple("---" if number < 2 else "---:" for number in range(len(COLUMNS)))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (*lines, *(row.cells for row in rows))) + "\n"


def write(rows: Sequence[Row]) -> None:
    """Write the table into the page, in place of the one that is there."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(rows)}{END}{after}", encoding="utf-8")
