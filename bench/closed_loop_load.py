"""Closed-loop load generator: each connection sends its next request when the response has arrived. Every answer is
checked.

`python -m bench.closed_loop_load JOB`, JOB being a `Job` as JSON, prints `begin` and `end` around the measurement, and
then a `Report` as JSON.
"""

import asyncio
import gc
import re
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import msgspec
import uvloop

from bench import chat_bodies
from bench.load_requests import QUESTIONS

CONNECTING_AT_ONCE = 50
LAST_ANSWER_SECONDS = 60.0
"""Maximum time of the last answers after the end of the load."""
SHOWN = 5
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)")


class Job(msgspec.Struct, frozen=True):
    """Parameters of a load."""

    port: int
    question: str
    """Name of the question."""
    credential: str
    connections: int
    seconds: float
    warmup: float
    """Seconds before the measurement, which also waits for a response per connection; 0 measures from the start."""
    least: int = 0
    """Minimum number of answers of the measurement, which is extended until they, and a chunk of a stream, arrived."""
    hold: bool = False
    """Whether each connection sends one request, for a stream. The measurement then lasts while all are open."""


class Report(msgspec.Struct, frozen=True):
    """Result of a load. Times in milliseconds. The window is the time between `begin` and `end`."""

    answers: int
    """Number of right answers, including those before and after the window."""
    failures: int
    shown: list[str]
    """Reasons of the first few failures."""
    window_seconds: float
    window_answers: int
    window_chunks: int
    p50: float
    p99: float


class Run:
    """State of a load that its connections share: counts of answers and failures."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._question = QUESTIONS[job.question]
        self.request = self._question.request(job.port, job.credential)
        self.repeats = True
        self.answers = 0
        self.chunks = 0
        self.opened = 0
        self.failures = 0
        self.shown: list[str] = []
        self.latencies: list[float] = []
        self.busy = 0
        self.changed = asyncio.Event()
        """Set when a response arrived, a stream opened, a connection finished or a call failed."""
        self._right: set[bytes] = set()

    def has_opened(self, streams: int) -> bool:
        """Return whether this number of streams has opened, or a call failed."""
        return self.opened >= streams or self.failures > 0

    def settle(self, status: int, body: bytes, seconds: float) -> None:
        """Count a response, with its check. Bytes that were found right once are not checked again."""
        if status != 200 or body not in self._right:
            if fault := self._question.wrong(status, body):
                return self.fail(str(fault))
            if len(self._right) < 64:  # a gateway that generates ids never repeats a response
                self._right.add(body)
        self.answers += 1
        self.latencies.append(seconds)
        self.changed.set()
        return None

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition, which is checked after each change, is true."""
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    def fail(self, reason: str) -> None:
        """Count a failure."""
        self.failures += 1
        if len(self.shown) < SHOWN:
            self.shown.append(reason)
        self.changed.set()


class Connection(asyncio.Protocol):
    """Connection to the server under load: sends a request, reads the response, and sends the next request."""

    transport: chat_bodies.Wire

    def __init__(self, run: Run) -> None:
        self._run = run
        self._waiting = False
        self._sent_at = 0.0
        self._received = bytearray()  # bytes not yet parsed
        self._status = 0
        self._body: bytearray | None = None  # decoded body of a stream whose head was read
        self._open = False  # whether the stream had a chunk
        self._counted = 0  # length of the body that was searched for chunks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, chat_bodies.Wire)
        self.transport = transport
        self._run.busy += 1

    def send(self) -> None:
        """Send the request of the load."""
        self._waiting = True
        self._sent_at = time.perf_counter()
        self.transport.write(self._run.request)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting:
            self._run.fail(f"a connection that broke before its response was whole ({exc or 'closed by the server'})")
            self._finish()

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
            self._abort("a response without a length")

    def _read_chunks(self, body: bytearray) -> None:
        """Decode the chunked transfer coding of the received bytes."""
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
        if found := body.count(chat_bodies.CONTENT, self._counted):
            if not self._open:
                self._run.opened += 1
                self._run.changed.set()
            self._open = True
            self._run.chunks += found
        self._counted = max(0, len(body) - len(chat_bodies.CONTENT) + 1)  # the bytes may arrive in two reads
        if last:
            self._body = None
            self._settle(self._status, bytes(body))

    def _settle(self, status: int, body: bytes) -> None:
        if self._received:
            self._abort("more bytes than the response's length says")
            return
        self._waiting = False
        self._run.settle(status, body, time.perf_counter() - self._sent_at)
        if self._run.repeats:
            self.send()
        else:
            self._finish()
            self.transport.close()

    def _abort(self, reason: str) -> None:
        self._waiting = False
        self._run.fail(reason)
        self._finish()
        self.transport.abort()

    def _finish(self) -> None:
        self._run.busy -= 1
        self._run.changed.set()


async def measure(job: Job) -> Report:
    """Run a load and return its report. Print `begin` and `end` at the beginning and the end of the measurement."""
    run = Run(job)
    await _connect(run)
    if job.hold:
        run.repeats = False
        await run.until(partial(run.has_opened, job.connections))
    elif job.warmup:
        await asyncio.sleep(job.warmup)
        await run.until(lambda: run.answers >= job.connections or run.failures > 0)
    started, answers, chunks = time.perf_counter(), run.answers, run.chunks
    print("begin", flush=True)
    if job.hold:
        await run.until(lambda: run.busy == 0)
    else:
        await asyncio.sleep(job.seconds)
        chunked = job.least > 0 and chunks > 0
        await run.until(
            lambda: run.failures > 0 or (run.answers >= answers + job.least and (run.chunks > chunks or not chunked))
        )
    print("end", flush=True)
    seconds, answers, chunks = time.perf_counter() - started, run.answers - answers, run.chunks - chunks
    latencies = run.latencies[len(run.latencies) - answers :]
    run.repeats = False
    try:
        await asyncio.wait_for(run.until(lambda: run.busy == 0), LAST_ANSWER_SECONDS)
    except TimeoutError:
        run.fail(f"{run.busy} answers that did not come within {LAST_ANSWER_SECONDS:g} s after the end")
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
    """Open the connections, a few at a time, since a server's accept queue is short."""
    loop, left = asyncio.get_running_loop(), run.job.connections
    while left > 0:
        some = min(left, CONNECTING_AT_ONCE)
        left -= some
        made = [loop.create_connection(lambda: Connection(run), "127.0.0.1", run.job.port) for _ in range(some)]
        for _, connection in await asyncio.gather(*made):
            connection.send()
        if run.job.hold:  # a server may reject calls that wait for many others to be started
            await run.until(partial(run.has_opened, run.job.connections - left))


if __name__ == "__main__":
    gc.disable()  # there are no reference cycles
    done = uvloop.run(measure(msgspec.json.decode(sys.argv[1], type=Job)))
    print(msgspec.json.encode(done).decode(), flush=True)
