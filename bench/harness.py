"""What the load is put on, and how one measurement is made."""

import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import aiohttp
import msgspec

from bench.load import Job, Report
from bench.processes import BenchError, Process, core_seconds, started
from bench.questions import QUESTIONS

STARTING_SECONDS = 60.0
FINISHING_SECONDS = 90.0
BUSY = 0.9
FOREIGN = 0.1


@dataclass(frozen=True)
class Plan:
    """How much is asked."""

    rounds: int
    seconds: float
    """Length of one measurement, after the warm-up."""
    warmup: float
    held: int
    """Streams that are open at once where memory is measured."""


@dataclass(frozen=True)
class Cores:
    """Whose core is which; None for any."""

    target: int | None
    harness: int | None


@dataclass(frozen=True)
class Target:
    """A server that the load is put on: the gateway, the pass-through, or the fake upstream itself."""

    name: str
    """Also its credential at the fake upstream, which counts by it."""
    process: Process
    port: int
    credential: str
    """What its callers show."""
    local: bool = False
    """Whether it has models of its own."""


@dataclass(frozen=True)
class Note:
    """Something that makes a figure doubtful."""

    target: str
    what: str
    share: float
    """Of the core's time."""


class Measured(NamedTuple):
    """One measurement."""

    report: Report
    cpu_seconds: float
    """What the target's processes took meanwhile."""


class _Clock(NamedTuple):
    wall: float
    target: float
    harness: float
    target_core: float
    harness_core: float


@dataclass
class Bench:
    """The parts that every measurement uses, and what they have counted since the scenario began."""

    plan: Plan
    cores: Cores
    upstream: Target
    session: aiohttp.ClientSession
    logs: Path
    answers: dict[str, int] = field(default_factory=dict)
    """Right answers by target; the fake upstream knows of each that is not to be made without it, and of no other."""
    notes: list[Note] = field(default_factory=list)

    async def put(self, target: Target, question: str, connections: int, *, least: int = 0) -> Measured:
        """Load from so many connections that ask again and again, and measured until at least so many answers came.
        Raises BenchError if an answer was wrong.
        """
        return await self._do(target, self._job(target, question, connections, least=least), None)

    async def hold(self, target: Target, question: str, while_open: Callable[[], None]) -> Measured:
        """As many open streams as planned, and a look at them while all are open."""

        async def look() -> None:
            while_open()
            async with self.session.post(f"http://127.0.0.1:{self.upstream.port}/release") as answer:
                answer.raise_for_status()

        return await self._do(target, self._job(target, question, self.plan.held, hold=True), look)

    def _job(self, target: Target, question: str, connections: int, *, least: int = 0, hold: bool = False) -> Job:
        plan = self.plan
        return Job(target.port, question, target.credential, connections, plan.seconds, plan.warmup, least, hold)

    async def _do(self, target: Target, job: Job, meanwhile: Callable[[], Awaitable[None]] | None) -> Measured:
        served = await self._served(target)
        command = [sys.executable, "-m", "bench.load", msgspec.json.encode(job).decode()]
        async with started("load", command, self.cores.harness, self.logs) as load:
            await load.line(STARTING_SECONDS)  # "begin"
            before = self._clock(target, load)
            if meanwhile:
                await meanwhile()
            await load.line(job.seconds + FINISHING_SECONDS)  # "end"
            spent = _Clock(*(now - then for now, then in zip(self._clock(target, load), before, strict=True)))
            report = msgspec.json.decode(await load.line(FINISHING_SECONDS), type=Report)
        if report.failures:
            some = "\n".join(f"  {each}" for each in report.shown)
            raise BenchError(
                f"{target.name}, {job.question}: {report.failures} wrong answers\n{some}{target.process.told()}"
            )
        calls, alone = await self._served(target) - served, target.local and QUESTIONS[job.question].local
        if calls > 0 if alone else calls < report.answers:
            raise BenchError(f"{target.name}, {job.question}: {report.answers} answers, {calls} calls at the upstream")
        self.answers[target.name] = self.answers.get(target.name, 0) + report.answers
        if not job.hold and target is not self.upstream:
            self._doubt(target, spent)
        return Measured(report, spent.target)

    async def _served(self, target: Target) -> int:
        """The calls with this target's credential that the fake upstream has answered."""
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

    def _doubt(self, target: Target, spent: _Clock) -> None:
        """Notes what else than the target may have made the figures."""
        if self.cores.target is None:
            return
        shares = [
            ("the load and the fake upstream kept their core busy: the harness's limit", spent.harness, BUSY),
            ("other programs took part of the harness's core", spent.harness_core - spent.harness, FOREIGN),
            ("other programs took part of the target's core", spent.target_core - spent.target, FOREIGN),
        ]
        for what, seconds, limit in shares:
            if seconds > limit * spent.wall:
                self.notes.append(Note(target.name, what, seconds / spent.wall))
