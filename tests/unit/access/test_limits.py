"""Limits of requests per minute."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.unit.access.conftest import Clock
from umg_grpc.access.caller_identity import Caller
from umg_grpc.access.request_rate_limits import RequestLimits
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb


def caller(requests_per_minute: int | None, key_id: str = "key_1") -> Caller:
    return Caller(key_id, "app", (), requests_per_minute, None)


@pytest.fixture
def limits(clock: Clock) -> RequestLimits:
    return RequestLimits(clock)


async def refused(limits: RequestLimits, key_caller: Caller) -> str:
    with pytest.raises(UmgError) as caught:
        await limits.admit(key_caller)
    assert caught.value.reason == pb.ERROR_REASON_RATE_LIMITED
    assert caught.value.metadata["limit"] == str(key_caller.requests_per_minute)
    return caught.value.metadata["retry_after_seconds"]


async def test_calls_up_to_the_limit_are_admitted_and_the_next_gets_a_retry_after(
    limits: RequestLimits, clock: Clock
) -> None:
    for _ in range(3):
        await limits.admit(caller(3))
        clock.seconds += 10
    assert await refused(limits, caller(3)) == "30"
    clock.seconds += 29.5
    assert await refused(limits, caller(3)) == "1"
    clock.seconds += 0.5
    await limits.admit(caller(3))
    assert await refused(limits, caller(3)) == "10"


async def test_no_minute_has_more_than_the_limit(limits: RequestLimits, clock: Clock) -> None:
    def steps() -> Iterator[float]:
        for step in range(600):
            yield (0.05, 1.7, 0.3, 4.1)[step % 4]

    admitted: list[float] = []
    for seconds in steps():
        clock.seconds += seconds
        try:
            await limits.admit(caller(10))
        except UmgError:
            continue
        admitted.append(clock.seconds)
    assert all(later - earlier >= 60 for earlier, later in zip(admitted, admitted[10:], strict=False))
    assert len(admitted) >= 10 * int((admitted[-1] - admitted[0]) / 61)


async def test_refused_requests_do_not_count(limits: RequestLimits, clock: Clock) -> None:
    await limits.admit(caller(1))
    for _ in range(59):
        clock.seconds += 1
        await refused(limits, caller(1))
    clock.seconds += 1
    await limits.admit(caller(1))


async def test_each_key_has_its_own_minute_and_some_have_none(limits: RequestLimits) -> None:
    await limits.admit(caller(1, "a"))
    await limits.admit(caller(1, "b"))
    await refused(limits, caller(1, "a"))
    for _ in range(1000):
        await limits.admit(caller(None, "a"))


async def test_nothing_is_left_behind(limits: RequestLimits, clock: Clock) -> None:
    before = asyncio.all_tasks()
    for number in range(100):
        await limits.admit(caller(2, f"key_{number}"))
    assert asyncio.all_tasks() == before
    clock.seconds += 121
    await limits.admit(caller(2, "key_1"))
    assert limits.remembered == 1
