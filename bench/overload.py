"""Command `python -m bench.overload`: measures how many good calls per second the gateway answers when more are
offered.

An open loop offers 0.5 to 3 times the capacity, which a closed loop measures before each load.
"""

import argparse
import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench import chat_bodies, open_loop_load
from bench.benchmark_rounds import allow_files, cores, fake_upstream, first_call, gateway
from bench.command_line import count, print_progress, run_to_end, seconds
from bench.load_measurement import Bench, Cores, Note, Plan, Target
from bench.overload_tables import CONNECTIONS, Level, Load, Run, as_page, as_table
from bench.processes import BenchError

FACTORS = (0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 3.0)
WARMUP_SECONDS = 1.0
ATTEMPTS = 5
DOCS = Path(__file__).resolve().parent.parent / "docs"


@dataclass(frozen=True)
class Size:
    """Length and size of a measurement under overload."""

    rounds: int
    seconds: float
    """Length of each load."""
    warmup: float = WARMUP_SECONDS
    factors: tuple[float, ...] = FACTORS


QUICK = Size(rounds=1, seconds=0.15, warmup=0.05, factors=(FACTORS[0], 1.0, FACTORS[-1]))
"""Size for a check that everything works; its figures are meaningless."""


async def measure(size: Size, where: Cores) -> Run:
    """Return the results of all rounds, each with a new gateway. Raises BenchError on a wrong answer."""
    allow_files()
    loads: dict[float, list[Load]] = {factor: [] for factor in size.factors}
    notes = list[Note]()
    repetitions = 0
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="overload-")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        upstream = await stack.enter_async_context(fake_upstream(where, folder))
        for number in range(1, size.rounds + 1):
            async with gateway(upstream, where, folder / str(number)) as target:
                await first_call(session, target)
                plan = Plan(rounds=1, seconds=size.seconds, warmup=size.warmup, held=0)
                bench = Bench(plan, where, upstream, session, folder)
                print_progress(f"round {number} of {size.rounds}")
                for factor in size.factors:
                    capacity, repeated = await _capacity(bench, target)
                    repetitions += repeated
                    report = await bench.offer(target, factor * capacity, size.seconds)
                    loads[factor].append(Load(capacity, report))
                    print_progress(_progress(factor, capacity, report))
                notes += bench.notes
    levels = [Level(factor, tuple(loads[factor])) for factor in size.factors]
    return Run(size.seconds, size.rounds, tuple(levels), tuple(notes), repetitions)


async def _capacity(bench: Bench, target: Target) -> tuple[float, int]:
    """Return the calls per second of a closed loop without a refusal, and the number of loops with refusals before
    it.
    """
    for repeated in range(ATTEMPTS):
        try:
            report = (await bench.put(target, chat_bodies.DELAYED, CONNECTIONS)).report
        except BenchError as error:
            if "status 503" not in str(error) or repeated == ATTEMPTS - 1:
                raise
            print_progress("  refusals in the closed loop, which is repeated")
        else:
            # a starved gateway may answer none, but an open loop needs a rate
            return max(1, report.window_answers) / report.window_seconds, repeated
    raise AssertionError("unreachable")


def _progress(factor: float, capacity: float, report: open_loop_load.Report) -> str:
    return (
        f"  {factor:g} times {capacity:,.0f}: {report.offered_rate:,.0f} offered, {report.good_rate:,.0f} good, "
        f"{report.refused_rate:,.0f} refused a second; {report.connections} connections; "
        f"p99 of good {report.good_p99:,.0f} ms, of refused {report.refused_p99:,.0f} ms, "
        f"of the load's lateness {report.late_p99:,.0f} ms; recovery {report.recovery_seconds:.2f} s"
    )


def _write(run: Run, where: Cores, folder: Path) -> None:
    from bench.overload_plot import draw  # needs matplotlib, which `make overload` installs

    folder.joinpath("overload.md").write_text(as_page(run, where))
    draw(run, folder / "overload.svg")
    print_progress(f"{folder / 'overload.md'} and overload.svg are written")


def main() -> int:
    """Measure, print the table and write the page. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.overload", description=__doc__)
    parser.add_argument("--rounds", type=count, default=5, help="how often everything is measured (default 5)")
    parser.add_argument("--seconds", type=seconds, default=3.0, help="length of each measurement (default 3)")
    parser.add_argument("--quick", action="store_true", help="seconds in all, nothing is written: shows that it works")
    parser.add_argument("--write", type=Path, metavar="FOLDER", default=DOCS, help="of the page and the plot (docs)")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else Size(arguments.rounds, arguments.seconds)

    async def measured() -> None:
        where = cores()
        run = await measure(size, where)
        print(as_table(run))
        if not arguments.quick:
            await asyncio.to_thread(_write, run, where, arguments.write)

    return run_to_end(measured)


if __name__ == "__main__":
    sys.exit(main())
