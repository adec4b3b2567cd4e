"""A run as a table to read and as JSON to keep."""

import platform
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import msgspec

from bench.harness import Cores, Plan
from bench.run import GATEWAY, PASS_THROUGH, TARGETS, Result
from bench.scenarios import Measure, Scenario

HEADINGS = ("scenario", "measure", "pass-through", "gateway", "ratio", "spread")


@dataclass(frozen=True)
class Row:
    """One measure: medians over the rounds, and the gateway's figure over the pass-through's in each round."""

    scenario: str
    measure: Measure
    pass_through: float
    gateway: float
    ratio: float | None
    """Median of the rounds' ratios; None where a figure is not above zero, which makes no ratio."""
    spread: tuple[float, float] | None
    rounds: dict[str, list[float]]
    """All figures by target."""


@dataclass(frozen=True)
class Document:
    """What `--json` writes."""

    setting: dict[str, str]
    plan: Plan
    rows: list[Row]
    answers: dict[str, dict[str, int]]
    """Right answers by scenario and target, all rounds together."""
    notes: list[str]


def document(plan: Plan, where: Cores, results: Sequence[Result]) -> Document:
    """The results, put together."""
    scenarios = list(dict.fromkeys(result.scenario for result in results))
    return Document(
        setting=_setting(where),
        plan=plan,
        rows=[row for scenario in scenarios for row in _rows(scenario, results)],
        answers={scenario.name: _answers(scenario, results) for scenario in scenarios},
        notes=list(_notes(where, results)),
    )


def as_json(made: Document) -> bytes:
    """Indented, with a line end."""
    return msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"


def as_table(made: Document) -> str:
    """Markdown, with its columns aligned."""
    rows = [HEADINGS, *(_cells(row) for row in made.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = [_line(row, widths) for row in rows]
    rule = "|" + "|".join("-" * (width + 1) + (":" if column > 1 else "-") for column, width in enumerate(widths)) + "|"
    setting = ", ".join(made.setting.values())
    about = f"{setting}. Rounds: {made.plan.rounds}, each measurement {made.plan.seconds:g} s; the figures are medians."
    count = " ".join(f"{name} {sum(each.values()):,}" for name, each in made.answers.items())
    right = f"All answers were right ({count})."
    return "\n".join([about, "", lines[0], rule, *lines[1:], "", right, *(f"Note: {note}" for note in made.notes)])


def _rows(scenario: Scenario, results: Sequence[Result]) -> Iterator[Row]:
    for position, measure in enumerate(scenario.measures):
        rounds = {
            target: [r.figures[position] for r in results if r.scenario is scenario and r.target == target]
            for target in TARGETS
        }
        pairs = list(zip(rounds[GATEWAY], rounds[PASS_THROUGH], strict=True))
        ratios = [ours / bare for ours, bare in pairs] if all(min(pair) > 0 for pair in pairs) else []
        yield Row(
            scenario=scenario.name,
            measure=measure,
            pass_through=statistics.median(rounds[PASS_THROUGH]),
            gateway=statistics.median(rounds[GATEWAY]),
            ratio=statistics.median(ratios) if ratios else None,
            spread=(min(ratios), max(ratios)) if ratios else None,
            rounds=rounds,
        )


def _answers(scenario: Scenario, results: Sequence[Result]) -> dict[str, int]:
    return {
        target: sum(r.answers for r in results if r.scenario is scenario and r.target == target) for target in TARGETS
    }


def _notes(where: Cores, results: Sequence[Result]) -> Iterator[str]:
    if where.target is None:
        yield "only one core: nothing is pinned, and all figures are those of programs that wait for each other"
    found: dict[tuple[str, str, str], list[float]] = {}
    for result in results:
        for note in result.notes:
            found.setdefault((result.scenario.name, note.target, note.what), []).append(note.share)
    for (scenario, target, what), shares in found.items():
        yield f"{scenario}, {target}: {what} (measurements: {len(shares)}, up to {max(shares):.0%} of its time)"


def _setting(where: Cores) -> dict[str, str]:
    cpu = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
    pinned = "nothing pinned"
    if where.target is not None:
        pinned = f"targets on core {where.target}, load and fake upstream on core {where.harness}"
    return {
        "cpu": cpu,
        "system": f"{platform.system()} {platform.release()}",
        "python": f"Python {platform.python_version()}",
        "aiohttp": f"aiohttp {version('aiohttp')}",
        "uvloop": f"uvloop {version('uvloop')}",
        "pinned": pinned,
    }


def _cells(row: Row) -> tuple[str, ...]:
    digits = row.measure.digits
    return (
        row.scenario,
        row.measure.name if row.measure.more_is_better else f"{row.measure.name} (less is better)",
        f"{row.pass_through:,.{digits}f}",
        f"{row.gateway:,.{digits}f}",
        "-" if row.ratio is None else f"{row.ratio:.2f}",
        "-" if row.spread is None else f"{row.spread[0]:.2f} - {row.spread[1]:.2f}",
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.rjust(width) if column > 1 else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"
