"""Comparison of this build of the gateway with that of another commit, by the scenarios of the benchmark.

Both builds run in every round and are measured one after the other, in alternating order.
"""

import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from bench.benchmark_rounds import Build, Builds, Result, run
from bench.codec_costs import NAME, WORKS
from bench.commit_build import ROOT, built, commit_id, locks_differ
from bench.load_measurement import Cores, Plan
from bench.processes import BenchError, output_of
from bench.report import disturbances, setting, table
from bench.scenarios import Measure, Scenario

THIS, THAT = "this", "that"
SLOWER = 0.97
"""Ratio below which a measure is slower, if the quartiles of the two builds do not overlap either."""
HEADINGS = ("scenario", "measure", THAT, "quartiles", THIS, "quartiles", f"{THIS} / {THAT}", "")


@dataclass(frozen=True)
class Quartiles:
    """Median and quartiles of a measure over the rounds."""

    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """Row of the comparison: one measure of a scenario, for both builds."""

    scenario: str
    measure: Measure
    that: Quartiles
    this: Quartiles
    ratio: float | None
    """Median of the rounds' ratios, above 1 where this build is better; None where a figure is not above zero."""
    slower: bool
    """Whether the ratio is below 0.97 and the quartiles of the two builds do not overlap."""
    rounds: dict[str, list[float]]
    """Figures of all rounds, by build."""


@dataclass(frozen=True)
class Compared:
    """Result of a comparison, which `--json` writes."""

    commit: str
    setting: dict[str, str]
    plan: Plan
    rows: list[Comparison]
    notes: list[str] = field(default_factory=list)


async def compare(
    commit: str,
    plan: Plan,
    scenarios: Sequence[Scenario],
    where: Cores,
    progress: Callable[[str], None],
    *,
    translating: bool,
    quick: bool = False,
) -> Compared:
    """Measure this build and that of a commit. `translating`: whether the codecs are compared, too; `quick`: on as few
    bodies as possible. Raises BenchError if anything failed.
    """
    revision = await commit_id(commit)
    progress(f"building {revision[:12]}")
    async with built(revision, THAT) as that:
        this = Build(THIS, ROOT)
        results = await run(plan, scenarios, where, progress, Builds((that, this))) if scenarios else []
        rows = list(compared(results))
        if translating:
            rows += await _translations(plan.rounds, (that, this), where, progress, quick=quick)
    notes = list(disturbances(where, results))
    if await locks_differ(revision):
        notes.append("the commit locks other packages; both builds ran with those of this virtualenv")
    return Compared(revision, setting(where), plan, rows, notes)


def compared(results: Sequence[Result]) -> Iterator[Comparison]:
    """Yield the rows of all scenarios that were measured, in order."""
    for scenario in dict.fromkeys(result.scenario for result in results):
        for position, measure in enumerate(scenario.measures):
            figures = {
                name: [each.figures[position] for each in results if each.scenario is scenario and each.target == name]
                for name in (THAT, THIS)
            }
            yield judged(scenario.name, measure, figures)


def judged(scenario: str, measure: Measure, rounds: dict[str, list[float]]) -> Comparison:
    """Return the comparison of a measure. `rounds`: figures of the rounds, in order, of `that` and `this`."""
    pairs = list(zip(rounds[THIS], rounds[THAT], strict=True))
    ratio = None
    if all(min(pair) > 0 for pair in pairs):
        ratios = [this / that if measure.more_is_better else that / this for this, that in pairs]
        ratio = statistics.median(ratios)
    this, that = _quartiles(rounds[THIS]), _quartiles(rounds[THAT])
    apart = this.high < that.low if measure.more_is_better else this.low > that.high
    return Comparison(scenario, measure, that, this, ratio, ratio is not None and ratio < SLOWER and apart, rounds)


def _quartiles(figures: Sequence[float]) -> Quartiles:
    if len(figures) == 1:
        return Quartiles(figures[0], figures[0], figures[0])
    return Quartiles(*statistics.quantiles(figures, n=4, method="inclusive"))


