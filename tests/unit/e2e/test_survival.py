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
    opening,
    reset_after_content,
    reset_after_start,
    scripted,
    stall,
    start_stream,
    status,
    succeed,
    waiting_for,
)

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"


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

    async def generate(
        self, path: str = CHAT, *, stream: bool = False, body: dict[str, Any] | None = None, **headers: str
    ) -> CallerResult:
        turns: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
        bodies = {CHAT: turns, MESSAGES: turns | {"max_tokens": 50}}
        body_sent = {"model": "m", **bodies.get(path, {"input": "Hi"}), **(body or {})}
        body_sent |= {"stream": True} if stream else {}
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with (
            asyncio.timeout(60),
            self.session.post(self.gateway.url + path, json=body_sent, headers=sent) as answer,
        ):
            if stream and answer.status == 200:
                return CallerResult(200, None, answer.headers, await answer.text())
            answered = CallerResult(answer.status, await answer.json(), answer.headers)
        if answer.status == 200 and path == CHAT:
            answered.text = answered.body["choices"][0]["message"]["content"]
        return answered


@asynccontextmanager
async def world(
    data: Path, providers: dict[str, Sequence[Script]], more: dict[str, str] | None = None, rest: str = ""
) -> AsyncGenerator[World, None]:
    """Run a gateway with a channel for each provider. Their priorities descend in order unless `more` sets others."""
    async with AsyncExitStack() as stack:
        made = {name: await stack.enter_async_context(scripted(name, *scripts)) for name, scripts in providers.items()}
        config = "channels:\n"
        for position, (name, provider) in enumerate(made.items()):
            options = (more or {}).get(name, "")
            config += f"  - name: {name}\n    protocols: [chat, embeddings]\n    base_url: {provider.base_url}\n"
            if "protocols:" in options:
                config = config.replace(
                    "    protocols: [chat, embeddings]\n    base_url: " + provider.base_url,
                    "    base_url: " + provider.base_url,
                )
            for key, usual in {"api_key": f"key-{name}", "models": "[m]", "priority": str(position)}.items():
                config += "" if f"{key}:" in options else f"    {key}: {usual}\n"
            config += "".join(f"    {line}\n" for line in options.splitlines())
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
async def test_a_failed_attempt_is_followed_by_another_channel(tmp_path: Path, name: str, stream: bool) -> None:
    if FAILURES[name] is reset_after_start and not stream:
        return
    async with world(tmp_path, {"a": [FAILURES[name]], "b": [succeed]}) as made:
        answered = await made.generate(stream=stream)
        assert answered.status == 200
        assert "b" in answered.text
        assert "error" not in answered.text
        assert made.counts == {"a": 1, "b": 1}
        assert answered.route.startswith("channel=b; attempts=2; reason=a: ")


async def test_a_broken_stream_is_not_retried_after_its_first_output(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [reset_after_content], "b": [succeed]}) as made:
        answered = await made.generate(stream=True)
        assert "half" in answered.text
        assert '"error"' in answered.text
        assert "[DONE]" not in answered.text
        assert made.counts == {"a": 1, "b": 0}


async def test_an_invalid_request_is_not_retried_on_another_channel(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [status(400)], "b": [succeed]}) as made:
        for _ in range(8):
            answered = await made.generate()
            assert (answered.status, answered.body["error"]["message"]) == (400, "a says 400")
        assert made.counts == {"a": 8, "b": 0}  # and it is never counted as a failure of the channel


async def test_a_request_too_long_for_one_channel_is_retried_on_another(tmp_path: Path) -> None:
    long = status(400, {"code": "context_length_exceeded", "message": "maximum context length is 8 tokens"})
    same, other = "models: [m]", "models: [{id: m, upstream: larger}]"
    async with world(tmp_path, {"a": [long], "b": [long], "c": [succeed]}, {"a": same, "b": same, "c": other}) as made:
        assert (await made.generate()).text == "c"
        assert made.counts == {"a": 1, "b": 0, "c": 1}


async def test_a_single_channel_is_retried_once(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [status(500), succeed]}) as made:
        answered = await made.generate()
        assert (answered.status, answered.text, made.counts) == (200, "a", {"a": 2})
        assert answered.route == "channel=a; attempts=2; reason=a: transient"


@pytest.mark.parametrize(("code", "face_status"), [(429, 429), (401, 502)])
async def test_a_permanent_failure_of_a_single_channel_is_not_retried(
    tmp_path: Path, code: int, face_status: int
) -> None:
    async with world(tmp_path, {"a": [status(code, retry_after="7")]}) as made:
        answered = await made.generate()
        assert (answered.status, made.counts) == (face_status, {"a": 1})
        if code == 429:
            assert answered.headers["retry-after"] == "7"


