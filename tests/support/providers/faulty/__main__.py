"""Command `python -m tests.support.providers.faulty [PORT]`: runs the faulty provider as a process, until standard input ends."""

import asyncio
import sys

from tests.support.providers.faulty.server import faulty_upstream


async def main() -> None:
    async with faulty_upstream(int(sys.argv[1]) if len(sys.argv) > 1 else 0) as upstream:
        sys.stdout.write(f"{upstream.root}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
