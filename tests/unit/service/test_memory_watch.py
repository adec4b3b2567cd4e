"""Memory limit of the process: when it is exceeded, when memory is given back, and the calls that it rejects."""

import asyncio
import math
import weakref

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Overload
from umg_grpc.service.resilience.call_start_queue import ALWAYS_STARTED
from umg_grpc.service.resilience.load_shedding import MEMORY_CAUSE, LoadShedder
from umg_grpc.service.resilience.memory_watch import (
    GROWN_BYTES,
    MANY_CALLS,
    SETTLING_SECONDS,
    TRIM_SECONDS,
    MemoryWatch,
    memory_limit,
    resident_bytes,
    trim_heap,
)


class Process:
    """Memory of a process, of which `free` bytes can be given back; and a clock."""

    def __init__(self) -> None:
        self.used, self.free, self.trims, self.time = 0, 0, 0, 0.0

    def resident(self) -> int:
        return self.used

    def trim(self) -> None:
        self.trims += 1
        self.used, self.free = self.used - self.free, 0

    def now(self) -> float:
        return self.time

    def watch(self, limit: float = 100) -> MemoryWatch:
        return MemoryWatch(limit, resident=self.resident, trim=self.trim, now=self.now)


async def test_a_process_above_its_limit_gives_memory_back_before_calls_are_rejected() -> None:
    process = Process()
    watch = process.watch()
    process.used, process.free = 120, 50
    await watch.check(10)
    assert (watch.is_exceeded, watch.share, process.trims) == (False, 0.7, 1)


async def test_memory_that_cannot_be_given_back_exceeds_the_limit_until_it_is_freed() -> None:
    process = Process()
    watch = process.watch()
    process.used = 120
    for _ in range(3):
        await watch.check(10)
        assert watch.is_exceeded
    assert process.trims == 1  # not at each check
    process.time = TRIM_SECONDS
    await watch.check(10)
    assert process.trims == 2
    process.used = 90
    await watch.check(10)
    assert not watch.is_exceeded


async def test_memory_is_given_back_once_after_most_of_many_calls_have_ended() -> None:
    process = Process()
    watch = process.watch()
    for calls in (MANY_CALLS, MANY_CALLS // 2, MANY_CALLS // 4, 0, 0):
        await watch.check(calls)
        process.time += TRIM_SECONDS
    assert process.trims == 1
    await watch.check(MANY_CALLS - 1)
    await watch.check(0)
    assert process.trims == 1


async def test_memory_is_given_back_once_after_the_end_of_few_calls_by_which_it_has_grown() -> None:
    process = Process()
    watch = process.watch(math.ldexp(1, 40))
    for process.used in (0, GROWN_BYTES, GROWN_BYTES + 1):
        await watch.check(1)
        assert process.trims == 0
    await watch.check(0)
    assert process.trims == 1
    for process.time, calls in ((TRIM_SECONDS, 1), (2 * TRIM_SECONDS, 0)):
        await watch.check(calls)
    assert process.trims == 1  # it has not grown again


async def test_objects_that_refer_to_each_other_are_freed_before_memory_is_given_back() -> None:
    class Node:
        next: "Node"

    node = Node()
    node.next, seen, process = node, weakref.ref(node), Process()
    watch, process.used = process.watch(), 120
    del node
    await watch.check(1)
    process.time = TRIM_SECONDS
    await watch.check(0)
    assert seen() is None


async def test_memory_is_given_back_once_more_after_the_connections_of_many_calls_were_closed() -> None:
    process = Process()
    watch = process.watch()
    await watch.check(MANY_CALLS)
    await watch.check(0)
    process.time = SETTLING_SECONDS - 1
    await watch.check(0)
    assert process.trims == 1
    for process.time in (SETTLING_SECONDS, 2 * SETTLING_SECONDS, 3 * SETTLING_SECONDS):
        await watch.check(0)
    assert process.trims == 2


async def test_nothing_is_read_without_a_limit() -> None:
    process = Process()
    watch = process.watch(math.inf)
    process.used = 1 << 50
    await watch.check(MANY_CALLS)
    await watch.check(0)
    assert (watch.is_exceeded, watch.share, process.trims) == (False, 0.0, 0)


async def test_calls_beyond_the_first_ones_are_rejected_while_the_limit_is_exceeded() -> None:
    counted = list[str]()
    process = Process()
    load_shedder = LoadShedder(Overload(), counted.append, memory=process.watch())
    process.used = 120
    await load_shedder.memory.check(0)
    for _ in range(ALWAYS_STARTED):
        load_shedder.check()
        await load_shedder.enter()
    with pytest.raises(UmgError, match="has no memory for another call") as caught:
        load_shedder.check()
    assert (caught.value.cause, counted) == (MEMORY_CAUSE, [MEMORY_CAUSE])
    process.used = 0
    await load_shedder.memory.check(ALWAYS_STARTED)
    load_shedder.check()


async def test_the_checks_run_beside_the_calls_until_the_end() -> None:
    process = Process()
    watch = process.watch()
    checked = asyncio.Event()

    def calls() -> int:
        checked.set()
        return 0

    process.used = 120
    watch.start(calls)
    await asyncio.wait_for(checked.wait(), 60)
    await watch.aclose()
    assert watch.is_exceeded


def test_the_limit_is_a_share_of_the_memory_divided_by_the_processes() -> None:
    whole = memory_limit(1, 1)
    assert resident_bytes() < whole < math.inf
    assert memory_limit(0.5, 4) == whole / 8
    trim_heap()
