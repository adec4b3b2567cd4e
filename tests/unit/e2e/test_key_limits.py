"""Limits of keys, as callers over HTTP and gRPC meet them."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import anthropic
import grpc
import openai
import pytest
from aiohttp import web

from tests.support.gateways import SANDBOX, Running, channel, running
from tests.support.polling import pause
from tests.support.redis import RedisServer, make_patient, scripts
from tests.support.serving import serving
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb, rpc

MODEL = "famO-5"
ANSWER = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
}  # fmt: skip


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncGenerator[Running, None]:
    async with running(SANDBOX, tmp_path) as gateway:
        yield gateway


async def new_key(gateway: Running, *, rpm: int | None = None, tpm: int | None = None, most: int | None = None) -> str:
    keys = ApiKeys(gateway.service.store)
    limits = {"requests_per_minute": rpm, "tokens_per_minute": tpm, "concurrent_requests": most}
    _, secret = await keys.create("limited", **limits)  # type: ignore[arg-type]
    return secret


class Provider:
    """Provider of chat completions, whose answers wait until they are released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.arrived = asyncio.Semaphore(0)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.arrived.release()
        await self.released.wait()
        return web.json_response(ANSWER)

    async def wait_arrived(self, count: int) -> None:
        for _ in range(count):
            await self.arrived.acquire()


@asynccontextmanager
async def held(data: Path) -> AsyncGenerator[tuple[Provider, Running], None]:
    provider, app = Provider(), web.Application()
    app.router.add_post("/chat/completions", provider.answer)
    async with serving(app) as url, running("channels:\n" + channel("held", "chat", url, "m"), data) as gateway:
        yield provider, gateway


async def post(session: aiohttp.ClientSession, gateway: Running, key: str, **fields: object) -> tuple[int, str]:
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], **fields}
    headers = {"authorization": f"Bearer {key}"}
    async with session.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers) as response:
        return response.status, await response.text()


async def test_of_fifty_parallel_calls_exactly_the_concurrent_requests_are_admitted(tmp_path: Path) -> None:
    async with held(tmp_path) as (provider, gateway), aiohttp.ClientSession() as session:
        key = await new_key(gateway, most=10)
        calls = [asyncio.create_task(post(session, gateway, key)) for _ in range(50)]
        await provider.wait_arrived(10)
        rejections: list[tuple[int, str]] = []
        for call in asyncio.as_completed(calls):
            rejections.append(await call)
            if len(rejections) == 40:
                provider.released.set()
        statuses = [status for status, _ in rejections]
        assert (statuses[:40].count(429), statuses[40:].count(200)) == (40, 10), statuses
        assert "10 concurrent requests" in rejections[0][1]


async def test_a_caller_that_disconnects_frees_its_slot(tmp_path: Path) -> None:
    async with held(tmp_path) as (provider, gateway), aiohttp.ClientSession() as session:
        key = await new_key(gateway, most=1)
        for stream in (False, True):
            first = asyncio.create_task(post(session, gateway, key, stream=stream))
            await provider.wait_arrived(1)
            assert (await post(session, gateway, key))[0] == 429
            first.cancel()
            await asyncio.wait([first])
            waiting = asyncio.create_task(_until_admitted(session, gateway, key))
            await provider.wait_arrived(1)
            provider.released.set()
            assert (await waiting)[0] == 200, "the slot of the disconnected caller is not free"
            provider.released.clear()


async def _until_admitted(session: aiohttp.ClientSession, gateway: Running, key: str) -> tuple[int, str]:
    async with asyncio.timeout(60):
        while (answer := await post(session, gateway, key))[0] == 429:
            await pause()
    return answer


async def test_failed_calls_free_their_slots_and_count_no_tokens(sandbox: Running) -> None:
    key = await new_key(sandbox, most=1, tpm=5000)
    async with aiohttp.ClientSession() as session:
        messages = [{"role": "user", "content": "[[fail]]"}]
        for stream in (False, True, False, True):
            status, _ = await post(session, sandbox, key, model=MODEL, messages=messages, stream=stream)
            assert status == 502
        status, _ = await post(session, sandbox, key, model=MODEL, max_tokens=4000)
        assert status == 200, "a failed call has used tokens"


