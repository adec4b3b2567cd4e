"""Benchmark: its load reaches the gateway, and a wrong answer is not counted. No time is measured."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import aiohttp
import msgspec
import pytest

from bench import chat_bodies, embedding_bodies, fake_provider
from bench.closed_loop_load import Job, Report, measure
from bench.load_measurement import Bench, Cores, Plan, Target
from bench.processes import BenchError, started
from bench.scenarios import BATCHES, SCENARIOS

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "bench", "--quick"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the benchmark reads /proc")


class Written(msgspec.Struct):
    """Members of `--json` that the test reads."""

    answers: dict[str, dict[str, int]]
    rows: list[msgspec.Raw]


def test_every_scenario_moves_right_answers_through_the_gateway(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    command = [*COMMAND, "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    written = msgspec.json.decode(file.read_bytes(), type=Written)
    # The bench counts a response only if it was right and the upstream was called for it with the target's credential.
    assert set(written.answers) == {scenario.name for scenario in SCENARIOS}
    for name, answers in written.answers.items():
        assert set(answers) == {"gateway", "pass-through"}, name
        # each connection has at least one; where few calls are made there are two kinds of them
        assert min(answers.values()) >= (2 * BATCHES if name == "embed-batch" else 20), name
    assert len(written.rows) == sum(len(scenario.measures) for scenario in SCENARIOS)
    for scenario in SCENARIOS:
        assert f"| {scenario.name} " in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_that_it_started_outlives_it(number: signal.Signals) -> None:
    command = [*COMMAND, "small"]  # one gateway; all scenarios have two
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as bench:
        assert bench.stderr
        line = bench.stderr.readline()  # "round 1 ...": the targets run
        started = _children(bench.pid)
        bench.send_signal(number)
        rest = bench.stderr.read()
    assert bench.returncode == 130, line + rest
    assert len(started) >= 3, line + rest
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]


@dataclass(frozen=True)
class Wrong:
    """Answer that no gateway may give."""

    id: str
    question: str
    answer: bytes
    expected: str


def _json(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _stream(*events: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in events) + b"0\r\n\r\n"


OPENING = chat_bodies.opening(chat_bodies.BURST)
CHUNKS = [chat_bodies.chunk(chat_bodies.BURST, i) for i in range(chat_bodies.CHUNKS)]
ENDING = chat_bodies.ending(chat_bodies.BURST, usage=False)

ONE = embedding_bodies.answer(embedding_bodies.FLOAT)
PACKED = embedding_bodies.answer(embedding_bodies.BASE64)
OWN = embedding_bodies.answer(embedding_bodies.LOCAL_BASE64)
SEVERAL = embedding_bodies.answer(embedding_bodies.BATCH_BASE64)


def _reversed(body: bytes) -> bytes:
    read = msgspec.json.decode(body, type=dict[str, object])
    data = read["data"]
    assert isinstance(data, list)
    return msgspec.json.encode({**read, "data": data[::-1]})


def _with_vector(body: bytes, packed: bytes) -> bytes:
    read = msgspec.json.decode(body, type=dict[str, object])
    return msgspec.json.encode({**read, "data": [{"object": "embedding", "index": 0, "embedding": packed}]})


WRONG = [
    Wrong("an error", chat_bodies.SMALL, _json(b"{}", "503 Service Unavailable"), "status 503"),
    Wrong("another text", chat_bodies.SMALL, _json(chat_bodies.answer().replace(b"gives", b"takes")), "another answer"),
    Wrong(
        "another model", chat_bodies.SMALL, _json(chat_bodies.answer().replace(b"small", b"large")), "another answer"
    ),
    Wrong("no JSON", chat_bodies.SMALL, _json(b"<html>"), "malformed"),
    Wrong("no end marker", chat_bodies.BURST, _stream(OPENING, *CHUNKS, *ENDING[:-1]), "without its end marker"),
    Wrong("a missing chunk", chat_bodies.BURST, _stream(OPENING, *CHUNKS[:-1], *ENDING), "other chunks"),
    Wrong("chunks out of order", chat_bodies.BURST, _stream(OPENING, *reversed(CHUNKS), *ENDING), "other chunks"),
    Wrong("no finish", chat_bodies.BURST, _stream(OPENING, *CHUNKS, chat_bodies.DONE), "not finished"),
    Wrong("a cut stream", chat_bodies.BURST, _stream(OPENING, *CHUNKS)[:-5], "broke before its response was whole"),
    Wrong("no length", chat_bodies.SMALL, b"HTTP/1.1 200 OK\r\n\r\n", "without a length"),
    Wrong("other numbers", embedding_bodies.FLOAT.name, _json(ONE.replace(b"-0.0", b"0.0")), "other vectors"),
    Wrong("base64 for numbers", embedding_bodies.FLOAT.name, _json(PACKED), "no float"),
    Wrong("numbers for base64", embedding_bodies.BASE64.name, _json(ONE), "no base64"),
    Wrong(
        "no base64", embedding_bodies.BASE64.name, _json(PACKED.replace(b'embedding":"', b'embedding":"!')), "base64"
    ),
    Wrong("a short vector", embedding_bodies.LOCAL_BASE64.name, _json(_with_vector(OWN, bytes(8))), "not 1536 numbers"),
    Wrong(
        "a vector of zeros",
        embedding_bodies.LOCAL_BASE64.name,
        _json(_with_vector(OWN, bytes(4 * 1536))),
        "length is not 1",
    ),
    Wrong("another embedding model", embedding_bodies.LOCAL_BASE64.name, _json(PACKED), "another model"),
    Wrong(
        "one vector of many",
        embedding_bodies.BATCH_BASE64.name,
        _json(_with_vector(SEVERAL, bytes(1024))),
        "other vectors",
    ),
    Wrong("vectors out of order", embedding_bodies.BATCH_BASE64.name, _json(_reversed(SEVERAL)), "other vectors"),
    Wrong("too many bytes", chat_bodies.SMALL, _json(chat_bodies.answer()) + b"HTTP", "more bytes"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
async def test_a_wrong_answer_is_a_failure(case: Wrong) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = fake_provider.LENGTH.search(head.lower())
        await reader.readexactly(int(length[1]) if length else 0)
        writer.write(case.answer)
        writer.close()
        await writer.wait_closed()

    report = await _measured(case.question, serve)
    assert report.answers == 0
    assert report.failures == 1
    assert case.expected in report.shown[0]


async def test_a_measurement_lasts_until_there_is_something_to_divide_by() -> None:
    """On a busy machine no chunk of a stream may arrive in a short time."""
    shared = fake_provider.Shared()
    fake = await asyncio.get_running_loop().create_server(lambda: fake_provider.Connection(shared), "127.0.0.1", 0)
    async with fake:
        port = fake.sockets[0].getsockname()[1]
        report = await measure(Job(port, chat_bodies.PACED, "key", connections=1, seconds=0.0, warmup=0.01, least=1))
    assert (report.failures, report.shown) == (0, [])
    assert report.window_chunks > 0
    assert report.window_answers > 0


CUTS = [
    *product(
        (
            chat_bodies.SMALL,
            chat_bodies.BURST,
            chat_bodies.PACED,
            embedding_bodies.FLOAT.name,
            embedding_bodies.BASE64.name,
        ),
        (1, 7, 4096),
    ),
    *((request.name, 2**16) for request in embedding_bodies.REQUESTS if request.local),
]


@pytest.mark.parametrize(("question", "size"), CUTS)
async def test_right_answers_are_right_however_the_bytes_are_cut(question: str, size: int) -> None:
    loop, shared = asyncio.get_running_loop(), fake_provider.Shared()
    fake = await loop.create_server(lambda: fake_provider.Connection(shared), "127.0.0.1", 0)

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        near, far = await asyncio.open_connection("127.0.0.1", fake.sockets[0].getsockname()[1])

        async def back() -> None:
            while data := await near.read(size):
                writer.write(data)
                await writer.drain()

        answering = asyncio.create_task(back())
        while data := await reader.read(size):
            far.write(data)
        far.close()
        await far.wait_closed()
        await answering
        writer.close()
        await writer.wait_closed()

    report = await _measured(question, forward)
    fake.close()
    await fake.wait_closed()
    assert (report.failures, report.shown) == (0, [])
    assert report.answers == shared.served["key"] >= 1


async def test_a_gateway_that_calls_providers_for_its_own_work_is_a_failure(tmp_path: Path) -> None:
    plan, anywhere = Plan(rounds=1, seconds=0.1, warmup=0.1, held=1), Cores(None, None)
    async with (
        started("upstream", [sys.executable, "-m", "bench.fake_provider"], None, tmp_path) as process,
        aiohttp.ClientSession() as session,
    ):
        fake = Target("direct", process, await process.port(), "direct")
        bench = Bench(plan, anywhere, fake, session, tmp_path)
        await bench.put(fake, embedding_bodies.LOCAL_BASE64.name, 1, least=1)
        with pytest.raises(BenchError, match="calls at the upstream"):
            await bench.put(replace(fake, local=True), embedding_bodies.LOCAL_BASE64.name, 1, least=1)
        await bench.put(replace(fake, local=True), embedding_bodies.BASE64.name, 1, least=1)


async def _measured(
    question: str, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
) -> Report:
    """Measure one connection that sends one request, and wait until it was served."""
    served = asyncio.Event()

    async def serve_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            served.set()

    async with await asyncio.start_server(serve_once, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        report = await measure(Job(port, question, "key", connections=1, seconds=0.0, warmup=0.0))
        await served.wait()
    return report


def _children(parent: int) -> list[int]:
    tasks = Path(f"/proc/{parent}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]
