"""Command `python -m tests.proofs.openapi [--examples N] [--seed N]`: calls a gateway as its OpenAPI document describes, with
schemathesis, and prints each answer that the document does not have. The exit code states whether there is none.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import msgspec

from http_facade.openapi.openapi_document import document_json
from tests.proofs.openapi.gateway import CONFIG, MODELS
from tests.proofs.openapi.run import fuzz, prepared
from tests.support.gateways import running
from umg_grpc.base import gateway_log


async def holds(examples: int, seed: int) -> bool:
    """Return whether all answers are documented."""
    described = prepared(msgspec.json.decode(document_json()), MODELS)

    def call(url: str, headers: dict[str, str]) -> bool:
        found = 0
        for finding in fuzz(described, url, headers, examples, seed):
            found += 1
            sys.stdout.write(f"FAULT: {finding.operation}\n{finding.text}\n\n")
            sys.stdout.flush()
        return found == 0

    with tempfile.TemporaryDirectory() as data:
        async with running(CONFIG, Path(data)) as state:
            return await asyncio.to_thread(call, state.url, state.headers)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.openapi", description="Service and document agree.")
    parser.add_argument("--examples", type=int, default=100, help="valid and as many invalid calls of each operation")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    gateway_log.configure("error", "auto")
    result = asyncio.run(holds(given.examples, given.seed))
    sys.stdout.write("every answer is documented\n" if result else "SOME ANSWERS ARE NOT DOCUMENTED\n")
    sys.exit(not result)


if __name__ == "__main__":
    main()
