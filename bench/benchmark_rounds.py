"""Execution of the benchmark: each round starts new servers and measures them in turn, scenario by scenario."""

import os
import resource
import sys
import sysconfig
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import aiohttp

from bench import chat_bodies, embedding_bodies
from bench.load_measurement import Bench, Cores, Note, Plan, Target
from bench.load_requests import QUESTIONS
from bench.processes import ADDRESS, GRPC_ADDRESS, BenchError, started
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
    models: [{embedding_bodies.BATCH_FLOAT.model}]
  - name: sandbox
    protocols: [sandbox]
    models: [{embedding_bodies.LOCAL_FLOAT.model}]
"""
"""Additional channels of the gateway with local models: a second gateway, since the models take memory."""


@dataclass(frozen=True)
class Result:
    """Result of one scenario in one round with one server."""

    scenario: Scenario
    round: int
    target: str
    figures: tuple[float, ...]
    answers: int
    """Number of right answers: see `Bench.answers`."""
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class Build:
    """Build of the gateway, as a target: its name, the folder of its code (None for the installed code), and its number
    of processes.
    """

    name: str
    folder: Path | None = None
    workers: int = 1

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment in which Python imports this build instead of the installed one."""
        if self.folder is None:
            return {}
        return {"PYTHONPATH": os.pathsep.join([str(self.folder), str(self.folder / "gen")])}


INSTALLED = Build(GATEWAY)


class Servers(Protocol):
    """Starts the servers of a round in an own folder, for gateways without (False) and with local models (True).

    Yields the targets to be compared by this kind.
    """

    def __call__(
        self, upstream: Target, where: Cores, folder: Path, kinds: AbstractSet[bool], /
    ) -> AbstractAsyncContextManager[dict[bool, tuple[Target, ...]]]: ...


def cores() -> Cores:
    """Return the last core for the server under load and the first for the benchmark, None for both if there is only
    one.
    """
    allowed = sorted(os.sched_getaffinity(0))
    return Cores(allowed[-1], allowed[0]) if len(allowed) > 1 else Cores(None, None)


async def run(
    plan: Plan,
    scenarios: Sequence[Scenario],
    where: Cores,
    progress: Callable[[str], None],
    servers: Servers | None = None,
) -> list[Result]:
    """Return all results in the order of measurement. `servers`: starts the servers of each round; by default the
    pass-through and the installed gateway. Raises BenchError if anything failed.
    """
    start = servers or beside_passthrough
    allow_files()
    results: list[Result] = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        upstream = await stack.enter_async_context(fake_upstream(where, folder))
        for number in range(1, plan.rounds + 1):
            async with start(upstream, where, folder / str(number), {each.local for each in scenarios}) as pairs:
                for target in dict.fromkeys(target for pair in pairs.values() for target in pair):
                    await first_call(session, target)
                for scenario in scenarios:
                    # The order alternates between rounds, so that a drift of the machine affects both targets.
                    for target in pairs[scenario.local] if number % 2 else pairs[scenario.local][::-1]:
                        progress(f"round {number} of {plan.rounds}: {scenario.name}, {target.name}")
                        bench = Bench(plan, where, upstream, session, folder)
                        figures = await scenario.run(bench, target)
                        answers = bench.answers.get(target.name, 0)
                        results.append(Result(scenario, number, target.name, figures, answers, tuple(bench.notes)))
    return results


@asynccontextmanager
async def fake_upstream(where: Cores, folder: Path) -> AsyncGenerator[Target, None]:
    """Run the fake provider, which is also a server under load itself."""
    async with started("upstream", [sys.executable, "-m", "bench.fake_provider"], where.harness, folder) as process:
        yield Target(DIRECT, process, await process.port(), DIRECT)


@asynccontextmanager
async def passthrough(upstream: Target, where: Cores, folder: Path) -> AsyncGenerator[Target, None]:
    """Run the bare pass-through, in a new folder."""
    make_folder(folder)
    command = [sys.executable, "-m", "bench.passthrough_server", f"http://127.0.0.1:{upstream.port}", PASS_THROUGH]
    async with started(PASS_THROUGH, command, where.target, folder) as process:
        yield Target(PASS_THROUGH, process, await process.port(), KEY)


