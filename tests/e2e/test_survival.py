"""Providers that fail, are slow or are overloaded: the results for callers, and the calls to the providers."""

import asyncio
import itertools
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.support.gateways import Running, running
from tests.support.providers.scripted import (
    Script,
    Scripted,
    chunk,
    reset_after_content,
    reset_after_start,
    scripted,
    stall,
    start_stream,
    status,
    succeed,
)

CHAT = "/v1/chat/completions"


@dataclass
class CallerResult:
    status: int
    body: Any
    headers: Any
    text: str = ""

    @property
    def route(self) -> str:
        return str(self.headers.get("x-umg-route", ""))


@dataclass
class World:
    gateway: Running
    providers: dict[str, Scripted]
    session: aiohttp.ClientSession

    def __getitem__(self, name: str) -> Scripted:
        return self.providers[name]

    @property
    def counts(self) -> dict[str, int]:
        return {name: len(made.calls) for name, made in self.providers.items()}

    async def ask(
        self, path: str = CHAT, *, stream: bool = False, body: dict[str, Any] | None = None, **headers: str
    ) -> CallerResult:
        asked = (
            {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
            if path == CHAT
            else {"model": "m", "input": "Hi"}
        )
        asked |= (body or {}) | ({"stream": True} if stream else {})
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with asyncio.timeout(20), self.session.post(self.gateway.url + path, json=asked, headers=sent) as answer:
            if stream and answer.status == 200:
                return CallerResult(200, None, answer.headers, await answer.text())
            told = CallerResult(answer.status, await answer.json(), answer.headers)
        if answer.status == 200 and path == CHAT:
            told.text = told.body["choices"][0]["message"]["content"]
        return told


@asynccontextmanager
async def world(
    data: Path, providers: dict[str, Sequence[Script]], more: dict[str, str] | None = None, rest: str = ""
) -> AsyncGenerator[World, None]:
    """Run a gateway with a channel for each provider. Their priorities descend in order unless `more` sets others."""
    async with AsyncExitStack() as stack:
        made = {name: await stack.enter_async_context(scripted(name, *scripts)) for name, scripts in providers.items()}
        config = "channels:\n"
        for position, (name, provider) in enumerate(made.items()):
            said = (more or {}).get(name, "")
            config += f"  - name: {name}\n    protocols: [chat, embeddings]\n    base_url: {provider.base_url}\n"
            if "protocols:" in said:
                config = config.replace(
                    "    protocols: [chat, embeddings]\n    base_url: " + provider.base_url,
                    "    base_url: " + provider.base_url,
                )
            for key, usual in {"api_key": f"key-{name}", "models": "[m]", "priority": str(position)}.items():
                config += "" if f"{key}:" in said else f"    {key}: {usual}\n"
            config += "".join(f"    {line}\n" for line in said.splitlines())
        gateway = await stack.enter_async_context(running(config + rest, data))
        session = await stack.enter_async_context(aiohttp.ClientSession(headers=gateway.headers))
        yield World(gateway, made, session)


FAILURES: dict[str, Script] = {
    "a 500": status(500),
    "a 503": status(503),
    "a 529": status(529),
    "a 429": status(429, retry_after="7"),
    "a key that is no good": status(401),
    "an account without credit": status(429, {"code": "insufficient_quota"}),
    "a model that is not there": status(404, {"code": "model_not_found"}),
    "a stream that breaks before its first word": reset_after_start,
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", FAILURES)
async def test_another_channel_answers_for_one_that_fails(tmp_path: Path, name: str, stream: bool) -> None:
    if FAILURES[name] is reset_after_start and not stream:
        return
    async with world(tmp_path, {"a": [FAILURES[name]], "b": [succeed]}) as made:
        told = await made.ask(stream=stream)
        assert told.status == 200
        assert "b" in told.text
        assert "error" not in told.text
        assert made.counts == {"a": 1, "b": 1}
        assert told.route.startswith("channel=b; attempts=2; reason=a: ")


async def test_what_was_begun_is_not_begun_again_elsewhere(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [reset_after_content], "b": [succeed]}) as made:
        told = await made.ask(stream=True)
        assert "half" in told.text
        assert '"error"' in told.text
        assert "[DONE]" not in told.text
        assert made.counts == {"a": 1, "b": 0}


async def test_the_callers_own_mistake_is_told_by_the_first_channel(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [status(400)], "b": [succeed]}) as made:
        for _ in range(8):
            told = await made.ask()
            assert (told.status, told.body["error"]["message"]) == (400, "a says 400")
        assert made.counts == {"a": 8, "b": 0}  # and it is never counted as a failure of the channel


