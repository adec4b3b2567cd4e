"""Open-loop load generator: sends calls at fixed intervals, independent of the responses to earlier calls.

`python -m bench.open_loop_load JOB`, JOB being a `Job` as JSON, prints `begin` and `end` around the load, and then a
`Report` as JSON. A call uses an idle connection, or opens a new one if none is idle; at the beginning there is none.
"""

import asyncio
import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from enum import Enum, auto

import msgspec
import uvloop

from bench import chat_bodies
from bench.closed_loop_load import LAST_ANSWER_SECONDS, LENGTH, SHOWN
from bench.load_requests import QUESTIONS

TICK_SECONDS = 0.001
"""Interval at which due calls are sent: the resolution of the event loop's timers."""
RECOVERED_CALLS = 10
RECOVERED_SECONDS = 2 * chat_bodies.DELAY_SECONDS
"""Recovery: `RECOVERED_CALLS` calls, one after another, are each answered within this time."""
RECOVERY_SECONDS = 30.0
"""Maximum wait for the recovery."""


class Job(msgspec.Struct, frozen=True):
    """Parameters of a load of calls to `exchange.DELAYED`."""

    port: int
    credential: str
    rate: float
    """Calls a second."""
    seconds: float


class Report(msgspec.Struct, frozen=True):
    """Outcome of a load. Times in milliseconds, from the moment for which a call was planned.

    The rates count the responses in a window of the job's `seconds`, which begins when the first answer can arrive:
    `exchange.DELAY_SECONDS` after the first call.
    """

    offered: int
    good: int
    refused: int
    wrong: int
    """Calls with any other answer, or without one."""
    shown: list[str]
    """Reasons of the first few wrong answers."""
    connections: int
    """Connections that were opened."""
    offered_rate: float
    good_rate: float
    refused_rate: float
    good_p50: float
    good_p99: float
    refused_p50: float
    refused_p99: float
    late_p99: float
    """99th percentile of the time between the planned moment of a call and its sending, or the opening of its
    connection. More than a few milliseconds mean that the load program itself is the limit.
    """
    recovery_seconds: float
    """Time from the end of the load to the first of `RECOVERED_CALLS` consecutive calls that are answered at once."""


class Outcome(Enum):
    """Kind of the response to a call: good, refused for overload, or wrong."""

    GOOD = auto()
    REFUSED = auto()
    WRONG = auto()


class _Error(msgspec.Struct):
    message: str
    type: str


class _Refusal(msgspec.Struct):
    """Body of an error in the format of the calls, of which the code is read."""

    error: _Error


class Judge:
    """Classifier of answers: good, refused or wrong."""

    def __init__(self) -> None:
        self.wrongs = 0
        self.shown: list[str] = []
        """Reasons of the first few wrong answers."""
        self._question = QUESTIONS[chat_bodies.DELAYED]
        self._right: set[bytes] = set()

    def judge(self, head: bytes, body: bytes) -> Outcome:
        """Return the outcome of a call by the head, in lower case, and the body of its response."""
        status = int(head[9:12])
        if status == 200 and body in self._right:
            return Outcome.GOOD
        if status == 503:
            return self._judge_refusal(head, body)
        if (fault := self._question.wrong(status, body)) is not None:
            return self.wrong(str(fault))
        if len(self._right) < 64:  # a gateway that generates ids never repeats a response
            self._right.add(body)
        return Outcome.GOOD

    def wrong(self, reason: str) -> Outcome:
        """Count a call that failed, with the reason. Return the outcome `WRONG`."""
        self.wrongs += 1
        if len(self.shown) < SHOWN:
            self.shown.append(reason)
        return Outcome.WRONG

    def _judge_refusal(self, head: bytes, body: bytes) -> Outcome:
        if b"\r\nretry-after:" not in head:
            return self.wrong(f"503 without retry-after: {body[:200]!r}")
        try:
            msgspec.json.decode(body, type=_Refusal)
        except msgspec.MsgspecError as error:
            return self.wrong(f"503 with another body than an error ({error}): {body[:200]!r}")
        return Outcome.REFUSED