async def test_retry_after_is_the_shortest_wait_of_all_channels(tmp_path: Path) -> None:
    scripts = {"a": [status(429, retry_after="7")], "b": [status(429, retry_after="3")], "c": [status(500)]}
    async with world(tmp_path, scripts, rest="retries: {repeats: 0}\n") as made:
        answered = await made.generate()
        assert (answered.status, answered.headers["retry-after"]) == (429, "3")


async def test_an_overloaded_channel_is_not_called_before_its_retry_time(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [status(429, retry_after="30"), succeed], "b": [succeed]}) as made:
        assert [(await made.generate()).text for _ in range(3)] == ["b", "b", "b"]
        assert made.counts == {"a": 1, "b": 3}


async def test_a_failing_channel_is_ejected_and_restored(tmp_path: Path) -> None:
    scripts: list[Script] = [*[status(500)] * 3, succeed]
    rest = "breaker: {{failures: 3, rest: {}}}\n"
    async with world(tmp_path / "open", {"a": scripts, "b": [succeed]}, rest=rest.format(60)) as made:
        assert [(await made.generate()).text for _ in range(5)] == ["b"] * 5
        assert made.counts == {"a": 3, "b": 5}
    async with world(tmp_path / "closed", {"a": scripts, "b": [succeed]}, rest=rest.format(0.1)) as made:
        async with asyncio.timeout(60):
            while (await made.generate()).text != "a":  # noqa: ASYNC110  # what it waits for is told by the response alone
                await asyncio.sleep(0.02)  # the circuit breaker is open for a while
        assert [(await made.generate()).text for _ in range(3)] == ["a"] * 3


async def test_ejected_channels_are_called_if_no_other_is_left(tmp_path: Path) -> None:
    rest = "breaker: {failures: 1, rest: 60}\nretries: {repeats: 0}\n"
    async with world(tmp_path, {"a": [status(500), status(500), succeed]}, rest=rest) as made:
        assert [(await made.generate()).status for _ in range(3)] == [502, 502, 200]


async def test_an_invalid_key_is_followed_by_the_next_key_of_its_channel(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [status(401), succeed], "b": [succeed]}, {"a": "api_key: [bad, good]"}) as made:
        assert [(await made.generate()).text for _ in range(4)] == ["a"] * 4
        assert [call.key for call in made["a"].calls] == ["bad", "good", "good", "good", "good"]
        assert made.counts["b"] == 0


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
async def test_the_callers_timeout_bounds_all_attempts(tmp_path: Path, path: str, stream: bool) -> None:
    if stream and path != CHAT:
        return
    async with world(tmp_path, {"a": [stall], "b": [stall]}) as made:
        async with asyncio.timeout(60):
            while not made["a"].calls:  # on a busy machine the time may be over before the first attempt begins
                answered = await made.generate(path, stream=stream, x_umg_timeout="300ms")
                assert answered.status == 504
            await made["a"].calls[0].left.wait()
        answered = await made.generate(path, stream=stream, x_umg_timeout="soon")
        assert (answered.status, answered.body["error"]["param"]) == (400, "x-umg-timeout")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_channel_that_timed_out_is_not_retried(tmp_path: Path, stream: bool) -> None:
    async with world(tmp_path, {"a": [stall]}, {"a": "timeout: {first_byte: 0.2, total: 0.3}"}) as made:
        assert (await made.generate(stream=stream)).status == 504
        assert made.counts == {"a": 1}


async def test_a_stream_that_stalls_before_its_first_output_is_retried_on_another_channel(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [stall], "b": [succeed]}, {"a": "timeout: {first_byte: 0.2}"}) as made:
        assert "b" in (await made.generate(stream=True)).text


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_slow_call_is_hedged_on_a_second_channel(tmp_path: Path, stream: bool) -> None:
    async with world(tmp_path, {"a": [stall], "b": [succeed]}, rest="models: {m: {hedge: 0.05}}\n") as made:
        answered = await made.generate(stream=stream)
        assert "b" in answered.text
        assert answered.route == "channel=b; attempts=2; reason=a: slow"
        async with asyncio.timeout(60):
            await made["a"].calls[0].left.wait()
        figures = made.gateway.service.metrics.exposition().decode()
        input_tokens = dict(
            re.findall(r'umg_tokens_total\{channel="(\w)",direction="input",model="m"\} ([0-9.]+)', figures)
        )
        assert input_tokens["a"] == input_tokens["b"] != "0.0"  # both processed the prompt


async def test_a_refusal_of_the_hedge_does_not_end_the_first_attempt(tmp_path: Path) -> None:
    gate = asyncio.Event()
    later = waiting_for(gate, succeed)
    refuses = opening(gate, status(400))
    async with world(tmp_path, {"a": [later], "b": [refuses]}, rest="models: {m: {hedge: 0.05}}\n") as made:
        assert (await made.generate()).text == "a"
        assert made.counts == {"a": 1, "b": 1}