async def test_what_is_too_long_for_one_model_may_fit_another(tmp_path: Path) -> None:
    long = status(400, {"code": "context_length_exceeded", "message": "maximum context length is 8 tokens"})
    same, other = "models: [m]", "models: [{id: m, upstream: larger}]"
    async with world(tmp_path, {"a": [long], "b": [long], "c": [succeed]}, {"a": same, "b": same, "c": other}) as made:
        assert (await made.ask()).text == "c"
        assert made.counts == {"a": 1, "b": 0, "c": 1}


async def test_a_channel_alone_is_asked_once_more(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [status(500), succeed]}) as made:
        told = await made.ask()
        assert (told.status, told.text, made.counts) == (200, "a", {"a": 2})
        assert told.route == "channel=a; attempts=2; reason=a: transient"


@pytest.mark.parametrize(("code", "told_as"), [(429, 429), (401, 502)])
async def test_a_channel_is_not_asked_again_for_what_a_while_does_not_mend(
    tmp_path: Path, code: int, told_as: int
) -> None:
    async with world(tmp_path, {"a": [status(code, retry_after="7")]}) as made:
        told = await made.ask()
        assert (told.status, made.counts) == (told_as, {"a": 1})
        if code == 429:
            assert told.headers["retry-after"] == "7"


async def test_the_least_of_several_waits_is_told(tmp_path: Path) -> None:
    scripts = {"a": [status(429, retry_after="7")], "b": [status(429, retry_after="3")], "c": [status(500)]}
    async with world(tmp_path, scripts, rest="retries: {repeats: 0}\n") as made:
        told = await made.ask()
        assert (told.status, told.headers["retry-after"]) == (429, "3")


async def test_a_channel_with_too_much_to_do_is_left_alone_as_long_as_it_asks(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [status(429, retry_after="30"), succeed], "b": [succeed]}) as made:
        assert [(await made.ask()).text for _ in range(3)] == ["b", "b", "b"]
        assert made.counts == {"a": 1, "b": 3}


async def test_a_channel_that_fails_on_end_is_left_alone_and_comes_back(tmp_path: Path) -> None:
    scripts: list[Script] = [*[status(500)] * 3, succeed]
    rest = "breaker: {{failures: 3, rest: {}}}\n"
    async with world(tmp_path / "open", {"a": scripts, "b": [succeed]}, rest=rest.format(60)) as made:
        assert [(await made.ask()).text for _ in range(5)] == ["b"] * 5
        assert made.counts == {"a": 3, "b": 5}
    async with world(tmp_path / "closed", {"a": scripts, "b": [succeed]}, rest=rest.format(0.1)) as made:
        async with asyncio.timeout(20):
            while (await made.ask()).text != "a":  # noqa: ASYNC110  # what it waits for is told by the answer alone
                await asyncio.sleep(0.02)  # the circuit breaker is open for a while
        assert [(await made.ask()).text for _ in range(3)] == ["a"] * 3


async def test_channels_that_all_fail_are_asked_all_the_same(tmp_path: Path) -> None:
    rest = "breaker: {failures: 1, rest: 60}\nretries: {repeats: 0}\n"
    async with world(tmp_path, {"a": [status(500), status(500), succeed]}, rest=rest) as made:
        assert [(await made.ask()).status for _ in range(3)] == [502, 502, 200]


