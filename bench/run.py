"""A run: targets started anew every round, and measured in turn, scenario by scenario."""

import os
import resource
import sys
import sysconfig
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench import exchange, vectors
from bench.harness import Bench, Cores, Note, Plan, Target
from bench.processes import BenchError, started
from bench.questions import QUESTIONS
from bench.scenarios import Scenario

GATEWAY, PASS_THROUGH, DIRECT = "gateway", "pass-through", "direct"
TARGETS = (PASS_THROUGH, GATEWAY)
KEY = "sk-bench-0123456789abcdef0123456789abcdef"
CONFIG = """\
channels:
  - name: fake
    protocols: [chat, embeddings]
    base_url: http://127.0.0.1:{port}/v1
    api_key: {credential}
    models: [{models}]
"""
LOCAL = f"""\
  - name: local
    protocols: [local]
    models: [{vectors.BATCH_FLOAT.model}]
  - name: sandbox
    protocols: [sandbox]
    models: [{vectors.LOCAL_FLOAT.model}]
"""
"""What the gateway with models of its own has as well: it is another, since its memory would be another too."""


@dataclass(frozen=True)
class Result:
    """One scenario in one round with one target."""

    scenario: Scenario
    round: int
    target: str
    figures: tuple[float, ...]
    answers: int
    """Right answers: see `Bench.answers`."""
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
            async with _targets(upstream, where, folder / str(number), {each.local for each in scenarios}) as pairs:
                for target in dict.fromkeys(target for pair in pairs.values() for target in pair):
                    await _first_call(session, target)
                for scenario in scenarios:
                    # Each round begins with the other one, so that a drift falls on both.
                    for target in pairs[scenario.local] if number % 2 else pairs[scenario.local][::-1]:
                        tell(f"round {number} of {plan.rounds}: {scenario.name}, {target.name}")
                        bench = Bench(plan, where, upstream, session, folder)
                        figures = await scenario.run(bench, target)
                        answers = bench.answers.get(target.name, 0)
                        results.append(Result(scenario, number, target.name, figures, answers, tuple(bench.notes)))
    return results


@asynccontextmanager
async def _targets(
    upstream: Target, where: Cores, folder: Path, kinds: AbstractSet[bool]
) -> AsyncGenerator[dict[bool, tuple[Target, ...]], None]:
    """Pass-through and gateway, started as their users would, by whether the gateway has models of its own; those that
    wait cost nothing.
    """
    configs = {local: _config(upstream, folder / f"local-{local}", local=local) for local in sorted(kinds)}
    bare = [sys.executable, "-m", "bench.passthrough", f"http://127.0.0.1:{upstream.port}", PASS_THROUGH]
    umg = str(Path(sysconfig.get_path("scripts"), "umg"))
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(started(PASS_THROUGH, bare, where.target, folder))
        yardstick = Target(PASS_THROUGH, process, await process.port(), KEY)
        pairs = dict[bool, tuple[Target, ...]]()
        for local, config in configs.items():
            ours = [umg, "serve", "--config", str(config), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
            ours += ["--data", str(config.parent / "data")]
            environment = {"UMG_API_KEY": KEY}
            process = await stack.enter_async_context(started(GATEWAY, ours, where.target, config.parent, environment))
            pairs[local] = yardstick, Target(GATEWAY, process, await process.port(), KEY, local)
        yield pairs


def _config(upstream: Target, folder: Path, *, local: bool) -> Path:
    folder.mkdir(parents=True)
    config = folder / "config.yaml"
    models = ", ".join([*exchange.MODELS, vectors.MODEL])
    written = CONFIG.format(port=upstream.port, credential=GATEWAY, models=models)
    config.write_text(written + LOCAL if local else written)
    return config


async def _first_call(session: aiohttp.ClientSession, target: Target) -> None:
    """What is only loaded by a first call is part of a server at rest."""
    question = QUESTIONS[exchange.SMALL]
    url = f"http://127.0.0.1:{target.port}{question.path}"
    headers = {"Authorization": f"Bearer {target.credential}", "Content-Type": "application/json"}
    async with session.post(url, data=question.body, headers=headers) as answer:
        if fault := question.wrong(answer.status, await answer.read()):
            raise BenchError(f"{target.name}: {fault}{target.process.told()}")


def _allow_files() -> None:
    """As many open files as we may have: a stream takes two of the target's."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
