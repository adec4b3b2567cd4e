"""Soak test: hours of use in minutes, with all formats on both faces, a fifth of the calls of the first channel faulty,
and two healthy channels behind it.
"""

import math
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.proofs.soak.callers import Callers, CallResult, Outcome, callers
from tests.proofs.soak.gateway import KEY, Figures, gateway
from tests.proofs.soak.load import MakeCall, Tally, closed, steady
from tests.proofs.soak.machine import Spent
from tests.proofs.soak.provider import Provider, provider
from tests.proofs.soak.questions import QUESTIONS, Question, nonce
from tests.proofs.soak.report import Report, Verdict, mebibytes, milliseconds
from tests.support.providers.faulty import FAULTS, Fault, Strikes, struck

EJECTED = "ejected"
"""Model whose faulty channel has an open circuit breaker after each fault, so that few of its calls meet one."""
LANES = {
    "own": "chat, responses, messages, native, embeddings, native_embeddings, rerank",
    "chat": "chat, embeddings, rerank",
    "responses": "responses, embeddings, rerank",
    "messages": "messages, native_embeddings, rerank",
    "native": "native, native_embeddings, rerank",
    EJECTED: "chat, responses, messages, native, embeddings, native_embeddings, rerank",
}
"""Model -> formats of its channels: each caller's own format, or one that the others are translated to."""
HEALTHY, AGAIN = "none", "none+1"
CALLERS = 32
SHARE = 0.6
SUCCESS = 0.999
GROWTH = 0.1
SAMPLES = 10
SETTLING_SECONDS = 60.0

DATABASE = "umg.db"
EJECTING = re.compile(r"status-(?!408|409|425)4|status-529|redirect|limit|overloaded|out-of-credit")
"""Faults that open a channel's circuit breaker: its key is invalid, or the provider is overloaded."""


def _faults() -> tuple[str, str]:
    """Return (faults of single calls, faults of the channel), each for a fifth of all calls."""
    failing = [
        fault.name
        for fault in FAULTS.values()
        if fault.mixes and not fault.callers and {fault.whole, fault.stream} & {Strikes.BEFORE, Strikes.AFTER}
    ]
    ejecting = [name for name in failing if EJECTING.match(name)]
    return f"{','.join(name for name in failing if name not in ejecting)}@20", f"{','.join(ejecting)}@20"


FAULTY, EJECTING_FAULTS = _faults()

CHANNEL = """
  - name: {name}-{lane}
    protocols: [{protocols}]
    base_url: {url}
    api_key: sk-provider
    priority: {priority}
    timeout: {{connect: 1, first_byte: 1.5, idle: 1.5, total: 5}}
    models: [{lane}, {healthy}]
"""


@dataclass(frozen=True)
class Plan:
    seconds: float
    rate: float | None = None
    """Calls per second; None is `SHARE` of the machine's capacity."""
    at_once: float = math.inf
    """Most calls in flight."""
    ramp_seconds: float = 10
    warmup_seconds: float = 90
    """Time until the memory of a loaded gateway stays at one level."""
    seed: int = 0


def config(running: Provider) -> str:
    """Return the config of the gateway. Every model is served by a faulty channel and then two healthy ones;
    `healthy-LANE` by these alone. The sizes of the gateway's caches are bounded so that these are full before the run
    begins.
    """
    entries = ["log: {level: warning, format: json}", "reasoning: {max_bytes: 1MiB}", "channels:"]
    for lane, protocols in LANES.items():
        faulty = EJECTING_FAULTS if lane == EJECTED else FAULTY
        for priority, (name, order) in enumerate((("faulty", faulty), ("first", HEALTHY), ("second", AGAIN))):
            healthy = "" if name == "faulty" else f"healthy-{lane}"
            url = running.url(order)
            entries.append(
                CHANNEL.format(
                    name=name, lane=lane, protocols=protocols, url=url, priority=priority, healthy=healthy
                ).replace(", ]", "]")
            )
    return "\n".join(entries)


def retried_calls(calling: Callers, prefix: str = "") -> MakeCall:
    """Return a call with any question to any model, retried when it is rejected, as official clients do. A stream may
    break in the middle only where the provider broke it.
    """

    async def make_call(chance: random.Random) -> CallResult:
        question, lane, made = chance.choice(QUESTIONS), chance.choice(tuple(LANES)), nonce(chance)
        called = await calling.call_with_retries(question, prefix + lane, made)
        if called.outcome is Outcome.RIGHT:
            return called
        fault = _fault(question, lane, made)
        broken_there = fault.strikes(streamed=question.stream) is Strikes.AFTER
        outcome = Outcome.FAILED if called.outcome is Outcome.CUT and not broken_there else called.outcome
        return replace(called, outcome=outcome, detail=f"{lane}, {fault.name}: {called.detail}")

    return make_call


def _fault(question: Question, lane: str, nonce: str) -> Fault:
    order = EJECTING_FAULTS if lane == EJECTED else FAULTY
    return struck(order, f"nonce-{nonce}", streamed=question.stream)


@dataclass(frozen=True)
class Soaked:
    capacity: float | None  # right answers per second that the machine reached
    busy: Spent
    rate: float
    tally: Tally
    faulty_calls: int
    attempts: Counter[str]  # at the faulty channel, by outcome
    memory: list[int]  # under load
    before: Figures
    after: Figures
    alone: Figures  # without the provider
    log: list[str]