async def test_a_key_that_is_no_good_is_left_for_the_next_of_its_channel(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [status(401), succeed], "b": [succeed]}, {"a": "api_key: [bad, good]"}) as made:
        assert [(await made.ask()).text for _ in range(4)] == ["a"] * 4
        assert [call.key for call in made["a"].calls] == ["bad", "good", "good", "good", "good"]
        assert made.counts["b"] == 0


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
async def test_the_callers_time_bounds_all(tmp_path: Path, path: str, stream: bool) -> None:
    if stream and path != CHAT:
        return
    async with world(tmp_path, {"a": [stall], "b": [stall]}) as made:
        told = await made.ask(path, stream=stream, x_umg_timeout="300ms")
        assert told.status == 504
        async with asyncio.timeout(20):
            await made["a"].calls[0].left.wait()
        told = await made.ask(path, stream=stream, x_umg_timeout="soon")
        assert (told.status, told.body["error"]["param"]) == (400, "x-umg-timeout")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_channel_that_was_too_slow_is_not_waited_for_again(tmp_path: Path, stream: bool) -> None:
    async with world(tmp_path, {"a": [stall]}, {"a": "timeout: {first_byte: 0.2, total: 0.3}"}) as made:
        assert (await made.ask(stream=stream)).status == 504
        assert made.counts == {"a": 1}


async def test_a_stalled_start_is_left_for_another_channel(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [stall], "b": [succeed]}, {"a": "timeout: {first_byte: 0.2}"}) as made:
        assert "b" in (await made.ask(stream=True)).text


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_second_channel_is_asked_beside_a_slow_one(tmp_path: Path, stream: bool) -> None:
    async with world(tmp_path, {"a": [stall], "b": [succeed]}, rest="models: {m: {hedge: 0.05}}\n") as made:
        told = await made.ask(stream=stream)
        assert "b" in told.text
        assert told.route == "channel=b; attempts=2; reason=a: slow"
        async with asyncio.timeout(20):
            await made["a"].calls[0].left.wait()
        figures = made.gateway.service.metrics.exposition().decode()
        spent = dict(re.findall(r'umg_tokens_total\{channel="(\w)",direction="input",model="m"\} ([0-9.]+)', figures))
        assert spent["a"] == spent["b"] != "0.0"  # both processed the prompt


