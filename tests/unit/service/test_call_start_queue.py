"""Start queue: calls begin in the order of their arrival, some in each iteration of the event loop; excess calls are
rejected.
"""

import asyncio
import itertools

import pytest

from umg_grpc.service.resilience.call_start_queue import ALWAYS_STARTED, AT_ONCE, StartQueue, WarmUp

QUEUE, WAIT = 200, 0.2


class Clock:
    """Clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def turns(clock: Clock) -> StartQueue:
    return StartQueue(QUEUE, WAIT, clock)


class Calls:
    def __init__(self, turns: StartQueue) -> None:
        self.begun = list[int]()
        self._turns = turns
        self._tasks = list[asyncio.Task[None]]()

    def come(self, count: int) -> None:
        for _ in range(count):
            self._tasks.append(asyncio.create_task(self._call(len(self._tasks))))

    async def _call(self, number: int) -> None:
        if not self._turns.may_start():
            await self._turns.wait_turn()
        self.begun.append(number)

    def leave(self, number: int) -> None:
        self._tasks[number].cancel()

    async def rounds(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    async def end(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def test_a_few_calls_begin_at_once(turns: StartQueue) -> None:
    calls = Calls(turns)
    calls.come(AT_ONCE)
    await calls.rounds(1)
    assert calls.begun == list(range(AT_ONCE))


async def test_many_calls_begin_in_order_a_few_in_each_round(turns: StartQueue) -> None:
    calls = Calls(turns)
    calls.come(50)
    begun = list[int]()
    while len(calls.begun) < 50:
        await calls.rounds(1)
        begun.append(len(calls.begun))
    assert calls.begun == list(range(50))
    assert max(after - before for before, after in itertools.pairwise(begun)) <= AT_ONCE


async def test_a_call_that_leaves_the_queue_delays_no_other_call(turns: StartQueue) -> None:
    calls = Calls(turns)
    calls.come(AT_ONCE + 12)
    await calls.rounds(1)
    for number in range(AT_ONCE, AT_ONCE + 4):
        calls.leave(number)
    await calls.end()
    assert calls.begun == [*range(AT_ONCE), *range(AT_ONCE + 4, AT_ONCE + 12)]
    assert turns.waiting == 0


async def test_a_call_that_leaves_at_its_turn_gives_it_to_another(turns: StartQueue) -> None:
    calls = Calls(turns)
    calls.come(2 * AT_ONCE + 1)
    await calls.rounds(2)  # the turns of the second round are granted, and not yet taken
    for number in range(AT_ONCE, 2 * AT_ONCE):
        calls.leave(number)
    await calls.end()
    assert calls.begun == [*range(AT_ONCE), 2 * AT_ONCE]


async def test_a_call_is_refused_where_as_many_wait_as_may(turns: StartQueue) -> None:
    calls = Calls(turns)
    calls.come(AT_ONCE + QUEUE - 1)
    await calls.rounds(1)
    assert turns.expect()
    calls.come(1)
    await calls.rounds(0)
    assert not turns.expect()
    await calls.end()
    assert turns.expect()


async def test_more_than_always_may_wait_are_refused_where_the_first_has_waited_long(
    turns: StartQueue, clock: Clock
) -> None:
    calls = Calls(turns)
    calls.come(AT_ONCE + ALWAYS_STARTED + 1)
    await calls.rounds(1)
    assert turns.expect()
    clock.now += 1.5 * WAIT
    assert not turns.expect()
    await calls.end()


async def test_few_callers_are_refused_never_however_slow_the_process_is(turns: StartQueue, clock: Clock) -> None:
    calls = Calls(turns)
    calls.come(ALWAYS_STARTED - 1)
    for _ in range(ALWAYS_STARTED):
        await calls.rounds(1)
        clock.now += 100
        assert turns.expect()


async def test_calls_that_come_together_are_counted_before_they_are_in_the_queue(turns: StartQueue) -> None:
    for _ in range(QUEUE):
        assert turns.expect()
    assert not turns.expect()


async def test_calls_that_never_come_are_forgotten_after_two_rounds(turns: StartQueue) -> None:
    for _ in range(QUEUE):
        assert turns.expect()
    calls = Calls(turns)
    await calls.rounds(2)
    assert turns.expect()


async def test_a_short_queue_has_room_for_the_calls_that_may_always_wait() -> None:
    turns = StartQueue(0, WAIT)
    for _ in range(ALWAYS_STARTED):
        assert turns.expect()
    assert not turns.expect()


async def test_a_process_that_warms_up_is_not_judged_by_its_lag(clock: Clock) -> None:
    wall = Clock()
    turns = StartQueue(QUEUE, WAIT, clock, warm_up=WarmUp(3.0, 2 * QUEUE), clock=wall)
    calls = Calls(turns)
    calls.come(QUEUE + 6 * AT_ONCE)
    await calls.rounds(1)
    clock.now += 10 * WAIT
    assert turns.expect()
    calls.come(QUEUE)
    await calls.rounds(1)
    assert not turns.expect()  # beyond the bound of the warm-up
    wall.now += 3.0
    await calls.rounds(10)
    assert turns.waiting > ALWAYS_STARTED
    assert not turns.expect()
    await calls.end()
    calls.come(QUEUE - 1)
    await calls.rounds(1)
    assert turns.expect()  # judged by its lag alone
    clock.now += 2 * WAIT
    assert not turns.expect()
    await calls.end()


async def test_the_longest_wait_of_the_last_minute_is_reported(clock: Clock) -> None:
    wall = Clock()
    turns = StartQueue(QUEUE, WAIT, clock, clock=wall)
    assert (turns.lag, turns.delay) == (0, 0)
    calls = Calls(turns)
    calls.come(AT_ONCE + 1)
    await calls.rounds(1)
    clock.now, wall.now = clock.now + 0.25, wall.now + 0.5
    assert (turns.lag, turns.delay) == (0.25, 0.5)  # of a call that still waits
    await calls.end()
    for seconds, lag in ((20, 0.25), (20, 0.25), (40, 0)):
        wall.now += seconds
        assert turns.lag == lag, seconds


async def test_a_queue_that_had_to_wait_has_room_for_the_calls_that_start_in_time(
    turns: StartQueue, clock: Clock
) -> None:
    calls = Calls(turns)
    calls.come(QUEUE // 2 + 2 * AT_ONCE)
    await calls.rounds(1)  # the calls of the first round have begun
    fitting = round(WAIT / 0.002) - AT_ONCE
    while turns.waiting > fitting:
        clock.now += AT_ONCE * 0.002  # of a call 2 ms
        await calls.rounds(1)
    for _ in range(fitting - turns.waiting):
        assert turns.expect()
    assert not turns.expect()
    await calls.end()
    await calls.rounds(2)
    for _ in range(QUEUE):
        assert turns.expect(), "an empty queue remembers nothing"
