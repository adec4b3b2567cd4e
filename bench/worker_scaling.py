"""Command `python -m bench.worker_scaling`: measures several worker processes of the gateway against one.

It prints a table of calls and chunks, per second and per second of the processor time of all its processes.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench import chat_bodies
from bench.benchmark_rounds import Build, Builds, Result, run
from bench.command_line import count, print_progress, run_to_end, seconds
from bench.load_measurement import Bench, Cores, Plan, Target
from bench.report import table
from bench.scenarios import Measure, Scenario, answer_rates

ONE, SEVERAL = "one", "several"
CONNECTIONS = 64
"""Connections of each worker, over which the kernel distributes them."""
ANYWHERE = Cores(None, None)
PLAN = Plan(rounds=7, seconds=3.0, warmup=1.0, held=0)
QUICK = Plan(rounds=1, seconds=0.1, warmup=0.1, held=0)
HEADINGS = ("load", "measure", "one worker", "several", "several / one", "spread")


@dataclass(frozen=True)
class Row:
    """Medians of a measure over the rounds, and the ratios of the rounds: the median, the smallest and the largest."""

    load: str
    measure: Measure
    one: float
    several: float
    ratio: float
    spread: tuple[float, float]


def loads(workers: int) -> tuple[Scenario, ...]:
    """Return the loads of one worker and of `workers`, with the same number of connections for each worker."""
    connections = {ONE: CONNECTIONS, SEVERAL: CONNECTIONS * workers}

    async def calls(bench: Bench, target: Target) -> tuple[float, ...]:
        return await answer_rates(bench, target, chat_bodies.SMALL, connections[target.name])

    async def chunks(bench: Bench, target: Target) -> tuple[float, ...]:
        most = await bench.put(target, chat_bodies.BURST, connections[target.name])
        return most.report.window_chunks / most.report.window_seconds, most.report.window_chunks / most.cpu_seconds

    return (
        Scenario("small", (Measure("requests/s", 0), Measure("requests per CPU second", 0)), calls),
        Scenario("stream", (Measure("chunks/s", 0), Measure("chunks per CPU second", 0)), chunks),
    )


def rows(results: Sequence[Result]) -> Iterator[Row]:
    """Yield the rows of the table."""
    for scenario in dict.fromkeys(each.scenario for each in results):
        for position, measure in enumerate(scenario.measures):
            one, several = (
                [each.figures[position] for each in results if each.scenario is scenario and each.target == target]
                for target in (ONE, SEVERAL)
            )
            ratios = [more / less for more, less in zip(several, one, strict=True)]
            median = statistics.median
            yield Row(
                *(scenario.name, measure, median(one), median(several)),
                *(median(ratios), (min(ratios), max(ratios))),
            )


def as_table(found: Sequence[Row]) -> str:
    """Return the rows as an aligned Markdown table."""
    cells = [
        (
            *(row.load, row.measure.name, f"{row.one:,.0f}", f"{row.several:,.0f}", f"{row.ratio:.2f}"),
            f"{row.spread[0]:.2f} - {row.spread[1]:.2f}",
        )
        for row in found
    ]
    return table(HEADINGS, cells, left=2)


def main() -> int:
    """Measure and print the table. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.worker_scaling", description=__doc__)
    parser.add_argument("--workers", type=count, default=2, help="number of the several workers (default 2)")
    parser.add_argument("--rounds", type=count, help=f"how often everything is measured (default {PLAN.rounds})")
    parser.add_argument("--seconds", type=seconds, default=PLAN.seconds, help="length of one measurement (default 3)")
    parser.add_argument("--quick", action="store_true", help="a few seconds in all: shows that it works, no more")
    arguments = parser.parse_args()
    plan = QUICK if arguments.quick else replace(PLAN, seconds=arguments.seconds)
    plan = replace(plan, rounds=arguments.rounds or plan.rounds)
    builds = Builds((Build(ONE), Build(SEVERAL, workers=arguments.workers)))

    async def measured() -> None:
        print(as_table([*rows(await run(plan, loads(arguments.workers), ANYWHERE, print_progress, builds))]))

    return run_to_end(measured)


if __name__ == "__main__":
    sys.exit(main())