def as_table(made: Compared) -> str:
    """Return a comparison as an aligned Markdown table, with its circumstances, notes and verdict."""
    head = f"{', '.join(made.setting.values())}. Rounds: {made.plan.rounds}, each measurement {made.plan.seconds:g} s."
    head += f" {THIS}: the working tree; {THAT}: {made.commit[:12]}. A ratio above 1 is better."
    slower = [row for row in made.rows if row.slower]
    verdict = f"No median is below {SLOWER} with quartiles that do not overlap."
    if slower:
        names = ", ".join(f"{row.scenario} ({row.measure.name})" for row in slower)
        verdict = f"SLOWER, below {SLOWER} with quartiles that do not overlap: {names}."
    notes = [f"Note: {note}" for note in made.notes]
    return "\n\n".join(
        [head, table(HEADINGS, [_cells(row) for row in made.rows], left=2), "\n".join([*notes, verdict])]
    )


def _cells(row: Comparison) -> tuple[str, ...]:
    def quartiles(found: Quartiles) -> str:
        return f"{found.low:,.{digits}f} - {found.high:,.{digits}f}"

    digits = row.measure.digits
    return (
        row.scenario,
        row.measure.name if row.measure.more_is_better else f"{row.measure.name} (less is better)",
        f"{row.that.median:,.{digits}f}",
        quartiles(row.that),
        f"{row.this.median:,.{digits}f}",
        quartiles(row.this),
        "-" if row.ratio is None else f"{row.ratio:.3f}",
        "SLOWER" if row.slower else "",
    )


# --- codecs


class _Translated(msgspec.Struct):
    """Row of a report on codecs that is compared."""

    face: str
    upstream: str
    work: str
    rounds: list[float]


class _Written(msgspec.Struct):
    """File of a build's benchmark that has the costs of its codecs."""

    translations: list[_Translated]


async def _translations(
    rounds: int, builds: tuple[Build, ...], where: Cores, progress: Callable[[str], None], *, quick: bool
) -> list[Comparison]:
    """Return the comparison of the codecs, whose costs each build measures by its own benchmark: for each kind of
    translation the sum over the pairs of formats that all builds have.
    """
    costs: dict[str, dict[str, list[float]]] = {work: {build.name: [] for build in builds} for work in WORKS}
    made = list[tuple[str, list[_Translated]]]()
    for number in range(1, rounds + 1):
        for build in builds if number % 2 else builds[::-1]:
            progress(f"round {number} of {rounds}: {NAME}, {build.name}")
            made.append((build.name, await _measured(build, where, quick=quick)))
    common = set.intersection(*({(each.face, each.upstream) for each in found} for _, found in made))
    for name, found in made:
        compared = [each for each in found if (each.face, each.upstream) in common]
        for work in WORKS:
            costs[work][name].append(sum(each.rounds[0] for each in compared if each.work == work))
    measures = {work: Measure(f"{work}, us of all pairs", 0, more_is_better=False) for work in WORKS}
    return [judged(NAME, measures[work], costs[work]) for work in WORKS]


async def _measured(build: Build, where: Cores, *, quick: bool) -> list[_Translated]:
    """Return the costs of a build's codecs, from one round of its own benchmark."""
    folder = build.folder or ROOT
    with tempfile.NamedTemporaryFile(prefix="bench-", suffix=".json") as file:
        # -P: the folder of the build precedes the current one
        command = [sys.executable, "-P", "-m", "bench", NAME, "--rounds", "1", "--json", file.name]
        command += ["--quick"] if quick else []
        await output_of(command, folder, where.target, build.environment)
        try:
            return msgspec.json.decode(file.read(), type=_Written).translations
        except msgspec.MsgspecError as error:
            raise BenchError(f"the benchmark of {build.name} writes other figures of its codecs: {error}") from error
