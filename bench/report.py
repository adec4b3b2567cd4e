"""Report of a run of the benchmark, as tables and as JSON."""

import platform
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import msgspec

from bench.benchmark_rounds import GATEWAY, PASS_THROUGH, TARGETS, Result
from bench.codec_costs import AGENT, ANSWER, EVENT, PAIRS, REQUEST, WORKS, Cost
from bench.load_measurement import Cores, Plan
from bench.scenarios import Measure, Scenario

HEADINGS = ("scenario", "measure", "pass-through", "gateway", "ratio", "spread")
PAIR_HEADINGS = ("face", "upstream", *(f"{work}, us" for work in WORKS), "over the cheapest")
FORMAT_HEADINGS = (
    "format, us",
    *(f"{work} read" for work in (REQUEST, AGENT)),
    *(f"{work} written" for work in (ANSWER, EVENT)),
    *(f"{work} written" for work in (REQUEST, AGENT)),
    *(f"{work} read" for work in (ANSWER, EVENT)),
)


@dataclass(frozen=True)
class Row:
    """Row of the report: one measure's medians over the rounds, and the ratios of the gateway's figures to the
    pass-through's.
    """

    scenario: str
    measure: Measure
    pass_through: float
    gateway: float
    ratio: float | None
    """Median of the rounds' ratios; None where a figure is not above zero."""
    spread: tuple[float, float] | None
    rounds: dict[str, list[float]]
    """Figures of all rounds, by target."""


@dataclass(frozen=True)
class Translation:
    """Row of the report on codecs: cost of one kind of translation between two formats, median over the rounds in
    microseconds.
    """

    face: str
    upstream: str
    work: str
    decode: float
    encode: float
    both: float
    over_the_cheapest: float | None
    """Ratio to the cheapest pair of two different formats; None for a pair of one format."""
    rounds: list[float]


@dataclass(frozen=True)
class Document:
    """Content of the file that `--json` writes."""

    setting: dict[str, str]
    plan: Plan
    rows: list[Row]
    answers: dict[str, dict[str, int]]
    """Number of right answers by scenario and target, in all rounds together."""
    notes: list[str]
    translations: list[Translation]


def document(plan: Plan, where: Cores, results: Sequence[Result], costs: Sequence[Cost]) -> Document:
    """Return the report of the results and of the codecs' costs."""
    scenarios = list(dict.fromkeys(result.scenario for result in results))
    return Document(
        setting=setting(where),
        plan=plan,
        rows=[row for scenario in scenarios for row in _rows(scenario, results)],
        answers={scenario.name: _answers(scenario, results) for scenario in scenarios},
        notes=list(disturbances(where, results)),
        translations=_translations(costs),
    )


def as_json(made: object) -> bytes:
    """Return a report as indented JSON with a line end."""
    return msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"


def as_table(made: Document) -> str:
    """Return a report as aligned Markdown tables: the scenarios, then the translation, if they were measured."""
    length = f", each measurement {made.plan.seconds:g} s" if made.rows else ""
    parts = [f"{', '.join(made.setting.values())}. Rounds: {made.plan.rounds}{length}; the figures are medians."]
    if made.rows:
        count = " ".join(f"{name} {sum(each.values()):,}" for name, each in made.answers.items())
        right = f"All answers were right ({count})."
        parts.append(table(HEADINGS, [_cells(row) for row in made.rows], left=2))
        parts.append("\n".join([right, *(f"Note: {note}" for note in made.notes)]))
    if made.translations:
        parts += _translation_tables(made.translations)
    return "\n\n".join(parts)


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


