"""Measurement of overload: real processes, every answer checked, and the written page. No time is measured."""

import asyncio
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bench import chat_bodies, fake_provider
from bench.closed_loop_load import SHOWN
from bench.load_measurement import Cores, Note
from bench.open_loop_load import Arrivals, Job, Outcome, Report, measure
from bench.overload import QUICK
from bench.overload_tables import HEADINGS, Level, Load, Run, as_page, as_table
from bench.processes import started

ROOT = Path(__file__).parents[3]
REFUSAL = b'{"error":{"message":"the gateway is behind with its work","type":"server_error","param":null,"code":null}}'
CALLS = 6

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the benchmark reads /proc")


def test_every_load_reaches_the_gateway_and_all_its_answers_are_right_or_refused() -> None:
    command = [sys.executable, "-m", "bench.overload", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    head, _, *rows = done.stdout.splitlines()
    assert [cell.strip() for cell in head.strip("|").split("|")] == list(HEADINGS)
    assert [float(row.split("|")[1]) for row in rows] == list(QUICK.factors)


async def test_each_call_gets_its_answer_and_counts_once(tmp_path: Path) -> None:
    async with started("upstream", [sys.executable, "-m", "bench.fake_provider"], None, tmp_path) as process:
        report = await measure(Job(await process.port(), "direct", rate=100.0, seconds=0.5))
    assert (report.offered, report.good, report.refused, report.wrong) == (50, 50, 0, 0)
    assert report.good_p50 >= chat_bodies.DELAY_SECONDS * 1e3


@dataclass(frozen=True)
class Answered:
    id: str
    answer: bytes
    outcome: Outcome
    shown: str = ""
    closes: bool = False


def _answer(status: str, body: bytes, headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


UNAVAILABLE, RETRY_AFTER = "503 Service Unavailable", "Retry-After: 1\r\n"
ANSWERS = [
    Answered("the provider's answer", fake_provider.LATE[chat_bodies.DELAYED], Outcome.GOOD),
    Answered("a refusal", _answer(UNAVAILABLE, REFUSAL, RETRY_AFTER), Outcome.REFUSED),
    Answered("a refusal without retry-after", _answer(UNAVAILABLE, REFUSAL), Outcome.WRONG, "without retry-after"),
    Answered("a refusal of a proxy", _answer(UNAVAILABLE, b"<html>", RETRY_AFTER), Outcome.WRONG, "another body"),
    Answered(
        "another text",
        fake_provider.LATE[chat_bodies.DELAYED].replace(b"gives", b"takes"),
        Outcome.WRONG,
        "another answer",
    ),
    Answered("another error", _answer("504 Gateway Timeout", REFUSAL, RETRY_AFTER), Outcome.WRONG, "status 504"),
    Answered(
        "more bytes than its length", fake_provider.LATE[chat_bodies.DELAYED] + b"HTTP", Outcome.WRONG, "another length"
    ),
    Answered(
        "a cut answer",
        fake_provider.LATE[chat_bodies.DELAYED][:-5],
        Outcome.WRONG,
        "broke before its response was whole",
        closes=True,
    ),
]


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case.id)
async def test_an_answer_is_right_refused_or_wrong(case: Answered) -> None:
    serving = set[asyncio.Task[object] | None]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                length = fake_provider.LENGTH.search(head.lower())
                await reader.readexactly(int(length[1]) if length else 0)
                writer.write(case.answer)
                if case.closes:
                    writer.close()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        load = Arrivals(Job(server.sockets[0].getsockname()[1], "key", rate=1000.0, seconds=CALLS / 1000))
        await load.offer()
        await load.finish()
        await load.close()
        await asyncio.gather(*filter(None, serving))
    counts = {outcome: len(seconds) for outcome, seconds in load.seconds.items()}
    assert counts == dict.fromkeys(Outcome, 0) | {case.outcome: CALLS}
    assert load.judge.wrongs == counts[Outcome.WRONG]
    assert len(load.judge.shown) == min(load.judge.wrongs, SHOWN)
    assert all(case.shown in reason for reason in load.judge.shown)


def _report(good_rate: float, refused: int) -> Report:
    return Report(
        offered=2000,
        good=2000 - refused,
        refused=refused,
        wrong=0,
        shown=[],
        connections=100,
        offered_rate=2000.0,
        good_rate=good_rate,
        refused_rate=refused,
        good_p50=51.0,
        good_p99=200.0,
        refused_p50=5.0,
        refused_p99=20.0,
        late_p99=1.0,
        recovery_seconds=0.125,
    )


def test_shares_are_those_of_the_capacity_just_before() -> None:
    loads = Load(1000.0, _report(900.0, 1000)), Load(2000.0, _report(1600.0, 1000)), Load(1000.0, _report(1000.0, 1000))
    run = Run(1.0, 3, (Level(2.0, loads),), ())
    *_, row = as_table(run).splitlines()
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["2", "2,000", "1,000", "90%", "80% - 100%", "1,000", "51", "200", "20", "0.12"]


def test_the_page_has_the_table_and_the_plot() -> None:
    note = Note("gateway", "something else ran", 0.2)
    run = Run(1.0, 1, (Level(1.0, (Load(2000.0, _report(1900.0, 0)),)),), (note, replace(note, share=0.5)))
    page = as_page(run, Cores(None, None))
    assert as_table(run) in page
    assert "(overload.svg)" in page
    assert "- something else ran (measurements: 2, up to 50% of its time)\n" in page
