"""Command `python -m bench.open_pages`: calls of a gateway while pages of its console are open, against none.

Each round starts a gateway, and measures small calls and streams twice: alone, and beside open pages. Each is the live
page of another person, and read again every few seconds, as its script does. The order alternates. The figures are
calls per second and their 99th percentile, and for the streams the longest of the health checks that follow each other
beside them: for so long no event is sent.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import aiohttp

from bench import chat_bodies
from bench.benchmark_rounds import allow_files, cores, fake_upstream, first_call, gateway
from bench.command_line import count, print_progress, run_to_end, seconds
from bench.config_reload import Checks
from bench.load_measurement import Bench, Cores, Plan, Target
from bench.processes import BenchError

PAGES = ("/console?since=24h", "/console/requests?since=24h")
"""Live pages, each of them open by as many people."""
LIVE_HEADER = "live-parts"
"""As `assets/live.js` sends it."""
CONNECTIONS, STREAMS = 64, 32
DRAWN, REFUSED = (200, 304), 503
"""Statuses of a page: new or unchanged, and while calls wait, when it is not drawn."""


@dataclass(frozen=True)
class Size:
    """Size of a run."""

    rounds: int
    seconds: float
    pages: int
    every: float
    """Seconds between two readings of an open page."""
    database: str
    """URL of the database; "" for SQLite in a new folder."""


@dataclass(frozen=True)
class Figures:
    """Figures of one phase."""

    calls: float
    """Small calls per second."""
    cpu_calls: float
    """Small calls per second of the gateway's processor time."""
    p99: float
    """99th percentile of their time, in milliseconds."""
    gap: float
    """Longest health check beside streams, in milliseconds."""
    drawn: int
    """Pages that were read."""
    page: float
    """Median time of a page, in milliseconds."""


async def measure(size: Size, where: Cores) -> list[tuple[Figures, Figures]]:
    """Return the figures without and with open pages, by round. Raise BenchError for a wrong response."""
    allow_files()
    plan = Plan(rounds=size.rounds, seconds=size.seconds, warmup=0.5, held=0)
    found = list[tuple[Figures, Figures]]()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pages-")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        upstream = await stack.enter_async_context(fake_upstream(where, folder))
        for number in range(size.rounds):
            more = f"database: '{size.database}'\nusage: {{ttl: 3650d}}\nunpriced: free\n" if size.database else ""
            flags = ["--replace-bootstrap-key"] if size.database else []
            async with gateway(upstream, where, folder / f"gateway-{number}", more=more, flags=flags) as target:
                await first_call(session, target)
                bench, figures = Bench(plan, where, upstream, session, folder), dict[int, Figures]()
                for pages in (0, size.pages) if number % 2 else (size.pages, 0):
                    print_progress(f"round {number + 1} of {size.rounds}: {pages} pages")
                    figures[pages] = await _figures(bench, target, pages, size.every)
                found.append((figures[0], figures[size.pages]))
    return found


async def _figures(bench: Bench, target: Target, pages: int, every: float) -> Figures:
    async with opened(target, pages, every) as drawn:
        small = await bench.put(target, chat_bodies.SMALL, CONNECTIONS)
        checks = Checks(target.port)
        checking = asyncio.create_task(checks.run())
        await bench.put(target, chat_bodies.PACED, STREAMS)
        checks.stop()
        await checking
    report = small.report
    return Figures(
        report.window_answers / report.window_seconds,
        report.window_answers / small.cpu_seconds,
        report.p99,
        1e3 * checks.take_longest(),
        len(drawn),
        1e3 * statistics.median(drawn) if drawn else 0.0,
    )


@asynccontextmanager
async def opened(target: Target, pages: int, every: float) -> AsyncGenerator[list[float]]:
    """Keep pages open, read every `every` seconds. Yield the list of the times that this took, in seconds."""
    drawn, url = list[float](), f"http://127.0.0.1:{target.port}"
    async with AsyncExitStack() as stack:

        async def open_page(path: str) -> aiohttp.ClientSession:
            session = aiohttp.ClientSession(url, cookie_jar=aiohttp.CookieJar(unsafe=True))
            person = await stack.enter_async_context(session)
            form = {"key": target.credential, "return": path}
            async with person.post("/auth/login", data=form, headers={"origin": url}) as reply:
                if reply.status != 200:
                    raise BenchError(f"the sign-in was answered {reply.status}: {await reply.text()}")
            return person

        async def keep(person: aiohttp.ClientSession, path: str, delay: float) -> None:
            await asyncio.sleep(delay)
            tag = ""
            while True:
                began = time.perf_counter()
                async with person.get(path, headers={LIVE_HEADER: "1", "if-none-match": f'"{tag}"'}) as reply:
                    await reply.read()
                took = time.perf_counter() - began
                if reply.status in DRAWN:
                    drawn.append(took)
                    tag = reply.headers["etag"].strip('"')
                elif reply.status != REFUSED:
                    raise BenchError(f"{path} was answered {reply.status}")
                await asyncio.sleep(max(0.0, every - took))

        shown = [(path, await open_page(path)) for path in islice(cycle(PAGES), pages)]
        tasks = [
            asyncio.create_task(keep(person, path, every * place / pages)) for place, (path, person) in enumerate(shown)
        ]
        try:
            yield drawn
        finally:
            for task in tasks:
                if task.done():
                    task.result()
                task.cancel()


def as_table(found: Sequence[tuple[Figures, Figures]], size: Size) -> str:
    """Return medians of the rounds without and with pages, and of their ratios, as a table."""
    names = {
        "small calls/s": "calls",
        "small calls per CPU second": "cpu_calls",
        "their p99, ms": "p99",
        "longest gap beside streams, ms": "gap",
        "pages read": "drawn",
        "median time of a page, ms": "page",
    }
    lines = [
        f"| | no page | {size.pages} pages, each every {size.every:g} s | ratio | spread |",
        "|---|--:|--:|--:|--:|",
    ]
    for title, name in names.items():
        pairs = [(getattr(alone, name), getattr(beside, name)) for alone, beside in found]
        ratios = sorted(beside / alone for alone, beside in pairs if alone)
        ratio = f"{statistics.median(ratios):.2f} | {ratios[0]:.2f} - {ratios[-1]:.2f}" if ratios else "– | –"
        alone, beside = (statistics.median(each) for each in zip(*pairs, strict=True))
        lines.append(f"| {title} | {alone:,.1f} | {beside:,.1f} | {ratio} |")
    return "\n".join(lines)


def main() -> int:
    """Measure and print the table. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.open_pages", description=__doc__)
    parser.add_argument("--rounds", type=count, default=5)
    parser.add_argument("--seconds", type=seconds, default=10.0, help="length of one load (default 10)")
    parser.add_argument("--pages", type=count, default=20, help="open pages (default 20)")
    parser.add_argument("--every", type=seconds, default=5.0, help="seconds between two readings (default 5)")
    parser.add_argument("--database", default="", help="URL of a database; default: an empty one of SQLite")
    given = parser.parse_args()
    size = Size(given.rounds, given.seconds, given.pages, given.every, given.database)

    async def measured() -> None:
        print(as_table(await measure(size, cores()), size))

    return run_to_end(measured)


if __name__ == "__main__":
    sys.exit(main())