def _translations(costs: Sequence[Cost]) -> list[Translation]:
    """Return the rows of the report on codecs, for each pair of formats all kinds of translation."""
    by_place: dict[tuple[str, str, str], list[Cost]] = {}
    for cost in costs:
        by_place.setdefault((cost.face, cost.upstream, cost.work), []).append(cost)
    sums = {place: [cost.decode + cost.encode for cost in found] for place, found in by_place.items()}
    both = {place: statistics.median(each) for place, each in sums.items()}
    cheapest = {work: min(both[f, u, w] for f, u, w in both if f != u and w == work) for work in WORKS if both}
    return [
        Translation(
            face=face,
            upstream=upstream,
            work=work,
            decode=statistics.median(cost.decode for cost in found),
            encode=statistics.median(cost.encode for cost in found),
            both=both[face, upstream, work],
            over_the_cheapest=None if face == upstream else both[face, upstream, work] / cheapest[work],
            rounds=sums[face, upstream, work],
        )
        for (face, upstream, work), found in by_place.items()
    ]


def _translation_tables(made: Sequence[Translation]) -> list[str]:
    """Return the tables about codecs: by pair of formats, a summary for stream events, and by format."""
    known = {(each.face, each.upstream, each.work): each for each in made}
    events = [each for each in made if each.work == EVENT and each.over_the_cheapest is not None]
    most, least = max(events, key=lambda each: each.both), min(events, key=lambda each: each.both)
    summary = (
        f"A stream's event between two formats: {least.both:.1f} us ({least.face} <- {least.upstream}) to "
        f"{most.both:.1f} us ({most.face} <- {most.upstream}), {most.both / least.both:.1f} times that."
    )
    pairs = list[tuple[str, ...]]()
    for face, upstream in PAIRS:
        over = known[face, upstream, EVENT].over_the_cheapest
        figures = [f"{known[face, upstream, work].both:,.1f}" for work in WORKS]
        pairs.append((face, upstream, *figures, "-" if over is None else f"{over:.2f}"))
    formats = list[tuple[str, ...]]()
    for name in dict.fromkeys(upstream for _, upstream in PAIRS):
        faces = [each for each in made if each.face == name != each.upstream]
        upstreams = [each for each in made if each.upstream == name != each.face]
        figures = [_median(each.decode for each in faces if each.work == work) for work in (REQUEST, AGENT)]
        figures += [_median(each.encode for each in faces if each.work == work) for work in (ANSWER, EVENT)]
        figures += [_median(each.encode for each in upstreams if each.work == work) for work in (REQUEST, AGENT)]
        figures += [_median(each.decode for each in upstreams if each.work == work) for work in (ANSWER, EVENT)]
        formats.append((name, *figures))
    about = "The same by format, first as a face, then as an upstream; medians over the others:"
    return [table(PAIR_HEADINGS, pairs, left=2), summary, about, table(FORMAT_HEADINGS, formats, left=1)]


def _median(figures: Iterator[float]) -> str:
    found = [*figures]
    return f"{statistics.median(found):,.1f}" if found else "-"


def disturbances(where: Cores, results: Sequence[Result]) -> Iterator[str]:
    """Yield the notes about possible disturbances of the results, one for each scenario, target and cause."""
    if where.target is None:
        yield "only one core: nothing is pinned, and all figures are those of programs that wait for each other"
    found: dict[tuple[str, str, str], list[float]] = {}
    for result in results:
        for note in result.notes:
            found.setdefault((result.scenario.name, note.target, note.cause), []).append(note.share)
    for (scenario, target, cause), shares in found.items():
        yield f"{scenario}, {target}: {cause} (measurements: {len(shares)}, up to {max(shares):.0%} of its time)"


def setting(where: Cores) -> dict[str, str]:
    """Return the circumstances of a run: machine, versions and cores."""
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


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """Return an aligned Markdown table. The first `left` columns are left-aligned, the others right-aligned."""
    widths = [max(len(row[column]) for row in [headings, *rows]) for column in range(len(headings))]
    rule = "|".join("-" * (width + 1) + (":" if column >= left else "-") for column, width in enumerate(widths))
    lines = [_line(row, widths, left) for row in rows]
    return "\n".join([_line(headings, widths, left), f"|{rule}|", *lines])


def _line(cells: Sequence[str], widths: Sequence[int], left: int) -> str:
    padded = [
        cell.rjust(width) if column >= left else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"
