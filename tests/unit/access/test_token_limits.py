"""Limits of tokens per minute, and of concurrent requests, in one process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.unit.access.conftest import Clock
from umg_grpc.access.caller_identity import Caller
from umg_grpc.access.key_limits import Admission, KeyLimits, TokenEstimate
from umg_grpc.access.token_limits import TokenWindows
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb


def caller(*, rpm: int | None = None, tpm: int | None = None, concurrency: int | None = None) -> Caller:
    return Caller("key_1", "app", (), rpm, None, tokens_per_minute=tpm, concurrent_requests=concurrency)


@pytest.fixture
def limits(clock: Clock) -> KeyLimits:
    return KeyLimits(clock)


async def acquired(limits: KeyLimits, limited_caller: Caller, tokens: int = 0, output: int = 0) -> Admission:
    admission = limits.open(limited_caller)
    try:
        await admission.acquire(TokenEstimate(tokens, output))
    except UmgError:
        admission.release(0)
        raise
    return admission


@asynccontextmanager
async def rejected(limit_name: str, retry_after: str | None) -> AsyncIterator[None]:
    with pytest.raises(UmgError) as caught:
        yield
    assert caught.value.reason == pb.ERROR_REASON_RATE_LIMITED
    assert caught.value.metadata["limit_name"] == limit_name
    assert caught.value.metadata.get("retry_after_seconds") == retry_after


async def test_calls_beyond_the_tokens_of_a_minute_wait_for_the_oldest(limits: KeyLimits, clock: Clock) -> None:
    await acquired(limits, caller(tpm=100), 60)
    clock.seconds += 10
    await acquired(limits, caller(tpm=100), 30)
    async with rejected("tokens_per_minute", "50"):
        await acquired(limits, caller(tpm=100), 20)
    async with rejected("tokens_per_minute", "60"):
        await acquired(limits, caller(tpm=100), 80)
    clock.seconds += 50
    await acquired(limits, caller(tpm=100), 20)


@pytest.mark.parametrize(("used", "left"), [(10, 90), (100, 0), (250, 0)], ids=["fewer", "all", "more than the limit"])
async def test_the_actual_tokens_replace_the_estimate(limits: KeyLimits, used: int, left: int) -> None:
    admission = await acquired(limits, caller(tpm=100), 40)
    admission.release(used)
    admission.release(0)  # has no effect
    tokens = admission.status.tokens
    assert tokens is not None
    assert (tokens.limit, tokens.remaining, tokens.reset_seconds) == (100, left, 60)


async def test_a_long_answer_needs_no_more_than_an_unused_minute(limits: KeyLimits) -> None:
    admission = await acquired(limits, caller(tpm=100), 40, output=32_000)
    async with rejected("tokens_per_minute", "60"):
        await acquired(limits, caller(tpm=100), 1)
    admission.release(40)
    await acquired(limits, caller(tpm=100), 60)


async def test_a_request_beyond_the_limit_is_not_to_be_repeated(limits: KeyLimits) -> None:
    async with rejected("tokens_per_minute", None):
        await acquired(limits, caller(tpm=100, rpm=1), 101)
    await acquired(limits, caller(tpm=100, rpm=1), 100)


async def test_tokens_beyond_the_estimate_of_a_call_longer_than_a_minute_count_at_its_end(clock: Clock) -> None:
    windows = TokenWindows(clock)
    reservation = windows.reserve("key_1", 100, 10)
    clock.seconds += 130
    windows.reserve("key_2", 100, 1)
    assert len(windows) == 1, "the windows of keys without calls are forgotten"
    windows.correct("key_1", reservation, 90)
    assert windows.status("key_1", 100).remaining == 20
    clock.seconds += 60
    assert windows.status("key_1", 100).remaining == 100


async def test_a_call_beyond_the_requests_of_a_minute_uses_no_tokens_and_no_slot(limits: KeyLimits) -> None:
    limited_caller = caller(rpm=1, tpm=100, concurrency=2)
    first = await acquired(limits, limited_caller, 10)
    async with rejected("requests_per_minute", "60"):
        await acquired(limits, limited_caller, 10)
    requests, tokens = first.status.requests, first.status.tokens
    assert requests is not None
    assert tokens is not None
    assert (requests.remaining, requests.reset_seconds, tokens.remaining) == (0, 60, 90)


async def test_a_slot_is_free_again_when_its_call_ends(limits: KeyLimits) -> None:
    limited_caller = caller(concurrency=2)
    first, _ = await acquired(limits, limited_caller), await acquired(limits, limited_caller)
    async with rejected("concurrent_requests", "1"):
        await acquired(limits, limited_caller)
    first.release(0)
    first.release(0)  # has no effect
    await acquired(limits, limited_caller)
    async with rejected("concurrent_requests", "1"):
        await acquired(limits, limited_caller)
