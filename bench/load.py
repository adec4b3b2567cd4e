"""The load: connections that ask again as soon as they have their answer, each answer checked.

`python -m bench.load JOB`, JOB being a `Job` as JSON, prints `begin` and `end` around what it measures, and then a
`Report` as JSON.
"""

import asyncio
import gc
import re
import statistics
import sys
import time
from collections.abc import Callable

import msgspec
import uvloop

from bench import exchange
from bench.questions import QUESTIONS

CONNECTING_AT_ONCE = 50
HASTE_SECONDS = 60.0
"""How long the last answers may take after the end."""
SHOWN = 5
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)")


class Job(msgspec.Struct, frozen=True):
    """What to ask, how often and how long."""

    port: int
    question: str
    """Its name."""
    credential: str
    connections: int
    seconds: float
    warmup: float
    """Before that, and until what the first answers waited for is there; 0 measures from the start."""
    least: int = 0
    """Answers to measure, however long that takes."""
    hold: bool = False
    """Whether each connection asks once, for a stream. What is measured is then the time in which all are open."""


class Report(msgspec.Struct, frozen=True):
    """What came of it. Times in milliseconds; the counts of the window are those between `begin` and `end`."""

    answers: int
    """All right answers, before and after the window too."""
    failures: int
    shown: list[str]
    """The first few failures."""
    window_seconds: float
    window_answers: int
    window_chunks: int
    p50: float
    p99: float


class Run:
    """What the connections share."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._question = QUESTIONS[job.question]
        body = self._question.body
        head = (
            f"POST {self._question.path} HTTP/1.1\r\nHost: 127.0.0.1:{job.port}\r\nAccept: */*\r\n"
            f"Authorization: Bearer {job.credential}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.request = head.encode() + body
        self.asking = True
        self.answers = 0
        self.chunks = 0
        self.opened = 0
        self.failures = 0
        self.shown: list[str] = []
        self.latencies: list[float] = []
        self.busy = 0
        self.changed = asyncio.Event()
        """Set when an answer came, a stream opened, a connection came to rest or something failed."""
        self._right: set[bytes] = set()

    def settle(self, status: int, body: bytes, seconds: float) -> None:
        """Counts an answer. It is read once; after that the same bytes are known to be right."""
        if status != 200 or body not in self._right:
            if fault := self._question.wrong(status, body):
                return self.fail(str(fault))
            if len(self._right) < 64:  # a gateway that makes ids of its own never repeats itself
                self._right.add(body)
        self.answers += 1
        self.latencies.append(seconds)
        self.changed.set()
        return None

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits for what the answers bring about."""
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    def fail(self, what: str) -> None:
        """Counts a failure."""
        self.failures += 1
        if len(self.shown) < SHOWN:
            self.shown.append(what)
        self.changed.set()