class Connection(asyncio.Protocol):
    """Connection to the server under load, with one call at a time. It reports each answer, or the failure of the call,
    to its callback.
    """

    transport: chat_bodies.Wire

    def __init__(self, request: bytes, judge: Judge, settled: Callable[["Connection", Outcome], None]) -> None:
        self.is_open = False
        self.planned = 0.0
        """Planned moment of the call in flight."""
        self._request = request
        self._judge = judge
        self._settled = settled
        self._is_waiting = False
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, chat_bodies.Wire)
        self.transport = transport
        self.is_open = True
        self.call()

    def call(self) -> None:
        """Send a call on the connection."""
        self._is_waiting = True
        self.transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._is_waiting:
            reason = exc or "closed by the server"
            self._settle(self._judge.wrong(f"a connection that broke before its response was whole ({reason})"))

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        end = received.find(b"\r\n\r\n")
        if end < 0:
            self._received = received
            return
        head = received[:end].lower()
        length = LENGTH.search(head)
        size = end + 4 + int(length[1]) if length else -1
        if len(received) < size:
            self._received = received
            return
        self._received = b""
        if len(received) > size or not self._is_waiting:
            self._settle(self._judge.wrong(f"another length than the head says: {received[:200]!r}"))
            self.transport.abort()
            return
        self._settle(self._judge.judge(head, received[end + 4 :]))

    def _settle(self, outcome: Outcome) -> None:
        self._is_waiting = False
        self._settled(self, outcome)


