"""Throttled host: it is no overload, so a bounded number of callers is served, however slowly."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.proofs.soak.callers import CallResult, Outcome, callers
from tests.proofs.soak.gateway import KEY, gateway
from tests.proofs.soak.load import closed
from tests.proofs.soak.overload import PROVIDER, WAITED_FOR
from tests.proofs.soak.provider import provider
from tests.proofs.soak.questions import QUESTIONS, nonce
from umg_grpc.service.resilience.call_start_queue import ALWAYS_STARTED

STOPPED_SECONDS, RUNNING_SECONDS = 0.07, 0.03
"""Stopped and running in turns, as by `cpulimit`: less than a third of the processor is left."""


@asynccontextmanager
async def throttled(pid: int) -> AsyncGenerator[None, None]:
    """Take most of the processor time from a process during the context."""

    async def take() -> None:
        try:
            while True:
                os.kill(pid, signal.SIGSTOP)
                await asyncio.sleep(STOPPED_SECONDS)
                os.kill(pid, signal.SIGCONT)
                await asyncio.sleep(RUNNING_SECONDS)
        finally:
            os.kill(pid, signal.SIGCONT)

    taking = asyncio.create_task(take())
    try:
        yield
    finally:
        taking.cancel()
        with suppress(asyncio.CancelledError):
            await taking


async def test_callers_of_a_throttled_gateway_are_all_served(tmp_path: Path) -> None:
    async with provider() as running:
        config = PROVIDER.format(url=running.url("none+50"), overload="{}", more="")
        async with gateway(config, tmp_path) as target, callers(target.url, target.grpc, KEY) as calling:

            async def make_call(chance: random.Random) -> CallResult:
                return await calling.call(chance.choice(QUESTIONS), WAITED_FOR, nonce(chance))

            await closed(make_call, 4, 1)  # loads modules and opens connections at the first calls
            async with throttled(target.pid):
                tally = await closed(make_call, ALWAYS_STARTED, 6)
    assert tally.counts == {Outcome.RIGHT: tally.calls}, {outcome: tally.examples(outcome) for outcome in Outcome}
    assert tally.calls > ALWAYS_STARTED