class Connection(asyncio.Protocol):
    """Asks, reads the answer, asks again."""

    transport: exchange.Wire

    def __init__(self, run: Run) -> None:
        self._run = run
        self._waiting = False
        self._asked = 0.0
        self._received = bytearray()  # not yet taken apart
        self._status = 0
        self._body: bytearray | None = None  # of a stream, whose head is read
        self._open = False  # whether the stream has brought a chunk
        self._counted = 0  # how much of the body was searched for chunks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, exchange.Wire)
        self.transport = transport
        self._run.busy += 1

    def ask(self) -> None:
        """Sends the request."""
        self._waiting = True
        self._asked = time.perf_counter()
        self.transport.write(self._run.request)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting:
            self._run.fail(f"a connection that broke before its answer was whole ({exc or 'closed by the server'})")
            self._rest()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._body is None:
            self._read_head()
        if self._body is not None:
            self._read_chunks(self._body)

    def _read_head(self) -> None:
        received = self._received
        end = received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(received[:end]).lower()
        status = int(head[9:12])
        if b"\r\ntransfer-encoding: chunked" in head:
            self._status, self._body, self._counted, self._open = status, bytearray(), 0, False
            del received[: end + 4]
        elif length := LENGTH.search(head):
            whole = end + 4 + int(length[1])
            if len(received) >= whole:
                body = bytes(received[end + 4 : whole])
                del received[:whole]
                self._settle(status, body)
        else:
            self._broken("an answer without a length")

    def _read_chunks(self, body: bytearray) -> None:
        """Takes the chunked coding off what was received."""
        received, position, last = self._received, 0, False
        while not last:
            line = received.find(b"\r\n", position)
            if line < 0:
                break
            size = int(received[position:line], 16)
            if len(received) < line + 4 + size:
                break
            body += received[line + 2 : line + 2 + size]
            position = line + 4 + size
            last = size == 0
        del received[:position]
        if found := body.count(exchange.CONTENT, self._counted):
            if not self._open:
                self._run.opened += 1
                self._run.changed.set()
            self._open = True
            self._run.chunks += found
        self._counted = max(0, len(body) - len(exchange.CONTENT) + 1)  # one may be cut in two
        if last:
            self._body = None
            self._settle(self._status, bytes(body))

    def _settle(self, status: int, body: bytes) -> None:
        if self._received:
            self._broken("more bytes than the answer's length says")
            return
        self._waiting = False
        self._run.settle(status, body, time.perf_counter() - self._asked)
        if self._run.asking:
            self.ask()
        else:
            self._rest()
            self.transport.close()

    def _broken(self, what: str) -> None:
        self._waiting = False
        self._run.fail(what)
        self._rest()
        self.transport.abort()

    def _rest(self) -> None:
        self._run.busy -= 1
        self._run.changed.set()


async def measure(job: Job) -> Report:
    """Does the job, telling on standard output where the measured part begins and ends."""
    run = Run(job)
    await _connect(run)
    if job.hold:
        run.asking = False
        await run.until(lambda: run.opened == job.connections or run.failures > 0)
    elif job.warmup:
        await asyncio.sleep(job.warmup)
        await run.until(lambda: run.answers >= job.connections or run.failures > 0)
    started, answers, chunks = time.perf_counter(), run.answers, run.chunks
    print("begin", flush=True)
    if job.hold:
        await run.until(lambda: run.busy == 0)
    else:
        await asyncio.sleep(job.seconds)
        await run.until(lambda: run.answers >= answers + job.least or run.failures > 0)
    print("end", flush=True)
    seconds, answers, chunks = time.perf_counter() - started, run.answers - answers, run.chunks - chunks
    latencies = run.latencies[len(run.latencies) - answers :]
    run.asking = False
    try:
        await asyncio.wait_for(run.until(lambda: run.busy == 0), HASTE_SECONDS)
    except TimeoutError:
        run.fail(f"{run.busy} answers that did not come within {HASTE_SECONDS:g} s after the end")
    if len(latencies) == 1:
        latencies *= 2
    cuts = statistics.quantiles(latencies, n=100) if latencies else [0.0] * 99
    return Report(
        answers=run.answers,
        failures=run.failures,
        shown=run.shown,
        window_seconds=seconds,
        window_answers=answers,
        window_chunks=chunks,
        p50=cuts[49] * 1e3,
        p99=cuts[98] * 1e3,
    )


async def _connect(run: Run) -> None:
    """Opens the connections, a few at a time: a server's queue of those not yet accepted is short."""
    loop, left = asyncio.get_running_loop(), run.job.connections
    while left > 0:
        some = min(left, CONNECTING_AT_ONCE)
        left -= some
        made = [loop.create_connection(lambda: Connection(run), "127.0.0.1", run.job.port) for _ in range(some)]
        for _, connection in await asyncio.gather(*made):
            connection.ask()
    gc.freeze()
    gc.disable()  # nothing here makes cycles


if __name__ == "__main__":
    done = uvloop.run(measure(msgspec.json.decode(sys.argv[1], type=Job)))
    print(msgspec.json.encode(done).decode(), flush=True)