async def test_the_openai_sdk_reads_the_limits_and_the_corrected_tokens(sandbox: Running) -> None:
    key = await new_key(sandbox, rpm=2, tpm=20_000)
    async with openai.AsyncOpenAI(base_url=f"{sandbox.url}/v1", api_key=key, max_retries=0) as client:
        sent = {"model": MODEL, "messages": [{"role": "user", "content": "Say hello"}], "max_tokens": 9000}
        first = await client.chat.completions.with_raw_response.create(**sent)  # type: ignore[call-overload]
        usage = first.parse().usage
        assert first.headers["x-ratelimit-limit-requests"] == "2"
        assert first.headers["x-ratelimit-remaining-requests"] == "1"
        assert first.headers["x-ratelimit-reset-requests"] == "60s"
        assert first.headers["x-ratelimit-limit-tokens"] == "20000"
        reserved = 20_000 - int(first.headers["x-ratelimit-remaining-tokens"])
        assert reserved in range(9000, 9100)
        second = await client.responses.with_raw_response.create(model=MODEL, input="x", max_output_tokens=9000)
        remaining = int(second.headers["x-ratelimit-remaining-tokens"])
        assert remaining in range(20_000 - usage.total_tokens - 9100, 20_000 - usage.total_tokens - 9000 + 1)
        with pytest.raises(openai.RateLimitError) as caught:
            await client.chat.completions.create(**sent)  # type: ignore[call-overload]
    assert "2 requests of a minute" in caught.value.message
    assert int(caught.value.response.headers["retry-after"]) in range(1, 61)
    assert caught.value.response.headers["x-ratelimit-remaining-requests"] == "0"


async def test_the_anthropic_sdk_reads_the_limits(sandbox: Running) -> None:
    key = await new_key(sandbox, rpm=1, tpm=5000)
    async with anthropic.AsyncAnthropic(base_url=sandbox.url, api_key=key, max_retries=0) as client:
        sent = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": "x"}]}
        answer = await client.messages.with_raw_response.create(**sent)  # type: ignore[call-overload]
        with pytest.raises(anthropic.RateLimitError) as caught:
            await client.messages.create(**sent)  # type: ignore[call-overload]
    for headers in (answer.headers, caught.value.response.headers):
        assert headers["anthropic-ratelimit-requests-limit"] == "1"
        assert headers["anthropic-ratelimit-requests-remaining"] == "0"
        reset = datetime.fromisoformat(headers["anthropic-ratelimit-requests-reset"])
        assert 0 <= (reset - datetime.now(UTC)).total_seconds() <= 61
        assert headers["anthropic-ratelimit-tokens-limit"] == "5000"
        assert "x-ratelimit-limit-requests" not in headers


async def test_a_stream_has_the_headers_and_is_corrected_at_its_end(sandbox: Running) -> None:
    key = await new_key(sandbox, tpm=5000)
    async with openai.AsyncOpenAI(base_url=f"{sandbox.url}/v1", api_key=key, max_retries=0) as client:
        sent = {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "max_tokens": 4000, "stream": True}
        for _ in range(2):
            answer = await client.chat.completions.with_raw_response.create(**sent)  # type: ignore[call-overload]
            async for _ in answer.parse():
                pass
            assert int(answer.headers["x-ratelimit-remaining-tokens"]) < 1000


async def test_a_key_without_limits_gets_no_headers(sandbox: Running) -> None:
    async with openai.AsyncOpenAI(base_url=f"{sandbox.url}/v1", api_key=sandbox.key, max_retries=0) as client:
        answer = await client.responses.with_raw_response.create(model=MODEL, input="x")
    assert [name for name in answer.headers if "ratelimit" in name] == []


async def test_a_grpc_caller_gets_the_status_the_limit_and_the_headers(sandbox: Running) -> None:
    key = await new_key(sandbox, tpm=50)
    message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="x"))])
    request = pb.GenerateRequest(model=MODEL, messages=[message], max_output_tokens=40)
    async with grpc.aio.insecure_channel(sandbox.grpc) as connection:
        call = rpc.GenerationServiceStub(connection).Generate
        first = call(request, metadata=[("authorization", f"Bearer {key}")])
        await first
        headers = dict(await first.initial_metadata())
        assert headers["x-ratelimit-limit-tokens"] == "50"
        request.messages[0].parts[0].text.text = "word " * 100
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(request, metadata=[("authorization", f"Bearer {key}")])
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    error = from_rpc(caught.value)
    assert (error.metadata["limit_name"], error.metadata["limit"]) == ("tokens_per_minute", "50")
    assert error.retry_after is None


async def test_of_many_concurrent_calls_two_gateways_admit_exactly_the_requests_of_a_minute(
    tmp_path: Path, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, callers, calls = 200, 30, 5
    make_patient(monkeypatch)
    config = f"{SANDBOX}\nredis: {redis_server.url}\noverload: {{lag: 10}}\n"
    async with running(config, tmp_path) as one, running(config, tmp_path) as other, aiohttp.ClientSession() as session:
        key = await new_key(one, rpm=limit)

        async def answers_of(gateway: Running) -> list[tuple[int, str]]:
            return [await post(session, gateway, key, model=MODEL) for _ in range(calls)]

        before = scripts(redis_server)
        found = await asyncio.gather(*(answers_of(gateway) for gateway in (one, other) for _ in range(callers)))
        commands = scripts(redis_server) - before
    statuses = Counter(status for answers in found for status, _ in answers)
    assert statuses == {200: limit, 429: 2 * callers * calls - limit}
    assert commands < limit / 2, "most calls wait for a command to Redis"
