"""Concurrency limiter: a number of calls in flight, more in a queue, and the rest rejected at once."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

import pytest

from umg_grpc.base.errors import AGAIN_SECONDS, Failure, UmgError
from umg_grpc.service.resilience.concurrency_limiter import ConcurrencyLimiter
from umg_grpc.v1 import pb


@dataclass
class Clock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Queue:
    limiter: ConcurrencyLimiter
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def join(self, seconds: float = float("inf")) -> asyncio.Task[None]:
        """Start a task that waits for a slot. Return it when it waits or has its slot."""
        task = asyncio.create_task(self.limiter.take(seconds))
        self.tasks.append(task)
        await asyncio.sleep(0)
        return task


async def refused(limiter: ConcurrencyLimiter, seconds: float = float("inf")) -> UmgError:
    with pytest.raises(UmgError) as caught:
        await limiter.take(seconds)
    return caught.value


async def test_calls_within_the_limit_do_not_wait_and_one_more_is_refused_at_once() -> None:
    limiter = ConcurrencyLimiter(2, 0, 60, "the gateway")
    for taken in range(2):
        assert (limiter.taken, limiter.free) == (taken, 2 - taken)
        await limiter.take(0)
    assert (limiter.taken, limiter.free, limiter.refuses()) == (2, 0, True)
    error = await refused(limiter)
    assert (error.reason, error.failure) == (pb.ERROR_REASON_UNAVAILABLE, Failure.NOT_SENT)
    assert error.retry_after == AGAIN_SECONDS
    limiter.release()
    await limiter.take()


async def test_the_call_that_waited_longest_is_next() -> None:
    limiter = ConcurrencyLimiter(1, 3, 60, "the gateway")
    await limiter.take()
    queue = Queue(limiter)
    waiting = deque([await queue.join() for _ in range(3)])
    assert (limiter.waiting, limiter.refuses()) == (3, True)
    while waiting:
        limiter.release()
        await waiting.popleft()
        assert (limiter.waiting, limiter.taken) == (len(waiting), 1)
        assert not any(task.done() for task in waiting)
    limiter.release()
    assert limiter.taken == 0


async def test_a_call_that_waited_too_long_is_refused_and_leaves_the_queue() -> None:
    limiter = ConcurrencyLimiter(1, 8, 0.01, "the gateway")
    await limiter.take()
    assert (await refused(limiter)).reason == pb.ERROR_REASON_UNAVAILABLE
    assert (limiter.waiting, limiter.taken) == (0, 1)
    limiter.release()
    assert limiter.taken == 0


async def test_a_call_does_not_wait_beyond_its_deadline() -> None:
    limiter = ConcurrencyLimiter(1, 8, 60, "the gateway")
    await limiter.take()
    await refused(limiter, 0)
    await refused(limiter, -1)
    await refused(limiter, 0.01)
    assert limiter.waiting == 0


@dataclass(frozen=True)
class Leaving:
    id: str
    granted: bool  # whether a slot came free in the same moment


@pytest.mark.parametrize("case", [Leaving("alone", False), Leaving("just granted", True)], ids=lambda case: case.id)
async def test_a_slot_is_not_lost_when_a_waiting_call_is_cancelled(case: Leaving) -> None:
    limiter = ConcurrencyLimiter(1, 8, 60, "the gateway")
    await limiter.take()
    queue = Queue(limiter)
    leaving, next_one = await queue.join(), await queue.join()
    if case.granted:
        limiter.release()
        leaving.cancel()
    else:
        leaving.cancel()
        limiter.release()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await next_one
    assert (limiter.taken, limiter.waiting) == (1, 0)
    limiter.release()
    assert limiter.taken == 0


async def serve(limiter: ConcurrencyLimiter, clock: Clock, calls: int, seconds: float) -> None:
    """Make the given number of calls of this length, as many at a time as there are slots."""
    for _ in range(calls // limiter.limit):
        for _ in range(limiter.limit):
            await limiter.take()
        clock.seconds += seconds
        for _ in range(limiter.limit):
            limiter.release()


@dataclass(frozen=True)
class Pace:
    id: str
    seconds: float  # of a call
    queue: int  # most calls in the queue, for a wait of a second and 10 slots


PACES = [
    Pace("short calls", 0.01, 100),
    Pace("calls as long as the wait", 1.0, 5),
    Pace("long calls", 4.0, 1),
    Pace("calls that take minutes", 120.0, 0),
]


@pytest.mark.parametrize("case", PACES, ids=lambda case: case.id)
async def test_the_queue_has_only_calls_that_can_start_in_time(case: Pace) -> None:
    clock = Clock()
    limiter = ConcurrencyLimiter(10, 100, 1.0, "the gateway", clock)
    await serve(limiter, clock, 200, case.seconds)
    for _ in range(10):
        await limiter.take()
    queue = Queue(limiter)
    while not limiter.refuses():
        await queue.join()
    assert limiter.waiting == case.queue
    assert limiter.refuses(0.5)
    for task in queue.tasks:
        task.cancel()
    await asyncio.gather(*queue.tasks, return_exceptions=True)
    assert limiter.waiting == 0


async def test_no_call_waits_for_calls_that_do_not_end() -> None:
    clock = Clock()
    limiter = ConcurrencyLimiter(10, 100, 1.0, "the gateway", clock)
    await serve(limiter, clock, 200, 0.01)
    for _ in range(10):
        await limiter.take()
    assert not limiter.refuses()
    clock.seconds += 10
    assert limiter.refuses()
    for _ in range(10):
        limiter.release()
    await serve(limiter, clock, 200, 0.01)
    for _ in range(10):
        await limiter.take()
    assert not limiter.refuses()


async def test_no_call_waits_behind_one_that_waits_in_vain_for_sleeping_streams() -> None:
    clock = Clock()
    limiter = ConcurrencyLimiter(100, 100, 1.0, "the gateway", clock)
    await serve(limiter, clock, 200, 0.01)  # short calls, which alone decide the mean duration
    for _ in range(100):
        await limiter.take()
    clock.seconds += 0.9
    first = asyncio.ensure_future(limiter.take())
    await asyncio.sleep(0)
    assert not limiter.refuses()
    clock.seconds += 0.2
    assert limiter.refuses()
    limiter.release()
    await first
    second = asyncio.ensure_future(limiter.take())
    await asyncio.sleep(0)
    assert not limiter.refuses()
    limiter.release()
    await second


async def test_at_rest_no_time_is_counted() -> None:
    clock = Clock()
    limiter = ConcurrencyLimiter(2, 10, 1.0, "the gateway", clock)
    await serve(limiter, clock, 20, 0.01)
    clock.seconds += 3600
    for _ in range(2):
        await limiter.take()
    assert not limiter.refuses()
