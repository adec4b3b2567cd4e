"""Load of streams that stay open: each connection sends one request for a stream of `chat_bodies.SLOW`.

`python -m bench.held_stream_load JOB`, JOB being a `Job` as JSON, prints `Opened` as JSON once every request has the
head of its response, and `Ended` once no stream is open any more, which is after `/release` of the fake provider.
"""

import asyncio
import gc
import sys

import msgspec
import uvloop

from bench import chat_bodies
from bench.closed_loop_load import LENGTH, SHOWN
from bench.load_requests import QUESTIONS

CONNECTING_AT_ONCE = 50


class Job(msgspec.Struct, frozen=True):
    """Parameters of a load."""

    port: int
    credential: str
    streams: int


class Opened(msgspec.Struct, frozen=True):
    """Numbers of requests by their answers: a stream whose first chunk arrived, a refusal with 503, anything else."""

    open: int
    refused: int
    wrong: int
    shown: list[str]
    """Reasons of the first few wrong answers."""


class Ended(msgspec.Struct, frozen=True):
    """Numbers of streams that ended with their end marker, and without it."""

    complete: int
    cut: int


class Load:
    """Counts of a load, which its connections share."""

    def __init__(self, job: Job) -> None:
        self.request = QUESTIONS[chat_bodies.SLOW].request(job.port, job.credential)
        self.job = job
        self.open = self.refused = self.wrong = self.complete = self.cut = 0
        self.shown: list[str] = []
        self.all_ended = asyncio.Event()
        self._changed = asyncio.Event()

    async def answered(self, requests: int) -> None:
        """Wait until this number of requests has the beginning of its response."""
        while self.open + self.refused + self.wrong < requests:
            self._changed.clear()
            await self._changed.wait()

    def count(self) -> None:
        """Set the events of a response, and of the end of all streams."""
        self._changed.set()
        answered = self.open + self.refused + self.wrong
        if answered == self.job.streams and self.complete + self.cut == self.open:
            self.all_ended.set()

    def fail(self, reason: str) -> None:
        """Count a wrong answer."""
        self.wrong += 1
        if len(self.shown) < SHOWN:
            self.shown.append(reason)
        self.count()


class Connection(asyncio.Protocol):
    """Connection that sends one request and reads its stream, of which only the end is kept."""

    transport: chat_bodies.Wire

    def __init__(self, load: Load) -> None:
        self._load = load
        self._received = b""
        self._is_answered = self._is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, chat_bodies.Wire)
        self.transport = transport
        transport.write(self._load.request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._is_answered:
            self._read_beginning()
        elif self._is_open:
            self._received = self._received[-64:]
            if self._received.endswith(b"0\r\n\r\n"):
                self._end(complete=chat_bodies.DONE in self._received)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_open:
            self._end(complete=False)
        elif not self._is_answered:
            self._is_answered = True
            self._load.fail(f"a connection that was closed before its response ({exc or 'by the server'})")

    def _read_beginning(self) -> None:
        """Count the response by its status, once its first chunk or its whole body is there."""
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        head, status = self._received[:end].lower(), self._received[9:12]
        if (length := LENGTH.search(head)) is not None:
            if len(self._received) < end + 4 + int(length[1]):
                return
            self._is_answered = True
            if status == b"503":
                self._load.refused += 1
                self._load.count()
            else:
                self._load.fail(f"status {status.decode()}: {self._received[end:][:200]!r}")
            self.transport.close()
        elif chat_bodies.CONTENT in self._received:
            self._is_answered = self._is_open = True
            self._received = b""
            self._load.open += 1
            self._load.count()

    def _end(self, *, complete: bool) -> None:
        self._is_open = False
        self._load.complete += complete
        self._load.cut += not complete
        self.transport.close()
        self._load.count()


async def run(job: Job) -> None:
    """Open all streams of a load, a few at a time, and wait for their ends. Print the counts of both."""
    load, loop = Load(job), asyncio.get_running_loop()
    left = job.streams
    while left > 0:
        some = min(left, CONNECTING_AT_ONCE)
        left -= some
        made = [loop.create_connection(lambda: Connection(load), "127.0.0.1", job.port) for _ in range(some)]
        await asyncio.gather(*made)
        # the next requests are sent when these are answered, so that the load is one of open streams, not a burst
        await load.answered(job.streams - left)
    print(msgspec.json.encode(Opened(load.open, load.refused, load.wrong, load.shown)).decode(), flush=True)
    await load.all_ended.wait()
    print(msgspec.json.encode(Ended(load.complete, load.cut)).decode(), flush=True)


if __name__ == "__main__":
    gc.disable()  # there are no reference cycles
    uvloop.run(run(msgspec.json.decode(sys.argv[1], type=Job)))
