"""Command that prints the fate of the features of requests at today's vendors.

python -m tests.pairs.vendors                                 the whole matrix, and its wrong outcomes by kind
python -m tests.pairs.vendors --vendor mistral --all          every wrong call of one vendor
python -m tests.pairs.vendors --model gpt-6 --face chat --feature tools --sent
python -m tests.pairs.vendors --calls FILE                    the calls of a file of JSON lines
"""

import argparse
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from tests.pairs.vendors import calls, report
from tests.pairs.vendors.features import FACES
from tests.pairs.vendors.runner import Result, embedding_matrix, embedding_models, matrix, models


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.pairs.vendors", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--vendor", action="append", default=[], help="only this preset (repeatable)")
    parser.add_argument("--model", default="", help="only models whose id contains this")
    parser.add_argument("--face", action="append", default=[], choices=FACES, help="only this face (repeatable)")
    parser.add_argument("--feature", action="append", default=[], help="only this feature (repeatable)")
    parser.add_argument("--kind", default="", help="only wrong outcomes whose kind contains this")
    parser.add_argument("--all", action="store_true", help="list all wrong calls, not some of each kind")
    parser.add_argument("--sent", action="store_true", help="print the bodies that were sent, too")
    parser.add_argument("--each", action="store_true", help="print every call, also those that are right")
    parser.add_argument("--calls", type=Path, help="run the calls of this file instead of the matrix")
    chosen = parser.parse_args()
    found: Iterable[Result]
    if chosen.calls is not None:
        found = calls.results(chosen.calls)
    else:
        wanted, embedding = (
            [
                model
                for model in known
                if chosen.model in model.id and (not chosen.vendor or model.vendor in chosen.vendor)
            ]
            for known in (models(), embedding_models())
        )
        found = matrix(wanted, tuple(chosen.face) or FACES, tuple(chosen.feature))
        if not chosen.face and not chosen.feature:
            found = chain(found, embedding_matrix(embedding))
    results = [result for result in found if chosen.kind in result.wrong]
    if chosen.each:
        for result in results:
            kind = f"{result.outcome} {result.wrong}".strip()
            lines = [f"{result.id} -> {result.protocol}: {kind}  [{result.dropped}] {result.message}"]
            lines += [f"    {result.sent}"] if chosen.sent else []
            sys.stdout.write("\n".join([*lines, ""]))
    sys.stdout.write(f"{report.table(results)}\n")
    wrong = report.failures(results, 0 if chosen.all else report.EXAMPLES, shows_sent=chosen.sent)
    sys.stdout.write(f"{wrong}\n")


main()
