"""Command of the benchmark:
`python -m bench [SCENARIO ...] [--against COMMIT] [--rounds N] [--seconds S] [--quick] [--json FILE]`.
"""

import argparse
import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from bench import commit_comparison
from bench.benchmark_rounds import cores, run
from bench.codec_costs import FULL, NAME, Cost, rounds
from bench.codec_costs import QUICK as LITTLE
from bench.command_line import count, print_progress, run_to_end, seconds
from bench.load_measurement import Plan
from bench.report import as_json, as_table, document
from bench.scenarios import SCENARIOS

QUICK = Plan(rounds=1, seconds=0.1, warmup=0.05, held=20, settling=0.0)
"""Plan for a check that everything works; its figures are meaningless."""
ROUNDS, COMPARED_ROUNDS = 5, 9


def main() -> int:
    """Run the benchmark. Return the exit status: 0, or 1 after a message if anything failed, wrong answers included,
    or if this build is slower than the commit that it is compared with.
    """
    arguments = _arguments()
    scenarios = [each for each in SCENARIOS if not arguments.scenarios or each.name in arguments.scenarios]
    translating = not arguments.scenarios or NAME in arguments.scenarios
    slower = False

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

    async def compare_all() -> None:
        nonlocal slower
        made = await commit_comparison.compare(
            arguments.against,
            plan,
            scenarios,
            cores(),
            print_progress,
            translating=translating,
            quick=arguments.quick,
        )
        print(commit_comparison.as_table(made))
        if arguments.json:
            arguments.json.write_bytes(as_json(made))
        slower = any(row.slower for row in made.rows)

    plan = _plan(arguments)
    return run_to_end(compare_all if arguments.against else measure_all) or int(slower)


def _plan(arguments: argparse.Namespace) -> Plan:
    if arguments.quick:
        return replace(QUICK, rounds=arguments.rounds or QUICK.rounds)
    count = COMPARED_ROUNDS if arguments.against else ROUNDS
    return Plan(arguments.rounds or count, arguments.seconds, warmup=0.5, held=500)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="The gateway beside a bare pass-through, and its codecs alone."
    )
    names = [*(scenario.name for scenario in SCENARIOS), NAME]
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(names)}; default: all")
    parser.add_argument("--against", metavar="COMMIT", help="compare with the build of this commit instead")
    rounds_help = f"how often everything is measured (default {ROUNDS}; against a commit {COMPARED_ROUNDS})"
    parser.add_argument("--rounds", type=count, help=rounds_help)
    parser.add_argument("--seconds", type=seconds, default=3.0, help="length of one measurement (default 3)")
    parser.add_argument("--quick", action="store_true", help="a few seconds in all: shows that it works, no more")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    arguments = parser.parse_args()
    if unknown := set(arguments.scenarios) - set(names):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