async def test_a_hedged_call_fails_by_its_last_failure(tmp_path: Path) -> None:
    gate = asyncio.Event()
    fails_later, fails = waiting_for(gate, status(400)), opening(gate, status(500))
    rest = "models: {m: {hedge: 0.05}}\nretries: {repeats: 0}\n"
    async with world(tmp_path, {"a": [fails_later], "b": [fails]}, rest=rest) as made:
        answered = await made.generate()
        assert (answered.status, answered.body["error"]["message"]) == (400, "a says 400")


async def test_a_stream_without_output_counts_as_slow(tmp_path: Path) -> None:
    async def begins_and_stalls(request: web.Request, made: Scripted) -> web.StreamResponse:
        response = await start_stream(request)
        await response.write(chunk({"role": "assistant", "content": ""}))
        return await stall(request, made)

    async with world(tmp_path, {"a": [begins_and_stalls], "b": [succeed]}, rest="models: {m: {hedge: 0.05}}\n") as made:
        assert "b" in (await made.generate(stream=True)).text


async def test_a_channel_at_its_concurrency_limit_is_called_after_the_others_failed(tmp_path: Path) -> None:
    gate = asyncio.Event()
    later = waiting_for(gate, succeed)

    async def fails(request: web.Request, made: Scripted) -> web.StreamResponse:
        asyncio.get_running_loop().call_later(0.02, gate.set)  # before the failed channel is called again
        return await status(500)(request, made)

    more = {"b": "priority: -1\nconcurrency: 1"}
    rest = "overload: {queue: 0}\nretries: {backoff: 1}\n"
    async with world(tmp_path, {"a": [fails], "b": [later]}, more, rest=rest) as made:
        holds = asyncio.create_task(made.generate())
        await made["b"].arrived.get()
        assert (await made.generate()).text == "b"
        assert (await holds).text == "b"
        assert made.counts == {"a": 1, "b": 2}


async def test_calls_beyond_the_concurrency_limit_of_a_channel_use_the_next(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [stall], "b": [succeed]}, {"a": "concurrency: 2"}) as made:
        held = [asyncio.create_task(made.generate(x_umg_timeout="600")) for _ in range(2)]
        for _ in held:
            await made["a"].arrived.get()
        assert [(await made.generate()).text for _ in range(3)] == ["b"] * 3
        for task in held:
            task.cancel()
        await asyncio.wait(held)


async def test_calls_beyond_the_concurrency_limit_and_the_queue_are_refused_as_retryable(tmp_path: Path) -> None:
    rest = "overload: {queue: 1, wait: 600}\n"
    async with world(tmp_path, {"a": [stall, succeed]}, {"a": "concurrency: 1"}, rest=rest) as made:
        holds = asyncio.create_task(made.generate())
        await made["a"].arrived.get()
        done, waiting = await asyncio.wait(
            {asyncio.create_task(made.generate()) for _ in range(2)}, return_when=asyncio.FIRST_COMPLETED
        )
        answered = done.pop().result()
        assert (answered.status, answered.headers["retry-after"]) == (503, "1")
        assert not done
        assert len(waiting) == 1
        holds.cancel()
        assert (await waiting.pop()).text == "a"  # in the slot of the call that left


async def test_calls_with_one_cache_key_use_one_channel(tmp_path: Path) -> None:
    more = dict.fromkeys("abc", "priority: 0")
    async with world(tmp_path, {name: [succeed] for name in "abc"}, more) as made:
        assert {(await made.generate()).text for _ in range(6)} == {"a", "b", "c"}
        for key in ("one", "two", "three"):
            assert len({(await made.generate(body={"prompt_cache_key": key})).text for _ in range(4)}) == 1


async def test_a_long_conversation_stays_on_its_first_channel(tmp_path: Path) -> None:
    more = dict.fromkeys("abc", "priority: 0")
    async with world(tmp_path, {name: [succeed] for name in "abc"}, more) as made:
        turns = [{"role": "user", "content": "word " * 2000}]
        first = (await made.generate(body={"messages": turns})).text
        for _ in range(4):
            turns += [{"role": "assistant", "content": first}, {"role": "user", "content": "more"}]
            assert (await made.generate(body={"messages": turns})).text == first


async def test_an_http_call_occupies_one_slot_of_the_gateway(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [succeed]}, rest="overload: {calls: 1, queue: 0}\n") as made:
        assert "a" in (await made.generate()).text
        assert "a" in (await made.generate(stream=True)).text


