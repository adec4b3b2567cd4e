"""Response cache: responses to equal requests, within their time to live, only complete ones, and a copy for each
caller.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field

import pytest

from tests.support.redis import PATIENCE_SECONDS, RedisServer, opened
from umg_grpc.base.errors import UmgError
from umg_grpc.service.caching import response_cache
from umg_grpc.service.caching.response_cache import (
    CACHE_KEY_PREFIX,
    ENTRY_HEAD,
    MAX_BYTES,
    OVERHEAD_BYTES,
    CacheFill,
    ResponseCache,
)
from umg_grpc.store.redis_client import Redis
from umg_grpc.v1 import pb

KEY, OTHER_KEY = "a1" * 32, "b2" * 32
ENTRY_KEY, OTHER_ENTRY_KEY = f"EmbedResponse:{KEY}", f"EmbedResponse:{OTHER_KEY}"
TTL = 60.0


@dataclass
class Clock:
    seconds: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Upstream:
    """Provider of numbered answers, sent once `answered` is set; the first `failing` calls fail."""

    failing: int = 0
    calls: int = 0
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    size: int = 0

    async def __call__(self) -> pb.EmbedResponse:
        self.calls += 1
        number = self.calls
        await self.answered.wait()
        if number <= self.failing:
            raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, f"failure {number}")
        return embedded(f"answer {number}", self.size)


def embedded(model: str, size: int = 0) -> pb.EmbedResponse:
    return pb.EmbedResponse(model=model, embeddings=[pb.Embedding(values=bytes(size))])


def ended(*reasons: pb.FinishReason.ValueType) -> pb.GenerateResponse:
    return pb.GenerateResponse(candidates=[pb.Candidate(finish_reason=reason) for reason in reasons])


def stream(*reasons: pb.FinishReason.ValueType) -> pb.StreamGenerateResponse:
    ends = (pb.CandidateFinished(finish_reason=reason) for reason in reasons)
    events = [pb.GenerateEvent(text_delta="Hi"), *(pb.GenerateEvent(finished=end) for end in ends)]
    return pb.StreamGenerateResponse(events=events)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture
def cache(clock: Clock) -> ResponseCache:
    return ResponseCache(2**22, now=clock)


async def answer_of(cache: ResponseCache, upstream: Callable[[], Awaitable[pb.EmbedResponse]], ttl: float = TTL) -> str:
    message, hit = await cache.get_or_make(KEY, ttl, upstream, pb.EmbedResponse)
    return f"{message.model}{' hit' * hit}"


async def cached_answer(cache: ResponseCache, ttl: float = TTL, key: str = KEY) -> str | None:
    found = await cache.get(key, ttl, pb.EmbedResponse)
    return None if found is None else found.model


async def under_way(tasks: int, begin: Callable[[], Coroutine[None, None, str]]) -> list[asyncio.Task[str]]:
    """Start the given number of calls, and run each until it waits."""
    begun = [asyncio.create_task(begin()) for _ in range(tasks)]
    for _ in range(20):
        await asyncio.sleep(0)
    return begun


async def test_a_returned_response_is_a_copy(cache: ResponseCache) -> None:
    mine = embedded("answer")
    cache.put(KEY, mine, TTL)
    mine.model = "changed"
    taken = await cache.get(KEY, TTL, pb.EmbedResponse)
    assert taken is not None
    assert taken.model == "answer"
    taken.model = "changed"
    assert await cached_answer(cache) == "answer"


async def test_a_cached_response_expires_by_its_lifetime_and_by_the_maximum_age_of_the_reader(
    cache: ResponseCache, clock: Clock
) -> None:
    cache.put(KEY, embedded("answer"), 60)
    clock.seconds += 30
    assert [await cached_answer(cache, ttl) for ttl in (29, 30, 3600)] == [None, "answer", "answer"]
    clock.seconds += 30
    assert await cached_answer(cache, 3600) is None


async def test_a_response_too_old_for_a_call_is_made_again(
    cache: ResponseCache, clock: Clock, upstream: Upstream
) -> None:
    upstream.answered.set()
    await answer_of(cache, upstream, 60)
    clock.seconds += 30
    assert await answer_of(cache, upstream, 10) == "answer 2"
    assert await answer_of(cache, upstream, 60) == "answer 2 hit"


async def test_a_clock_set_back_does_not_extend_a_lifetime(cache: ResponseCache, clock: Clock) -> None:
    cache.put(KEY, embedded("answer"), 60)
    clock.seconds -= 3600
    assert await cached_answer(cache) is None


async def test_memory_is_bounded_and_the_least_recently_used_response_is_evicted_first(clock: Clock) -> None:
    size = OVERHEAD_BYTES + embedded("0", 1000).ByteSize()
    cache = ResponseCache(3 * size, now=clock)
    keys = [f"{number:064x}" for number in range(5)]
    for number, key in enumerate(keys[:3]):
        cache.put(key, embedded(str(number), 1000), TTL)
    await cached_answer(cache, key=keys[0])
    for number, key in enumerate(keys[3:], 3):
        cache.put(key, embedded(str(number), 1000), TTL)
    assert [await cached_answer(cache, key=key) for key in keys] == ["0", None, None, "3", "4"]
    assert cache.size == 3 * size


async def test_an_answer_that_is_cached_again_counts_once(cache: ResponseCache) -> None:
    for _ in range(3):
        cache.put(KEY, embedded("answer", 1000), TTL)
    assert cache.size == OVERHEAD_BYTES + embedded("answer", 1000).ByteSize()


async def test_a_large_response_is_not_cached_but_shared_with_waiting_calls(
    cache: ResponseCache, upstream: Upstream
) -> None:
    upstream.size = MAX_BYTES
    calls = await under_way(3, lambda: answer_of(cache, upstream))
    upstream.answered.set()
    assert sorted(await asyncio.gather(*calls)) == ["answer 1", "answer 1 hit", "answer 1 hit"]
    assert await cached_answer(cache) is None
    assert cache.size == 0


@dataclass(frozen=True)
class Ending:
    id: str
    message: pb.GenerateResponse | pb.StreamGenerateResponse
    is_cached: bool


ENDINGS = [
    Ending("complete", ended(pb.FINISH_REASON_STOP), is_cached=True),
    Ending("at its limit", ended(pb.FINISH_REASON_LENGTH), is_cached=True),
    Ending("with a tool call", ended(pb.FINISH_REASON_TOOL_CALLS), is_cached=True),
    Ending("cut off by a filter", ended(pb.FINISH_REASON_CONTENT_FILTER), is_cached=False),
    Ending("an unspecified end", ended(pb.FINISH_REASON_UNSPECIFIED), is_cached=False),
    Ending("no response at all", ended(), is_cached=False),
    Ending("a whole stream", stream(pb.FINISH_REASON_STOP), is_cached=True),
    Ending("a stream that a filter cut off", stream(pb.FINISH_REASON_CONTENT_FILTER), is_cached=False),
    Ending("a stream without an end", stream(), is_cached=False),
    Ending("one of two cut off", ended(pb.FINISH_REASON_STOP, pb.FINISH_REASON_REFUSAL), is_cached=False),
]


@pytest.mark.parametrize("case", ENDINGS, ids=lambda case: case.id)
async def test_only_successful_responses_are_cached(cache: ResponseCache, case: Ending) -> None:
    cache.put(KEY, case.message, TTL)
    assert await cache.get(KEY, TTL, type(case.message)) == (case.message if case.is_cached else None)
    other = pb.EmbedResponse
    assert await cache.get(KEY, TTL, other) is None  # although its bytes could be decoded as another type


# --- concurrent calls


async def test_different_requests_do_not_wait(cache: ResponseCache, upstream: Upstream) -> None:
    calls = await under_way(1, lambda: answer_of(cache, upstream))
    other = Upstream()
    other.answered.set()
    message, hit = await cache.get_or_make(OTHER_KEY, TTL, other, pb.EmbedResponse)
    assert (message.model, hit) == ("answer 1", False)
    upstream.answered.set()
    await asyncio.gather(*calls)


async def test_when_the_leading_call_fails_the_next_one_is_made(cache: ResponseCache, upstream: Upstream) -> None:
    upstream.failing = 1
    calls = await under_way(10, lambda: answer_of(cache, upstream))
    upstream.answered.set()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert str(answers[0]) == "failure 1"
    assert sorted(map(str, answers[1:])) == ["answer 2", *["answer 2 hit"] * 8]


async def test_a_call_that_waited_for_two_failures_does_not_wait_again(
    cache: ResponseCache, upstream: Upstream
) -> None:
    upstream.failing = 100
    calls = await under_way(10, lambda: answer_of(cache, upstream))
    upstream.answered.set()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert sorted(map(str, answers)) == sorted(f"failure {number}" for number in range(1, 11))
    assert upstream.calls == 10
    upstream.failing = 0
    assert await answer_of(cache, upstream) == "answer 11"


async def test_when_the_leading_call_is_cancelled_the_next_one_is_made(
    cache: ResponseCache, upstream: Upstream
) -> None:
    calls = await under_way(5, lambda: answer_of(cache, upstream))
    for cancelled in calls[:3]:
        cancelled.cancel()
        await asyncio.wait([cancelled])
        for _ in range(20):
            await asyncio.sleep(0)
    upstream.answered.set()
    assert await asyncio.gather(*calls[3:]) == ["answer 4", "answer 4 hit"]


async def test_cancelling_a_waiting_call_does_not_affect_others(cache: ResponseCache, upstream: Upstream) -> None:
    calls = await under_way(5, lambda: answer_of(cache, upstream))
    for cancelled in calls[1:3]:
        cancelled.cancel()
    await asyncio.wait(calls[1:3])
    upstream.answered.set()
    assert await asyncio.gather(calls[0], *calls[3:]) == ["answer 1", "answer 1 hit", "answer 1 hit"]


async def test_a_call_without_time_left_is_made_alone(cache: ResponseCache, upstream: Upstream) -> None:
    calls = await under_way(1, lambda: answer_of(cache, upstream))
    own = Upstream()
    own.answered.set()
    message, hit = await cache.get_or_make(KEY, TTL, own, pb.EmbedResponse, seconds=0)
    assert (message.model, hit, own.calls) == ("answer 1", False, 1)
    upstream.answered.set()
    await asyncio.gather(*calls)


async def test_a_waiting_call_keeps_enough_time_for_its_own_request(cache: ResponseCache, upstream: Upstream) -> None:
    calls = await under_way(1, lambda: answer_of(cache, upstream))
    own = Upstream()
    own.answered.set()
    end = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    await cache.get_or_make(KEY, TTL, own, pb.EmbedResponse, seconds=PATIENCE_SECONDS)
    assert end - asyncio.get_running_loop().time() > PATIENCE_SECONDS / 2
    assert own.calls == 1
    upstream.answered.set()
    await asyncio.gather(*calls)


async def test_a_response_made_alone_is_shared_with_waiting_calls(cache: ResponseCache, upstream: Upstream) -> None:
    calls = await under_way(3, lambda: answer_of(cache, upstream))
    own = Upstream()
    own.answered.set()
    message, hit = await cache.get_or_make(KEY, TTL, own, pb.EmbedResponse, seconds=0)
    assert (message.model, hit) == ("answer 1", False)
    assert await asyncio.gather(*calls[1:]) == ["answer 1 hit"] * 2
    assert not calls[0].done()
    upstream.answered.set()
    assert await calls[0] == "answer 1"
    assert upstream.calls == 1


async def test_a_response_that_is_not_exact_is_neither_cached_nor_shared(
    cache: ResponseCache, upstream: Upstream
) -> None:
    async def alone() -> str:
        message, hit = await cache.get_or_make(KEY, TTL, upstream, pb.EmbedResponse, keep=lambda: False)
        return f"{message.model}{' hit' * hit}"

    calls = await under_way(5, alone)
    upstream.answered.set()
    assert sorted(await asyncio.gather(*calls)) == [f"answer {number}" for number in range(1, 6)]
    assert await cached_answer(cache) is None


async def leads(cache: ResponseCache, message: pb.StreamGenerateResponse | None, go: asyncio.Event) -> str:
    """Make a stream under a lead, which keeps it when it is complete."""
    found = await cache.get_or_fill(KEY, TTL, pb.StreamGenerateResponse)
    if not isinstance(found, CacheFill):
        return "hit"
    with found:
        await go.wait()
        if message is not None:
            found.keep(message)
    return "led"


async def test_calls_waiting_for_a_stream_get_it_once_complete(cache: ResponseCache) -> None:
    go = asyncio.Event()
    calls = await under_way(5, lambda: leads(cache, stream(pb.FINISH_REASON_STOP), go))
    go.set()
    assert sorted(await asyncio.gather(*calls)) == [*["hit"] * 4, "led"]


async def test_calls_waiting_for_an_uncached_stream_are_made_alone(cache: ResponseCache) -> None:
    go = asyncio.Event()
    calls = await under_way(5, lambda: leads(cache, None, go))
    go.set()
    assert await asyncio.gather(*calls) == ["led"] * 5


async def test_calls_do_not_wait_long_for_a_slow_client_of_another_stream(
    cache: ResponseCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_cache, "STREAM_SECONDS", 0.01)
    go = asyncio.Event()
    leader = asyncio.create_task(leads(cache, stream(pb.FINISH_REASON_STOP), go))
    await asyncio.sleep(0)
    found = await cache.get_or_fill(KEY, TTL, pb.StreamGenerateResponse)
    assert isinstance(found, CacheFill)
    with found:
        found.keep(stream(pb.FINISH_REASON_LENGTH))
    cached_answer = await cache.get_or_fill(KEY, TTL, pb.StreamGenerateResponse)
    assert cached_answer == stream(pb.FINISH_REASON_LENGTH)
    go.set()
    assert await leader == "led"
    assert await cache.get_or_fill(KEY, TTL, pb.StreamGenerateResponse) == stream(pb.FINISH_REASON_STOP)


# --- Redis


@pytest.fixture
async def replicas(redis_server: RedisServer, clock: Clock) -> AsyncIterator[tuple[ResponseCache, ResponseCache]]:
    async with opened(redis_server, clock) as first, opened(redis_server, clock) as second:
        caches = ResponseCache(2**22, first, clock), ResponseCache(2**22, second, clock)
        yield caches
        for cache in caches:
            await cache.aclose()


async def test_responses_are_shared_between_processes(
    replicas: tuple[ResponseCache, ResponseCache], clock: Clock, upstream: Upstream
) -> None:
    first, second = replicas
    upstream.answered.set()
    assert await answer_of(first, upstream) == "answer 1"
    await first.written()
    clock.seconds += 30
    assert await answer_of(second, upstream) == "answer 1 hit"
    assert await cached_answer(second, 29) is None
    clock.seconds += 30
    assert await cached_answer(second, 3600) is None  # its lifetime in the other's memory is no longer


async def test_a_newer_one_of_another_process_is_found(
    replicas: tuple[ResponseCache, ResponseCache], clock: Clock
) -> None:
    first, second = replicas
    first.put(KEY, embedded("older"), 60)
    await first.written()
    clock.seconds += 30
    second.put(KEY, embedded("newer"), 60)
    await second.written()
    assert [await cached_answer(first, ttl) for ttl in (10, 60)] == ["newer", "newer"]


async def test_responses_expire_in_redis(replicas: tuple[ResponseCache, ResponseCache], redis: Redis) -> None:
    replicas[0].put(KEY, embedded("answer"), 60)
    await replicas[0].written()
    assert 0 < await redis.run(lambda client: client.pttl(CACHE_KEY_PREFIX + ENTRY_KEY)) <= 60_000


async def test_without_redis_the_memory_is_used(
    replicas: tuple[ResponseCache, ResponseCache], redis_server: RedisServer, clock: Clock, upstream: Upstream
) -> None:
    upstream.answered.set()
    redis_server.stop()
    assert [await answer_of(replicas[0], upstream) for _ in range(2)] == ["answer 1", "answer 1 hit"]
    await replicas[0].written()
    assert await cached_answer(replicas[1]) is None
    redis_server.start()
    clock.seconds += 1
    replicas[0].put(OTHER_KEY, embedded("answer"), TTL)
    await replicas[0].written()
    assert await cached_answer(replicas[1], key=OTHER_KEY) == "answer"


async def test_no_answer_waits_until_redis_has_it(redis_server: RedisServer, clock: Clock, upstream: Upstream) -> None:
    upstream.answered.set()
    async with opened(redis_server, clock) as redis:
        first, second = ResponseCache(2**22, redis, clock), ResponseCache(2**22, redis, clock)
        with redis_server.silent():
            async with asyncio.timeout(PATIENCE_SECONDS / 2):
                first.put(KEY, embedded("answer"), TTL)
                assert await cached_answer(first) == "answer"
        await first.aclose()
        assert await cached_answer(second) == "answer"
        first.put(OTHER_KEY, embedded("late"), TTL)  # after the end of the cache
        await first.written()
        assert await cached_answer(second, key=OTHER_KEY) is None


@dataclass(frozen=True)
class Foreign:
    id: str
    value: bytes


def head(place: str, made: float, until: float) -> bytes:
    return ENTRY_HEAD.pack(hashlib.sha256(place.encode()).digest(), made, until)


NOW = Clock().seconds
FOREIGN = [
    Foreign("of another key", head(OTHER_ENTRY_KEY, NOW, NOW + 60) + embedded("x").SerializeToString()),
    Foreign("too short", b"x"),
    Foreign("no message", head(ENTRY_KEY, NOW, NOW + 60) + b"\xff\xff"),
    Foreign("from the future", head(ENTRY_KEY, NOW + 3600, NOW + 7200) + embedded("x").SerializeToString()),
    Foreign("too old", head(ENTRY_KEY, NOW - 120, NOW - 60) + embedded("x").SerializeToString()),
]


async def test_a_valid_entry_in_redis_is_a_response(
    replicas: tuple[ResponseCache, ResponseCache], redis: Redis
) -> None:
    value = head(ENTRY_KEY, NOW, NOW + 60) + embedded("x").SerializeToString()
    await redis.run(lambda client: client.set(CACHE_KEY_PREFIX + ENTRY_KEY, value))
    assert await cached_answer(replicas[0]) == "x"


@pytest.mark.parametrize("case", FOREIGN, ids=lambda case: case.id)
async def test_an_invalid_entry_in_redis_is_ignored(
    replicas: tuple[ResponseCache, ResponseCache], redis: Redis, case: Foreign, upstream: Upstream
) -> None:
    await redis.run(lambda client: client.set(CACHE_KEY_PREFIX + ENTRY_KEY, case.value))
    upstream.answered.set()
    assert await answer_of(replicas[0], upstream) == "answer 1"