class Arrivals:
    """Load of calls at fixed intervals, with its connections and the outcomes of the calls."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.judge = Judge()
        self.offered = 0
        self.late: list[float] = []
        self.seconds: dict[Outcome, list[float]] = {outcome: [] for outcome in Outcome}
        self.in_window = dict.fromkeys(Outcome, 0)
        self._request = QUESTIONS[chat_bodies.DELAYED].request(job.port, job.credential)
        self._most = max(1, round(job.rate * job.seconds))
        self._idle: list[Connection] = []
        self._connections: list[Connection] = []
        self._opening: set[asyncio.Task[None]] = set()
        self._settled = 0
        self._begun = 0.0
        self._all_offered = asyncio.Event()
        self._all_settled = asyncio.Event()

    async def offer(self) -> None:
        """Start all calls of the load at their times. Some are answered after the return."""
        self._begun = time.perf_counter()
        self._tick()
        await self._all_offered.wait()

    async def finish(self) -> None:
        """Wait until all calls are answered."""
        try:
            await asyncio.wait_for(self._all_settled.wait(), LAST_ANSWER_SECONDS)
        except TimeoutError:
            for _ in range(self.offered - self._settled):
                self.judge.wrong(f"no response within {LAST_ANSWER_SECONDS:g} s after the load")

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            if connection.is_open:
                connection.transport.abort()
        await asyncio.sleep(0)  # the sockets are closed in the next round of the event loop

    @property
    def opened(self) -> int:
        """Number of connections that were opened."""
        return len(self._connections)

    async def open(self, planned: float, settled: Callable[[Connection, Outcome], None]) -> None:
        """Open a connection and send a call on it. `planned`: planned moment of the call."""
        connection = Connection(self._request, self.judge, settled)
        connection.planned = planned
        self._connections.append(connection)
        try:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: connection, "127.0.0.1", self.job.port)
        except OSError as error:
            settled(connection, self.judge.wrong(f"no connection: {error}"))

    def _tick(self) -> None:
        """Start the calls that are due."""
        now = time.perf_counter()
        due = min(self._most, int((now - self._begun) * self.job.rate) + 1)
        while self.offered < due:
            planned = self._begun + self.offered / self.job.rate
            self.offered += 1
            self._begin(planned)
        if self.offered == self._most:
            self._all_offered.set()
        else:
            asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _begin(self, planned: float) -> None:
        self.late.append(time.perf_counter() - planned)
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                connection.planned = planned
                connection.call()
                return
        task = asyncio.get_running_loop().create_task(self.open(planned, self._settle))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def _settle(self, connection: Connection, outcome: Outcome) -> None:
        now = time.perf_counter()
        self.seconds[outcome].append(now - connection.planned)
        if chat_bodies.DELAY_SECONDS <= now - self._begun < chat_bodies.DELAY_SECONDS + self.job.seconds:
            self.in_window[outcome] += 1
        if connection.is_open and outcome is not Outcome.WRONG:
            self._idle.append(connection)
        self._settled += 1
        if self._settled >= self._most:
            self._all_settled.set()


class Probe:
    """Calls one after another on a separate connection, which measure the recovery after the load."""

    def __init__(self, load: Arrivals) -> None:
        self._load = load
        self._connection: Connection | None = None
        self._answered = asyncio.get_running_loop().create_future()

    async def recovery_seconds(self) -> float:
        """Return the seconds after which `RECOVERED_CALLS` are answered at once, `RECOVERY_SECONDS` at most."""
        begun, streak_began, streak = time.perf_counter(), 0.0, 0
        while streak < RECOVERED_CALLS and (now := time.perf_counter()) - begun < RECOVERY_SECONDS:
            outcome = await self._call(now)
            if outcome is not Outcome.GOOD or time.perf_counter() - now > RECOVERED_SECONDS:
                streak = 0
                continue
            if streak == 0:
                streak_began = now
            streak += 1
        return streak_began - begun if streak == RECOVERED_CALLS else RECOVERY_SECONDS

    async def _call(self, now: float) -> Outcome:
        self._answered = asyncio.get_running_loop().create_future()
        if self._connection is not None and self._connection.is_open:
            self._connection.call()
        else:
            await self._load.open(now, self._settle)
        try:
            return await asyncio.wait_for(self._answered, LAST_ANSWER_SECONDS)
        except TimeoutError:
            self._connection = None
            return self._load.judge.wrong(f"no response within {LAST_ANSWER_SECONDS:g} s, after the load")

    def _settle(self, connection: Connection, outcome: Outcome) -> None:
        self._connection = connection
        if not self._answered.done():
            self._answered.set_result(outcome)


async def measure(job: Job) -> Report:
    """Run a load and return its report. Print `begin` and `end` at the beginning and the end of the load."""
    load = Arrivals(job)
    print("begin", flush=True)
    await load.offer()
    print("end", flush=True)
    recovery_seconds, _ = await asyncio.gather(Probe(load).recovery_seconds(), load.finish())
    await load.close()
    good, refused = load.seconds[Outcome.GOOD], load.seconds[Outcome.REFUSED]
    return Report(
        offered=load.offered,
        good=len(good),
        refused=len(refused),
        wrong=load.judge.wrongs,
        shown=load.judge.shown,
        connections=load.opened,
        offered_rate=load.offered / job.seconds,
        good_rate=load.in_window[Outcome.GOOD] / job.seconds,
        refused_rate=load.in_window[Outcome.REFUSED] / job.seconds,
        good_p50=_percentile(good, 50),
        good_p99=_percentile(good, 99),
        refused_p50=_percentile(refused, 50),
        refused_p99=_percentile(refused, 99),
        late_p99=_percentile(load.late, 99),
        recovery_seconds=recovery_seconds,
    )


def _percentile(seconds: Sequence[float], percent: int) -> float:
    if len(seconds) < 2:
        return sum(seconds) * 1e3
    return statistics.quantiles(seconds, n=100)[percent - 1] * 1e3


if __name__ == "__main__":
    gc.disable()  # there are no reference cycles worth collecting
    done = uvloop.run(measure(msgspec.json.decode(sys.argv[1], type=Job)))
    print(msgspec.json.encode(done).decode(), flush=True)
