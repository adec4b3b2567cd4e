"""Command `python -m bench.slow_streams`: holds many slow streams open on one process of the gateway, and sends small
calls beside them.

It prints a table: the memory of the gateway before, with the streams after them, the responses to streams and calls,
and the times of the calls.
"""

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import msgspec

from bench import chat_bodies, held_stream_load, open_loop_load
from bench.benchmark_rounds import allow_files, cores, fake_upstream, first_call, gateway
from bench.command_line import count, print_progress, run_to_end, seconds
from bench.load_measurement import Bench, Cores, Plan, Target
from bench.processes import BenchError, Process, started

STREAMS = 8000
RATE = 50.0
"""Small calls a second beside the streams."""
OPENING_SECONDS = 300.0
SETTLING_SECONDS = 75.0
"""Time after the last stream until the memory is measured: idle connections to the provider are kept for a minute."""
MIB, KIB = 1 << 20, 1 << 10


@dataclass(frozen=True)
class Size:
    """Number of streams, calls a second beside them, and seconds of these calls."""

    streams: int
    rate: float
    seconds: float
    settling: float = SETTLING_SECONDS


QUICK = Size(streams=300, rate=50.0, seconds=1.0, settling=1.0)


@dataclass(frozen=True)
class Result:
    """Figures of one run. Memory in bytes, as the resident set of the gateway's process."""

    size: Size
    idle: int
    with_streams: int
    after: int
    cpu_share: float
    """Share of a core that the gateway used while the streams were open, the calls beside them included."""
    opened: held_stream_load.Opened
    ended: held_stream_load.Ended
    alone: open_loop_load.Report
    """Calls before the streams."""
    beside: open_loop_load.Report
    """Calls beside the streams."""

    @property
    def stream_bytes(self) -> float:
        """Memory of a stream."""
        return (self.with_streams - self.idle) / max(1, self.opened.open)


async def measure(size: Size, where: Cores) -> Result:
    """Run the gateway, open the streams, send the calls, end the streams. Raises BenchError on a wrong answer."""
    allow_files()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streams-")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        upstream = await stack.enter_async_context(fake_upstream(where, folder))
        target = await stack.enter_async_context(gateway(upstream, where, folder / "gateway"))
        await first_call(session, target)
        plan = Plan(rounds=1, seconds=size.seconds, warmup=0, held=0)
        bench = Bench(plan, where, upstream, session, folder)
        alone = await bench.offer(target, size.rate, size.seconds)
        idle = target.process.resident_bytes()
        job = held_stream_load.Job(target.port, target.credential, size.streams)
        command = [sys.executable, "-m", "bench.held_stream_load", msgspec.json.encode(job).decode()]
        async with started("streams", command, where.harness, folder) as load:
            opened = msgspec.json.decode(await load.line(OPENING_SECONDS), type=held_stream_load.Opened)
            print_progress(f"{opened.open} streams are open, {opened.refused} refused, {opened.wrong} wrong")
            _require_right(target, opened)
            spent, began = target.process.cpu_seconds(), time.monotonic()
            beside = await bench.offer(target, size.rate, size.seconds)
            share = (target.process.cpu_seconds() - spent) / (time.monotonic() - began)
            with_streams = target.process.resident_bytes()
            ended = await _end(session, upstream, load)
        await asyncio.sleep(size.settling)
        after = target.process.resident_bytes()
    return Result(size, idle, with_streams, after, share, opened, ended, alone, beside)


def _require_right(target: Target, opened: held_stream_load.Opened) -> None:
    if opened.wrong:
        shown = "\n".join(f"  {each}" for each in opened.shown)
        raise BenchError(f"{opened.wrong} wrong answers to streams\n{shown}{target.process.error_output()}")


async def _end(session: aiohttp.ClientSession, upstream: Target, load: Process) -> held_stream_load.Ended:
    async with session.post(f"http://127.0.0.1:{upstream.port}/release") as answer:
        answer.raise_for_status()
    return msgspec.json.decode(await load.line(OPENING_SECONDS), type=held_stream_load.Ended)


def as_table(result: Result) -> str:
    """Return the figures as a table of names and values."""
    opened, alone, beside = result.opened, result.alone, result.beside
    rows = {
        "streams asked for": f"{result.size.streams:,}",
        "streams open": f"{opened.open:,}",
        "streams refused": f"{opened.refused:,}",
        "streams that ended complete / cut": f"{result.ended.complete:,} / {result.ended.cut:,}",
        "seconds between two chunks of a stream": f"{chat_bodies.SLOW_SECONDS:g}",
        "limit of open files": f"{resource.getrlimit(resource.RLIMIT_NOFILE)[1]:,}",
        "memory idle, MiB": f"{result.idle / MIB:.0f}",
        "memory with the streams, MiB": f"{result.with_streams / MIB:.0f}",
        f"memory {result.size.settling:g} s after, MiB": f"{result.after / MIB:.0f}",
        "memory of a stream, KiB": f"{result.stream_bytes / KIB:.1f}",
        "share of a core with the streams": f"{result.cpu_share:.0%}",
        "small calls beside: good": f"{beside.good:,}",
        "small calls beside: refused": f"{beside.refused:,}",
        "small calls alone: p50 / p99, ms": f"{alone.good_p50:.1f} / {alone.good_p99:.1f}",
        "small calls beside: p50 / p99, ms": f"{beside.good_p50:.1f} / {beside.good_p99:.1f}",
    }
    width, digits = max(map(len, rows)), max(map(len, rows.values()))
    return "\n".join(f"| {name:<{width}} | {value:>{digits}} |" for name, value in rows.items())


def main() -> int:
    """Measure and print the table. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.slow_streams", description=__doc__)
    parser.add_argument("--streams", type=count, default=STREAMS, help=f"streams open at once (default {STREAMS})")
    parser.add_argument("--rate", type=float, default=RATE, help=f"small calls a second beside them (default {RATE:g})")
    parser.add_argument("--seconds", type=seconds, default=10.0, help="length of these calls (default 10)")
    parser.add_argument("--quick", action="store_true", help="a few streams and seconds: shows that it works")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else Size(arguments.streams, arguments.rate, arguments.seconds)

    async def measured() -> None:
        print(as_table(await measure(size, cores())))

    return run_to_end(measured)


if __name__ == "__main__":
    sys.exit(main())
