"""Load of three times the gateway's capacity: admitted calls are answered as fast as ever, the rest is rejected at
once.

The load is open: callers do not wait for others. Meanwhile the gateway's health is checked ten times a second.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.proofs.soak.callers import Callers, CallResult, Outcome, callers
from tests.proofs.soak.gateway import KEY, gateway
from tests.proofs.soak.load import MakeCall, Tally, closed, steady
from tests.proofs.soak.machine import Spent
from tests.proofs.soak.provider import Provider, provider
from tests.proofs.soak.questions import HTTP, QUESTIONS, Question, nonce
from tests.proofs.soak.report import Report, Verdict, milliseconds

AT_ONCE = 8
"""Concurrency limit of the gateway, or of its channel."""
RESPONSE_MS = 50
"""Time that the simulated provider takes for a response."""
HALF, THREE_TIMES = 0.5, 3.0
SLOWER, QUEUE_SECONDS = 3.0, 0.5
"""Limit of the slowdown: a factor of the time at half load, or the seconds of the 64 calls that may always go first."""
ERROR_BODY_SECONDS = 0.05
RECOVERY_SECONDS = 1.0
HEALTH_PATHS = ("/healthz", "/readyz", "/metrics")
PATIENCE_SECONDS = 10.0
FIRST_CALLS = 100
AFTERWARDS = 20
WAITED_FOR = "m"
SIMULATED = "famO-5"

PROVIDER = """
log: {{level: warning, format: json}}
overload: {overload}
channels:
  - name: main
    protocols: [chat, responses, messages, native, embeddings, native_embeddings, rerank]
    base_url: {url}
    api_key: sk-provider
    {more}
    models: [m]
"""
SANDBOX = """
log: {level: warning, format: json}
channels:
  - {name: sandbox, protocols: [sandbox], pace: 0, models: [famO-5]}
"""


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    callers: int  # whose calls together reach the capacity
    config: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    most: float = field(kw_only=True)
    """Calls per second that the limit permits, or that an idle processor makes."""


CASES = (
    Case(
        "gateway",
        f"a gateway that takes {AT_ONCE} calls at once, of {RESPONSE_MS} ms each",
        AT_ONCE,
        PROVIDER,
        {"overload": f"{{calls: {AT_ONCE}, queue: {AT_ONCE}}}", "more": ""},
        most=AT_ONCE * 1000 / RESPONSE_MS,
    ),
    Case(
        "channel",
        f"a channel that takes {AT_ONCE} calls at once, of {RESPONSE_MS} ms each",
        AT_ONCE,
        PROVIDER,
        {"overload": f"{{queue: {AT_ONCE}}}", "more": f"concurrency: {AT_ONCE}"},
        most=AT_ONCE * 1000 / RESPONSE_MS,
    ),
    Case("processor", "a processor that makes the responses itself", 4, SANDBOX, most=500.0),
)


@dataclass(frozen=True)
class Plan:
    ramp: float = 5
    half: float = 15  # at half of the capacity, for the times that the others are compared with
    onset: float = 1  # of the overload, during which the gateway detects it
    seconds: float = 15


@dataclass
class Health:
    probes: int = 0
    failed: int = 0
    slowest: float = 0.0

    async def watch(self, url: str) -> None:
        """Check the health on one connection and on a new one in turn, until cancelled."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
            while True:
                path = HEALTH_PATHS[self.probes % len(HEALTH_PATHS)]
                headers = {"connection": "close"} if self.probes % 2 else {}
                began = time.perf_counter()
                try:
                    async with session.get(url + path, headers=headers) as answer:
                        await answer.read()
                        self.failed += answer.status != 200
                except (aiohttp.ClientError, OSError):
                    self.failed += 1
                self.probes += 1
                self.slowest = max(self.slowest, time.perf_counter() - began)
                await asyncio.sleep(0.1)


@asynccontextmanager
async def polled_health(url: str) -> AsyncGenerator[Health, None]:
    """Check the health of the gateway during the context. Yield the result."""
    health = Health()
    watching = asyncio.create_task(health.watch(url))
    try:
        yield health
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


@dataclass(frozen=True)
class Overloaded:
    case: Case
    capacity: float
    half: Tally
    onset: Tally
    much: Tally
    offered: float  # actual calls per second of the load
    most: int  # calls in flight at the provider
    busy: Spent
    health: Health
    recovered: float  # seconds after the load until the first of the calls that were all served
    afterwards: Sequence[CallResult]


