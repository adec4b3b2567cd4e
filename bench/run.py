"""A run: targets started anew every round, and measured in turn, scenario by scenario."""

import os
import resource
import sys
import sysconfig
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench import exchange
from bench.harness import Bench, Cores, Note, Plan, Target
from bench.processes import BenchError, started
from bench.scenarios import Scenario

GATEWAY, PASS_THROUGH, DIRECT = "gateway", "pass-through", "direct"
TARGETS = (PASS_THROUGH, GATEWAY)
KEY = "sk-bench-0123456789abcdef0123456789abcdef"
CONFIG = """\
channels:
  - name: fake
    protocols: [chat]
    base_url: http://127.0.0.1:{port}/v1
    api_key: {credential}
    models: [{models}]
"""


@dataclass(frozen=True)
class Result:
    """One scenario in one round with one target."""

    scenario: Scenario
    round: int
    target: str
    figures: tuple[float, ...]
    answers: int
    """Right answers, each of them known to the fake upstream."""
    notes: tuple[Note, ...]


def cores() -> Cores:
    """The last core for the target and the first for all else, None for both where there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    return Cores(allowed[-1], allowed[0]) if len(allowed) > 1 else Cores(None, None)


async def run(plan: Plan, scenarios: Sequence[Scenario], where: Cores, tell: Callable[[str], None]) -> list[Result]:
    """All results, in the order in which they were measured. Raises BenchError if anything went wrong."""
    _allow_files()
    results: list[Result] = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        command = [sys.executable, "-m", "bench.upstream"]
        process = await stack.enter_async_context(started("upstream", command, where.harness, folder))
        upstream = Target(DIRECT, process, await process.port(), DIRECT)
        for number in range(1, plan.rounds + 1):
            async with _targets(upstream, where, folder / str(number)) as targets:
                for target in targets:
                    await _first_call(session, target)
                for scenario in scenarios:
                    # Each round begins with the other one, so that a drift falls on both.
                    for target in targets if number % 2 else targets[::-1]:
                        tell(f"round {number} of {plan.rounds}: {scenario.name}, {target.name}")
                        bench = Bench(plan, where, upstream, session, folder)
                        figures = await scenario.run(bench, target)
                        answers = bench.answers.get(target.name, 0)
                        results.append(Result(scenario, number, target.name, figures, answers, tuple(bench.notes)))
    return results


@asynccontextmanager
async def _targets(upstream: Target, where: Cores, folder: Path) -> AsyncGenerator[tuple[Target, ...], None]:
    """Gateway and pass-through, started as their users would; the one that waits costs nothing."""
    config = _config(upstream, folder)
    umg = str(Path(sysconfig.get_path("scripts"), "umg"))
    gateway = [umg, "serve", "--config", str(config), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
    gateway += ["--data", str(folder / "data")]
    bare = [sys.executable, "-m", "bench.passthrough", f"http://127.0.0.1:{upstream.port}", PASS_THROUGH]
    async with (
        started(GATEWAY, gateway, where.target, folder, {"UMG_API_KEY": KEY}) as ours,
        started(PASS_THROUGH, bare, where.target, folder) as yardstick,
    ):
        yield (
            Target(GATEWAY, ours, await ours.port(), KEY),
            Target(PASS_THROUGH, yardstick, await yardstick.port(), KEY),
        )


def _config(upstream: Target, folder: Path) -> Path:
    folder.mkdir()
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(port=upstream.port, credential=GATEWAY, models=", ".join(exchange.MODELS)))
    return config


async def _first_call(session: aiohttp.ClientSession, target: Target) -> None:
    """What is only loaded by a first call is part of a server at rest."""
    url = f"http://127.0.0.1:{target.port}/v1/chat/completions"
    headers = {"Authorization": f"Bearer {target.credential}", "Content-Type": "application/json"}
    async with session.post(url, data=exchange.ask(exchange.SMALL), headers=headers) as answer:
        if fault := exchange.fault(exchange.SMALL, answer.status, await answer.read()):
            raise BenchError(f"{target.name}: {fault}{target.process.told()}")


def _allow_files() -> None:
    """As many open files as we may have: a stream takes two of the target's."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
