"""Command `python -m tests.unit.access.redis_restart`: measures the limits of three processes through a restart of Redis
without its data, and through a stall of a quarter of a second. It takes half a minute.
"""

import asyncio
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.support.redis import RedisServer
from tests.unit.access.test_limits import caller
from umg_grpc.access.redis_concurrency_limits import SharedConcurrencyLimits
from umg_grpc.access.request_rate_limits import RequestLimits
from umg_grpc.base.errors import UmgError
from umg_grpc.store.redis_client import Redis
from umg_grpc.store.redis_process_count import Presence

PROCESSES = 3
REQUESTS_PER_MINUTE, CONCURRENT = 300, 10
CALLS_A_SECOND = 15.0
"""Calls a second of each process: together they reach the limit of the minute long before the end."""
SECONDS, RESTART_AFTER, AWAY_SECONDS, STALL_SECONDS = 25.0, 5.0, 1.0, 0.25


@dataclass
class Process:
    presence: Presence
    requests: RequestLimits
    calls: SharedConcurrencyLimits

    async def send(self) -> int:
        """Send requests for `SECONDS`. Return the number of admitted ones."""
        admitted, end = 0, time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                await self.requests.admit(caller(REQUESTS_PER_MINUTE))
                admitted += 1
            except UmgError:
                pass
            await asyncio.sleep(1 / CALLS_A_SECOND)
        return admitted

    async def start_calls(self) -> int:
        """Start as many calls as the limit allows. Return their number."""
        return sum([await self.calls.acquire("key_1", CONCURRENT) for _ in range(CONCURRENT)])


async def _process(url: str, stack: AsyncExitStack) -> Process:
    redis = await stack.enter_async_context(Redis.opened(url))
    presence = Presence(redis)
    presence.start()
    made = Process(
        presence,
        RequestLimits(redis=redis, processes=lambda: presence.processes),
        SharedConcurrencyLimits(redis, processes=lambda: presence.processes),
    )
    for each in (presence, made.requests, made.calls):
        stack.push_async_callback(each.aclose)
    return made


async def _restart(server: RedisServer) -> None:
    await asyncio.sleep(RESTART_AFTER)
    server.stop()
    await asyncio.sleep(AWAY_SECONDS)
    await asyncio.to_thread(server.start)


async def measure(server: RedisServer) -> tuple[int, int]:
    """Return the admitted requests of a minute with the restart, and the concurrent calls with the stall."""
    async with AsyncExitStack() as stack:
        processes = [await _process(server.url, stack) for _ in range(PROCESSES)]
        while any(each.presence.processes < PROCESSES for each in processes):
            await asyncio.gather(*(each.presence.send() for each in processes))
        *admitted, _ = await asyncio.gather(*(each.send() for each in processes), _restart(server))
        running = await processes[0].start_calls()
        with server.silent():
            others = [asyncio.create_task(each.start_calls()) for each in processes[1:]]
            await asyncio.sleep(STALL_SECONDS)
        return sum(filter(None, admitted)), running + sum(await asyncio.gather(*others))


def main() -> int:
    """Measure and print the figures. Return the exit status: 1 if a limit was exceeded."""
    with tempfile.TemporaryDirectory(prefix="umg-redis-") as directory:
        server = RedisServer(Path(directory))
        server.start()
        try:
            requests, calls = asyncio.run(measure(server))
        finally:
            server.stop()
    sys.stdout.write(f"requests of a minute, with a restart without data: {requests} of {REQUESTS_PER_MINUTE}\n")
    sys.stdout.write(f"concurrent calls, with a stall of {STALL_SECONDS:g} s: {calls} of {CONCURRENT}\n")
    return int(requests > REQUESTS_PER_MINUTE or calls > CONCURRENT)


if __name__ == "__main__":
    sys.exit(main())
