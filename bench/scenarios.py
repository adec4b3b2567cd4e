"""Table of the benchmark's scenarios. A scenario puts one kind of load on a server and returns its figures."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bench import chat_bodies, embedding_bodies
from bench.load_measurement import Bench, Target
from bench.processes import TICKS

BATCHES = 3
"""Minimum number of measured calls in scenarios with long calls."""
IN_FLIGHT = 128
"""Connections of calls to a provider that answers after 20 ms: as many as 6,400 calls a second need."""
MIB = 1 << 20
KIB = 1 << 10


@dataclass(frozen=True)
class Measure:
    """Measure of a scenario, which is one row of the report."""

    name: str
    digits: int
    more_is_better: bool = True


@dataclass(frozen=True)
class Scenario:
    """Kind of load, with the measures that it results in."""

    name: str
    measures: tuple[Measure, ...]
    """Measures of the figures that `run` returns, in order."""
    run: Callable[[Bench, Target], Awaitable[tuple[float, ...]]]
    local: bool = False
    """Whether the gateway has local models. The pass-through calls the fake upstream in any case."""


async def small(bench: Bench, target: Target) -> tuple[float, ...]:
    """Measure the throughput of small calls, then the latency that the server adds to a single call."""
    rates = await answer_rates(bench, target, chat_bodies.SMALL, 64)
    direct = (await bench.put(bench.upstream, chat_bodies.SMALL, 1)).report
    alone = (await bench.put(target, chat_bodies.SMALL, 1)).report
    return *rates, alone.p50 - direct.p50, alone.p99 - direct.p99


async def stream(bench: Bench, target: Target) -> tuple[float, ...]:
    """Measure streams that the provider sends at once, with many chunks in a read."""
    most = await bench.put(target, chat_bodies.BURST, 32)
    return most.report.window_chunks / most.report.window_seconds, most.report.window_chunks / most.cpu_seconds


async def paced(bench: Bench, target: Target) -> tuple[float, ...]:
    """Measure the CPU time per chunk of streams whose chunks arrive individually, below the server's capacity."""
    some = await bench.put(target, chat_bodies.PACED, 32)
    return (some.cpu_seconds / some.report.window_chunks * 1e6,)


async def embed(bench: Bench, target: Target) -> tuple[float, ...]:
    """Measure calls with one vector from the provider: 20 KB of numbers, then 8 KB of base64."""
    return *await _rates(bench, target, embedding_bodies.FLOAT), *await _rates(bench, target, embedding_bodies.BASE64)


async def embed_local(bench: Bench, target: Target) -> tuple[float, ...]:
    """Measure calls with one vector of the gateway's own local models."""
    return *await _rates(bench, target, embedding_bodies.LOCAL_FLOAT), *await _rates(
        bench, target, embedding_bodies.LOCAL_BASE64
    )


async def embed_batch(bench: Bench, target: Target) -> tuple[float, ...]:
    """Measure calls with 2,048 vectors of the gateway's own local models."""
    numbers = await bench.put(target, embedding_bodies.BATCH_FLOAT.name, 1, least=BATCHES)
    packed = await bench.put(target, embedding_bodies.BATCH_BASE64.name, 1, least=BATCHES)
    return numbers.report.p50 / 1e3, packed.report.p50 / 1e3


async def _rates(bench: Bench, target: Target, request: embedding_bodies.VectorRequest) -> tuple[float, float]:
    return await answer_rates(bench, target, request.name, 64)


async def answer_rates(bench: Bench, target: Target, question: str, connections: int) -> tuple[float, float]:
    """Return the calls per second, and per second of the processor time of the target's processes."""
    most = await bench.put(target, question, connections)
    return most.report.window_answers / most.report.window_seconds, most.report.window_answers / most.cpu_seconds


async def memory(bench: Bench, target: Target) -> tuple[float, ...]:
    """Measure the memory of the server's processes after one call, with all streams open, and some time after them; and
    the streams that a core would hold, by the share of it that these take.
    """
    process, opened, shares = target.process, list[int](), list[float]()
    idle = process.resident_bytes()

    async def watch() -> None:
        spent, began = process.cpu_seconds(), time.monotonic()
        await asyncio.sleep(bench.plan.seconds)
        shares.append((process.cpu_seconds() - spent) / (time.monotonic() - began))
        opened.append(process.resident_bytes())

    await bench.hold(target, chat_bodies.HELD, watch)
    await asyncio.sleep(bench.plan.settling)
    after, held = process.resident_bytes(), bench.plan.held
    each, most = (opened[0] - idle) / KIB / held, held / max(shares[0], 1 / TICKS)
    return idle / MIB, opened[0] / MIB, each, after / MIB, after / idle, most


async def near(bench: Bench, target: Target) -> tuple[float, ...]:
    """Measure the throughput of small calls that the provider answers after some time, so that many are in flight."""
    return await answer_rates(bench, target, chat_bodies.NEAR, IN_FLIGHT)


RATES = (
    Measure("numbers: requests/s", 0),
    Measure("numbers: requests per CPU second", 0),
    Measure("base64: requests/s", 0),
    Measure("base64: requests per CPU second", 0),
)

SCENARIOS = (
    # The first scenario, while the targets have served one call only.
    Scenario(
        "memory",
        (
            Measure("idle, MiB", 1, more_is_better=False),
            Measure("with open streams, MiB", 1, more_is_better=False),
            Measure("an open stream, KiB", 1, more_is_better=False),
            Measure("after the streams, MiB", 1, more_is_better=False),
            Measure("after the streams, share of idle", 2, more_is_better=False),
            Measure("streams that a core would hold", 0),
        ),
        memory,
    ),
    Scenario(
        "small",
        (
            Measure("requests/s", 0),
            Measure("requests per CPU second", 0),
            Measure("added latency p50, ms", 3, more_is_better=False),
            Measure("added latency p99, ms", 3, more_is_better=False),
        ),
        small,
    ),
    Scenario("near", (Measure("requests/s", 0), Measure("requests per CPU second", 0)), near),
    Scenario("stream", (Measure("chunks/s", 0), Measure("chunks per CPU second", 0)), stream),
    Scenario("paced", (Measure("CPU per chunk, us", 1, more_is_better=False),), paced),
    Scenario("embed", RATES, embed),
    Scenario("embed-local", RATES, embed_local, local=True),
    Scenario(
        "embed-batch",
        (
            Measure("numbers: seconds a call", 3, more_is_better=False),
            Measure("base64: seconds a call", 3, more_is_better=False),
        ),
        embed_batch,
        local=True,
    ),
)
