"""Limits of models, which all keys share, as callers over HTTP and gRPC meet them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import grpc
import openai
import pytest
from aiohttp import web

from tests.support.gateways import SANDBOX, Running, channel, running
from tests.support.processes import run
from tests.support.redis import RedisServer, make_patient
from tests.support.serving import serving
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.config import ConfigError, parse
from umg_grpc.v1 import pb, rpc

LIMITED, FREE = "famO-5", "famO-5-mini"


def with_limits(limits: str) -> str:
    return f"{SANDBOX}models: {{{LIMITED}: {{limits: {limits}}}}}\n"


async def keys_of(gateway: Running, count: int) -> list[str]:
    keys = ApiKeys(gateway.service.store)
    return [(await keys.create(f"key {number}"))[1] for number in range(count)]


async def post(gateway: Running, key: str, model: str = LIMITED, text: str = "x") -> tuple[int, aiohttp.ClientResponse]:
    body = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 10}
    headers = {"authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers) as answer,
    ):
        await answer.read()
        return answer.status, answer


async def test_the_keys_share_the_requests_of_a_model(tmp_path: Path) -> None:
    async with running(with_limits("{rpm: 3}"), tmp_path) as gateway:
        one, other = await keys_of(gateway, 2)
        assert [(await post(gateway, key))[0] for key in (one, other, one, other, one)] == [200, 200, 200, 429, 429]
        status, answer = await post(gateway, one)
        message = (await answer.json())["error"]["message"]
        assert message.startswith(f"the model `{LIMITED}` has made its 3 requests of a minute; try again in ")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert status == 429
        assert (await post(gateway, one, FREE))[0] == 200, "another model has no limit"


async def test_a_grpc_caller_gets_the_limit_of_the_model(tmp_path: Path) -> None:
    async with running(with_limits("{tpm: 100}"), tmp_path) as gateway, grpc.aio.insecure_channel(gateway.grpc) as face:
        [key] = await keys_of(gateway, 1)
        prompt = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="x" * 1000))])
        request = pb.GenerateRequest(model=LIMITED, messages=[prompt], max_output_tokens=5)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await rpc.GenerationServiceStub(face).Generate(request, metadata=[("authorization", f"Bearer {key}")])
        assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        error = from_rpc(caught.value)
        assert error.reason == pb.ERROR_REASON_RATE_LIMITED
        assert (error.metadata["limit"], error.metadata["limit_name"]) == ("100", "tokens_per_minute")
        assert f"more than the 100 of the model `{LIMITED}` in a minute" in error.message


@asynccontextmanager
async def held(data: Path) -> AsyncGenerator[tuple[asyncio.Semaphore, asyncio.Event, Running], None]:
    """Run a gateway whose provider answers after the event; the semaphore counts the calls that arrived."""
    arrived, released, app = asyncio.Semaphore(0), asyncio.Event(), web.Application()

    async def answer(_: web.Request) -> web.StreamResponse:
        arrived.release()
        await released.wait()
        choices = [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]
        return web.json_response(
            {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}
        )

    app.router.add_post("/chat/completions", answer)
    async with serving(app) as url:
        config = f"channels:\n{channel('held', 'chat', url, 'm')}models: {{m: {{limits: {{concurrency: 2}}}}}}\n"
        async with running(config, data) as gateway:
            yield arrived, released, gateway


async def test_the_keys_share_the_concurrent_requests_of_a_model(tmp_path: Path) -> None:
    async with held(tmp_path) as (arrived, released, gateway):
        keys = await keys_of(gateway, 3)
        calls = [asyncio.create_task(post(gateway, key, "m")) for key in keys[:2]]
        for _ in calls:
            await arrived.acquire()
        status, answer = await post(gateway, keys[2], "m")
        assert (status, answer.headers["retry-after"]) == (429, "1")
        released.set()
        assert [(await call)[0] for call in calls] == [200, 200]
        assert (await post(gateway, keys[2], "m"))[0] == 200


async def test_replicas_share_the_limit_through_redis(
    redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_patient(monkeypatch)
    config = f"{with_limits('{rpm: 10}')}redis: {redis_server.url}\n"
    async with running(config, tmp_path / "one") as one, running(config, tmp_path / "other") as other:
        statuses = [(await post(gateway, gateway.key))[0] for _ in range(10) for gateway in (one, other)]
        assert (statuses.count(200), statuses.count(429)) == (10, 10)


async def test_an_sdk_gets_a_rate_limit_error(tmp_path: Path) -> None:
    async with running(with_limits("{rpm: 1}"), tmp_path) as gateway:
        client = openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0)
        async with client:
            await client.responses.create(model=LIMITED, input="x")
            with pytest.raises(openai.RateLimitError):
                await client.responses.create(model=LIMITED, input="x")


async def test_several_workers_need_redis_for_the_limits_of_a_model(tmp_path: Path) -> None:
    path = tmp_path / "umg.yaml"
    path.write_text(with_limits("{rpm: 1}"))
    code, _, errors = await run("serve", "--config", str(path), "--data", str(tmp_path), "--workers", "2")
    assert code != 0
    assert f"model {LIMITED}" in errors


@pytest.mark.parametrize("limits", ["{rpm: 0}", "{tpm: -1}", "{rps: 1}", "5", "{concurrency: many}"])
def test_an_invalid_limit_is_refused_with_its_path(limits: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(with_limits(limits), "test.yaml", {})
    assert f"models.{LIMITED}.limits" in str(caught.value)
