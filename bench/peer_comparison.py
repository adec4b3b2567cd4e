"""Command `python -m bench.peer_comparison`: measures this gateway and others beside the bare pass-through.

It writes `bench/peers.json`, and from it the table of the README. `--table` only writes the table of the present file.
"""

import argparse
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import aiohttp
import msgspec

from bench import embedding_bodies, scenarios
from bench.benchmark_rounds import (
    GATEWAY,
    PASS_THROUGH,
    allow_files,
    cores,
    fake_upstream,
    first_call,
    gateway,
    passthrough,
)
from bench.command_line import count, print_progress, run_to_end, seconds
from bench.load_measurement import Bench, Plan, Target
from bench.peers import PEERS, Peer, install, running
from bench.processes import BenchError
from bench.report import as_json, setting
from bench.scenarios import Scenario, answer_rates

ROOT = Path(__file__).parents[1]
FIGURES, PAGE = ROOT / "bench" / "peers.json", ROOT / "README.md"
TABLE = re.compile(r"(<!-- figures of bench/peers.json -->\n).*?(<!-- end -->)", re.DOTALL)
PLAN = Plan(rounds=3, seconds=3.0, warmup=0.5, held=500)
QUICK = Plan(rounds=1, seconds=0.1, warmup=0.05, held=20)
OURS = "this gateway"
STATUS = re.compile(r"status (\d{3})")
SHOWN = 1000
"""Characters of the failure of a peer that are printed."""
TITLES = {PASS_THROUGH: PASS_THROUGH, GATEWAY: OURS} | {peer.name: f"{peer.title} {peer.version}" for peer in PEERS}


async def embed(bench: Bench, target: Target) -> tuple[float, ...]:
    """Measure calls with one vector from the provider, as numbers."""
    return await answer_rates(bench, target, embedding_bodies.FLOAT.name, 64)


EMBED = Scenario("embed", scenarios.RATES[:2], embed)
COMPARED = (
    *(each for each in scenarios.SCENARIOS if each.name in {"memory", "small", "near", "stream", "paced"}),
    EMBED,
)


@dataclass(frozen=True)
class Line:
    """Row of the table: a measure of a scenario, by its position."""

    title: str
    scenario: str
    position: int
    digits: int
    more_is_better: bool = True
    is_ratio: bool = True
    """Whether the table has the ratio to the pass-through, in place of the figure."""


LINES = (  # without the added times, which need a quieter machine than the others: the file has them
    Line("small calls", "small", 1, 2),
    Line("embeddings of 1,536 numbers", "embed", 1, 2),
    Line("calls to a provider that answers after 20 ms", "near", 1, 2),
    Line("chunks of a stream, many at once", "stream", 1, 2),
    Line("chunks of a stream, each alone", "paced", 0, 2, more_is_better=False),
    Line("streams that a core would hold, two chunks a second each", "memory", 3, 0, is_ratio=False),
    Line("idle memory, MiB", "memory", 0, 0, is_ratio=False),
    Line("memory with 500 streams, MiB", "memory", 1, 0, is_ratio=False),
)


class Run(msgspec.Struct, frozen=True):
    """Figures of a target in one round, by scenario; a text is the reason why there are none."""

    target: str
    round: int
    figures: dict[str, list[float] | str]


class Figures(msgspec.Struct, frozen=True):
    """Content of the file that a run writes."""

    date: str
    setting: dict[str, str]
    plan: dict[str, float]
    titles: dict[str, str]
    runs: list[Run]


async def measure(plan: Plan, environments: Path, peers: Sequence[Peer], save: Callable[[Figures], None]) -> None:
    """Measure the pass-through, this gateway and the peers in turn, each started anew in every round. `save`: called
    with the figures after each of them, so that a run that is ended has those of its complete rounds.
    """
    where = cores()
    titles = {name: TITLES[name] for name in (PASS_THROUGH, GATEWAY, *(peer.name for peer in peers))}
    about = {"rounds": plan.rounds, "seconds": plan.seconds, "held": plan.held}
    figures = Figures(datetime.now(UTC).date().isoformat(), setting(where), about, titles, [])
    allow_files()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peers-")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        upstream = await stack.enter_async_context(fake_upstream(where, folder))
        bench = Bench(plan, where, upstream, session, folder)
        for number in range(1, plan.rounds + 1):
            own = folder / str(number)
            for start in (
                partial(passthrough, upstream, where, own),
                partial(gateway, upstream, where, own / GATEWAY),
                *(partial(running, peer, environments, bench, own / peer.name) for peer in peers),
            ):
                async with start() as target:
                    await first_call(session, target)
                    figures.runs.append(await _run(bench, target, number))
                save(figures)


