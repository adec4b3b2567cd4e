"""Command that fuzzes all targets or the given ones: `python -m tests.proofs.fuzz [--seconds N] [--processes N] [TARGET ...]`."""

import argparse
import secrets
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.proofs.fuzz.run import fuzz, seeds_until
from tests.proofs.fuzz.targets import TARGETS

HOUR = 3600


def run(name: str, seconds: float, first_seed: int) -> str:
    """Return the fault that was found in a target, "" for none."""
    return fuzz(TARGETS[name], seeds_until(seconds, first_seed))


def _print_progress(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Return 1 if any target has a fault."""
    arguments = argparse.ArgumentParser(prog="python -m tests.proofs.fuzz")
    arguments.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all by default")
    arguments.add_argument("--seconds", type=float, default=HOUR, help="in all, shared among the targets")
    arguments.add_argument("--processes", type=int, default=2)
    arguments.add_argument("--seed", type=int, default=None, help="of a run that is repeated")
    given = arguments.parse_args()
    names = given.targets or list(TARGETS)
    first_seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    _print_progress(f"seed {first_seed}")
    each = given.seconds * min(given.processes, len(names)) / len(names)
    with ProcessPoolExecutor(given.processes) as pool:
        found = 0
        runs = [pool.submit(run, name, each, first_seed) for name in names]
        for name, future in zip(names, runs, strict=True):
            complaint = future.result()
            found += bool(complaint)
            _print_progress(complaint or f"{name}: nothing")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