async def soaked(plan: Plan, directory: Path) -> Soaked:
    async with provider() as running, gateway(config(running), directory) as target:
        capacity = None
        if plan.rate is None:
            async with callers(target.url, target.grpc, KEY) as calling:
                capacity = (await closed(retried_calls(calling, "healthy-"), CALLERS, plan.ramp_seconds)).rate
        rate = plan.rate if capacity is None else SHARE * capacity
        assert rate is not None
        async with callers(target.url, target.grpc, KEY) as calling:
            await steady(retried_calls(calling), rate, plan.warmup_seconds, plan.seed + 1, at_once=plan.at_once)
        before = await target.until(lambda figures: figures.clients == 0, SETTLING_SECONDS)
        met = (await running.counts()).calls(FAULTY)
        spent = Spent.until_now(target.pid, running.process.pid)
        async with callers(target.url, target.grpc, KEY) as calling, target.sampled(plan.seconds / SAMPLES) as memory:
            tally = await steady(retried_calls(calling), rate, plan.seconds, plan.seed, at_once=plan.at_once)
        busy = Spent.until_now(target.pid, running.process.pid).since(spent, tally.seconds_taken)
        attempts = Counter(await target.attempts("faulty"))
        after = await target.until(as_before(before), SETTLING_SECONDS)
        met = (await running.counts()).calls(FAULTY) - met
        await running.end()
        alone = await target.until(lambda figures: figures.upstreams == 0, SETTLING_SECONDS)
        return Soaked(capacity, busy, rate, tally, met, attempts, memory, before, after, alone, target.served.log)


def report(seen: Soaked) -> Report:
    tally, counts = seen.tally, seen.tally.counts
    whole = tally.calls - counts[Outcome.CUT]
    share = counts[Outcome.RIGHT] / max(whole, 1)
    growth = seen.after.resident_bytes / seen.before.resident_bytes - 1
    traces = [line for line in seen.log if "Traceback" in line or '"level": "error"' in line]
    rows = [
        Verdict("rate that the machine reaches", f"{seen.capacity:.0f}/s" if seen.capacity else "not measured"),
        Verdict("rate of the run", f"{seen.rate:.0f}/s"),
        Verdict("cores taken meanwhile", str(seen.busy)),
        Verdict("calls", str(tally.calls)),
        Verdict("of which met the faulty channel", f"{seen.faulty_calls}", "most", seen.faulty_calls > tally.calls / 2),
        Verdict("right, of those not cut off", f"{share:.3%}", f">= {SUCCESS:.1%}", share >= SUCCESS),
        Verdict("cut off by the provider, told so", str(counts[Outcome.CUT]), "some", counts[Outcome.CUT] > 0),
        Verdict("wrong, hanging or unreadable", str(counts[Outcome.WRONG]), "0", counts[Outcome.WRONG] == 0),
        Verdict("right within, half and 99 %", _times(tally)),
        Verdict(
            "memory",
            f"{mebibytes(seen.before.resident_bytes)} -> {mebibytes(seen.after.resident_bytes)} ({growth:+.1%})",
            f"<= +{GROWTH:.0%}",
            growth <= GROWTH,
        ),
        Verdict("memory meanwhile", " ".join(f"{each / 2**20:.0f}" for each in seen.memory) + " MiB"),
        files_open(seen.before, seen.after),
        *_same("sockets of its own", seen.before.others, seen.after.others),
        *_same("sockets of callers", 0, seen.after.clients),
        *_same("sockets to the provider that ended", 0, seen.alone.upstreams),
        *_same("tasks", seen.before.tasks, seen.after.tasks),
        Verdict("tracebacks and errors in the log", str(len(traces)), "0", not traces),
    ]
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in seen.attempts.most_common())
    notes = [
        f"what the gateway saw of the faulty channels since it began: {outcomes or 'it does not say'}",
    ]
    notes += [
        f"{outcome.value}: {example}"
        for outcome in (Outcome.WRONG, Outcome.FAILED, Outcome.REFUSED, Outcome.CUT)
        for example in tally.examples(outcome)
    ]
    notes += [f"log: {line}" for line in traces[:3]]
    return Report(f"Soak: {tally.calls} calls", rows, notes)


def as_before(before: Figures) -> Callable[[Figures], bool]:
    """Return the condition that all callers left and nothing more is open than before."""

    def holds(now: Figures) -> bool:
        return (
            now.clients == 0
            and now.others <= before.others
            and now.tasks <= before.tasks
            and not _more_files(before, now)
        )

    return holds


def files_open(before: Figures, after: Figures) -> Verdict:
    """Return the verdict on file descriptors other than sockets."""
    more = ", ".join(f"{count} x {name}" for name, count in _more_files(before, after).items())
    measured = f"{before.files.total()} -> {after.files.total()}{f' ({more})' if more else ''}"
    return Verdict("files", measured, "no more", not more)


def _more_files(before: Figures, after: Figures) -> dict[str, int]:
    return {name: count for name, count in (after.files - before.files).items() if not name.startswith(DATABASE)}


def _times(tally: Tally) -> str:
    half, most = (tally.percentile(Outcome.RIGHT, share) for share in (0.5, 0.99))
    return f"{milliseconds(half)}, {milliseconds(most)}"


def _same(name: str, before: int, after: int) -> list[Verdict]:
    return [Verdict(name, f"{before} -> {after}", "no more", after <= before)]