async def _run(bench: Bench, target: Target, number: int) -> Run:
    """Measure all scenarios. One that a peer fails is no failure of the run, since it shows a property of the peer."""
    figures = dict[str, list[float] | str]()
    for scenario in COMPARED:
        print_progress(f"round {number} of {bench.plan.rounds}: {scenario.name}, {target.name}")
        try:
            figures[scenario.name] = [*await scenario.run(bench, target)]
        except BenchError as error:
            if target.name in (PASS_THROUGH, GATEWAY):
                raise
            found = STATUS.search(str(error))
            reason = "wrong" if "wrong answers" in str(error) else "too slow"
            figures[scenario.name] = f"status {found[1]}" if found else reason
            print_progress(str(error)[:SHOWN])
    return Run(target.name, number, figures)


def table(figures: Figures) -> str:
    """Return the figures as a Markdown table: medians of the rounds, or of their ratios to the pass-through."""
    titles = figures.titles.values()
    lines = [f"| one core, {figures.date} | {' | '.join(titles)} |", f"|---|{'--:|' * len(titles)}"]
    for line in LINES:
        cells = [_cell(figures, line, target) for target in figures.titles]
        lines.append(f"| {line.title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(figures: Figures, line: Line, target: str) -> str:
    rounds = {(run.target, run.round): run.figures[line.scenario] for run in figures.runs}
    values = list[float]()
    for (name, number), row in rounds.items():
        yardstick = rounds[PASS_THROUGH, number]
        if name != target or isinstance(yardstick, str):
            continue
        if isinstance(row, str):
            return row
        figure, of_bare = row[line.position], yardstick[line.position]
        if line.is_ratio:
            figure = figure / of_bare if line.more_is_better else of_bare / figure
        values.append(figure)
    if not values:  # the run was ended before
        return "-"
    median = statistics.median(values)
    # two digits that count: a ratio of 0.016 is no 0.02
    digits = line.digits if not line.is_ratio or median >= 0.1 else line.digits + 1
    return f"{median:,.{digits}f}"


def write_table(figures: Figures, page: Path) -> None:
    """Write the table into the page, between its marks."""
    text = page.read_text(encoding="utf-8")
    page.write_text(TABLE.sub(lambda marks: f"{marks[1]}{table(figures)}\n{marks[2]}", text), encoding="utf-8")


def save(figures: Figures, file: Path) -> None:
    """Write the figures into a file."""
    file.write_bytes(as_json(figures))


def read(file: Path) -> Figures:
    """Return the figures of a file that a run has written."""
    return msgspec.json.decode(file.read_bytes(), type=Figures)


def main() -> int:
    """Measure, and write the file and the table. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.peer_comparison", description=__doc__)
    names = [peer.name for peer in PEERS]
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"of {', '.join(names)}; default: all")
    parser.add_argument("--rounds", type=count, help=f"how often everything is measured (default {PLAN.rounds})")
    parser.add_argument("--seconds", type=seconds, default=PLAN.seconds, help="length of one measurement (default 3)")
    parser.add_argument("--environments", type=Path, default=ROOT / "build/peers", help="folder of the installed peers")
    parser.add_argument("--json", type=Path, default=FIGURES, metavar="FILE", help="file of the figures")
    parser.add_argument("--page", type=Path, default=PAGE, help="Markdown page into which the table is written")
    parser.add_argument("--without-peers", action="store_true", help="measure only the pass-through and this gateway")
    parser.add_argument("--table", action="store_true", help="measure nothing: write the table of the file")
    parser.add_argument("--quick", action="store_true", help="shows that it works, no more")
    arguments = parser.parse_args()
    if unknown := set(arguments.peers) - set(names):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    peers = [peer for peer in PEERS if peer.name in (arguments.peers or names) and not arguments.without_peers]
    environments = arguments.environments.resolve()
    plan = QUICK if arguments.quick else replace(PLAN, seconds=arguments.seconds)
    plan = replace(plan, rounds=arguments.rounds or plan.rounds)

    async def measured() -> None:
        for peer in peers:
            install(peer, environments)
        await measure(plan, environments, peers, lambda figures: save(figures, arguments.json))

    status = 0 if arguments.table else run_to_end(measured)
    if status == 0:
        figures = read(arguments.json)
        write_table(figures, arguments.page)
        print(table(figures))
    return status


if __name__ == "__main__":
    sys.exit(main())