async def overloaded(case: Case, directory: Path, plan: Plan, seed: int = 0) -> Overloaded:
    async with (
        provider() as running,
        gateway(_filled(case, running), directory) as target,
        callers(target.url, target.grpc, KEY) as calling,
    ):
        make_call = await _call_maker(case, calling)
        # the first calls load modules and open connections, which takes any time on a busy machine
        await closed(make_call, case.callers, plan.ramp / 2, seed, at_least=FIRST_CALLS)
        capacity = (await closed(make_call, case.callers, plan.ramp, seed)).rate
        half = await steady(make_call, HALF * capacity, plan.half, seed)
        # other processes that take the machine make the measured capacity small, and three times that no overload
        much_rate = THREE_TIMES * max(capacity, case.most)
        async with polled_health(target.url) as health, running.watched() as watch:
            onset = await steady(make_call, much_rate, plan.onset, seed)
            before = Spent.until_now(target.pid, running.process.pid)
            much = await steady(make_call, much_rate, plan.seconds, seed)
            busy = Spent.until_now(target.pid, running.process.pid).since(before, much.seconds_taken)
        recovered, afterwards = await _afterwards(make_call, seed)
        offered = much.calls / plan.seconds
        return Overloaded(case, capacity, half, onset, much, offered, watch.most, busy, health, recovered, afterwards)


def _filled(case: Case, running: Provider) -> str:
    if case.config is SANDBOX:
        return SANDBOX
    return case.config.format(url=running.url(f"none+{RESPONSE_MS}"), **case.fields)


async def _call_maker(case: Case, calling: Callers) -> MakeCall:
    """Return a call with any question; for the simulated provider always the same, whose answer is known."""

    async def any_question(chance: random.Random) -> CallResult:
        return await calling.call(chance.choice(QUESTIONS), WAITED_FOR, nonce(chance))

    if case.config is not SANDBOX:
        return any_question
    question, prompt = Question(HTTP, "chat"), "Tell me of gateways. " * 200
    right = await calling.text(question, SIMULATED, prompt)

    async def the_same(chance: random.Random) -> CallResult:
        return await calling.call_with_prompt(question, SIMULATED, prompt, right)

    return the_same


async def _afterwards(make_call: MakeCall, seed: int) -> tuple[float, Sequence[CallResult]]:
    """Make one call after the other. Return (seconds until one was served, that call and the later ones)."""
    began, chance = time.perf_counter(), random.Random(seed)
    called = await make_call(chance)
    while called.outcome is Outcome.REFUSED and time.perf_counter() < began + PATIENCE_SECONDS:
        called = await make_call(chance)
    recovered = time.perf_counter() - began - called.seconds
    return recovered, [called, *[await make_call(chance) for _ in range(AFTERWARDS)]]


def report(seen: Overloaded) -> Report:
    much, half = seen.much, seen.half
    usual, slow = (tally.percentile(Outcome.RIGHT, 0.99) for tally in (half, much))
    refused, refusal = much.counts[Outcome.REFUSED], much.percentile(Outcome.REFUSED, 0.99)
    other = sum(
        tally.calls - tally.counts[Outcome.RIGHT] - tally.counts[Outcome.REFUSED] for tally in (seen.onset, much)
    )
    badly = half.calls - half.counts[Outcome.RIGHT]
    after = sum(called.outcome is not Outcome.RIGHT for called in seen.afterwards)
    rows = [
        Verdict("rate that it reaches", f"{seen.capacity:.0f}/s"),
        Verdict("load", f"{half.calls} calls at half of it, then {seen.offered:.0f}/s"),
        Verdict("cores taken meanwhile", str(seen.busy)),
        Verdict("not served at half load", str(badly), "0", badly == 0, timed=True),
        Verdict("served under load", f"{much.counts[Outcome.RIGHT]}, {much.rate:.0f}/s", "some", much.rate > 0),
        Verdict("most at once at the provider", str(seen.most), f"<= {AT_ONCE}", seen.most <= AT_ONCE),
        Verdict("99 % of those served at half load within", milliseconds(usual)),
        Verdict(
            "99 % of those served under load within",
            milliseconds(slow),
            f"<= {milliseconds(max(SLOWER * usual, usual + QUEUE_SECONDS))}",
            slow <= max(SLOWER * usual, usual + QUEUE_SECONDS),
            timed=True,
        ),
        Verdict("refused, with a time to come again", str(refused), "some", refused > 0),
        Verdict(
            "99 % of those refused within",
            milliseconds(refusal),
            f"<= {milliseconds(ERROR_BODY_SECONDS)}",
            refusal <= ERROR_BODY_SECONDS,
            timed=True,
        ),
        Verdict("the same in the first second", milliseconds(seen.onset.percentile(Outcome.REFUSED, 0.99))),
        Verdict("anything else", str(other), "0", other == 0),
        Verdict("health not answered", f"{seen.health.failed} of {seen.health.probes}", "0", seen.health.failed == 0),
        Verdict("health answered within", milliseconds(seen.health.slowest)),
        Verdict(
            "serves again after",
            milliseconds(seen.recovered),
            f"<= {RECOVERY_SECONDS:g} s",
            seen.recovered <= RECOVERY_SECONDS,
            timed=True,
        ),
        Verdict("then not served", f"{after} of {len(seen.afterwards)}", "0", after == 0),
    ]
    notes = [
        f"{outcome.value}: {example}"
        for tally in (half, seen.onset, much)
        for outcome in (Outcome.WRONG, Outcome.FAILED, Outcome.CUT, Outcome.REFUSED)
        for example in tally.examples(outcome)[: 1 if outcome is Outcome.REFUSED else None]
    ]
    return Report(f"Overload: {seen.case.title}", rows, notes)
