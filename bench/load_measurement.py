"""Servers under load, and the execution of one measurement on one of them."""

import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import aiohttp
import msgspec

from bench import open_loop_load
from bench.closed_loop_load import Job, Report
from bench.load_requests import QUESTIONS
from bench.processes import TICKS, BenchError, Process, core_seconds, started

STARTING_SECONDS = 60.0
FINISHING_SECONDS = 90.0
BUSY = 0.9
FOREIGN = 0.1


@dataclass(frozen=True)
class Plan:
    """Length and size of a run of the benchmark: rounds, seconds, connections."""

    rounds: int
    seconds: float
    """Length of one measurement, after the warm-up."""
    warmup: float
    held: int
    """Number of streams that are open at the same time in the measurement of memory."""
    settling: float = 15.0
    """Time after the end of these streams until the memory is measured again."""


@dataclass(frozen=True)
class Cores:
    """CPU cores of the server under load and of the benchmark's own programs; None for any core."""

    target: int | None
    harness: int | None


@dataclass(frozen=True)
class Target:
    """Server under load: the gateway, the pass-through, or the fake provider itself."""

    name: str
    """Name of the target, which is also its credential at the fake upstream, which counts calls by credential."""
    process: Process
    port: int
    credential: str
    """Key that callers send to the target."""
    local: bool = False
    """Whether the target has local models."""
    grpc_port: int = 0
    """Port for calls over gRPC; 0 if there is none."""


@dataclass(frozen=True)
class Note:
    """Possible disturbance of a measurement, which is printed with the results."""

    target: str
    cause: str
    share: float
    """Share of the core's time."""


class Measured(NamedTuple):
    """Result of one measurement: report of the load, and CPU time of the server."""

    report: Report
    cpu_seconds: float
    """CPU time of the target's processes during the measurement, at least one clock tick."""


class _Clock(NamedTuple):
    wall: float
    target: float
    harness: float
    target_core: float
    harness_core: float


@dataclass
class Bench:
    """Execution of the measurements of a scenario, with the state that they share."""

    plan: Plan
    cores: Cores
    upstream: Target
    session: aiohttp.ClientSession
    logs: Path
    answers: dict[str, int] = field(default_factory=dict)
    """Number of right answers by target. The fake upstream has sent all that the target does not make itself."""
    notes: list[Note] = field(default_factory=list)

    async def put(self, target: Target, question: str, connections: int, *, least: int = 1) -> Measured:
        """Measure a load of `connections` that each repeat the request `question`, until at least `least` answers
        arrived.

        Raises BenchError on a wrong answer.
        """
        return await self._do(target, self._job(target, question, connections, least=least), None)

    async def hold(self, target: Target, question: str, while_open: Callable[[], Awaitable[None]]) -> Measured:
        """Measure a load of as many open streams as the plan has. `while_open` runs while all of them are open."""

        async def inspect() -> None:
            await while_open()
            async with self.session.post(f"http://127.0.0.1:{self.upstream.port}/release") as answer:
                answer.raise_for_status()

        return await self._do(target, self._job(target, question, self.plan.held, hold=True), inspect)

    async def offer(self, target: Target, rate: float, seconds: float) -> open_loop_load.Report:
        """Measure a load of `rate` calls per second, which do not wait for answers. Raises BenchError on a wrong
        answer.
        """
        served = await self.served(target)
        job = open_loop_load.Job(target.port, target.credential, rate, seconds)
        line, spent = await self._load("bench.open_loop_load", msgspec.json.encode(job), target, seconds, None)
        report = msgspec.json.decode(line, type=open_loop_load.Report)
        self._require_right(target, f"{rate:,.0f} calls/s", report.wrong, report.shown)
        if (calls := await self.served(target) - served) < report.good:
            raise BenchError(f"{target.name}: {report.good} answers, {calls} calls at the upstream")
        self._add_notes(target, spent)
        return report

    def _job(self, target: Target, question: str, connections: int, *, least: int = 1, hold: bool = False) -> Job:
        plan = self.plan
        return Job(target.port, question, target.credential, connections, plan.seconds, plan.warmup, least, hold)

    async def _do(self, target: Target, job: Job, meanwhile: Callable[[], Awaitable[None]] | None) -> Measured:
        served = await self.served(target)
        line, spent = await self._load(
            "bench.closed_loop_load", msgspec.json.encode(job), target, job.seconds, meanwhile
        )
        report = msgspec.json.decode(line, type=Report)
        self._require_right(target, job.question, report.failures, report.shown)
        calls, alone = await self.served(target) - served, target.local and QUESTIONS[job.question].local
        if calls > 0 if alone else calls < report.answers:
            raise BenchError(f"{target.name}, {job.question}: {report.answers} answers, {calls} calls at the upstream")
        self.answers[target.name] = self.answers.get(target.name, 0) + report.answers
        if not job.hold and target is not self.upstream:
            self._add_notes(target, spent)
        return Measured(report, max(spent.target, 1 / TICKS))

    async def _load(
        self,
        module: str,
        job: bytes,
        target: Target,
        seconds: float,
        meanwhile: Callable[[], Awaitable[None]] | None,
    ) -> tuple[bytes, _Clock]:
        """Run a load program. Return its report, and the times between its `begin` and `end`."""
        command = [sys.executable, "-m", module, job.decode()]
        async with started("load", command, self.cores.harness, self.logs) as load:
            await load.line(STARTING_SECONDS)  # "begin"
            before = self._clock(target, load)
            if meanwhile:
                await meanwhile()
            await load.line(seconds + FINISHING_SECONDS)  # "end"
            spent = _Clock(*(now - then for now, then in zip(self._clock(target, load), before, strict=True)))
            return await load.line(FINISHING_SECONDS), spent

    def _require_right(self, target: Target, load: str, wrong: int, shown: list[str]) -> None:
        if wrong:
            some = "\n".join(f"  {each}" for each in shown)
            raise BenchError(f"{target.name}, {load}: {wrong} wrong answers\n{some}{target.process.error_output()}")

    async def served(self, target: Target) -> int:
        """Return the number of calls of the fake upstream that the target has made so far."""
        async with self.session.get(f"http://127.0.0.1:{self.upstream.port}/served") as answer:
            return msgspec.json.decode(await answer.read(), type=dict[str, int]).get(target.name, 0)

    def _clock(self, target: Target, load: Process) -> _Clock:
        upstream = self.upstream.process
        return _Clock(
            wall=time.monotonic(),
            target=target.process.cpu_seconds(),
            harness=load.cpu_seconds() + upstream.cpu_seconds(),
            target_core=0.0 if self.cores.target is None else core_seconds(self.cores.target),
            harness_core=0.0 if self.cores.harness is None else core_seconds(self.cores.harness),
        )

    def _add_notes(self, target: Target, spent: _Clock) -> None:
        """Add notes about disturbances of a measurement by anything but the server itself."""
        if self.cores.target is None:
            return
        shares = [
            ("the load and the fake upstream kept their core busy: the harness's limit", spent.harness, BUSY),
            ("other programs took part of the harness's core", spent.harness_core - spent.harness, FOREIGN),
            ("other programs took part of the target's core", spent.target_core - spent.target, FOREIGN),
        ]
        for cause, seconds, limit in shares:
            if seconds > limit * spent.wall:
                self.notes.append(Note(target.name, cause, seconds / spent.wall))