@asynccontextmanager
async def gateway(
    upstream: Target,
    where: Cores,
    folder: Path,
    *,
    local: bool = False,
    build: Build = INSTALLED,
    more: str = "",
    flags: Sequence[str] = (),
) -> AsyncGenerator[Target, None]:
    """Run the gateway as users start it, in a new folder. `local`: with local models. `more`: lines of its config;
    `flags`: of the command.
    """
    config = write_config(upstream, folder, build.name, local=local)
    config.write_text(more + config.read_text())
    command = [str(Path(sysconfig.get_path("scripts"), "umg")), "serve", "--config", str(config)]
    command += ["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--data", str(folder / "data")]
    command += ["--workers", str(build.workers), *flags]
    environment = {"UMG_API_KEY": KEY, **build.environment}
    async with started(build.name, command, where.target, folder, environment) as process:
        port, grpc_port = await process.ports(ADDRESS, GRPC_ADDRESS)
        yield Target(build.name, process, port, KEY, local, grpc_port)


@asynccontextmanager
async def beside_passthrough(
    upstream: Target, where: Cores, folder: Path, kinds: AbstractSet[bool]
) -> AsyncGenerator[dict[bool, tuple[Target, ...]], None]:
    """Run the pass-through and the gateways. Yield, by whether the gateway has local models, the pair of pass-through
    and gateway. Servers without calls take no processor time.
    """
    async with AsyncExitStack() as stack:
        yardstick = await stack.enter_async_context(passthrough(upstream, where, folder))
        pairs = dict[bool, tuple[Target, ...]]()
        for local in sorted(kinds):
            ours = await stack.enter_async_context(gateway(upstream, where, folder / f"local-{local}", local=local))
            pairs[local] = yardstick, ours
        yield pairs


@dataclass(frozen=True)
class Builds:
    """Starts several builds of the gateway for a round, without a pass-through."""

    builds: tuple[Build, ...]

    @asynccontextmanager
    async def __call__(
        self, upstream: Target, where: Cores, folder: Path, kinds: AbstractSet[bool], /
    ) -> AsyncGenerator[dict[bool, tuple[Target, ...]], None]:
        async with AsyncExitStack() as stack:
            targets = dict[bool, tuple[Target, ...]]()
            for local in sorted(kinds):
                some = list[Target]()
                for build in self.builds:
                    own = folder / f"{build.name}-{local}"
                    some.append(
                        await stack.enter_async_context(gateway(upstream, where, own, local=local, build=build))
                    )
                targets[local] = tuple(some)
            yield targets


def make_folder(folder: Path) -> None:
    """Make a new folder, with its parents."""
    folder.mkdir(parents=True)


def write_config(upstream: Target, folder: Path, credential: str, *, local: bool) -> Path:
    """Write the config of a gateway into a new folder, and return its path. `credential`: name of the gateway at the
    fake upstream; `local`: with local models.
    """
    make_folder(folder)
    config = folder / "config.yaml"
    models = ", ".join([*chat_bodies.MODELS, embedding_bodies.MODEL])
    written = CONFIG.format(port=upstream.port, credential=credential, models=models)
    config.write_text(written + LOCAL if local else written)
    return config


async def first_call(session: aiohttp.ClientSession, target: Target) -> None:
    """Make one call, so that code and data that the first call loads count as memory of the idle server."""
    question = QUESTIONS[chat_bodies.SMALL]
    url = f"http://127.0.0.1:{target.port}{question.path}"
    headers = {"Authorization": f"Bearer {target.credential}", "Content-Type": "application/json"}
    async with session.post(url, data=question.body, headers=headers) as answer:
        if fault := question.wrong(answer.status, await answer.read()):
            raise BenchError(f"{target.name}: {fault}{target.process.error_output()}")


def allow_files() -> None:
    """Raise the limit on open files of this process to its maximum, since a stream takes two files of the server."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
