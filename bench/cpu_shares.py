"""Command `python -m bench.cpu_shares`: shows where the processor time of a call goes, by rooms of the code.

py-spy samples all threads of the gateway while the load of a scenario runs. A sample belongs to the innermost function
of the gateway's own code on its stack, so that a room has the libraries that it calls; samples without one are the
event loop's, with its HTTP parser, or those of the threads of the database. A column is the processor time of one call,
divided by the shares of the samples.
"""

import argparse
import asyncio
import re
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import aiohttp

from bench import chat_bodies, embedding_bodies
from bench.benchmark_rounds import allow_files, cores, fake_upstream, first_call, gateway
from bench.command_line import print_progress, run_to_end, seconds
from bench.load_measurement import Bench, Plan, Target
from bench.processes import output_of

OWN = re.compile(r"\(((?:umg_grpc/(?!cli/|process/)|http_facade/)[^:)]+\.py)")
"""File of the gateway's own code in a stack; `cli` and `process` only run the event loop."""
DEEP_ROOMS = ("umg_grpc/service", "umg_grpc/upstream")
"""Rooms whose folders are rows of their own."""
LOOP_ROOM, DATABASE_ROOM = "event loop, aiohttp and its parser", "threads of the database"
LOOP_RUNNER = "asyncio/runners.py"
"""File on each stack of the thread of the event loop."""
SAMPLE_RATE = 250
"""Samples a second."""
WARM_UP_SECONDS = 2.0
TABLE = re.compile(r"(<!-- shares of the processor time -->)\n.*?\n(<!-- end -->)", re.DOTALL)


class Load(NamedTuple):
    """Load of a column: its request, and the number of connections that repeat it."""

    title: str
    question: str
    connections: int


LOADS = (
    Load("small call", chat_bodies.SMALL, 64),
    Load("20 KB", chat_bodies.LARGE, 64),
    Load("embedding", embedding_bodies.FLOAT.name, 64),
    Load("stream at once", chat_bodies.BURST, 32),
    Load("stream by chunks", chat_bodies.PACED, 32),
)


def room_of(stack: str) -> str:
    """Return the room to which a sample of the event loop's thread belongs. `stack`: functions with their files, from
    the outermost on.
    """
    if not (files := OWN.findall(stack)):
        return LOOP_ROOM
    folders = files[-1].split("/")
    depth = 3 if "/".join(folders[:2]) in DEEP_ROOMS and len(folders) > 3 else 2
    return "/".join(folders[:depth])


def shares(samples: Iterable[str], loop: float, process: float) -> dict[str, float]:
    """Return the share of each room in the processor time of the process. `samples`: lines of a stack, its functions
    divided by `;`, and a number; `loop`, `process`: seconds of processor time while they were taken, of the event
    loop's thread and of all threads. Samples of other threads, most of which wait, do not count.
    """
    rooms = Counter[str]()
    for line in samples:
        stack, _, number = line.rpartition(" ")
        if LOOP_RUNNER in stack:
            rooms[room_of(stack)] += int(number)
    total = sum(rooms.values())
    return {DATABASE_ROOM: 1 - loop / process, **{room: n / total * loop / process for room, n in rooms.items()}}


async def measure(length: float) -> dict[str, dict[str, float]]:
    """Return the microseconds of processor time of one call, by load and room."""
    allow_files()
    where, found = cores(), dict[str, dict[str, float]]()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shares-")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        upstream = await stack.enter_async_context(fake_upstream(where, folder))
        target = await stack.enter_async_context(gateway(upstream, where, folder / "gateway"))
        await first_call(session, target)
        bench = Bench(Plan(1, length, WARM_UP_SECONDS, 0), where, upstream, session, folder)
        for load in LOADS:
            print_progress(load.title)
            sampling = asyncio.create_task(_sampled(target, folder / "stacks", length))
            measured = await bench.put(target, load.question, load.connections)
            each = measured.cpu_seconds / measured.report.window_answers * 1e6
            found[load.title] = {room: share * each for room, share in (await sampling).items()}
    return found


async def _sampled(target: Target, file: Path, length: float) -> dict[str, float]:
    await asyncio.sleep(WARM_UP_SECONDS)
    program, process = Path(sysconfig.get_path("scripts"), "py-spy"), target.process
    command = [str(program), "record", "--pid", str(process.session), "--format", "raw", "--output", str(file)]
    command += ["--rate", str(SAMPLE_RATE), "--duration", str(max(1, round(length)))]
    loop, spent = process.main_thread_seconds(), process.cpu_seconds()
    await output_of(command, file.parent)
    loop, spent = process.main_thread_seconds() - loop, process.cpu_seconds() - spent
    return shares((await asyncio.to_thread(file.read_text)).splitlines(), loop, spent)


def table(found: Mapping[str, Mapping[str, float]]) -> str:
    """Return the microseconds as a Markdown table, the rooms with most of the first load first."""
    rooms = sorted(
        {room for each in found.values() for room in each}, key=lambda room: -found[LOADS[0].title].get(room, 0)
    )
    lines = [f"| us of processor time, Python {sys.version.split()[0]} | {' | '.join(found)} |"]
    lines.append(f"|---|{'--:|' * len(found)}")
    for room in rooms:
        cells = [f"{each.get(room, 0):,.0f}" for each in found.values()]
        if any(cell != "0" for cell in cells):
            lines.append(f"| {room} | {' | '.join(cells)} |")
    lines.append(f"| **a call** | {' | '.join(f'{sum(each.values()):,.0f}' for each in found.values())} |")
    return "\n".join(lines)


def write(file: Path, text: str) -> None:
    """Write the table into the page, between its marks."""
    page = file.read_text(encoding="utf-8")
    file.write_text(TABLE.sub(lambda marks: f"{marks[1]}\n{text}\n{marks[2]}", page), encoding="utf-8")


async def run(length: float, page: Path | None) -> None:
    """Measure, print the table, and write it into the page, if there is one."""
    text = table(await measure(length))
    print(text)
    if page is not None:
        await asyncio.to_thread(write, page, text)


def main() -> int:
    """Run the command. Return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.cpu_shares", description=__doc__)
    parser.add_argument("--seconds", type=seconds, default=8.0, help="length of a load (default: 8)")
    parser.add_argument("--page", type=Path, help="Markdown page into which the table is written")
    arguments = parser.parse_args()
    return run_to_end(lambda: run(arguments.seconds, arguments.page))


if __name__ == "__main__":
    sys.exit(main())
