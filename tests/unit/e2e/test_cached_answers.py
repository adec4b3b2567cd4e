"""Cached responses: when they are returned, to which callers, and with which headers."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import ClientSession, web

from tests.support.gateways import Running, running
from tests.support.providers.scripted import (
    Script,
    Scripted,
    chunk,
    reset_after_content,
    reset_after_start,
    scripted,
    start_stream,
    status,
    succeed,
    waiting_for,
)
from tests.unit.e2e.test_survival import CHAT, World, world
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.config import parse
from umg_grpc.service.caching import response_cache
from umg_grpc.service.caching.response_cache import MAX_BYTES

EMBED = "/v1/embeddings"
FIXED = {"temperature": 0}
CACHED = "models: {m: {cache: 1h}}\n"


class GatedProvider:
    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.reply = waiting_for(self.open, succeed)

    async def answer_large(self, request: web.Request, made: Scripted) -> web.StreamResponse:
        """Send a large stream, of which only the end waits for `open`."""
        response = await start_stream(request)
        for _ in range(2 * MAX_BYTES // 2**16):
            await response.write(chunk({"content": "x" * 2**16}))
        await self.open.wait()
        await response.write(chunk({}, "stop") + b"data: [DONE]\n\n")
        return response


async def cache_outcome(made: World, path: str = CHAT, *, stream: bool = False, **headers: str) -> tuple[str, str]:
    answers = await made.generate(path, stream=stream, body=FIXED if path == CHAT else {}, **headers)
    assert answers.status == 200, answers.body
    return answers.headers.get("x-umg-cache", ""), answers.text or str(answers.body)


@pytest.mark.parametrize(("path", "stream"), [(CHAT, False), (CHAT, True), (EMBED, False)])
async def test_equal_requests_get_a_cached_response_if_the_model_enables_it(
    tmp_path: Path, path: str, stream: bool
) -> None:
    async with world(tmp_path, {"a": [succeed]}, rest=CACHED) as made:
        first, second = await cache_outcome(made, path, stream=stream), await cache_outcome(made, path, stream=stream)
        assert (first[0], second[0]) == ("miss", "hit")
        assert first[1] == second[1]
        assert made.counts == {"a": 1}
        answers = await made.generate(
            path, stream=stream, body={"user": "another", **FIXED} if path == CHAT else {"user": "u"}
        )
        assert answers.headers["x-umg-cache"] == "miss"


async def test_streamed_and_unstreamed_responses_are_cached_separately(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [succeed]}, rest=CACHED) as made:
        assert [(await cache_outcome(made, stream=stream))[0] for stream in (False, True, False, True)] == [
            "miss"
        ] * 2 + ["hit"] * 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_caller_enables_or_disables_the_cache_with_a_header(tmp_path: Path, stream: bool) -> None:
    async with world(tmp_path, {"a": [succeed]}) as made:
        assert [(await cache_outcome(made, stream=stream))[0] for _ in range(2)] == ["", ""]
        call = [(await cache_outcome(made, stream=stream, x_umg_cache="5m"))[0] for _ in range(2)]
        assert call == ["miss", "hit"]
        assert (await cache_outcome(made, stream=stream, x_umg_cache="off"))[0] == ""
        assert made.counts == {"a": 4}
        refused = await made.generate(x_umg_cache="often")
        assert (refused.status, refused.body["error"]["param"]) == (400, "x-umg-cache")


async def test_a_nondeterministic_request_is_not_cached(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [succeed]}, rest=CACHED) as made:
        answers = [await made.generate() for _ in range(2)]
        assert [answer.headers["x-umg-cache"] for answer in answers] == ["bypass"] * 2
        assert made.counts == {"a": 2}


async def test_cached_responses_are_not_shared_between_keys(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [succeed]}, rest=CACHED) as made:
        _, other = await ApiKeys(made.gateway.service.store).create("other")
        assert (await cache_outcome(made))[0] == "miss"
        assert (await cache_outcome(made, authorization=f"Bearer {other}"))[0] == "miss"
        assert made.counts == {"a": 2}


@pytest.mark.parametrize(("path", "stream"), [(CHAT, False), (CHAT, True), (EMBED, False)])
async def test_of_equal_concurrent_calls_one_reaches_the_provider(tmp_path: Path, path: str, stream: bool) -> None:
    gate = GatedProvider()
    async with world(tmp_path, {"a": [gate.reply]}, rest=CACHED) as made:
        calls = [asyncio.create_task(cache_outcome(made, path, stream=stream)) for _ in range(20)]
        await made["a"].arrived.get()
        gate.open.set()
        answers = await asyncio.gather(*calls)
        assert sorted(outcome for outcome, _ in answers) == ["hit"] * 19 + ["miss"]
        assert len({answer for _, answer in answers}) == 1
        assert made.counts == {"a": 1}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_when_the_leading_call_is_cancelled_the_next_one_calls_the_provider(tmp_path: Path, stream: bool) -> None:
    gate = GatedProvider()
    async with world(tmp_path, {"a": [gate.reply]}, rest=CACHED) as made:
        first = asyncio.create_task(cache_outcome(made, stream=stream))
        await made["a"].arrived.get()
        others = [asyncio.create_task(cache_outcome(made, stream=stream)) for _ in range(3)]
        await asyncio.sleep(0)  # the others join the queue
        first.cancel()
        await made["a"].arrived.get()
        gate.open.set()
        assert max(outcome for outcome, _ in await asyncio.gather(*others)) == "miss"
        assert made.counts == {"a": 2}


async def test_calls_do_not_wait_for_a_stream_too_large_to_be_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_cache, "STREAM_SECONDS", 600.0)
    gate = GatedProvider()
    async with world(tmp_path, {"a": [gate.answer_large, succeed]}, rest=CACHED) as made:
        large = asyncio.create_task(cache_outcome(made, stream=True))
        await made["a"].arrived.get()
        other = asyncio.create_task(cache_outcome(made, stream=True))
        async with asyncio.timeout(60):
            assert ((await other)[0], made.counts) == ("miss", {"a": 2})
        assert not large.done()
        gate.open.set()
        assert (await large)[0] == "miss"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_call_that_waited_for_another_has_time_for_its_own_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setattr(response_cache, "MAX_WAIT_SHARE", 0.01)
    gate = GatedProvider()
    async with world(tmp_path, {"a": [gate.reply, succeed]}, rest=CACHED) as made:
        slow = asyncio.create_task(cache_outcome(made, stream=stream))
        await made["a"].arrived.get()
        outcome, _ = await cache_outcome(made, stream=stream, x_umg_timeout="60s")
        assert (outcome, made.counts) == ("miss", {"a": 2})
        gate.open.set()
        assert (await slow)[0] == "miss"


async def test_a_failure_is_not_cached(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [status(400), succeed]}, rest=CACHED) as made:
        assert (await made.generate(body=FIXED)).status == 400
        assert [(await cache_outcome(made))[0] for _ in range(2)] == ["miss", "hit"]


@dataclass(frozen=True)
class Failing:
    id: str
    reply: Script
    stream: bool
    body: dict[str, int]


FAILING = [
    Failing(f"{name}, {'streamed' if stream else 'whole'}, temperature {body['temperature']}", reply, stream, body)
    for name, reply in {"a mistake": status(400), "too much": status(429), "a key that is no good": status(401)}.items()
    for stream in (False, True)
    for body in (FIXED, {"temperature": 1})
] + [Failing("a stream that breaks before its first word", reset_after_start, stream=True, body=FIXED)]


@pytest.mark.parametrize("case", FAILING, ids=lambda case: case.id)
async def test_a_failure_has_no_cache_header(tmp_path: Path, case: Failing) -> None:
    async with world(tmp_path, {"a": [case.reply]}, rest=CACHED) as made:
        answers = await made.generate(stream=case.stream, body=dict(case.body))
        assert answers.status >= 400
        assert "x-umg-cache" not in answers.headers


async def test_a_broken_stream_is_not_cached(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [reset_after_content, succeed]}, rest=CACHED) as made:
        answers = [await cache_outcome(made, stream=True) for _ in range(3)]
        assert [outcome for outcome, _ in answers] == ["miss", "miss", "hit"]


# --- another config


@dataclass(frozen=True)
class Reloaded:
    id: str
    after: str
    is_cached: bool = False


def config(channels: str, rest: str = "aliases: {fast: m}") -> str:
    return f"channels: [{channels}]\n{rest}\nmodels: {{m: {{cache: 1h}}, n: {{cache: 1h}}}}\n"


def channel(name: str = "a", models: str = "m, n", provider: str = "FIRST", more: str = "") -> str:
    return f"{{name: {name}, protocols: [chat], base_url: {provider}, api_key: k, models: [{models}]{more}}}"


RELOADED = [
    Reloaded("nothing is other", config(channel()), is_cached=True),
    Reloaded("irrelevant differences", config(channel(more=", weight: 7, timeout: 9"), "drain: 5"), is_cached=True),
    Reloaded("the alias", config(channel(), "aliases: {fast: n}")),
    Reloaded("the provider's model", config(channel(models="{id: m, upstream: other}, n"))),
    Reloaded("the provider", config(channel(provider="SECOND"))),
    Reloaded("the channel", config(channel("b"))),
    Reloaded("one channel more", config(f"{channel()}, {channel('b', provider='SECOND')}")),
]


@pytest.mark.parametrize("case", RELOADED, ids=lambda case: case.id)
async def test_a_response_of_an_earlier_config_is_not_served_after_a_reload(tmp_path: Path, case: Reloaded) -> None:
    async with reloadable(tmp_path) as (gateway, cache_outcome_of, first, second):
        named = "fast" if "aliases" in case.after else "m"
        assert [await cache_outcome_of(named), await cache_outcome_of(named)] == ["miss", "hit"]
        reload(gateway, case.after, first, second)
        assert await cache_outcome_of(named) == ("hit" if case.is_cached else "miss")


async def test_a_response_is_not_cached_if_a_reload_happened_meanwhile(tmp_path: Path) -> None:
    gate = GatedProvider()
    async with reloadable(tmp_path, gate.reply, succeed) as (gateway, cache_outcome_of, first, second):
        call = asyncio.create_task(cache_outcome_of("m"))
        await first.arrived.get()
        reload(gateway, config(channel()), first, second)
        gate.open.set()
        assert await call == "miss"
        assert [await cache_outcome_of("m"), await cache_outcome_of("m")] == ["miss", "hit"]


Call = Callable[[str], Awaitable[str]]


@asynccontextmanager
async def reloadable(data: Path, *scripts: Script) -> AsyncGenerator[tuple[Running, Call, Scripted, Scripted], None]:
    """Run a gateway with the first of two providers. Yield it, a call that returns `x-umg-cache`, and both providers."""
    async with (
        scripted("a", *scripts) as first,
        scripted("b") as second,
        running(written(config(channel()), first, second), data) as gateway,
        ClientSession() as session,
    ):

        async def cache_outcome_of(model: str) -> str:
            body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], **FIXED}
            async with session.post(gateway.url + CHAT, json=body, headers=gateway.headers) as answer:
                assert answer.status == 200
                return answer.headers["x-umg-cache"]

        yield gateway, cache_outcome_of, first, second


def written(text: str, first: Scripted, second: Scripted) -> str:
    return text.replace("FIRST", first.base_url).replace("SECOND", second.base_url)


def reload(gateway: Running, text: str, first: Scripted, second: Scripted) -> None:
    gateway.service.reload(parse(written(text, first, second), "test.yaml", {}))
