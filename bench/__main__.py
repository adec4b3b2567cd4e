"""Command of the benchmark: `python -m bench [SCENARIO ...] [--rounds N] [--seconds S] [--quick] [--json FILE]`."""

import argparse
import asyncio
import sys
from pathlib import Path

from bench.benchmark_rounds import cores, run
from bench.codec_costs import FULL, NAME, Cost, rounds
from bench.codec_costs import QUICK as LITTLE
from bench.command_line import count, print_progress, run_to_end, seconds
from bench.load_measurement import Plan
from bench.report import as_json, as_table, document
from bench.scenarios import SCENARIOS

QUICK = Plan(rounds=1, seconds=0.1, warmup=0.05, held=20)
"""Plan for a check that everything works; its figures are meaningless."""


def main() -> int:
    """Run the benchmark. Return the exit status: 0, or 1 after a message if anything failed, wrong answers included."""
    arguments = _arguments()
    plan = QUICK if arguments.quick else Plan(arguments.rounds, arguments.seconds, warmup=0.5, held=500)
    scenarios = [each for each in SCENARIOS if not arguments.scenarios or each.name in arguments.scenarios]
    translating = not arguments.scenarios or NAME in arguments.scenarios

    async def measure_all() -> None:
        where = cores()
        results = await run(plan, scenarios, where, print_progress) if scenarios else []
        costs = list[Cost]()
        if translating:
            for some in rounds(plan.rounds, LITTLE if arguments.quick else FULL, print_progress):
                costs += some
                await asyncio.sleep(0)  # a signal can cancel the task here
        made = document(plan, where, results, costs)
        print(as_table(made))
        if arguments.json:
            arguments.json.write_bytes(as_json(made))

    return run_to_end(measure_all)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="The gateway beside a bare pass-through, and its codecs alone."
    )
    names = [*(scenario.name for scenario in SCENARIOS), NAME]
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(names)}; default: all")
    parser.add_argument("--rounds", type=count, default=5, help="how often everything is measured (default 5)")
    parser.add_argument("--seconds", type=seconds, default=3.0, help="length of one measurement (default 3)")
    parser.add_argument("--quick", action="store_true", help="a few seconds in all: shows that it works, no more")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    arguments = parser.parse_args()
    if unknown := set(arguments.scenarios) - set(names):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