async def test_what_the_second_refuses_does_not_end_what_the_slow_first_may_answer(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def later(request: web.Request, made: Scripted) -> web.StreamResponse:
        await gate.wait()
        return await succeed(request, made)

    async def refuses(request: web.Request, made: Scripted) -> web.StreamResponse:
        gate.set()
        return await status(400)(request, made)

    async with world(tmp_path, {"a": [later], "b": [refuses]}, rest="models: {m: {hedge: 0.05}}\n") as made:
        assert (await made.ask()).text == "a"
        assert made.counts == {"a": 1, "b": 1}


async def test_a_hedged_call_fails_by_its_last_failure(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def fails_later(request: web.Request, made: Scripted) -> web.StreamResponse:
        await gate.wait()
        return await status(400)(request, made)

    async def fails(request: web.Request, made: Scripted) -> web.StreamResponse:
        gate.set()
        return await status(500)(request, made)

    rest = "models: {m: {hedge: 0.05}}\nretries: {repeats: 0}\n"
    async with world(tmp_path, {"a": [fails_later], "b": [fails]}, rest=rest) as made:
        told = await made.ask()
        assert (told.status, told.body["error"]["message"]) == (400, "a says 400")


async def test_a_stream_that_only_says_that_it_begins_is_slow(tmp_path: Path) -> None:
    async def begins_and_stalls(request: web.Request, made: Scripted) -> web.StreamResponse:
        response = await start_stream(request)
        await response.write(chunk({"role": "assistant", "content": ""}))
        return await stall(request, made)

    async with world(tmp_path, {"a": [begins_and_stalls], "b": [succeed]}, rest="models: {m: {hedge: 0.05}}\n") as made:
        assert "b" in (await made.ask(stream=True)).text


async def test_a_channel_that_was_only_full_is_asked_when_the_others_have_failed(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def later(request: web.Request, made: Scripted) -> web.StreamResponse:
        await gate.wait()
        return await succeed(request, made)

    async def fails(request: web.Request, made: Scripted) -> web.StreamResponse:
        asyncio.get_running_loop().call_later(0.02, gate.set)  # before the failed channel is called again
        return await status(500)(request, made)

    more = {"b": "priority: -1\nconcurrency: 1"}
    rest = "overload: {queue: 0}\nretries: {backoff: 1}\n"
    async with world(tmp_path, {"a": [fails], "b": [later]}, more, rest=rest) as made:
        holds = asyncio.create_task(made.ask())
        await made["b"].arrived.get()
        assert (await made.ask()).text == "b"
        assert (await holds).text == "b"
        assert made.counts == {"a": 1, "b": 2}


async def test_a_channel_takes_so_many_calls_and_the_others_go_elsewhere(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [stall], "b": [succeed]}, {"a": "concurrency: 2"}) as made:
        held = [asyncio.create_task(made.ask(x_umg_timeout="10")) for _ in range(2)]
        for _ in held:
            await made["a"].arrived.get()
        assert [(await made.ask()).text for _ in range(3)] == ["b"] * 3
        for task in held:
            task.cancel()
        await asyncio.wait(held)


async def test_beyond_a_full_channel_and_its_queue_calls_are_told_to_come_again(tmp_path: Path) -> None:
    rest = "overload: {queue: 1, wait: 10}\n"
    async with world(tmp_path, {"a": [stall, succeed]}, {"a": "concurrency: 1"}, rest=rest) as made:
        holds = asyncio.create_task(made.ask())
        await made["a"].arrived.get()
        done, waiting = await asyncio.wait(
            {asyncio.create_task(made.ask()) for _ in range(2)}, return_when=asyncio.FIRST_COMPLETED
        )
        told = done.pop().result()
        assert (told.status, told.headers["retry-after"]) == (503, "1")
        assert not done
        assert len(waiting) == 1
        holds.cancel()
        assert (await waiting.pop()).text == "a"  # in the slot of the call that left


async def test_calls_of_one_cache_key_go_to_one_channel(tmp_path: Path) -> None:
    more = dict.fromkeys("abc", "priority: 0")
    async with world(tmp_path, {name: [succeed] for name in "abc"}, more) as made:
        assert {(await made.ask()).text for _ in range(6)} == {"a", "b", "c"}
        for key in ("one", "two", "three"):
            assert len({(await made.ask(body={"prompt_cache_key": key})).text for _ in range(4)}) == 1


async def test_a_long_conversation_stays_where_it_began(tmp_path: Path) -> None:
    more = dict.fromkeys("abc", "priority: 0")
    async with world(tmp_path, {name: [succeed] for name in "abc"}, more) as made:
        turns = [{"role": "user", "content": "word " * 2000}]
        first = (await made.ask(body={"messages": turns})).text
        for _ in range(4):
            turns += [{"role": "assistant", "content": first}, {"role": "user", "content": "more"}]
            assert (await made.ask(body={"messages": turns})).text == first


async def test_a_call_over_http_takes_one_place_of_the_gateway(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [succeed]}, rest="overload: {calls: 1, queue: 0}\n") as made:
        assert "a" in (await made.ask()).text
        assert "a" in (await made.ask(stream=True)).text


async def test_every_key_of_a_channel_is_asked_once(tmp_path: Path) -> None:
    async def slowly_busy(request: web.Request, made: Scripted) -> web.StreamResponse:
        await asyncio.sleep(0.3)  # so that the first key is usable again when the last has failed
        return await status(429, retry_after_ms="200")(request, made)

    more = {"a": "api_key: [one, two, three, four]"}
    async with world(tmp_path, {"a": [slowly_busy], "b": [succeed]}, more) as made:
        assert (await made.ask()).text == "b"
        assert made.counts == {"a": 4, "b": 1}


async def test_the_wait_that_is_told_of_several_keys_is_the_shortest(tmp_path: Path) -> None:
    scripts = [status(429, retry_after=seconds) for seconds in ("50", "20", "40")]
    async with world(tmp_path, {"a": scripts}, {"a": "api_key: [one, two, three]"}) as made:
        told = await made.ask()
        assert (told.status, told.headers["retry-after"]) == (429, "20")


def taken(made: World, name: str = "a") -> int:
    return made.gateway.service._shared.slots[name].taken


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("first", ["stalls", "fails later"])
async def test_a_caller_who_leaves_a_hedged_call_leaves_no_place_taken(
    tmp_path: Path, first: str, stream: bool
) -> None:
    fail = asyncio.Event()

    async def fails_later(request: web.Request, made: Scripted) -> web.StreamResponse:
        await fail.wait()
        return await status(500)(request, made)

    scripts: dict[str, Sequence[Script]] = {"a": [stall if first == "stalls" else fails_later], "b": [stall]}
    more = dict.fromkeys("ab", "concurrency: 3")
    async with world(tmp_path, scripts, more, rest="models: {m: {hedge: 0.05}}\n") as made:
        asks = asyncio.create_task(made.ask(stream=stream))
        await made["b"].arrived.get()
        if first == "fails later":
            fail.set()
            async with asyncio.timeout(5):
                while taken(made):  # noqa: ASYNC110  # nothing tells when the gateway has read an answer
                    await asyncio.sleep(0.005)  # no event reports that the gateway has read the answer
        assert (taken(made), taken(made, "b")) == (0 if first == "fails later" else 1, 1)
        asks.cancel()
        await made["b"].calls[0].left.wait()
        async with asyncio.timeout(5):
            while taken(made) or taken(made, "b"):  # noqa: ASYNC110
                await asyncio.sleep(0.005)  # nor that both calls have ended
        await asyncio.sleep(0.05)  # time in which a slot would be released twice
        assert (taken(made), taken(made, "b")) == (0, 0)


async def test_a_hedge_is_told_no_less_than_the_first(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def later(request: web.Request, made: Scripted) -> web.StreamResponse:
        await gate.wait()
        return await succeed(request, made)

    rest = "models: {m: {hedge: 0.05}}\n"
    async with world(tmp_path, {"a": [later], "b": [succeed]}, {"b": "protocols: [messages]"}, rest=rest) as made:
        asks = asyncio.create_task(made.ask(body={"seed": 7}))
        await made["a"].arrived.get()
        await asyncio.sleep(0.15)  # three times the delay of the hedge
        gate.set()
        assert (await asks).text == "a"
        assert made.counts["b"] == 0


async def test_a_reload_leaves_a_channel_as_full_as_it_is(tmp_path: Path) -> None:
    more = {"a": "concurrency: 1"}
    async with world(tmp_path, {"a": [stall], "b": [succeed]}, more) as made:
        asks = asyncio.create_task(made.ask())
        await made["a"].arrived.get()
        made.gateway.service.reload(made.gateway.service._config)
        assert (await made.ask()).text == "b"
        asks.cancel()
        await asyncio.wait([asks])


async def test_of_many_calls_one_looks_whether_a_channel_is_well_again(tmp_path: Path) -> None:
    rest = "breaker: {failures: 1, rest: 0.1}\n"
    async with world(tmp_path, {"a": [status(500), stall], "b": [succeed]}, rest=rest) as made:
        assert (await made.ask()).text == "b"
        await asyncio.sleep(0.2)  # the circuit breaker of the channel must become half-open
        asks = [asyncio.create_task(made.ask()) for _ in range(20)]
        served = itertools.islice(asyncio.as_completed(asks, timeout=20), 19)
        assert {(await told).text for told in served} == {"b"}
        [waiting] = [task for task in asks if not task.done()]
        assert made.counts["a"] == 2
        waiting.cancel()


async def test_a_name_that_only_a_pattern_has_may_be_nobodys(tmp_path: Path) -> None:
    missing = status(404, {"code": "model_not_found"})
    more = {"a": 'models: ["m*"]', "b": 'models: [{id: "m*", upstream: "other-*"}]'}
    async with world(tmp_path, {"a": [missing], "b": [missing]}, more) as made:
        for _ in range(3):
            told = await made.ask(body={"model": "mistaken"})
            assert (told.status, told.body["error"]["code"]) == (404, "model_not_found")
        assert made.counts == {"a": 3, "b": 3}  # a missing model is no failure of the channel
