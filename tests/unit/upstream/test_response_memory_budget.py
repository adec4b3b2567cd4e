"""Memory budget of large answers: order of the grants, calls that never wait, and memory given back."""

import asyncio
from collections.abc import Coroutine
from contextvars import copy_context

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.base.response_memory_reservation import CALL_MEMORY, CallMemory
from umg_grpc.upstream.response_memory_budget import BODY_WEIGHT, FREE_BYTES, ResponseBudget
from umg_grpc.v1 import pb

MIB = 1 << 20


def in_call(memory: CallMemory, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
    context = copy_context()
    context.run(CALL_MEMORY.set, memory)
    return asyncio.create_task(work, context=context)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_call_waits_until_another_has_written_its_answer() -> None:
    budget, first, second = ResponseBudget(8 * MIB), CallMemory(), CallMemory()
    await in_call(first, budget.hold(MIB + MIB // 2))
    waits = in_call(second, budget.hold(MIB))
    await settle()
    assert (waits.done(), budget.held, budget.waiting) == (False, 6 * MIB, 1)
    first.release()
    await waits
    assert (budget.held, budget.waiting) == (BODY_WEIGHT * MIB, 0)
    second.release()
    second.release()
    assert budget.held == 0


async def test_small_answers_and_work_without_a_call_never_wait() -> None:
    budget, full = ResponseBudget(MIB), CallMemory()
    await in_call(full, budget.hold(MIB))
    await in_call(CallMemory(), budget.hold(FREE_BYTES))
    await budget.hold(MIB)
    assert budget.held == MIB  # a response larger than the budget holds all of it


async def test_memory_is_granted_in_the_order_of_arrival() -> None:
    budget, calls = ResponseBudget(8 * MIB), [CallMemory() for _ in range(4)]
    await in_call(calls[0], budget.hold(MIB))
    large, small, last = (
        in_call(call, budget.hold(size)) for call, size in zip(calls[1:], (2 * MIB, MIB, MIB), strict=True)
    )
    await settle()
    assert [task.done() for task in (large, small, last)] == [False] * 3
    calls[0].release()
    await large
    assert not small.done()
    calls[1].release()
    await asyncio.gather(small, last)


async def test_the_longest_holder_gets_more_memory_than_there_is() -> None:
    budget, oldest, other = ResponseBudget(8 * MIB), CallMemory(), CallMemory()
    await in_call(oldest, budget.hold(MIB))
    await in_call(other, budget.hold(MIB))
    blocked = in_call(other, budget.hold(MIB))
    await in_call(oldest, budget.hold(MIB))
    assert (budget.held, blocked.done()) == (12 * MIB, False)
    oldest.release()
    await blocked
    other.release()
    assert budget.held == 0


async def test_a_call_that_ends_while_it_waits_holds_nothing() -> None:
    budget, full, given_up = ResponseBudget(4 * MIB), CallMemory(), CallMemory()
    await in_call(full, budget.hold(MIB))
    with pytest.raises(UmgError) as caught:
        await in_call(given_up, budget.hold(MIB, 0.001))
    assert (caught.value.reason, caught.value.failure) == (pb.ERROR_REASON_UNAVAILABLE, None)
    cancelled = in_call(given_up, budget.hold(MIB))
    await settle()
    cancelled.cancel()
    await asyncio.wait({cancelled})
    full.release()
    assert (budget.held, budget.waiting) == (0, 0)
