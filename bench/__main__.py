"""The command: `python -m bench [SCENARIO ...] [--rounds N] [--seconds S] [--quick] [--json FILE]`."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from bench.harness import Plan
from bench.processes import BenchError
from bench.report import as_json, as_table, document
from bench.run import cores, run
from bench.scenarios import SCENARIOS
from bench.translate import FULL, NAME, Cost, rounds
from bench.translate import QUICK as LITTLE

QUICK = Plan(rounds=1, seconds=0.3, warmup=0.1, held=20)
"""Shows that everything works; its figures say nothing."""


def main() -> int:
    """0, or 1 after a message if anything went wrong, a wrong answer included."""
    arguments = _arguments()
    if sys.platform != "linux":
        return _failed("the benchmark pins cores and reads /proc, so it runs on Linux only")
    plan = QUICK if arguments.quick else Plan(arguments.rounds, arguments.seconds, warmup=0.5, held=500)
    scenarios = [each for each in SCENARIOS if not arguments.scenarios or each.name in arguments.scenarios]
    translating = not arguments.scenarios or NAME in arguments.scenarios
    where = cores()

    async def all_of_it() -> int:
        task = asyncio.current_task()
        for number in (signal.SIGINT, signal.SIGTERM):  # whoever ends the benchmark ends what it has started
            if task:
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        results = await run(plan, scenarios, where, _tell) if scenarios else []
        costs = list[Cost]()
        if translating:
            for some in rounds(plan.rounds, LITTLE if arguments.quick else FULL, _tell):
                costs += some
                await asyncio.sleep(0)  # whoever wants it ended is heard here
        made = document(plan, where, results, costs)
        print(as_table(made))
        if arguments.json:
            arguments.json.write_bytes(as_json(made))
        return 0

    try:
        return asyncio.run(all_of_it())
    except BenchError as error:
        return _failed(str(error))
    except asyncio.CancelledError:
        return 130


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _failed(message: str) -> int:
    print(f"bench: {message}", file=sys.stderr)
    return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="The gateway beside a bare pass-through, and its codecs alone."
    )
    names = [*(scenario.name for scenario in SCENARIOS), NAME]
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(names)}; default: all")
    parser.add_argument("--rounds", type=_count, default=5, help="how often everything is measured (default 5)")
    parser.add_argument("--seconds", type=_seconds, default=3.0, help="length of one measurement (default 3)")
    parser.add_argument("--quick", action="store_true", help="a few seconds in all: shows that it works, no more")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    arguments = parser.parse_args()
    if unknown := set(arguments.scenarios) - set(names):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return arguments


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _seconds(text: str) -> float:
    if not 0.1 <= (number := float(text)) <= 600:
        raise argparse.ArgumentTypeError("0.1 to 600")
    return number


if __name__ == "__main__":
    sys.exit(main())