async def test_every_key_of_a_channel_is_tried_once(tmp_path: Path) -> None:
    async def slowly_busy(request: web.Request, made: Scripted) -> web.StreamResponse:
        await asyncio.sleep(0.3)  # so that the first key is usable again when the last has failed
        return await status(429, retry_after_ms="200")(request, made)

    more = {"a": "api_key: [one, two, three, four]"}
    async with world(tmp_path, {"a": [slowly_busy], "b": [succeed]}, more) as made:
        assert (await made.generate()).text == "b"
        assert made.counts == {"a": 4, "b": 1}


async def test_retry_after_is_the_shortest_wait_of_several_keys(tmp_path: Path) -> None:
    scripts = [status(429, retry_after=seconds) for seconds in ("50", "20", "40")]
    async with world(tmp_path, {"a": scripts}, {"a": "api_key: [one, two, three]"}) as made:
        answered = await made.generate()
        assert (answered.status, answered.headers["retry-after"]) == (429, "20")


def taken(made: World, name: str = "a") -> int:
    return made.gateway.service._shared.limiters[name].taken


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("first", ["stalls", "fails later"])
async def test_a_cancelled_hedged_call_releases_all_its_slots(tmp_path: Path, first: str, stream: bool) -> None:
    fail = asyncio.Event()
    fails_later = waiting_for(fail, status(500))
    scripts: dict[str, Sequence[Script]] = {"a": [stall if first == "stalls" else fails_later], "b": [stall]}
    more = dict.fromkeys("ab", "concurrency: 3")
    async with world(tmp_path, scripts, more, rest="models: {m: {hedge: 0.05}}\n") as made:
        pending = asyncio.create_task(made.generate(stream=stream))
        await made["b"].arrived.get()
        if first == "fails later":
            fail.set()
            async with asyncio.timeout(60):
                while taken(made):  # noqa: ASYNC110  # nothing tells when the gateway has read a response
                    await asyncio.sleep(0.005)  # no event reports that the gateway has read the response
        assert (taken(made), taken(made, "b")) == (0 if first == "fails later" else 1, 1)
        pending.cancel()
        await made["b"].calls[0].left.wait()
        async with asyncio.timeout(60):
            while taken(made) or taken(made, "b"):  # noqa: ASYNC110
                await asyncio.sleep(0.005)  # nor that both calls have ended
        await asyncio.sleep(0.05)  # time in which a slot would be released twice
        assert (taken(made), taken(made, "b")) == (0, 0)


async def test_a_hedge_sends_the_same_fields_as_the_first_attempt(tmp_path: Path) -> None:
    gate = asyncio.Event()
    later = waiting_for(gate, succeed)
    rest = "models: {m: {hedge: 0.05}}\n"
    async with world(tmp_path, {"a": [later], "b": [succeed]}, {"b": "protocols: [messages]"}, rest=rest) as made:
        pending = asyncio.create_task(made.generate(body={"seed": 7}))
        await made["a"].arrived.get()
        await asyncio.sleep(0.15)  # three times the delay of the hedge
        gate.set()
        assert (await pending).text == "a"
        assert made.counts["b"] == 0


async def test_a_reload_keeps_the_calls_in_flight_of_a_channel(tmp_path: Path) -> None:
    more = {"a": "concurrency: 1"}
    async with world(tmp_path, {"a": [stall], "b": [succeed]}, more) as made:
        pending = asyncio.create_task(made.generate())
        await made["a"].arrived.get()
        made.gateway.service.reload(made.gateway.service._config)
        assert (await made.generate()).text == "b"
        pending.cancel()
        await asyncio.wait([pending])


async def test_of_many_calls_one_probes_an_ejected_channel(tmp_path: Path) -> None:
    rest = "breaker: {failures: 1, rest: 0.1}\n"
    async with world(tmp_path, {"a": [status(500), stall], "b": [succeed]}, rest=rest) as made:
        assert (await made.generate()).text == "b"
        await asyncio.sleep(0.2)  # the circuit breaker of the channel must become half-open
        pending = [asyncio.create_task(made.generate()) for _ in range(20)]
        served = itertools.islice(asyncio.as_completed(pending, timeout=60), 19)
        assert {(await answered).text for answered in served} == {"b"}
        [waiting] = [task for task in pending if not task.done()]
        assert made.counts["a"] == 2
        waiting.cancel()


async def test_a_model_id_of_a_pattern_that_the_provider_does_not_know_is_not_found(tmp_path: Path) -> None:
    missing = status(404, {"code": "model_not_found"})
    more = {"a": 'models: ["m*"]', "b": 'models: [{id: "m*", upstream: "other-*"}]'}
    async with world(tmp_path, {"a": [missing], "b": [missing]}, more) as made:
        for _ in range(3):
            answered = await made.generate(body={"model": "mistaken"})
            assert (answered.status, answered.body["error"]["code"]) == (404, "model_not_found")
        assert made.counts == {"a": 3, "b": 3}  # a missing model is no failure of the channel
